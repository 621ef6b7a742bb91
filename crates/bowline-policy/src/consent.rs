//! Who consents to calls that no rule decides.

use std::fmt;
use std::net::SocketAddr;

/// Who consents to calls that no rule decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Consent {
    /// The client, which is a host with a user of its own: such calls pass. What a rule asks about, and changed
    /// definitions, are still asked.
    Client,
    /// The user, who is asked.
    #[default]
    Ask,
    /// Nobody: what would be asked is refused.
    Deny,
}

impl Consent {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Client, Self::Ask, Self::Deny];

    /// The word for it in files and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// The mode of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|consent| consent.as_str() == name)
    }
}

impl fmt::Display for Consent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// Who can call a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Audience {
    /// One user: over standard streams, or on a loopback address that a token protects from other users of the machine.
    SingleUser,
    /// Possibly several.
    #[default]
    Shared,
}

impl Audience {
    /// Who can call a gateway that listens there, or over standard streams only without an address.
    pub fn of(listen: Option<SocketAddr>, has_token: bool) -> Self {
        match listen {
            None => Self::SingleUser,
            Some(address) if address.ip().is_loopback() && has_token => Self::SingleUser,
            Some(_) => Self::Shared,
        }
    }
}

/// The consent that holds where none is configured: the client's own for a gateway of a single user that nobody watches,
/// otherwise everything is asked.
pub fn default_consent(audience: Audience, is_attended: bool) -> Consent {
    match audience {
        Audience::SingleUser if !is_attended => Consent::Client,
        Audience::SingleUser | Audience::Shared => Consent::Ask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_gateway_of_one_user_leaves_consent_to_the_client() {
        let at = |address: &str| Some(address.parse::<SocketAddr>().unwrap());
        for (listen, has_token, is_attended, expected) in [
            (None, false, false, Consent::Client),
            (at("127.0.0.1:7337"), true, false, Consent::Client),
            (at("[::1]:7337"), true, false, Consent::Client),
            (at("127.0.0.1:7337"), false, false, Consent::Ask),
            (at("0.0.0.0:7337"), true, false, Consent::Ask),
            (at("192.168.0.7:7337"), true, false, Consent::Ask),
            (None, false, true, Consent::Ask),
            (at("127.0.0.1:7337"), true, true, Consent::Ask),
        ] {
            let consent = default_consent(Audience::of(listen, has_token), is_attended);
            assert_eq!(consent, expected, "{listen:?} {has_token} {is_attended}");
        }
    }
}
