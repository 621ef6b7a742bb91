//! One rule: its conditions and its effect.

use bowline_types::{RawJson, ToolAnnotations};
use std::fmt;

use super::pattern::Pattern;
use super::rules::{Action, Request, Trust};
use super::spelling;
use super::tree::{Readings, Tree};

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Effect {
    /// Without asking.
    Allow,
    /// After asking.
    Ask,
    /// Not at all.
    Deny,
}

impl Effect {
    /// The word for it in files and logs.
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

/// What an argument has to be like.
///
/// A rule that asks or denies holds for every way to write a path or URI: `/etc/passwd`, `/etc//passwd`,
/// `/srv/../etc/passwd`, `file:/etc/passwd` and `file:///%65tc/passwd` are one. A rule that allows holds for what fits as it
/// is written and as it is meant, and has no `..` step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ArgumentTest {
    /// It is there.
    Present,
    /// It is this JSON value; `1` and `1.0` are one, the order of members does not count.
    Equals(RawJson),
    /// It is a string, number, boolean or `null` whose text matches. `22`, `22.0` and `2.2e1` are one number.
    Matches(Pattern),
    /// It is a string that begins so. For paths use [`Within`](Self::Within): `/srv/../etc` begins with `/srv`.
    StartsWith(String),
    /// It is the path of this folder or of something below it, written without `.`, `..`, backslashes and empty
    /// steps. Links are not followed.
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

/// Whether two texts may name one thing.
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

/// Where an argument is looked for.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    /// Where a JSON pointer leads.
    At(String),
    /// Any scalar and any name of a member, at any depth.
    Anywhere,
}

/// The hints of a tool that a rule may ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Hints {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
}

/// A rule: every condition it has must hold. The first rule that holds decides.
///
/// - Without [`action`](Self::action), a rule that allows or asks is about tool calls, and a rule that denies is about
///   everything a server does or asks for.
/// - Names are compared as the server gave them, apart from the server's own: a rule for `read` of `files` is not one for
///   any other pair that could be joined to the same text.
/// - A name that a client gives itself loosens nothing: [`caller`](Self::caller) of a rule that allows is compared with the
///   authenticated principal only.
/// - Hints loosen nothing unless the server is trusted: a rule that allows by hints holds for trusted servers only.
/// - A rule that looks at arguments denies those that can be read in two ways, such as with two members of one name.
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
    origin: String,
}

impl Rule {
    /// A rule with this effect and no condition.
    pub fn new(effect: Effect) -> Self {
        Self {
            effect,
            actions: Vec::new(),
            server: None,
            name: None,
            arguments: Vec::new(),
            hints: Hints::default(),
            caller: None,
            origin: String::new(),
        }
    }

    /// A rule that allows.
    pub fn allow() -> Self {
        Self::new(Effect::Allow)
    }

    /// A rule that asks.
    pub fn ask() -> Self {
        Self::new(Effect::Ask)
    }

    /// A rule that denies.
    pub fn deny() -> Self {
        Self::new(Effect::Deny)
    }

    /// Only for this server.
    pub fn server(mut self, pattern: impl Into<Pattern>) -> Self {
        self.server = Some(pattern.into());
        self
    }

    /// Only for this tool, by the name its server gave it. For other actions: the name of the prompt, the URI of the
    /// resource, the URL of the page to visit.
    pub fn tool(mut self, pattern: impl Into<Pattern>) -> Self {
        self.name = Some(pattern.into());
        self
    }

    /// Only for this action; repeat it for several.
    pub fn action(mut self, action: Action) -> Self {
        self.actions.push(action);
        self
    }

    /// Only with such an argument where a JSON pointer leads.
    pub fn argument(mut self, pointer: impl Into<String>, test: ArgumentTest) -> Self {
        self.arguments.push((Place::At(pointer.into()), test));
        self
    }

    /// Only with such a scalar, or such a name of a member, anywhere in the arguments.
    pub fn any_argument(mut self, test: ArgumentTest) -> Self {
        self.arguments.push((Place::Anywhere, test));
        self
    }

    /// Only when the tool is hinted to change nothing, or not; the absence of the hint means it may.
    pub fn read_only(mut self, value: bool) -> Self {
        self.hints.read_only = Some(value);
        self
    }

    /// Only when the tool is hinted to destroy, or not; the absence of the hint means it may.
    pub fn destructive(mut self, value: bool) -> Self {
        self.hints.destructive = Some(value);
        self
    }

    /// Only when the tool is hinted to be repeatable, or not; the absence of the hint means it is not.
    pub fn idempotent(mut self, value: bool) -> Self {
        self.hints.idempotent = Some(value);
        self
    }

    /// Only when the tool is hinted to reach outside, or not; the absence of the hint means it does.
    pub fn open_world(mut self, value: bool) -> Self {
        self.hints.open_world = Some(value);
        self
    }

    /// Only for this caller: the principal, or (in rules that do not allow) the name the client gave itself.
    pub fn caller(mut self, pattern: impl Into<Pattern>) -> Self {
        self.caller = Some(pattern.into());
        self
    }

    /// Where the rule was written, such as `bowline.toml:12`; told wherever it decides.
    pub fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = origin.into();
        self
    }

    /// What the rule says.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    pub(super) fn looks_at_arguments(&self) -> bool {
        !self.arguments.is_empty()
    }

    /// Whether every condition holds but those on arguments.
    pub(super) fn fits(&self, request: &Request<'_>) -> bool {
        let action = match self.actions.as_slice() {
            [] => request.action == Action::Call || self.effect == Effect::Deny,
            actions => actions.contains(&request.action),
        };
        action
            && self.server.as_ref().is_none_or(|pattern| pattern.matches(request.server))
            && self.name.as_ref().is_none_or(|pattern| self.fits_name(pattern, request))
            && self.caller.as_ref().is_none_or(|pattern| self.fits_caller(pattern, request))
            && self.fits_hints(request)
    }

    /// Whether the rule names URIs, of which some do not name one thing to every reader.
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

    /// However something is written, a rule that restricts holds, and one that allows does not hold for more.
    fn readings(&self) -> Readings {
        if self.effect == Effect::Allow { Readings::Every } else { Readings::Any }
    }

    fn fits_caller(&self, pattern: &Pattern, request: &Request<'_>) -> bool {
        let matches = |name: Option<&str>| name.is_some_and(|name| pattern.matches(name));
        matches(request.caller.principal) || (self.effect != Effect::Allow && matches(request.caller.client))
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

/// The effect, the server, the tool and where the rule was written.
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
