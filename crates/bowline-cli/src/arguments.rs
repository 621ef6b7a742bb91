//! What the words on the command line ask for.

use std::ffi::OsString;

pub(crate) const HELP: &str = "\
The Model Context Protocol from the command line.

Usage: bowline [COMMAND]

Commands:
  tour [--trace]  Start the demo server once per revision of the protocol, and show what a client of that
                  revision sees of it; with --trace, every message as well. This is the default.
  serve demo      Serve the demo over standard input and output, for any client.

Options:
  -h, --help      Show this.
  -V, --version   Show the version.
";

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Help,
    Version,
    ServeDemo,
    Tour(Frames),
}

/// Whether the tour shows the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frames {
    Hidden,
    Shown,
}

/// Reads the words behind the name of the program. The error is a sentence for the user.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Request, String> {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(match words.as_slice() {
        [] | ["tour"] => Request::Tour(Frames::Hidden),
        ["--trace"] | ["tour", "--trace"] => Request::Tour(Frames::Shown),
        ["serve", "demo"] => Request::ServeDemo,
        ["-h" | "--help" | "help"] | ["tour" | "serve", "-h" | "--help"] => Request::Help,
        ["-V" | "--version"] => Request::Version,
        ["serve"] => return Err("expected the name of a server after `serve`: there is `demo`".into()),
        ["serve", "demo", other, ..] | ["serve", other, ..] => {
            return Err(format!("expected `serve demo`, got `{other}` in its place; try `bowline --help`"));
        }
        ["tour", "--trace", other, ..] | ["--trace" | "tour", other, ..] | [other, ..] => {
            return Err(format!("expected a command or an option, got `{other}`; try `bowline --help`"));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Result<Request, &str>) {
        let parsed = parse(line.split_whitespace().map(OsString::from));
        assert_eq!(
            parsed.as_ref().map_err(String::as_str),
            expected.as_ref().map_err(|error| *error),
            "{line}"
        );
    }

    #[test]
    fn the_tour_is_what_happens_by_default() {
        check("", Ok(Request::Tour(Frames::Hidden)));
        check("tour", Ok(Request::Tour(Frames::Hidden)));
        check("--trace", Ok(Request::Tour(Frames::Shown)));
        check("tour --trace", Ok(Request::Tour(Frames::Shown)));
    }

    #[test]
    fn commands_and_options_are_known() {
        check("serve demo", Ok(Request::ServeDemo));
        check("--help", Ok(Request::Help));
        check("tour -h", Ok(Request::Help));
        check("-V", Ok(Request::Version));
    }

    #[test]
    fn what_is_unknown_is_named() {
        check("--fast", Err("expected a command or an option, got `--fast`; try `bowline --help`"));
        check("tour --trace now", Err("expected a command or an option, got `now`; try `bowline --help`"));
        check("serve", Err("expected the name of a server after `serve`: there is `demo`"));
        check("serve files", Err("expected `serve demo`, got `files` in its place; try `bowline --help`"));
    }
}
