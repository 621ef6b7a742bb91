//! Who consents to calls that no rule decides.

use std::fmt;
use std::net::SocketAddr;

/// Who consents to calls that no rule decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Consent {
    /// The client, which is a host with its own user: such calls are allowed. A rule that asks and changed definitions
    /// still ask.
    Client,
    /// The user is asked.
    #[default]
    Ask,
    /// Nobody: what would be asked is denied.
    Deny,
}

impl Consent {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Client, Self::Ask, Self::Deny];

    /// Returns the name in files and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Parses a name.
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
    /// One user: over stdio, or on a loopback address with a token that other users of the machine do not have.
    SingleUser,
    /// Possibly several users.
    #[default]
    Shared,
}

impl Audience {
    /// Returns the audience of a gateway that listens on this address, or only on stdio without one.
    pub fn of(listen: Option<SocketAddr>, has_token: bool) -> Self {
        match listen {
            None => Self::SingleUser,
            Some(address) if address.ip().is_loopback() && has_token => Self::SingleUser,
            Some(_) => Self::Shared,
        }
    }
}

/// Returns the default mode: [`Consent::Client`] for an unattended gateway of a single user, otherwise
/// [`Consent::Ask`].
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
