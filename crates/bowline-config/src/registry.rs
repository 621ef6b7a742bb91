//! Reads the registry's `server.json`: chooses a package or remote and builds its command.
//!
//! The publisher of a server writes this file. Only the variables that it declares are expanded, and the resulting
//! command or URL is shown before its first use.

use std::collections::BTreeMap;

use serde_json::json;

use super::entry::{Context, Entry, EntryBuilder, Names, WrittenCommand};
use super::fields::{Fields, Located};
use super::lint;
use super::model::{CommandLaunch, Launch, Prefer};
use super::node::Node;
use super::registry_input::{Answer, Fallback, Inputs, either, is_boolean};
use super::report::NoticeKind;
use super::text::Text;

const NAMES: Names =
    Names { program: "runtimeHint", args: "packageArguments", env: "environmentVariables", env_file: "" };

pub(crate) fn read(context: &Context<'_>, root: &Node) -> Vec<Entry> {
    entry(context, root).into_iter().collect()
}

fn entry(context: &Context<'_>, root: &Node) -> Option<Entry> {
    let report = context.report;
    let Some(name) = root.get("name") else {
        let help = format!("write {}", report.example("name", &json!("io.github.you/server")));
        report.error_with(&root.origin, "", "expected `name`, got none", help);
        return None;
    };
    let Some(text) = name.as_str() else {
        let help = format!("write {}", report.example("name", &json!("io.github.you/server")));
        report.error_with(&name.origin, "name", format!("expected a string, got {}", name.kind()), help);
        return None;
    };
    let mut builder = EntryBuilder::named(context, String::new(), text, &name.origin, root)?;
    let description = builder.fields.string("description", "What it is for");
    builder.set("description", description, |settings, value| settings.description = Some(value));
    builder.fields.keep(&["name"]);
    builder.unknown = builder.fields.raw(&[
        "title",
        "version",
        "version_detail",
        "status",
        "websiteUrl",
        "website_url",
        "repository",
        "icons",
        "postInstallInstructions",
    ]);

    let remotes = list(&builder.fields, "remotes");
    let packages = list(&builder.fields, "packages");
    if remotes.is_empty() && packages.is_empty() {
        let message = "expected `packages` or `remotes`, got neither";
        report.error_with(&root.origin, "", message, "add the package or the URL the server is published as");
        return None;
    }
    // A remote runs no code on this machine, so it is preferred.
    let mark = report.mark();
    let launch = remotes
        .iter()
        .enumerate()
        .find_map(|(index, node)| remote(&mut builder, node, format!("remotes[{index}]")))
        .or_else(|| {
            let mut candidates = packages.iter().enumerate();
            candidates.find_map(|(index, node)| package(&mut builder, node, &format!("packages[{index}]")))
        });
    if launch.is_none() && report.mark() == mark {
        report.notice(
            &name.origin,
            "",
            NoticeKind::Skipped,
            format!("`{text}` has no supported package or remote"),
        );
        return None;
    }
    builder.finish(launch)
}

fn list<'n>(fields: &Fields<'n>, name: &str) -> Vec<&'n Node> {
    let Some(node) = fields.get(name) else { return Vec::new() };
    let Some(items) = node.as_array() else {
        fields.report_invalid_with(node, name, "an array", "put it in `[` and `]`");
        return Vec::new();
    };
    items.iter().collect()
}

fn remote(builder: &mut EntryBuilder<'_>, node: &Node, path: String) -> Option<Launch> {
    let fields = Fields::new(node, path, builder.report())?;
    let kinds = [("streamable-http", Prefer::Streamable), ("sse", Prefer::Sse), ("http", Prefer::Streamable)];
    let kind = fields.choice(either(&fields, "type", "transport_type"), &kinds);
    let url = fields.string("url", "https://example.com/mcp");
    if url.is_none() && !fields.has("url") {
        let help = format!("write {}", builder.report().example("url", &json!("https://example.com/mcp")));
        builder.report().error_with(&node.origin, &fields.path, "expected `url`, got none", help);
    }
    let server = builder.fields.get("name").and_then(Node::as_str);
    let inputs = Inputs { expander: &builder.expander, server, fallback: Fallback::Nothing };
    let url = url.and_then(|url| Some((inputs.fill(&fields, "url", &url)?, url)));
    let headers = key_values(&inputs, &fields, "headers");
    fields.finish();
    let (filled, url) = url?;
    let prefer = kind?.value;
    // The text is literal; variables in it are not expanded.
    let literal = Located { value: filled.expose().replace("${", "$${"), origin: url.origin };
    let mut launch = builder.url("url", &literal, &BTreeMap::new(), Some(prefer))?;
    launch.headers = headers?;
    if filled.is_secret() {
        launch.url = filled;
    }
    builder.origins.insert("url".to_owned(), node.origin.clone());
    Some(Launch::Url(launch))
}

/// Reports that a member is missing. One of the wrong type is reported already.
fn report_missing(item: &Fields<'_>, node: &Node, name: &str, example: &str) {
    if !item.has(name) {
        let message = format!("expected `{name}`, got none");
        let help = format!("write {}", item.report.example(name, &json!(example)));
        item.report.error_with(&node.origin, &item.path, message, help);
    }
}

/// Reads headers or variables: a list of names with inputs.
fn key_values(inputs: &Inputs<'_>, fields: &Fields<'_>, list_name: &str) -> Option<BTreeMap<String, Text>> {
    let mut values = BTreeMap::new();
    let mut whole = true;
    for (index, node) in list(fields, list_name).into_iter().enumerate() {
        let path = format!("{}.{list_name}[{index}]", fields.path);
        let Some(item) = Fields::new(node, path, fields.report) else {
            whole = false;
            continue;
        };
        let Some(name) = item.string("name", "API_KEY") else {
            report_missing(&item, node, "name", "API_KEY");
            whole = false;
            continue;
        };
        let plain = !name.value.is_empty()
            && name.value.chars().all(|c| c.is_ascii_graphic() && c != '=' && c != ':');
        if !plain {
            let message = format!("expected a name of letters, digits, `-` and `_`, got `{}`", name.value);
            fields.report.error(&name.origin, &item.at("name"), message);
            whole = false;
            continue;
        }
        match inputs.answer(&item, &name.value, &node.origin) {
            Answer::Given(text) if text.expose().chars().any(|c| c == '\0' || c == '\r' || c == '\n') => {
                fields.report.error(&node.origin, &item.path, "expected one line of text, got a line break");
                whole = false;
            }
            Answer::Given(text) => {
                let shown = if text.is_secret() { text.shown().to_owned() } else { "***".to_owned() };
                values.insert(name.value, Text::secret(text.expose(), shown, node.origin.clone()));
            }
            Answer::Absent => {}
            Answer::Failed => whole = false,
        }
        item.finish();
    }
    whole.then_some(values)
}

/// How packages of a type are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runtime {
    Npx,
    Bunx,
    Uvx,
    Pipx,
    Docker,
    Podman,
    Dnx,
    Cargo,
    Bundle,
}

const HINTS: [(&str, Runtime); 8] = [
    ("npx", Runtime::Npx),
    ("bunx", Runtime::Bunx),
    ("uvx", Runtime::Uvx),
    ("pipx", Runtime::Pipx),
    ("docker", Runtime::Docker),
    ("podman", Runtime::Podman),
    ("dnx", Runtime::Dnx),
    ("cargo", Runtime::Cargo),
];

const TYPES: [(&str, Runtime); 6] = [
    ("npm", Runtime::Npx),
    ("pypi", Runtime::Uvx),
    ("oci", Runtime::Docker),
    ("nuget", Runtime::Dnx),
    ("cargo", Runtime::Cargo),
    ("mcpb", Runtime::Bundle),
];

fn package(builder: &mut EntryBuilder<'_>, node: &Node, path: &str) -> Option<Launch> {
    let report = builder.report();
    let fields = Fields::new(node, path, report)?;
    let mark = report.mark();
    let name = either(&fields, "registryType", "registry_type");
    let kind = fields.choice(name, &TYPES);
    if kind.is_none() && !fields.has(name) {
        let help = format!("write {}", report.example("registryType", &json!("npm")));
        report.error_with(&node.origin, path, "expected `registryType`, got none", help);
    }
    let hint = fields.choice(either(&fields, "runtimeHint", "runtime_hint"), &HINTS);
    let identifier = word(&fields, "identifier", "@scope/server");
    let version = fields.has("version").then(|| word(&fields, "version", "1.0.2"));
    let base =
        fields.string(either(&fields, "registryBaseUrl", "registry_base_url"), "https://registry.npmjs.org");
    fields.keep(&["fileSha256", "file_sha256"]);
    let transport =
        fields.get("transport").and_then(|transport| transport.get("type")).and_then(Node::as_str);

    let server = builder.fields.get("name").and_then(Node::as_str);
    let inputs = Inputs { expander: &builder.expander, server, fallback: Fallback::Nothing };
    let runtime_args = arguments(&inputs, &fields, either(&fields, "runtimeArguments", "runtime_arguments"));
    let package_args = arguments(&inputs, &fields, either(&fields, "packageArguments", "package_arguments"));
    let inputs = Inputs { fallback: Fallback::Variable, ..inputs };
    let env = key_values(&inputs, &fields, either(&fields, "environmentVariables", "environment_variables"));
    fields.finish();
    if report.mark() > mark {
        return None;
    }
    let (kind, identifier) = (kind?.value, identifier?);
    if kind == Runtime::Bundle {
        let message = "bundles are not supported; install it and add its command";
        report.notice(&node.origin, path, NoticeKind::Skipped, message);
        return None;
    }
    if transport.is_some_and(|transport| transport != "stdio") {
        let message = "the package is an HTTP server; start it and add its URL";
        report.notice(&node.origin, path, NoticeKind::Skipped, message);
        return None;
    }
    let plan = Plan {
        runtime: hint.map_or(kind, |hint| hint.value),
        identifier,
        version: version.flatten(),
        base: base.map(|base| base.value),
        runtime_args: runtime_args?,
        package_args: package_args?,
        env: env?,
        origin: node,
    };
    let launch = plan.command();
    announce(builder, &fields, &launch, &plan);
    builder.origins.insert("command".to_owned(), node.origin.clone());
    Some(Launch::Command(launch))
}

/// Reads a name or version that becomes part of an argument. It must be a single word and must not look like an option.
fn word(fields: &Fields<'_>, name: &str, example: &str) -> Option<String> {
    let located = fields.string(name, example);
    let Some(located) = located else {
        if !fields.has(name) {
            let help = format!("write {}", fields.report.example(name, &json!(example)));
            fields.report.error_with(
                fields.origin,
                &fields.path,
                format!("expected `{name}`, got none"),
                help,
            );
        }
        return None;
    };
    let plain = located.value.chars().all(|c| c.is_ascii_alphanumeric() || "@/._-+:~%".contains(c));
    let exact =
        name != "version" || (located.value != "latest" && !located.value.contains(['/', '@', '~', ':']));
    if located.value.is_empty() || located.value.starts_with('-') || !plain || !exact {
        let what = if name == "version" { "one exact version" } else { "the name of a package" };
        fields.report.error_with(
            &located.origin,
            &fields.at(name),
            format!("expected {what}, got `{}`", located.value),
            format!("write {}", fields.report.example(name, &json!(example))),
        );
        return None;
    }
    Some(located.value)
}

/// Returns the arguments of a list that have a value.
fn arguments(inputs: &Inputs<'_>, fields: &Fields<'_>, list_name: &str) -> Option<Vec<Text>> {
    let mut words = Vec::new();
    let mut whole = true;
    for (index, node) in list(fields, list_name).into_iter().enumerate() {
        let path = format!("{}.{list_name}[{index}]", fields.path);
        let Some(item) = Fields::new(node, path, fields.report) else {
            whole = false;
            continue;
        };
        let kinds = [("positional", Position::Positional), ("named", Position::Named)];
        let Some(kind) = item.choice("type", &kinds) else {
            whole = false;
            report_missing(&item, node, "type", "positional");
            continue;
        };
        item.keep(&["isRepeated", "is_repeated"]);
        let name = item.string("name", "--port").map(|name| name.value);
        let hint = item.string(either(&item, "valueHint", "value_hint"), "path").map(|hint| hint.value);
        match (kind.value, name) {
            (Position::Named, None) => {
                whole = false;
                report_missing(&item, node, "name", "--port");
            }
            (Position::Named, Some(name)) => {
                let flag = Text::open(name.clone(), node.origin.clone());
                // Without anything to ask for or to fill in, the option has no value.
                let alone = ["value", "default", "description", "format", "choices", "placeholder"];
                if hint.is_none() && !alone.iter().any(|member| item.has(member)) {
                    words.push(flag);
                    continue;
                }
                match inputs.answer(&item, name.trim_start_matches('-'), &node.origin) {
                    Answer::Given(text) if is_boolean(&item) => {
                        if text.expose() == "true" {
                            words.push(flag);
                        }
                    }
                    Answer::Given(text) => words.extend([flag, text]),
                    Answer::Absent => {}
                    Answer::Failed => whole = false,
                }
            }
            (Position::Positional, name) => {
                let id = hint.or(name).unwrap_or_else(|| format!("argument {}", index + 1));
                match inputs.answer(&item, &id, &node.origin) {
                    Answer::Given(text) => words.push(text),
                    Answer::Absent => {}
                    Answer::Failed => whole = false,
                }
            }
        }
        item.finish();
    }
    whole.then_some(words)
}

#[derive(Debug, Clone, Copy)]
enum Position {
    Positional,
    Named,
}

/// The command of a package.
#[derive(Debug)]
struct Plan<'n> {
    runtime: Runtime,
    identifier: String,
    version: Option<String>,
    base: Option<String>,
    runtime_args: Vec<Text>,
    package_args: Vec<Text>,
    env: BTreeMap<String, Text>,
    origin: &'n Node,
}

impl Plan<'_> {
    fn command(&self) -> CommandLaunch {
        let at = |separator: &str| match &self.version {
            Some(version) => format!("{}{separator}{version}", self.identifier),
            None => self.identifier.clone(),
        };
        let given = |words: &[&str]| self.runtime_args.iter().any(|word| words.contains(&word.expose()));
        let mut before: Vec<String> = Vec::new();
        let mut after: Vec<String> = Vec::new();
        let mut runtime_args: &[Text] = &self.runtime_args;
        let program = match self.runtime {
            Runtime::Npx => {
                if !given(&["-y", "--yes"]) {
                    before.push("-y".to_owned());
                }
                after.push(at("@"));
                "npx"
            }
            Runtime::Bunx => {
                after.push(at("@"));
                "bunx"
            }
            Runtime::Uvx => {
                after.push(at("@"));
                "uvx"
            }
            Runtime::Pipx => {
                before.push("run".to_owned());
                after.push(at("=="));
                "pipx"
            }
            Runtime::Docker | Runtime::Podman => {
                before.push("run".to_owned());
                if let [first, rest @ ..] = runtime_args
                    && first.expose() == "run"
                {
                    runtime_args = rest;
                }
                if !given(&["-i", "--interactive", "-it"]) {
                    before.push("-i".to_owned());
                }
                if !given(&["--rm"]) {
                    before.push("--rm".to_owned());
                }
                // Only names: the values stay in the environment and do not appear in the process list.
                before.extend(self.env.keys().flat_map(|name| ["-e".to_owned(), name.clone()]));
                after.push(self.image());
                if self.runtime == Runtime::Docker { "docker" } else { "podman" }
            }
            Runtime::Dnx => {
                before.extend([at("@"), "--yes".to_owned()]);
                if !self.package_args.is_empty() {
                    after.push("--".to_owned());
                }
                "dnx"
            }
            // An installed crate is run by its name.
            Runtime::Cargo | Runtime::Bundle => self.identifier.as_str(),
        };
        if self.runtime == Runtime::Cargo {
            runtime_args = &[];
        }
        let origin = &self.origin.origin;
        let text = |word: String| Text::open(word, origin.clone());
        let args = before
            .into_iter()
            .map(text)
            .chain(runtime_args.iter().cloned())
            .chain(after.into_iter().map(text))
            .chain(self.package_args.iter().cloned())
            .collect();
        let env = self.env.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
        CommandLaunch { program: text(program.to_owned()), args, env, env_file: None, cwd: None }
    }

    /// Returns the image with its registry and version, if the identifier lacks them.
    fn image(&self) -> String {
        let host = self
            .base
            .as_deref()
            .and_then(|base| base.split_once("://"))
            .map(|(_, host)| host.trim_end_matches('/'));
        let mut image = match host {
            Some(host) if host != "docker.io" && !self.identifier.starts_with(&format!("{host}/")) => {
                format!("{host}/{}", self.identifier)
            }
            _ => self.identifier.clone(),
        };
        let last = image.rsplit('/').next().unwrap_or_default();
        if let (Some(version), false) = (&self.version, last.contains([':', '@'])) {
            image = format!("{image}:{version}");
        }
        image
    }
}

/// Shows the exact command, because nobody has seen it before.
fn announce(builder: &EntryBuilder<'_>, fields: &Fields<'_>, launch: &CommandLaunch, plan: &Plan<'_>) {
    let report = builder.report();
    let located = |text: &Text| Located { value: text.expose().to_owned(), origin: text.origin().clone() };
    let env = launch.env.iter().map(|(name, value)| {
        let origin = value.as_ref().map_or(&plan.origin.origin, Text::origin).clone();
        (name.clone(), Located { value: Some(String::new()), origin })
    });
    let written = WrittenCommand {
        names: NAMES,
        program: located(&launch.program),
        args: launch.args.iter().map(located).collect(),
        env: env.collect(),
        env_file: None,
        cwd: None,
    };
    lint::report_code_execution(&written, fields);
    if plan.runtime == Runtime::Cargo {
        let version = plan.version.as_deref().map(|version| format!("@{version}")).unwrap_or_default();
        report.notice(
            &plan.origin.origin,
            &fields.path,
            NoticeKind::Advice,
            format!("install it first with `cargo install --locked {}{version}`", plan.identifier),
        );
    }
    let words: Vec<&str> = std::iter::once(&launch.program).chain(&launch.args).map(Text::shown).collect();
    let publisher = builder.fields.get("name").and_then(Node::as_str).and_then(|name| name.split_once('/'));
    let publisher = publisher.map_or("an unnamed publisher", |(publisher, _)| publisher);
    report.notice(
        &plan.origin.origin,
        &fields.path,
        NoticeKind::Command,
        format!("published by {publisher}; runs `{}`", words.join(" ")),
    );
}
