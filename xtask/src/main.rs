//! The repository's own checks: `cargo xtask <command>`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program reports on its terminal"
)]

mod api;
mod bridge;
mod check;
mod features;
mod files;
mod finding;
mod rust;
mod schemas;
#[cfg(test)]
mod scratch;
mod size;
mod tidy;
mod trace;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  check [crate...]
              run format, clippy, tests and tidy, for the workspace or some crates
  tidy        check dependency directions, manifests, sources, and the tests named in docs
  trace       list the proven requirements; write spec/TRACE.md and the figures in README.md
      --check               write nothing; fail if the page or the figures are out of date
      --min-proven <n>      fail if fewer MUST and MUST NOT rows are proven
      --built <a,b,..>      fail if a MUST or MUST NOT row of these areas is open and not listed in spec/open.tsv
      --sample <n>          print n random proven rows with their tests; write nothing
      --seed <n>            the seed of --sample (default: 0)
  schemas <directory>
              write spec/schema/<revision>.json: the structure of <directory>/<revision>/schema.json without its prose
  size        build examples/minimal and check the number of its crates and its size
  bridge      test every revision with every other through the host; write docs/BRIDGE.md
      --check               write nothing; fail if docs/BRIDGE.md is out of date
  features    list the features of the facade, one per line
  api         write the public API of each library crate to spec/api
      --check               write nothing; fail if a listing is out of date
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match api::run_as_rustdoc(&arguments).unwrap_or_else(|| run(&arguments)) {
        Ok(Verdict::Clean) => ExitCode::SUCCESS,
        Ok(Verdict::Findings) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::from(2)
        }
    }
}

/// The result of a command that finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Clean,
    Findings,
}

impl Verdict {
    fn of(is_clean: bool) -> Self {
        if is_clean { Self::Clean } else { Self::Findings }
    }
}

fn run(arguments: &[String]) -> Result<Verdict, String> {
    let Some((command, rest)) = arguments.split_first() else {
        return Err(format!("expected a command\n\n{USAGE}"));
    };
    match (command.as_str(), rest) {
        ("check", crates) => check::run(&workspace::root()?, crates),
        ("tidy", []) => tidy::run(&workspace::root()?),
        ("trace", options) => trace::run(&workspace::root()?, options),
        ("schemas", [folder]) => schemas::run(&workspace::root()?, folder.as_ref()),
        ("schemas", _) => Err("`schemas` takes one argument: the folder of the official schemas".to_owned()),
        ("size", []) => size::run(&workspace::root()?),
        ("bridge", options) => bridge::run(&workspace::root()?, options),
        ("api", options) => api::run(&workspace::root()?, options),
        ("features", []) => features::run(&workspace::root()?),
        ("help" | "--help" | "-h", _) => {
            print!("{USAGE}");
            Ok(Verdict::Clean)
        }
        ("tidy" | "size" | "features", [extra, ..]) => {
            Err(format!("`{command}` takes no argument, got `{extra}`"))
        }
        (other, _) => Err(format!("unknown command `{other}`\n\n{USAGE}")),
    }
}

#[cfg(test)]
mod tests {
    use super::run;

    fn error_of(arguments: &[&str]) -> String {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        run(&arguments).expect_err("these arguments are wrong")
    }

    #[test]
    fn wrong_arguments_are_reported() {
        assert!(error_of(&[]).starts_with("expected a command\n\nusage:"));
        assert!(error_of(&["tydi"]).starts_with("unknown command `tydi`\n\nusage:"));
        assert_eq!(error_of(&["tidy", "--fix"]), "`tidy` takes no argument, got `--fix`");
    }
}
