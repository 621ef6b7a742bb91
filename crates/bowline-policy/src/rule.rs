//! One rule: its conditions and its effect.

use bowline_types::{RawJson, ToolAnnotations};
use std::fmt;

use super::pattern::Pattern;
use super::rules::{Action, Request, Trust};
use super::spelling;
use super::token::TokenConditions;
use super::tree::{Readings, Tree};

/// The effect of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// Allow without asking.
    Allow,
    /// Ask the user.
    Ask,
    /// Deny.
    Deny,
}

impl Effect {
    /// Returns the name in files and logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// A condition on an argument.
///
/// A rule that asks or denies matches every spelling of a path or URI: `/etc/passwd`, `/etc//passwd`,
/// `/srv/../etc/passwd`, `file:/etc/passwd` and `file:///%65tc/passwd` are the same. A rule that allows matches only if
/// both the text and its normal form match and there is no `..` segment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ArgumentTest {
    /// It is present.
    Present,
    /// It equals this JSON value. `1` and `1.0` are equal, and the order of members is ignored.
    Equals(RawJson),
    /// It is a string, number, boolean or `null` whose text matches. `22`, `22.0` and `2.2e1` are the same number.
    Matches(Pattern),
    /// It is a string with this prefix. For paths use [`Within`](Self::Within): `/srv/../etc` starts with `/srv`.
    StartsWith(String),
    /// It is the path of this directory or of something below it, without `.`, `..`, backslashes and empty segments.
    /// Links are not resolved.
    Within(String),
}

impl ArgumentTest {
    fn fits(&self, value: &Tree, readings: Readings) -> bool {
        match self {
            Self::Present => true,
            Self::Equals(expected) => {
                let expected = Tree::of(expected);
                value.means(&expected)
                    || matches!((value, &expected), (Tree::String(text), Tree::String(expected))
                        if readings == Readings::Any && is_same(expected, text))
            }
            Self::Matches(pattern) => {
                value.is_text(readings, &|text| pattern.matches_spellings(text, readings))
            }
            Self::StartsWith(_) | Self::Within(_) => {
                matches!(value, Tree::String(text) if self.fits_text(text, readings))
            }
        }
    }

    fn fits_text(&self, text: &str, readings: Readings) -> bool {
        match self {
            Self::Present => true,
            Self::Equals(expected) => Tree::of(expected).scalar().is_some_and(|expected| match readings {
                Readings::Any => is_same(expected, text),
                Readings::Every => expected == text,
            }),
            Self::Matches(pattern) => pattern.matches_spellings(text, readings),
            Self::StartsWith(start) => Pattern::starting_with(start).matches_spellings(text, readings),
            Self::Within(folder) => match readings {
                Readings::Any => spelling::forms(text).iter().any(|form| is_within(folder, form)),
                Readings::Every => !spelling::may_have_parent_step(text) && is_within(folder, text),
            },
        }
    }
}

/// Returns whether two texts may name the same thing.
fn is_same(expected: &str, text: &str) -> bool {
    expected == text || Pattern::exact(expected).matches_spellings(text, Readings::Any)
}

fn is_within(folder: &str, path: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    let Some(rest) = path.strip_prefix(folder) else { return false };
    if path.contains(['\\', '\0']) {
        return false;
    }
    match rest.strip_prefix('/') {
        Some(below) => {
            let below = below.strip_suffix('/').unwrap_or(below);
            below.is_empty() || below.split('/').all(|step| !matches!(step, "" | "." | ".."))
        }
        None => rest.is_empty() && !folder.is_empty(),
    }
}

/// The location of an argument.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    /// At this JSON pointer.
    At(String),
    /// Any scalar and any member name, at any depth.
    Anywhere,
}

/// Conditions on the annotations of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Hints {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
}

/// A rule. It matches if all of its conditions do, and the first rule that matches decides.
///
/// - Without [`action`](Self::action), a rule that allows or asks applies to tool calls, and a rule that denies applies to
///   everything a server does or asks for.
/// - Servers and names are compared separately, and names as the server gives them. A rule for `read` of `files` matches no
///   other pair that could be joined to the same text.
/// - A name that a client reports cannot allow anything: [`caller`](Self::caller) of a rule that allows is compared only with
///   the authenticated principal.
/// - Conditions on the access token ([`principal`](Self::principal), [`issuer`](Self::issuer), [`client`](Self::client),
///   [`scope`](Self::scope), [`claim`](Self::claim)) never match a caller without one.
/// - Annotations cannot allow anything unless the server is trusted: a rule that allows by annotations matches only tools of
///   trusted servers.
/// - A rule with conditions on arguments denies ambiguous arguments, such as those with duplicate members.
///
/// ```
/// use bowline_policy::{ArgumentTest, Rule};
///
/// let rule = Rule::allow()
///     .server("files")
///     .tool("read_*")
///     .argument("/path", ArgumentTest::Within("/srv/public".into()))
///     .origin("bowline.toml:12");
/// assert_eq!(rule.to_string(), "allow files read_* (bowline.toml:12)");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "it does nothing until it is used"]
pub struct Rule {
    effect: Effect,
    actions: Vec<Action>,
    server: Option<Pattern>,
    name: Option<Pattern>,
    arguments: Vec<(Place, ArgumentTest)>,
    hints: Hints,
    caller: Option<Pattern>,
    token: TokenConditions,
    origin: String,
}

impl Rule {
    /// Creates a rule with this effect and no conditions.
    pub fn new(effect: Effect) -> Self {
        Self {
            effect,
            actions: Vec::new(),
            server: None,
            name: None,
            arguments: Vec::new(),
            hints: Hints::default(),
            caller: None,
            token: TokenConditions::default(),
            origin: String::new(),
        }
    }

    /// Creates a rule that allows.
    pub fn allow() -> Self {
        Self::new(Effect::Allow)
    }

    /// Creates a rule that asks.
    pub fn ask() -> Self {
        Self::new(Effect::Ask)
    }

    /// Creates a rule that denies.
    pub fn deny() -> Self {
        Self::new(Effect::Deny)
    }

    /// Matches only this server.
    pub fn server(mut self, pattern: impl Into<Pattern>) -> Self {
        self.server = Some(pattern.into());
        self
    }

    /// Matches only this tool, by its name on the server. For other actions: the name of the prompt, the URI of the
    /// resource, or the URL to open.
    pub fn tool(mut self, pattern: impl Into<Pattern>) -> Self {
        self.name = Some(pattern.into());
        self
    }

    /// Matches only this action. Repeat it for several actions.
    pub fn action(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// Matches only if the argument at a JSON pointer passes the test.
    pub fn argument(mut self, pointer: impl Into<String>, test: ArgumentTest) -> Self {
        self.arguments.push((Place::At(pointer.into()), test));
        self
    }

    /// Matches only if any scalar or member name in the arguments passes the test.
    pub fn any_argument(mut self, test: ArgumentTest) -> Self {
        self.arguments.push((Place::Anywhere, test));
        self
    }

    /// Matches only tools with this `readOnlyHint`. Its default is `false`.
    pub fn read_only(mut self, value: bool) -> Self {
        self.hints.read_only = Some(value);
        self
    }

    /// Matches only tools with this `destructiveHint`. Its default is `true`.
    pub fn destructive(mut self, value: bool) -> Self {
        self.hints.destructive = Some(value);
        self
    }

    /// Matches only tools with this `idempotentHint`. Its default is `false`.
    pub fn idempotent(mut self, value: bool) -> Self {
        self.hints.idempotent = Some(value);
        self
    }

    /// Matches only tools with this `openWorldHint`. Its default is `true`.
    pub fn open_world(mut self, value: bool) -> Self {
        self.hints.open_world = Some(value);
        self
    }

    /// Matches only this caller: the user of the access token or, without one, the principal. Rules that do not allow also
    /// match the name that the client reports.
    pub fn caller(mut self, pattern: impl Into<Pattern>) -> Self {
        self.caller = Some(pattern.into());
        self
    }

    /// Matches only this user: the subject of the access token. It is unique only together with its issuer.
    pub fn principal(mut self, pattern: impl Into<Pattern>) -> Self {
        self.token.principal = Some(pattern.into());
        self
    }

    /// Matches only access tokens of this issuer.
    pub fn issuer(mut self, pattern: impl Into<Pattern>) -> Self {
        self.token.issuer = Some(pattern.into());
        self
    }

    /// Matches only access tokens that were issued to this client id.
    pub fn client(mut self, pattern: impl Into<Pattern>) -> Self {
        self.token.client = Some(pattern.into());
        self
    }

    /// Matches only access tokens that grant this scope; repeat it for several, all of which are needed.
    pub fn scope(mut self, pattern: impl Into<Pattern>) -> Self {
        self.token.scopes.push(pattern.into());
        self
    }

    /// Matches only access tokens with this claim; repeat it for several. `name` is the name of a claim, or a JSON pointer if it
    /// begins with `/`. Of a list, one item must match.
    pub fn claim(mut self, name: &str, pattern: impl Into<Pattern>) -> Self {
        let pointer = match name.strip_prefix('/') {
            Some(_) => name.to_owned(),
            None => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
        };
        self.token.claims.push((pointer, pattern.into()));
        self
    }

    /// Sets the position of the rule, such as `bowline.toml:12`, for messages.
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = origin.into();
        self
    }

    /// Returns where the rule is written, if that is known.
    pub fn written_at(&self) -> Option<&str> {
        Some(self.origin.as_str()).filter(|origin| !origin.is_empty())
    }

    /// Returns the effect of the rule.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    pub(super) fn looks_at_arguments(&self) -> bool {
        !self.arguments.is_empty()
    }

    /// Returns whether all conditions match, except those on arguments.
    pub(super) fn fits(&self, request: &Request<'_>) -> bool {
        let action = match self.actions.as_slice() {
            [] => request.action == Action::Call || self.effect == Effect::Deny,
            actions => actions.contains(&request.action),
        };
        action
            && self.server.as_ref().is_none_or(|pattern| pattern.matches(request.server))
            && self.name.as_ref().is_none_or(|pattern| self.fits_name(pattern, request))
            && self.caller.as_ref().is_none_or(|pattern| self.fits_caller(pattern, request))
            && self.token.are_met(request.caller.token, self.effect)
            && self.fits_hints(request)
    }

    /// Returns whether the rule names URIs, some of which are ambiguous.
    pub(super) fn looks_at_uri(&self, request: &Request<'_>) -> bool {
        request.action.is_about_uri()
            && self.name.as_ref().is_some_and(|pattern| !pattern.is_anything())
            && Self { name: None, ..self.clone() }.fits(request)
    }

    fn fits_name(&self, pattern: &Pattern, request: &Request<'_>) -> bool {
        if request.action.is_about_uri() {
            pattern.matches_spellings(request.name, self.readings())
        } else {
            pattern.matches(request.name)
        }
    }

    /// A rule that restricts matches if any spelling does; a rule that allows must match every spelling.
    fn readings(&self) -> Readings {
        if self.effect == Effect::Allow { Readings::Every } else { Readings::Any }
    }

    fn fits_caller(&self, pattern: &Pattern, request: &Request<'_>) -> bool {
        let matches = |name: Option<&str>| name.is_some_and(|name| pattern.matches(name));
        // The principal of a token is a record of issuer, user and client. A pattern means the user.
        let recorded = request.caller.principal.and_then(subject_of);
        let user = match request.caller.token.verified() {
            Some(token) => Some(token.subject()),
            None => recorded.as_deref().or(request.caller.principal),
        };
        matches(user) || (self.effect != Effect::Allow && matches(request.caller.client))
    }

    fn fits_hints(&self, request: &Request<'_>) -> bool {
        if self.hints == Hints::default() {
            return true;
        }
        if request.action != Action::Call || (self.effect == Effect::Allow && request.trust != Trust::Trusted)
        {
            return false;
        }
        let hint = |of: fn(&ToolAnnotations) -> Option<bool>| request.annotations.and_then(of);
        let fits = |wanted: Option<bool>, found: bool| wanted.is_none_or(|wanted| wanted == found);
        fits(self.hints.read_only, hint(|hints| hints.read_only_hint).unwrap_or(false))
            && fits(self.hints.destructive, hint(|hints| hints.destructive_hint).unwrap_or(true))
            && fits(self.hints.idempotent, hint(|hints| hints.idempotent_hint).unwrap_or(false))
            && fits(self.hints.open_world, hint(|hints| hints.open_world_hint).unwrap_or(true))
    }

    pub(super) fn fits_arguments(&self, arguments: &Tree) -> bool {
        let readings = self.readings();
        self.arguments.iter().all(|(place, test)| match place {
            Place::At(pointer) => arguments.at(pointer).is_some_and(|value| test.fits(value, readings)),
            Place::Anywhere => arguments.any_text(readings, &|text| test.fits_text(text, readings)),
        })
    }
}

/// Shows the effect, the server, the tool and the position of the rule.
impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |pattern: Option<&Pattern>| pattern.map_or("*", Pattern::as_str).to_owned();
        write!(formatter, "{} {} {}", self.effect, shown(self.server.as_ref()), shown(self.name.as_ref()))?;
        match self.origin.as_str() {
            "" => Ok(()),
            origin => write!(formatter, " ({origin})"),
        }
    }
}

/// Returns the user of a principal that is the record of a token.
fn subject_of(principal: &str) -> Option<String> {
    let (_, subject, _): (Option<String>, Option<String>, Option<String>) =
        serde_json::from_str(principal).ok()?;
    subject
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_within_their_folder() {
        for (folder, path, within) in [
            ("/srv", "/srv", true),
            ("/srv/", "/srv/a/b", true),
            ("/srv", "/srv/a/", true),
            ("/srv", "/srv-evil/a", false),
            ("/srv", "/srv/../etc", false),
            ("/srv", "/srv/a/..", false),
            ("/srv", "/srv/./a", false),
            ("/srv", "/srv//a", false),
            ("/srv", "/srv/a\\..\\b", false),
            ("/srv", "/srv/a\0", false),
            ("/srv", "srv/a", false),
            ("/", "/etc", true),
            ("/", "", false),
        ] {
            assert_eq!(is_within(folder, path), within, "{folder} {path}");
        }
    }
}
