//! `bowline completions`: completion scripts for shells, and the hidden command that they call.
//!
//! The scripts call `bowline __complete` with the words typed so far. Candidates come from the command-line definition, the
//! configuration and the cache of names; no server is started.

use crate::{
    builtin::Builtin,
    cache::Cache,
    completion::{COMMANDS, candidates, is_option, split},
    context::Context,
    failure::Failure,
    quoting::{BashLine, Shell, quote},
};
use clap::{Args, CommandFactory};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let script = match arguments.shell {
        Shell::Bash => include_str!("completions/bowline.bash"),
        Shell::Elvish => include_str!("completions/bowline.elv"),
        Shell::Fish => include_str!("completions/bowline.fish"),
        Shell::Powershell => include_str!("completions/bowline.ps1"),
        Shell::Zsh => include_str!("completions/bowline.zsh"),
    };
    context.screen.line(script.trim_end())
}

#[derive(Args, Debug)]
pub(crate) struct CompletionRequest {
    /// The shell; without it only names that need no quoting are completed
    #[arg(long)]
    shell: Option<Shell>,
    /// The line up to the cursor, for shells with their own word splitting
    #[arg(long, value_name = "LINE", allow_hyphen_values = true)]
    line: Option<String>,
    /// The characters at which the shell splits words
    #[arg(long, value_name = "CHARACTERS", allow_hyphen_values = true)]
    breaks: Option<String>,
    /// The words after the program name; the last one is completed
    #[arg(last = true)]
    words: Vec<String>,
}

pub(crate) fn answer(request: &CompletionRequest, context: &Context) -> Result<(), Failure> {
    if let Some(line) = &request.line {
        let Some(line) = BashLine::parse(line, request.breaks.as_deref()) else { return Ok(()) };
        let words = line.words.get(1..).unwrap_or_default();
        let found = candidates_for(context, words, &line.current);
        return found
            .iter()
            .filter_map(|candidate| line.insertion(candidate))
            .try_for_each(|it| context.screen.line(&it));
    }
    let mut words = request.words.clone();
    let current = words.pop().unwrap_or_default();
    let current = match request.shell {
        // Fish and PowerShell pass the word with its quotes.
        Some(Shell::Fish | Shell::Powershell) => split(&current).pop().unwrap_or_default(),
        _ => current,
    };
    let found = candidates_for(context, &words, &current);
    found
        .iter()
        .filter_map(|candidate| quote(request.shell, candidate))
        .try_for_each(|it| context.screen.line(&it))
}

fn candidates_for(context: &Context, words: &[String], current: &str) -> Vec<String> {
    if words.iter().any(|word| word == "--") {
        return Vec::new();
    }
    let mut command = super::Arguments::command();
    command.build();
    let (mut place, mut plain, mut waiting) = (&command, Vec::new(), None);
    for word in words {
        if waiting.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            waiting = place.get_arguments().find(|known| takes_value(known) && is_named(known, word));
            continue;
        }
        match place.find_subcommand(word) {
            Some(inner) if plain.is_empty() => place = inner,
            _ => plain.push(word.clone()),
        }
    }
    let begins = |candidates: Vec<String>| {
        candidates.into_iter().filter(|candidate| candidate.starts_with(current)).collect()
    };
    if let Some(option) = waiting {
        let values = option.get_possible_values();
        return begins(values.iter().map(|value| value.get_name().to_owned()).collect());
    }
    if current.starts_with('-') {
        let shown = place.get_arguments().filter(|known| !known.is_hide_set());
        return begins(shown.filter_map(|known| Some(format!("--{}", known.get_long()?))).collect());
    }
    let commands = place.get_subcommands().filter(|known| !known.is_hide_set());
    let mut found: Vec<String> = commands.map(|known| known.get_name().to_owned()).collect();
    let positional = place.get_positionals().next();
    found.extend(
        positional.into_iter().flat_map(clap::Arg::get_possible_values).map(|it| it.get_name().to_owned()),
    );
    let about_server = place.get_name();
    if COMMANDS.contains(&about_server) || ["watch", "repl"].contains(&about_server) {
        match plain.as_slice() {
            [] => {
                let config = context.environment.config();
                let names = config.upstreams.iter().map(|entry| entry.name.clone());
                found.extend(names.filter(|name| !is_option(name)));
                found.extend(Builtin::NAMES.map(ToOwned::to_owned));
                found.push("up".to_owned());
            }
            [target, rest @ ..] => {
                let mut words = vec![about_server.to_owned()];
                words.extend(rest.iter().cloned());
                return candidates(&Cache::load(context).names(target), &words, current);
            }
        }
    }
    begins(found)
}

fn takes_value(argument: &clap::Arg) -> bool {
    argument.get_action().takes_values()
}

fn is_named(argument: &clap::Arg, word: &str) -> bool {
    let long = argument.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long));
    long || argument
        .get_short()
        .is_some_and(|short| word.strip_prefix('-') == Some(short.to_string().as_str()))
}
