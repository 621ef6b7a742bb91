//! Named exceptions from rules, for servers that break them.

use std::{fmt, str::FromStr};

/// One exception. Each breaks a MUST of the specification, so it is set per server and shown to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Lenient {
    /// Metadata of the authorization server without `issuer` is used.
    MissingIssuer,
    /// `issuer` in the metadata may differ from the expected issuer by a final slash. `iss` in responses stays exact.
    IssuerSlash,
    /// An authorization server that does not announce PKCE is used. PKCE with S256 is sent all the same.
    UnannouncedPkce,
    /// The parameter `resource` is not sent.
    NoResourceParameter,
    /// The resource in the metadata may be another one than the server, as behind a proxy.
    ForeignResource,
    /// Servers without TLS are used, also elsewhere than on this machine.
    Http,
}

impl Lenient {
    /// All exceptions.
    pub const ALL: [Self; 6] = [
        Self::MissingIssuer,
        Self::IssuerSlash,
        Self::UnannouncedPkce,
        Self::NoResourceParameter,
        Self::ForeignResource,
        Self::Http,
    ];

    /// Returns the name in configuration files, on the command line and in messages.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MissingIssuer => "missing-issuer",
            Self::IssuerSlash => "issuer-slash",
            Self::UnannouncedPkce => "unannounced-pkce",
            Self::NoResourceParameter => "no-resource-parameter",
            Self::ForeignResource => "foreign-resource",
            Self::Http => "http",
        }
    }
}

impl fmt::Display for Lenient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Lenient {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|lenient| lenient.as_str() == text).ok_or_else(|| {
            let all: Vec<&str> = Self::ALL.iter().map(|lenient| lenient.as_str()).collect();
            format!("unknown exception `{text}`; expected one of {}", all.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exception_has_a_name_that_is_read_back() {
        for lenient in Lenient::ALL {
            assert_eq!(lenient.to_string().parse(), Ok(lenient));
        }
        assert!("https".parse::<Lenient>().unwrap_err().contains("missing-issuer"));
    }
}
