//! What the program writes: results on standard output, everything else on standard error.

use crate::failure::Failure;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

/// Where a command writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// Whether results are colored.
    color: bool,
    /// Whether what goes to standard error is.
    aside_color: bool,
}

/// What a text is, which decides how it looks where there is color. Color never is the only sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Heading,
    Name,
    Faint,
    Good,
    Warning,
    Bad,
}

impl Tone {
    fn style(self) -> Style {
        match self {
            Self::Heading => Style::new().bold(),
            Self::Name => AnsiColor::Cyan.on_default(),
            Self::Faint => Style::new().dimmed(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
        }
    }
}

impl Screen {
    pub(crate) fn new(choice: clap::ColorChoice) -> Self {
        let allowed = |terminal: bool| match choice {
            clap::ColorChoice::Always => true,
            clap::ColorChoice::Never => false,
            clap::ColorChoice::Auto => {
                terminal
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
            }
        };
        Self { color: allowed(io::stdout().is_terminal()), aside_color: allowed(io::stderr().is_terminal()) }
    }

    /// A part of a result in its tone.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        painted(self.color, tone, text)
    }

    /// A part of a message in its tone.
    pub(crate) fn paint_aside(self, tone: Tone, text: &str) -> String {
        painted(self.aside_color, tone, text)
    }

    /// Writes a line of the result.
    pub(crate) fn line(self, text: &str) -> Result<(), Failure> {
        Ok(writeln!(io::stdout().lock(), "{text}")?)
    }

    /// Writes the result as JSON.
    pub(crate) fn json(self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(value).map_err(io::Error::from)?;
        self.line(&text)
    }

    /// Tells the user something that is no result.
    pub(crate) fn aside(self, text: &str) {
        // There is nobody to tell that nobody listens.
        let _: io::Result<()> = writeln!(io::stderr().lock(), "{text}");
    }

    /// Tells why the command ended.
    pub(crate) fn tell_failure(self, failure: &Failure) -> ExitCode {
        if !failure.silent {
            let label = self.paint_aside(Tone::Bad, "error:");
            self.aside(&format!("{label} {}", failure.sentence));
            for line in &failure.advice {
                self.aside(&format!("  {line}"));
            }
        }
        failure.code.into()
    }
}

fn painted(color: bool, tone: Tone, text: &str) -> String {
    if !color {
        return text.to_owned();
    }
    let style = tone.style();
    format!("{style}{text}{style:#}")
}

/// Shows what the parser of the command line has to say: help, the version, or a mistake.
pub(crate) fn tell_usage(error: &clap::Error) -> ExitCode {
    let _: io::Result<()> = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}
