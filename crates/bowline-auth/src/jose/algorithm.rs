//! Names the signature algorithms (RFC 7518, 3.1; RFC 8037).

use std::fmt;

/// A signature algorithm. Only asymmetric ones exist here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// RSA PKCS #1 v1.5 with SHA-256.
    Rs256,
    /// RSA PKCS #1 v1.5 with SHA-384.
    Rs384,
    /// RSA PKCS #1 v1.5 with SHA-512.
    Rs512,
    /// RSA PSS with SHA-256.
    Ps256,
    /// RSA PSS with SHA-384.
    Ps384,
    /// RSA PSS with SHA-512.
    Ps512,
    /// EdDSA with the curve Ed25519.
    EdDsa,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 9] = [
        Self::Es256,
        Self::Es384,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::EdDsa,
    ];

    /// Reads the value of `alg`. RFC 9864 replaces `EdDSA` by `Ed25519`, so both names are known.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        if name == "Ed25519" {
            return Some(Self::EdDsa);
        }
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Returns the value of `alg`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::EdDsa => "EdDSA",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_listed_names_are_algorithms() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::parse(algorithm.name()), Some(algorithm));
            assert_eq!(algorithm.to_string(), algorithm.name());
        }
        assert_eq!(Algorithm::parse("Ed25519"), Some(Algorithm::EdDsa));
        for name in [
            "none", "None", "NONE", "", "HS256", "HS384", "HS512", "es256", "ES256 ", "ES256K", "ES512",
            "Ed448",
        ] {
            assert_eq!(Algorithm::parse(name), None, "{name}");
        }
    }
}
