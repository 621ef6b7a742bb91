//! Decides whether a client is listed all tools or the meta tools.
//!
//! Searching costs a model an extra round for every tool it needs. That pays when the list would fill its context, and
//! only where the client does not keep it out of there by itself: many do by now, and to such a client three tools that
//! hide two thousand are a loss. Who the client is, it says itself, which is good enough for a choice between two ways
//! to the same tools and for nothing else.

/// Who gets the means to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DisclosureMode {
    /// Clients that would be listed more than the threshold and do not defer tools by themselves.
    #[default]
    Auto,
    /// No client.
    Off,
    /// Every client.
    On,
}

/// What a client is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// Every tool.
    Whole,
    /// The means to search them.
    Search,
}

/// Why a client is listed what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The mode says so for every client.
    Mode,
    /// An override names the client.
    Override,
    /// The client is known to defer tools by itself.
    ClientDefers,
    /// The list is within the threshold.
    Small,
    /// The list is beyond the threshold.
    Large,
}

/// What was decided for a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What the client is listed.
    pub listing: Listing,
    /// Why.
    pub reason: Reason,
}

/// How it is decided what a client is listed.
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

/// The clients that load definitions of tools when a model asks for them, by the names they give themselves.
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
    /// The tokens that a list may take before it is worth searching: a twentieth of a common context of 200 000.
    pub const THRESHOLD: usize = 10_000;

    /// Decides by client and size, with the default threshold and without overrides.
    pub fn new() -> Self {
        Self { mode: DisclosureMode::Auto, threshold: Self::THRESHOLD, overrides: Vec::new() }
    }

    /// Who gets the means to search.
    pub fn mode(mut self, mode: DisclosureMode) -> Self {
        self.mode = mode;
        self
    }

    /// The most tokens, by [`estimate_tokens`](super::estimate_tokens), of a list that is shown whole.
    pub fn threshold(mut self, tokens: usize) -> Self {
        self.threshold = tokens;
        self
    }

    /// Sets the mode for clients of a name, as in `clientInfo`; case does not matter. The last one for a name counts.
    ///
    /// With [`DisclosureMode::Auto`] a client is decided on by the size of the list alone, whether it defers or not.
    pub fn client(mut self, name: impl Into<String>, mode: DisclosureMode) -> Self {
        self.overrides.push((name.into(), mode));
        self
    }

    /// What a client that calls itself `client` is listed when every tool would take `tokens`.
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

/// Proxies put their own name behind: `claude-ai (via mcp-remote 0.1.37)`.
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
        // Only the whole name counts.
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
