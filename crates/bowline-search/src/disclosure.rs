//! Decides whether a client is shown all tools or the meta tools.
//!
//! Searching costs the model an extra round for every tool that it needs. That pays off if the list would fill its
//! context, unless the client defers tool definitions by itself: such a client works better with the complete list. The
//! client is identified by the name it reports. This is sufficient here, because both ways lead to the same tools.

/// Which clients get the meta tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DisclosureMode {
    /// Clients whose list would exceed the threshold, unless they defer tools by themselves.
    #[default]
    Auto,
    /// No client.
    Off,
    /// Every client.
    On,
}

/// The tools that a client is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// All tools.
    Whole,
    /// The meta tools.
    Search,
}

/// The reason of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The mode applies to all clients.
    Mode,
    /// An override names the client.
    Override,
    /// The client defers tools by itself.
    ClientDefers,
    /// The list is below the threshold.
    Small,
    /// The list exceeds the threshold.
    Large,
}

/// The decision for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The tools that the client is shown.
    pub listing: Listing,
    /// The reason.
    pub reason: Reason,
}

/// Decides which tools a client is shown.
///
/// ```
/// use bowline_search::{Disclosure, Listing};
///
/// let disclosure = Disclosure::new();
/// assert_eq!(disclosure.decide(Some("some-agent"), 500).listing, Listing::Whole);
/// assert_eq!(disclosure.decide(Some("some-agent"), 120_000).listing, Listing::Search);
/// assert_eq!(disclosure.decide(Some("claude-code"), 120_000).listing, Listing::Whole);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disclosure {
    mode: DisclosureMode,
    threshold: usize,
    overrides: Vec<(String, DisclosureMode)>,
}

/// Names of clients that load tool definitions on demand.
const DEFERRING: [&str; 10] = [
    "anthropic/claudeai",
    "claude",
    "claude-ai",
    "claude-code",
    "claude code",
    "codex-mcp-client",
    "cursor",
    "cursor-vscode",
    "visual studio code",
    "visual studio code - insiders",
];

impl Disclosure {
    /// The default threshold in tokens: a twentieth of a common context of 200,000.
    pub const THRESHOLD: usize = 10_000;

    /// Creates the default: [`DisclosureMode::Auto`] with the default threshold and no overrides.
    pub fn new() -> Self {
        Self { mode: DisclosureMode::Auto, threshold: Self::THRESHOLD, overrides: Vec::new() }
    }

    /// Sets which clients get the meta tools.
    #[must_use]
    pub fn mode(mut self, mode: DisclosureMode) -> Self {
        self.mode = mode;
        self
    }

    /// Sets the maximum size of a complete list in tokens, estimated by [`estimate_tokens`](super::estimate_tokens).
    #[must_use]
    pub fn threshold(mut self, tokens: usize) -> Self {
        self.threshold = tokens;
        self
    }

    /// Overrides the mode for clients with this name in `clientInfo`, ignoring case. The last override of a name
    /// applies.
    ///
    /// With [`DisclosureMode::Auto`] only the size of the list decides, even if the client defers tools.
    #[must_use]
    pub fn client(mut self, name: impl Into<String>, mode: DisclosureMode) -> Self {
        self.overrides.push((name.into(), mode));
        self
    }

    /// Decides for a client with this name, whose complete list would have this many tokens.
    pub fn decide(&self, client: Option<&str>, tokens: usize) -> Decision {
        let own = client.map(own_name);
        let named = own.and_then(|own| self.overrides.iter().rev().find(|(name, _)| is_same(name, own)));
        let (mode, forced) = named.map_or((self.mode, Reason::Mode), |(_, mode)| (*mode, Reason::Override));
        match mode {
            DisclosureMode::Off => Decision { listing: Listing::Whole, reason: forced },
            DisclosureMode::On => Decision { listing: Listing::Search, reason: forced },
            DisclosureMode::Auto if named.is_none() && own.is_some_and(defers) => {
                Decision { listing: Listing::Whole, reason: Reason::ClientDefers }
            }
            DisclosureMode::Auto if tokens > self.threshold => {
                Decision { listing: Listing::Search, reason: Reason::Large }
            }
            DisclosureMode::Auto => Decision { listing: Listing::Whole, reason: Reason::Small },
        }
    }
}

impl Default for Disclosure {
    fn default() -> Self {
        Self::new()
    }
}

fn defers(client: &str) -> bool {
    DEFERRING.iter().any(|name| is_same(name, client))
}

/// Removes what proxies append to the name: `claude-ai (via mcp-remote 0.1.37)`.
fn own_name(client: &str) -> &str {
    client.split_once(" (via ").map_or(client, |(own, _)| own).trim()
}

fn is_same(name: &str, client: &str) -> bool {
    name.trim().eq_ignore_ascii_case(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(disclosure: &Disclosure, client: Option<&str>, tokens: usize, listing: Listing, reason: Reason) {
        assert_eq!(disclosure.decide(client, tokens), Decision { listing, reason });
    }

    #[test]
    fn size_decides_at_the_threshold() {
        let disclosure = Disclosure::new().threshold(100);
        check(&disclosure, Some("agent"), 100, Listing::Whole, Reason::Small);
        check(&disclosure, Some("agent"), 101, Listing::Search, Reason::Large);
        check(&disclosure, None, 101, Listing::Search, Reason::Large);
    }

    #[test]
    fn clients_that_defer_tools_get_them_all() {
        for client in [
            "claude-code",
            "Claude-Code",
            "claude-ai (via mcp-remote 0.1.37)",
            "Visual Studio Code",
            "cursor-vscode",
        ] {
            check(&Disclosure::new(), Some(client), 1_000_000, Listing::Whole, Reason::ClientDefers);
        }
        // Only the whole name matches.
        check(&Disclosure::new(), Some("not-claude-code"), 1_000_000, Listing::Search, Reason::Large);
    }

    #[test]
    fn the_mode_applies_to_every_client() {
        let off = Disclosure::new().mode(DisclosureMode::Off);
        check(&off, Some("agent"), 1_000_000, Listing::Whole, Reason::Mode);
        let on = Disclosure::new().mode(DisclosureMode::On);
        check(&on, Some("claude-code"), 1, Listing::Search, Reason::Mode);
        check(&on, None, 1, Listing::Search, Reason::Mode);
    }

    #[test]
    fn overrides_have_precedence() {
        let disclosure = Disclosure::new()
            .mode(DisclosureMode::On)
            .client("claude-code", DisclosureMode::On)
            .client("Claude-Code", DisclosureMode::Auto)
            .client("small-model", DisclosureMode::Off);
        check(&disclosure, Some("small-model"), 1_000_000, Listing::Whole, Reason::Override);
        check(&disclosure, Some("claude-code"), 1_000_000, Listing::Search, Reason::Large);
        check(&disclosure, Some("claude-code"), 1, Listing::Whole, Reason::Small);
        check(&disclosure, Some("agent"), 1, Listing::Search, Reason::Mode);
    }
}
