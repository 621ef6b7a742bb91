//! Finds commands that will not work as written, or that do more than they seem to.

use serde_json::json;

use super::entry::WrittenCommand;
use super::fields::Fields;
use super::report::NoticeKind;
use super::text::{mask_url, names_a_secret, shown_words};

/// Variables that change which code a program runs, or where it loads code from.
const REFUSED: [&str; 31] = [
    "PATH",
    "PATHEXT",
    "SystemRoot",
    "windir",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LD_AUDIT",
    "LD_DEBUG",
    "LD_BIND_NOW",
    "LD_ASSUME_KERNEL",
    "DYLD_LIBRARY_PATH",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_FRAMEWORK_PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "NODE_OPTIONS",
    "RUBYOPT",
    "GEM_PATH",
    "GEM_HOME",
    "CLASSPATH",
    "GO111MODULE",
    "GOROOT",
    "APPINIT_DLLS",
    "SESSIONNAME",
    "ComSpec",
    "TEMP",
    "TMP",
    "LOCALAPPDATA",
    "USERPROFILE",
    "HOMEDRIVE",
    "HOMEPATH",
];

/// Further variables that name code: modules that interpreters load at start, and search paths.
const LOADS_CODE: [&str; 16] = [
    "BASH_ENV",
    "BUN_OPTIONS",
    "DENO_DIR",
    "DOTNET_STARTUP_HOOKS",
    "ENV",
    "GCONV_PATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "NODE_PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "RUBYLIB",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];

/// Package managers take any setting from variables, including the source of packages.
const SETTINGS_OF_INSTALLERS: [&str; 6] = ["npm_config_", "uv_", "pip_", "pipx_", "git_", "cargo_"];

/// Programs that run code from their arguments, and the options for that.
const INTERPRETERS: [(&str, &[&str]); 15] = [
    ("sh", &["-c"]),
    ("bash", &["-c", "-lc", "-ic"]),
    ("zsh", &["-c", "-lc", "-ic"]),
    ("dash", &["-c"]),
    ("fish", &["-c"]),
    ("cmd", &["/c", "/C", "/k", "/K"]),
    ("powershell", &["-c", "-Command", "-command", "-EncodedCommand"]),
    ("pwsh", &["-c", "-Command", "-command", "-EncodedCommand"]),
    ("node", &["-e", "--eval", "-p", "--print"]),
    ("bun", &["-e", "--eval"]),
    ("deno", &["eval"]),
    ("python", &["-c"]),
    ("python3", &["-c"]),
    ("npx", &["-c", "--call"]),
    ("ruby", &["-e"]),
];

/// Checks that the command is a single program. A whole command line is the most common mistake.
pub(crate) fn single_program(command: &WrittenCommand, fields: &Fields<'_>) -> bool {
    let written = &command.program.value;
    let first = written.split_whitespace().next().unwrap_or_default();
    // A path may contain spaces.
    if !written.trim().contains(char::is_whitespace) || first.contains(['/', '\\', '$']) {
        return true;
    }
    let words = written.split_whitespace().chain(command.args.iter().map(|argument| argument.value.as_str()));
    let words = shown_words(words);
    let (program, args) = words.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let report = fields.report;
    let help = format!(
        "write {} and {}",
        report.example(command.names.program, &json!(program)),
        report.example(command.names.args, &json!(args))
    );
    let message = "expected a program name, got a command line";
    report.error_with(&command.program.origin, &fields.at(command.names.program), message, help);
    false
}

/// Returns whether a variable changes which code a program runs.
pub(crate) fn changes_code(variable: &str) -> bool {
    // The dynamic loader reads variables with these prefixes.
    REFUSED.iter().any(|refused| refused.eq_ignore_ascii_case(variable))
        || variable.starts_with("DYLD_")
        || variable.starts_with("LD_")
}

/// Returns whether a variable determines which code runs, or where code is downloaded from.
pub fn decides_code(variable: &str) -> bool {
    let lower = variable.to_ascii_lowercase();
    changes_code(variable)
        || LOADS_CODE.iter().any(|name| name.eq_ignore_ascii_case(variable))
        || SETTINGS_OF_INSTALLERS.iter().any(|start| lower.starts_with(start))
}

/// Returns the program and the option with which it runs code from its arguments, if it does.
pub fn runs_arguments<'a>(
    program: &str,
    arguments: impl IntoIterator<Item = &'a str>,
) -> Option<(String, &'a str)> {
    let program = program_name(program);
    let (_, flags) = INTERPRETERS.iter().find(|(name, _)| *name == program)?;
    let argument = arguments.into_iter().find(|argument| flags.contains(argument))?;
    Some((program, argument))
}

/// Reports variables and arguments that make a program run other code.
pub(crate) fn report_code_execution(command: &WrittenCommand, fields: &Fields<'_>) {
    for (name, value) in &command.env {
        if changes_code(name) && value.value.is_some() {
            fields.report.notice(
                &value.origin,
                &fields.at(&format!("{}.{name}", command.names.env)),
                NoticeKind::Danger,
                format!("`{name}` changes which code the program runs"),
            );
        }
    }
    let program = program_name(&command.program.value);
    let Some((_, flags)) = INTERPRETERS.iter().find(|(name, _)| *name == program) else { return };
    if let Some(argument) = command.args.iter().find(|argument| flags.contains(&argument.value.as_str())) {
        fields.report.notice(
            &argument.origin,
            &fields.at(command.names.args),
            NoticeKind::Danger,
            format!("`{program} {}` runs code from its arguments", argument.value),
        );
    }
}

/// Suggests a native connection in place of a bridge program.
pub(crate) fn mcp_remote(command: &WrittenCommand, fields: &Fields<'_>) {
    let is_bridge = |word: &str| word == "mcp-remote" || word.starts_with("mcp-remote@");
    let words: Vec<&str> = std::iter::once(command.program.value.as_str())
        .chain(command.args.iter().map(|argument| argument.value.as_str()))
        .collect();
    let Some(at) = words.iter().position(|word| is_bridge(word)) else { return };
    let after: Vec<&str> = words.into_iter().skip(at + 1).collect();
    let Some(url) = after.iter().find(|word| word.starts_with("http://") || word.starts_with("https://"))
    else {
        return;
    };
    let report = fields.report;
    let shown = mask_url(url).unwrap_or_else(|| (*url).to_owned());
    let mut members = vec![report.example("url", &json!(shown))];
    let mut headers = serde_json::Map::new();
    for pair in after.windows(2) {
        let ["--header", header] = pair else { continue };
        let Some((name, value)) = header.split_once(':') else { continue };
        let value = value.trim();
        let literal = names_a_secret(name) && !value.contains("${");
        headers.insert(name.trim().to_owned(), json!(if literal { "***" } else { value }));
    }
    if !headers.is_empty() {
        members.push(report.example("headers", &headers.into()));
    }
    if after.windows(2).any(|pair| matches!(pair, ["--transport", "sse-only" | "sse-first"])) {
        members.push(report.example("type", &json!("sse")));
    }
    report.notice(
        &command.program.origin,
        &fields.at(command.names.program),
        NoticeKind::Advice,
        format!(
            "`mcp-remote` is not needed; replace `{}` and `{}` with {}",
            command.names.program,
            command.names.args,
            members.join(" and ")
        ),
    );
}

/// Returns the name of a program without its directory and extension.
fn program_name(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    for ending in [".exe", ".cmd", ".bat"] {
        if let Some(stem) = name.strip_suffix(ending) {
            return stem.to_owned();
        }
    }
    name
}
