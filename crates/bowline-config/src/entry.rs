//! Builds one entry: commands, URLs and settings that all dialects share.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use super::dialect::Dialect;
use super::environment::{Environment, Input};
use super::expand::{Class, Expander, Strictness};
use super::fields::{Fields, Located};
use super::lint;
use super::model::{
    CommandLaunch, Launch, Prefer, Scope, Unknown, UpstreamConfig, UpstreamSettings, UrlLaunch,
};
use super::node::{Member, Node};
use super::report::{NoticeKind, Origin, Report};
use bowline_policy::Pattern;
use bowline_proto::uri::UrlParts;
use bowline_text::hidden_characters;

/// Reserved names: the host itself, and a name that Claude Code uses.
const RESERVED: [&str; 2] = ["bowline", "workspace"];

/// The context that all entries of a file share.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) path: &'a Path,
    pub(crate) environment: &'a Environment,
    pub(crate) strictness: Strictness,
    pub(crate) scope: Scope,
    pub(crate) dialect: Dialect,
    pub(crate) report: &'a Report,
    pub(crate) inputs: BTreeMap<String, Input>,
}

impl Context<'_> {
    /// Returns the base directory of relative paths in the file.
    pub(crate) fn base(&self) -> PathBuf {
        let beside = self.path.parent().unwrap_or_else(|| Path::new("")).to_path_buf();
        match (self.dialect, self.scope, self.environment.workspace()) {
            // These files are in a directory of the editor, but their paths are relative to the project.
            (
                Dialect::McpServers | Dialect::VsCode | Dialect::Zed,
                Scope::Project | Scope::Local,
                Some(workspace),
            ) => workspace.to_path_buf(),
            _ => beside,
        }
    }
}

/// An entry of one file, before it is merged with other files.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) origin: Origin,
    pub(crate) scope: Scope,
    pub(crate) dialect: Dialect,
    /// Absent if the entry only adjusts a server of another file.
    pub(crate) launch: Option<Launch>,
    pub(crate) settings: UpstreamSettings,
    pub(crate) uses: BTreeSet<String>,
    pub(crate) unknown: Map<String, Json>,
    pub(crate) origins: BTreeMap<String, Origin>,
}

impl Entry {
    /// Returns the server that the entry defines, or the entry itself if it defines none.
    pub(crate) fn into_upstream(self) -> Result<UpstreamConfig, Box<Self>> {
        match self.launch {
            Some(launch) => Ok(UpstreamConfig {
                name: self.name,
                origin: self.origin,
                scope: self.scope,
                dialect: self.dialect,
                launch,
                settings: self.settings,
                uses: self.uses,
                unknown: Unknown(self.unknown),
                origins: self.origins,
            }),
            None => Err(Box::new(self)),
        }
    }
}

/// The names of the members of a command in a dialect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    pub(crate) program: &'static str,
    pub(crate) args: &'static str,
    pub(crate) env: &'static str,
    pub(crate) env_file: &'static str,
}

/// The command of an entry before variables are expanded.
#[derive(Debug)]
pub(crate) struct WrittenCommand {
    pub(crate) names: Names,
    pub(crate) program: Located<String>,
    pub(crate) args: Vec<Located<String>>,
    pub(crate) env: BTreeMap<String, Located<Option<String>>>,
    pub(crate) env_file: Option<Located<String>>,
    pub(crate) cwd: Option<Located<String>>,
}

/// Reads one entry.
#[derive(Debug)]
pub(crate) struct EntryBuilder<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) fields: Fields<'a>,
    pub(crate) expander: Expander<'a>,
    pub(crate) settings: UpstreamSettings,
    pub(crate) origins: BTreeMap<String, Origin>,
    pub(crate) unknown: Map<String, Json>,
    name: &'a str,
    origin: &'a Origin,
    mark: usize,
}

impl<'a> EntryBuilder<'a> {
    /// Starts to read an entry. Returns `None` if it is not an object or its name is invalid.
    pub(crate) fn begin(context: &'a Context<'a>, parent: &str, member: &'a Member) -> Option<Self> {
        Self::named(context, format!("{parent}.{}", member.name), &member.name, &member.origin, &member.node)
    }

    pub(crate) fn named(
        context: &'a Context<'a>,
        path: String,
        name: &'a str,
        origin: &'a Origin,
        node: &'a Node,
    ) -> Option<Self> {
        let mark = context.report.mark();
        if !usable_name(name, origin, &path, context.report) {
            return None;
        }
        let fields = Fields::new(node, path, context.report)?;
        let expander = Expander {
            environment: context.environment,
            inputs: &context.inputs,
            locals: BTreeMap::new(),
            scope: context.scope,
            strictness: context.strictness,
            report: context.report,
            used: RefCell::default(),
        };
        let settings = UpstreamSettings::default();
        let (origins, unknown) = (BTreeMap::new(), Map::new());
        Some(Self { context, fields, expander, settings, origins, unknown, name, origin, mark })
    }

    pub(crate) fn report(&self) -> &'a Report {
        self.context.report
    }

    /// Applies a setting if the member is present.
    pub(crate) fn set<T>(
        &mut self,
        name: &str,
        located: Option<Located<T>>,
        apply: impl FnOnce(&mut UpstreamSettings, T),
    ) {
        if let Some(located) = located {
            self.origins.insert(name.to_owned(), located.origin);
            apply(&mut self.settings, located.value);
        }
    }

    /// Records where settings are written. `members` has pairs of a member and the setting that it sets; missing members
    /// are skipped.
    pub(crate) fn record_origins(&mut self, members: &[(&str, &str)]) {
        for (member, setting) in members {
            if self.fields.has(member) {
                self.origins.insert((*setting).to_owned(), self.fields.name_origin(member).clone());
            }
        }
    }

    /// Sets whether the server is enabled. Variables of a disabled server may be unset.
    pub(crate) fn enable(&mut self, located: Option<Located<bool>>) {
        self.set("enabled", located, |settings, value| settings.enabled = value);
        if !self.settings.enabled {
            self.expander.strictness = Strictness::Lenient;
        }
    }

    /// Reads a list of patterns for tool names.
    pub(crate) fn patterns(&self, name: &str) -> Option<Located<Vec<Pattern>>> {
        let strings = self.fields.strings(name, &json!(["read_*"]))?;
        let origin = self.fields.get(name)?.origin.clone();
        Some(Located { value: strings.into_iter().map(|text| Pattern::new(text.value)).collect(), origin })
    }

    /// Reads a setting that loosens restrictions. Ignored in project files.
    pub(crate) fn own<T>(&self, name: &str, located: Option<Located<T>>) -> Option<Located<T>> {
        let located = located?;
        if self.context.scope.is_own() {
            return Some(located);
        }
        self.report().notice(
            &located.origin,
            &self.fields.at(name),
            NoticeKind::Ignored,
            "ignored: project files cannot skip approvals; set it in your user configuration",
        );
        None
    }

    /// Builds the launch of a command, unless reading its members has reported an error since `mark`.
    pub(crate) fn launch(&self, mark: usize, written: &WrittenCommand) -> Option<Launch> {
        if self.report().mark() > mark {
            return None;
        }
        self.command(written).map(Launch::Command)
    }

    /// Builds the command, with its variables expanded.
    pub(crate) fn command(&self, written: &WrittenCommand) -> Option<CommandLaunch> {
        let report = self.report();
        let field = |name: &str| self.fields.at(name);
        let names = written.names;
        if !lint::single_program(written, &self.fields) {
            return None;
        }
        lint::report_code_execution(written, &self.fields);
        lint::mcp_remote(written, &self.fields);

        let program = self.expander.text(
            &written.program.value,
            &written.program.origin,
            &field(names.program),
            Class::Open,
        );
        let mut args = Vec::with_capacity(written.args.len());
        let mut previous: Option<&str> = None;
        for (index, argument) in written.args.iter().enumerate() {
            let name = field(&format!("{}[{index}]", names.args));
            args.push(self.expander.argument(previous, &argument.value, &argument.origin, &name));
            previous = Some(&argument.value);
        }
        let mut env = BTreeMap::new();
        let mut whole = true;
        for (name, value) in &written.env {
            let path = field(&format!("{}.{name}", names.env));
            if name.is_empty() || name.contains(['=', '\0']) {
                report.error_with(
                    &value.origin,
                    &path,
                    format!("invalid variable name `{name}`"),
                    format!("write {}", report.example("NAME", &json!("value"))),
                );
                whole = false;
                continue;
            }
            let text = match &value.value {
                None => None,
                Some(text) => {
                    let text = self.expander.text(text, &value.origin, &path, Class::Private);
                    whole &= text.is_some();
                    text
                }
            };
            env.insert(name.clone(), text);
        }
        let base = self.context.base();
        let path = |located: &Option<Located<String>>, name: &str| match located {
            Some(located) => {
                self.expander.path(&located.value, &located.origin, &field(name), &base).map(Some)
            }
            None => Some(None),
        };
        let env_file = path(&written.env_file, names.env_file);
        let cwd = path(&written.cwd, "cwd");
        let args: Option<Vec<_>> = args.into_iter().collect();
        if !whole {
            return None;
        }
        let launch = CommandLaunch { program: program?, args: args?, env, env_file: env_file?, cwd: cwd? };
        if launch.program.expose().is_empty() {
            let help = format!("write {}", report.example(names.program, &json!("npx")));
            report.error_with(
                &written.program.origin,
                &field(names.program),
                "expected a program, got nothing",
                help,
            );
            return None;
        }
        Some(launch)
    }

    /// Builds the URL and headers, with their variables expanded.
    pub(crate) fn url(
        &self,
        name: &str,
        url: &Located<String>,
        headers: &BTreeMap<String, Located<Option<String>>>,
        prefer: Option<Prefer>,
    ) -> Option<UrlLaunch> {
        let report = self.report();
        let field = self.fields.at(name);
        let text = self.expander.text(&url.value, &url.origin, &field, Class::Url);
        let mut values = BTreeMap::new();
        let mut whole = true;
        for (header, value) in headers {
            let path = self.fields.at(&format!("headers.{header}"));
            if !is_token(header) {
                let help = "write a name such as `Authorization`";
                report.error_with(&value.origin, &path, format!("invalid header name `{header}`"), help);
                whole = false;
                continue;
            }
            let written = value.value.as_deref().unwrap_or_default();
            match self.expander.text(written, &value.origin, &path, Class::Private) {
                Some(text) if text.expose().chars().any(|c| c.is_control() && c != '\t') => {
                    // A line break would start another header.
                    report.error(&value.origin, &path, "the header value contains a control character");
                    whole = false;
                }
                Some(text) => {
                    values.insert(header.clone(), text);
                }
                None => whole = false,
            }
        }
        let text = text?;
        let unresolved = self.expander.strictness == Strictness::Lenient && text.expose().contains("${");
        if !unresolved && !is_url(text.expose()) {
            report.error_with(
                &url.origin,
                &field,
                format!("expected a URL with `https://` or `http://`, got `{}`", text.shown()),
                format!("write {}", report.example(name, &json!("https://example.com/mcp"))),
            );
            return None;
        }
        let by_path = || {
            let path = text.expose().split(['?', '#']).next().unwrap_or_default();
            if path.trim_end_matches('/').ends_with("/sse") { Prefer::Sse } else { Prefer::Streamable }
        };
        let prefer = prefer.unwrap_or_else(by_path);
        whole.then_some(UrlLaunch { url: text, headers: values, headers_helper: None, prefer, oauth: None })
    }

    /// Reports known members that have no effect, so that nobody relies on them.
    fn report_without_effect(&self) {
        for (name, reason) in [
            ("sandboxEnabled", "the server runs without a sandbox"),
            ("sandbox", "the server runs without a sandbox"),
        ] {
            let Some(node) = self.fields.peek(name) else { continue };
            if node.value == super::node::Value::Bool(false) {
                continue;
            }
            let message = format!("`{name}` has no effect: {reason}");
            let origin = self.fields.name_origin(name);
            self.report().notice(origin, &self.fields.at(name), NoticeKind::Ignored, message);
        }
    }

    /// Returns the entry, unless it has errors.
    pub(crate) fn finish(mut self, launch: Option<Launch>) -> Option<Entry> {
        self.report_without_effect();
        self.unknown.extend(self.fields.finish());
        if self.context.report.mark() > self.mark {
            return None;
        }
        Some(Entry {
            name: self.name.to_owned(),
            origin: self.origin.clone(),
            scope: self.context.scope,
            dialect: self.context.dialect,
            launch,
            settings: self.settings,
            uses: self.expander.used.into_inner(),
            unknown: self.unknown,
            origins: self.origins,
        })
    }
}

fn usable_name(name: &str, origin: &Origin, path: &str, report: &Report) -> bool {
    let problem = if name.trim().is_empty() {
        "expected a name for the server, got nothing".to_owned()
    } else if hidden_characters(name) > 0 || name.chars().any(char::is_control) {
        "the name contains invisible characters".to_owned()
    } else if name.chars().count() > 200 {
        "expected a name of at most 200 characters".to_owned()
    } else if RESERVED.contains(&name) {
        format!("the name `{name}` is reserved")
    } else {
        return true;
    };
    report.error_with(origin, path, problem, "give the server another name");
    false
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}

fn is_url(url: &str) -> bool {
    let Some(parts) = UrlParts::split(url) else { return false };
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return false;
    }
    match parts.scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => !parts.host.is_empty(),
        // Local sockets, in the notation of VS Code.
        "unix" | "pipe" => parts.authority.is_empty() && parts.tail.starts_with('/') && parts.tail.len() > 1,
        _ => false,
    }
}
