//! The nonces that servers ask a client to use.

/// At most this many origins are remembered.
const MAX_ORIGINS: usize = 64;
/// A nonce is at most this long, in bytes.
const MAX_NONCE: usize = 1024;

/// The last nonce of each server, by its origin. A nonce is sent only to the server that gave it.
#[derive(Clone, Debug, Default)]
pub struct Nonces {
    known: Vec<(String, String)>,
}

impl Nonces {
    /// Creates a memory without nonces.
    #[must_use]
    pub const fn new() -> Self {
        Self { known: Vec::new() }
    }

    /// Returns the nonce for a request to `origin`: scheme, host and port.
    #[must_use]
    pub fn get(&self, origin: &str) -> Option<&str> {
        self.known.iter().find(|(known, _)| known == origin).map(|(_, nonce)| nonce.as_str())
    }

    /// Keeps the header `DPoP-Nonce` of a response. Returns whether it is another nonce than before.
    ///
    /// Text that is too long or is not visible ASCII is ignored. If there are too many origins, the oldest is forgotten.
    pub fn set(&mut self, origin: &str, nonce: &str) -> bool {
        let fits = !nonce.is_empty()
            && nonce.len() <= MAX_NONCE
            && nonce.bytes().all(|byte| byte.is_ascii_graphic());
        if !fits || self.get(origin) == Some(nonce) {
            return false;
        }
        self.known.retain(|(known, _)| known != origin);
        if self.known.len() >= MAX_ORIGINS {
            self.known.remove(0);
        }
        self.known.push((origin.to_owned(), nonce.to_owned()));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_origin_has_its_own_last_nonce() {
        let mut nonces = Nonces::new();
        assert!(nonces.set("https://as.example", "a1"));
        assert!(nonces.set("https://rs.example", "r1"));
        assert!(nonces.set("https://as.example", "a2"));
        assert!(!nonces.set("https://as.example", "a2"));
        assert_eq!(nonces.get("https://as.example"), Some("a2"));
        assert_eq!(nonces.get("https://rs.example"), Some("r1"));
        assert_eq!(nonces.get("https://as.example:8443"), None);
    }

    #[test]
    fn nonces_are_bounded() {
        let mut nonces = Nonces::new();
        for text in ["", "a b", "a\nb", "é", &"x".repeat(MAX_NONCE + 1)] {
            assert!(!nonces.set("https://a.example", text), "{text}");
        }
        for number in 0..=MAX_ORIGINS {
            nonces.set(&format!("https://{number}.example"), "n");
        }
        assert_eq!(nonces.get("https://0.example"), None);
        assert_eq!(nonces.get("https://1.example"), Some("n"));
        assert_eq!(nonces.known.len(), MAX_ORIGINS);
    }
}
