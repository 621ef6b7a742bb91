//! Expands variables in strings, in the syntaxes of all dialects.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::commands::split_words;
use super::environment::{Environment, Input};
use super::model::Scope;
use super::report::{Origin, Report};
use super::text::{Text, mask_url, secret_part};
use bowline_text::nearest;

/// The maximum nesting of variables in defaults.
const MAX_NESTING: usize = 8;

/// How much of a string may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The text of the file may be shown, the values of variables may not.
    Open,
    /// Only the names of variables may be shown.
    Private,
    /// Like [`Class::Open`], without the password and the query.
    Url,
}

/// How to treat a variable without a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[non_exhaustive]
pub enum Strictness {
    /// It is an error, and the server is dropped.
    #[default]
    Strict,
    /// It stays in the text unchanged.
    Lenient,
}

/// Expands the variables of one entry.
#[derive(Debug)]
pub(crate) struct Expander<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) inputs: &'a BTreeMap<String, Input>,
    /// Variables that the entry itself defines; they take precedence over the environment.
    pub(crate) locals: BTreeMap<String, String>,
    pub(crate) scope: Scope,
    pub(crate) strictness: Strictness,
    pub(crate) report: &'a Report,
    /// The environment variables that were used.
    pub(crate) used: RefCell<BTreeSet<String>>,
}

/// A part of a string.
#[derive(Debug)]
enum Segment<'t> {
    Literal(&'t str),
    /// The text between `${` and `}`.
    Reference(&'t str),
    /// A `${` without `}`.
    Broken(&'t str),
}

#[derive(Debug, Default)]
struct Resolved {
    value: String,
    secret: bool,
}

#[derive(Debug)]
struct Unresolved {
    message: String,
    help: String,
}

impl Unresolved {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }
}

impl Expander<'_> {
    /// Expands the variables in a text. Reports a variable without a value and returns `None`.
    pub(crate) fn text(&self, written: &str, origin: &Origin, field: &str, class: Class) -> Option<Text> {
        let resolved = self.resolve(written, origin, field)?;
        let (shown, masked) = match class {
            Class::Open => (written.to_owned(), false),
            Class::Private => (mask(written), true),
            Class::Url => match mask_url(written) {
                Some(shown) => (shown, true),
                None => (written.to_owned(), false),
            },
        };
        Some(finish(resolved, shown, masked, origin).written_as(written))
    }

    /// Expands an argument of a command. It is a secret if the option before it takes one.
    pub(crate) fn argument(
        &self,
        previous: Option<&str>,
        written: &str,
        origin: &Origin,
        field: &str,
    ) -> Option<Text> {
        let resolved = self.resolve(written, origin, field)?;
        let part = secret_part(previous, written).and_then(|at| written.split_at_checked(at));
        let (shown, masked) = match part {
            Some((open, secret)) => (format!("{open}{}", mask(secret)), true),
            None => match mask_url(written) {
                Some(shown) => (shown, true),
                None => (written.to_owned(), false),
            },
        };
        Some(finish(resolved, shown, masked, origin).written_as(written))
    }

    /// Expands a path. `~` is the home directory, and a relative path starts at `base`.
    pub(crate) fn path(&self, written: &str, origin: &Origin, field: &str, base: &Path) -> Option<Text> {
        let text = self.text(written, origin, field, Class::Open)?;
        let value = absolute(text.expose(), self.environment.home(), base);
        Some(if text.is_secret() {
            Text::secret(value, written, origin.clone())
        } else {
            Text::open(value, origin.clone())
        })
    }

    fn resolve(&self, written: &str, origin: &Origin, field: &str) -> Option<Resolved> {
        let mut unresolved = Vec::new();
        let resolved = self.expand(written, 0, &mut unresolved);
        if let Some(at) = resolved.value.find('\0') {
            self.report.error(origin, field, format!("expected text, got a NUL character at byte {at}"));
            return None;
        }
        if unresolved.is_empty() || self.strictness == Strictness::Lenient {
            return Some(resolved);
        }
        for problem in unresolved {
            self.report.error_with(origin, field, problem.message, problem.help);
        }
        None
    }

    fn expand(&self, written: &str, depth: usize, unresolved: &mut Vec<Unresolved>) -> Resolved {
        let mut result = Resolved::default();
        for segment in segments(written) {
            match segment {
                Segment::Literal(text) => result.value.push_str(&text.replace("$${", "${")),
                Segment::Broken(text) => {
                    unresolved.push(Unresolved::new(
                        "expected `}` after `${`",
                        "close the variable with `}`, or write `$${` for a literal `${`",
                    ));
                    result.value.push_str(text);
                }
                Segment::Reference(reference) => match self.reference(reference, depth, unresolved) {
                    Ok(part) => {
                        result.value.push_str(&part.value);
                        result.secret |= part.secret;
                    }
                    Err(problem) => {
                        unresolved.push(problem);
                        result.value.push_str("${");
                        result.value.push_str(reference);
                        result.value.push('}');
                    }
                },
            }
        }
        result
    }

    fn reference(
        &self,
        reference: &str,
        depth: usize,
        unresolved: &mut Vec<Unresolved>,
    ) -> Result<Resolved, Unresolved> {
        let open = |value: String| Ok(Resolved { value, secret: false });
        let folder = |path: Option<&Path>, what: &str| match path {
            Some(path) => open(path.display().to_string()),
            None => Err(Unresolved::new(
                format!("cannot expand `${{{reference}}}`: there is no {what}"),
                "write the path itself",
            )),
        };
        match reference {
            "/" | "pathSeparator" => return open(self.environment.platform().separator().to_owned()),
            "userHome" => return folder(self.environment.home(), "home directory"),
            "workspaceFolder" => return folder(self.environment.workspace(), "workspace folder"),
            "workspaceFolderBasename" => {
                let name = self.environment.workspace().and_then(Path::file_name).map(Path::new);
                return folder(name, "workspace folder");
            }
            _ => {}
        }
        match reference.split_once(':') {
            Some(("workspaceFolder", name)) => {
                return folder(self.environment.folder(name), &format!("workspace folder `{name}`"));
            }
            Some(("input", id)) => return self.input(id),
            Some(("cmd", line)) => return self.command(line),
            _ => {}
        }
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        if !is_name(name) {
            return Err(Unresolved::new(
                format!("unknown variable `${{{reference}}}`"),
                "write `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${input:id}`, `${userHome}` or \
                 `${workspaceFolder}`, or `$${` for a literal `${`",
            ));
        }
        if let Some(value) = self.locals.get(name) {
            return Ok(Resolved { value: value.clone(), secret: true });
        }
        self.used.borrow_mut().insert(name.to_owned());
        let value = self.environment.variable(name);
        match (value, default) {
            (Some(value), None) => Ok(Resolved { value: value.to_owned(), secret: true }),
            (Some(value), Some(_)) if !value.is_empty() => {
                Ok(Resolved { value: value.to_owned(), secret: true })
            }
            (_, Some(default)) if depth < MAX_NESTING => Ok(self.expand(default, depth + 1, unresolved)),
            (_, Some(_)) => Err(Unresolved::new(
                format!("defaults are nested more than {MAX_NESTING} deep"),
                "replace the innermost variable with its value",
            )),
            (None, None) => {
                let mut help = format!("set it, or write `${{{name}:-default}}`");
                if let Some(near) = nearest(name, self.environment.names()) {
                    help = format!("did you mean `{near}`? Otherwise {help}");
                }
                Err(Unresolved::new(format!("the variable `{name}` is not set"), help))
            }
        }
    }

    fn input(&self, id: &str) -> Result<Resolved, Unresolved> {
        let Some(input) = self.inputs.get(id) else {
            let help = nearest(id, self.inputs.keys().map(String::as_str)).map_or_else(
                || format!("add an input with the id `{id}` to `inputs`"),
                |near| format!("did you mean `${{input:{near}}}`?"),
            );
            return Err(Unresolved::new(format!("there is no input `{id}` in this file"), help));
        };
        let value = answer(self.environment, input)?;
        Ok(Resolved { value, secret: true })
    }

    fn command(&self, line: &str) -> Result<Resolved, Unresolved> {
        // Reading a project file must not run anything.
        if self.scope == Scope::Project {
            return Err(Unresolved::new(
                "`${cmd:…}` is not allowed in project files",
                "move the server to your own configuration, or use a variable or an input",
            ));
        }
        let Some(commands) = self.environment.commands() else {
            return Err(Unresolved::new(
                "`${cmd:…}` is disabled",
                "allow commands explicitly, or use a variable or an input",
            ));
        };
        let words =
            split_words(line).map_err(|error| Unresolved::new(error, "quote each argument separately"))?;
        let output = commands.run(&words).map_err(|error| {
            Unresolved::new(
                format!("`${{cmd:…}}` failed: {error}"),
                "run the command in a terminal to see why",
            )
        })?;
        let value = output.strip_suffix('\n').unwrap_or(&output);
        Ok(Resolved { value: value.strip_suffix('\r').unwrap_or(value).to_owned(), secret: true })
    }

    /// Returns the value of an input that is named like a variable: from the inputs, or else from the environment. If
    /// there is none, reports it, unless that is not an error, and returns `None`.
    pub(crate) fn named_input(&self, input: &Input, origin: &Origin, field: &str) -> Option<String> {
        self.used.borrow_mut().insert(input.id.clone());
        let from_environment = self.environment.variable(&input.id).map(str::to_owned);
        let input = Input { default: from_environment.or_else(|| input.default.clone()), ..input.clone() };
        match answer(self.environment, &input) {
            Ok(value) => Some(value),
            Err(_) if self.strictness == Strictness::Lenient => None,
            Err(problem) => {
                let help = format!("set the variable `{}`, or store the value", input.id);
                self.report.error_with(origin, field, problem.message, help);
                None
            }
        }
    }
}

fn answer(environment: &Environment, input: &Input) -> Result<String, Unresolved> {
    let id = &input.id;
    let Some(value) = environment.input(input).or_else(|| input.default.clone()) else {
        let what = input.description.as_deref().map(|text| format!(" ({text})")).unwrap_or_default();
        return Err(Unresolved::new(
            format!("the input `{id}`{what} has no value"),
            "give it a value or a `default`",
        ));
    };
    if !input.choices.is_empty() && !input.choices.contains(&value) {
        return Err(Unresolved::new(
            format!("the value of the input `{id}` is not one of its choices"),
            format!("choose one of `{}`", input.choices.join("`, `")),
        ));
    }
    Ok(value)
}

fn finish(resolved: Resolved, shown: String, masked: bool, origin: &Origin) -> Text {
    if masked || resolved.secret {
        Text::secret(resolved.value, shown, origin.clone())
    } else {
        Text::open(resolved.value, origin.clone())
    }
}

/// Masks everything in a text except the names of its variables.
fn mask(written: &str) -> String {
    let mut shown = String::new();
    for segment in segments(written) {
        match segment {
            Segment::Literal("") => {}
            Segment::Literal(_) | Segment::Broken(_) => shown.push_str("***"),
            Segment::Reference(reference) => {
                let reference = match reference.split_once(":-") {
                    Some((name, _)) => format!("${{{name}:-***}}"),
                    None => format!("${{{reference}}}"),
                };
                shown.push_str(&reference);
            }
        }
    }
    shown
}

/// Splits a string at its variables. `$${` is an escaped `${`.
fn segments(written: &str) -> Vec<Segment<'_>> {
    let mut result = Vec::new();
    let mut rest = written;
    let mut from = 0;
    while let Some(found) = rest.get(from..).and_then(|tail| tail.find("${")) {
        let at = from + found;
        let (before, reference) = rest.split_at_checked(at).unwrap_or((rest, ""));
        if before.ends_with('$') {
            from = at + 2;
            continue;
        }
        if !before.is_empty() {
            result.push(Segment::Literal(before));
        }
        let Some(length) = reference_length(reference) else {
            result.push(Segment::Broken(reference));
            return result;
        };
        result.push(Segment::Reference(reference.get(2..length - 1).unwrap_or_default()));
        rest = reference.get(length..).unwrap_or_default();
        from = 0;
    }
    if !rest.is_empty() {
        result.push(Segment::Literal(rest));
    }
    result
}

/// Returns the length of the variable at the start of the text, including nested ones.
fn reference_length(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut previous = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '{' if previous == '$' => depth += 1,
            '}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        previous = c;
    }
    None
}

fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        // Windows has variables such as `ProgramFiles(x86)`.
        && characters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '(' | ')'))
}

/// Replaces `~` in a path, and makes it absolute with `base`.
pub(crate) fn absolute(path: &str, home: Option<&Path>, base: &Path) -> String {
    let joined = match (path.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_path_buf(),
        (Some(tail), Some(home)) if tail.starts_with(['/', '\\']) => {
            home.join(tail.trim_start_matches(['/', '\\']))
        }
        _ if path.is_empty() => base.to_path_buf(),
        _ => base.join(path.strip_prefix("./").unwrap_or(path)),
    };
    joined.display().to_string()
}
