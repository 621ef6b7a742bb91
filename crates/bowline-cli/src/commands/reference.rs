//! Generates the reference pages of the book.

use crate::failure::Failure;
use clap::{Arg, Command, CommandFactory as _, ValueEnum};
use std::{fmt::Write as _, io::Write as _};

/// Arguments of the hidden command.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The page
    page: Page,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Page {
    Commands,
    Configuration,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let page = match arguments.page {
        Page::Commands => commands(),
        Page::Configuration => bowline_config::reference(),
    };
    std::io::stdout().write_all(page.as_bytes())?;
    Ok(())
}

const INTRO: &str = "\
# Commands

The commands and options of `bowline`, as shown by `bowline help`. Results are printed to standard output, everything else to
standard error.
";

/// The table of exit codes.
const CODES: &str = "
## Exit codes

| code | meaning |
| --- | --- |
| 0 | Success. |
| 1 | The operation failed: a tool returned an error, a file cannot be written. |
| 2 | Invalid command line. |
| 3 | Invalid configuration, or unknown server. |
| 4 | The server cannot be started or reached, or the connection was lost. |
| 5 | The server returned a protocol error or violated the protocol. |
| 6 | Timeout. |
| 7 | Denied by the user or by a rule, a login is missing, or nobody could be asked. |
| 8 | A check found problems: `doctor`, `replay`, `config check`, `pins diff`, `store check`, `store rekey`. |
| 130 | Interrupted by Ctrl-C. |
";

/// Arguments of at least this many commands are listed once.
const MANY: usize = 5;

fn commands() -> String {
    let mut program = super::Arguments::command();
    program.build();
    let common = common(&program);
    let mut page = INTRO.to_owned();
    describe(&program, &[], &common, &mut page);
    let _ =
        writeln!(page, "\n## Connection options\n\nCommands that connect to a server accept these options.");
    table(&mut page, common.iter().copied());
    page.push_str(CODES);
    page
}

/// Returns the arguments that many commands share.
fn common(program: &Command) -> Vec<&Arg> {
    let own =
        || program.get_subcommands().flat_map(Command::get_arguments).filter(|argument| is_shown(argument));
    let is_same = |one: &Arg, other: &Arg| row(one) == row(other);
    let mut common: Vec<&Arg> = Vec::new();
    for argument in own().filter(|argument| !argument.is_global_set()) {
        let often = own().filter(|other| is_same(argument, other)).count() >= MANY;
        if often && !common.iter().any(|known| is_same(argument, known)) {
            common.push(argument);
        }
    }
    common
}

fn is_shown(argument: &Arg) -> bool {
    !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
}

/// Writes a command and its subcommands. Arguments of parent commands are not repeated.
fn describe(command: &Command, above: &[&Command], common: &[&Arg], page: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let _ = writeln!(page, "\n## `{name}`\n");
    let about = command.get_long_about().or_else(|| command.get_about());
    if let Some(about) = about {
        let _ = writeln!(page, "{}\n", sentence(&about.to_string()));
    }
    let usage = command.clone().render_usage().to_string();
    let usage: Vec<_> = usage.lines().map(|line| line.trim_start_matches("Usage:").trim()).collect();
    let _ = writeln!(page, "```text\n{}\n```", usage.join("\n"));
    let is_own = |argument: &&Arg| {
        let mut known = above.iter().flat_map(|above| above.get_arguments());
        is_shown(argument)
            && !known.any(|known| known.get_id() == argument.get_id())
            && !common.iter().any(|known| row(known) == row(argument))
    };
    table(page, command.get_arguments().filter(is_own));
    let above: Vec<&Command> = above.iter().copied().chain([command]).collect();
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        describe(below, &above, common, page);
    }
}

fn table<'a>(page: &mut String, arguments: impl Iterator<Item = &'a Arg>) {
    let rows: Vec<String> = arguments.map(row).collect();
    if !rows.is_empty() {
        let _ = write!(page, "\n| argument | description |\n| --- | --- |\n{}", rows.concat());
    }
}

fn row(argument: &Arg) -> String {
    format!("| `{}` | {} |\n", spelled(argument), meaning(argument))
}

/// Formats an argument with its value.
fn spelled(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let value = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let many = argument.get_num_args().is_some_and(|range| range.max_values() > 1);
    let value = if many && names.len() < 2 { format!("{value}...") } else { value };
    if argument.is_positional() {
        return value;
    }
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let names = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    if argument.get_action().takes_values() { format!("{names} {value}") } else { names }
}

/// Returns the help of an argument with its default and possible values.
fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string);
    let (help, described_default) = split_default(help.as_deref().unwrap_or_default());
    let mut text = sentence(help);
    let choices: Vec<_> =
        argument.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if argument.get_action().takes_values() && !choices.is_empty() {
        let _ = write!(text, " One of {}.", choices.join(", "));
    }
    let defaults: Vec<_> =
        argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if argument.get_action().takes_values() && !defaults.is_empty() {
        let _ = write!(text, " Default: {}.", defaults.join(", "));
    }
    if let Some(default) = described_default {
        let _ = write!(text, " Default: {default}.");
    }
    // Bars and line breaks would end the cell.
    text.replace('|', "\\|").replace("\n\n", "<br>").replace('\n', " ")
}

/// Separates the `[default: …]` that ends a help text if clap does not know the default.
fn split_default(help: &str) -> (&str, Option<&str>) {
    match help.trim().strip_suffix(']').and_then(|help| help.rsplit_once(" [default: ")) {
        Some((help, default)) => (help, Some(default)),
        None => (help, None),
    }
}

/// Adds the full stop that help texts omit.
fn sentence(text: &str) -> String {
    // The first paragraph of a long help is a title.
    if let Some((title, rest)) = text.trim().split_once("\n\n") {
        return format!("{}\n\n{}", sentence(title), sentence(rest));
    }
    let text = text.trim();
    if text.ends_with(['.', ':', '!', '?', ')']) || text.is_empty() {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}
