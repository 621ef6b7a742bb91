//! Terminal output: results to standard output, everything else to standard error.

use crate::{
    failure::{Code, Failure},
    json_text, markdown,
};
use anstyle::{AnsiColor, Style};
use bowline_text::visible_lines;
use serde::Serialize;
use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// Whether the last line of the terminal is a transient one, such as a progress bar.
static TRANSIENT: Mutex<bool> = Mutex::new(false);

/// How many prompts are open.
static HOLDS: AtomicUsize = AtomicUsize::new(0);

/// Prevents transient lines until it is dropped, so that they do not cover a prompt.
#[derive(Debug)]
pub(crate) struct TransientHold(());

impl TransientHold {
    pub(crate) fn new() -> Self {
        HOLDS.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for TransientHold {
    fn drop(&mut self) {
        HOLDS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where a command writes.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "the flags are independent")]
pub(crate) struct Screen {
    /// Whether results are colored.
    color: bool,
    /// Whether messages on standard error are colored.
    stderr_color: bool,
    /// The width of the terminal; `None` if standard output is not a terminal.
    width: Option<usize>,
    /// Whether standard error is a terminal.
    stderr_is_terminal: bool,
    /// Whether failures are written as JSON.
    json_errors: bool,
}

/// The style of a text. Color is never the only indication.
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
        let stderr_is_terminal = io::stderr().is_terminal();
        Self {
            color: allowed(io::stdout().is_terminal()),
            stderr_color: allowed(stderr_is_terminal),
            width: columns(),
            stderr_is_terminal,
            json_errors: false,
        }
    }

    /// Sets whether failures are printed as JSON.
    pub(crate) fn errors_as_json(self, json_errors: bool) -> Self {
        Self { json_errors, ..self }
    }

    #[cfg(test)]
    pub(crate) fn plain(width: Option<usize>) -> Self {
        Self { color: false, stderr_color: false, width, stderr_is_terminal: false, json_errors: false }
    }

    #[cfg(test)]
    pub(crate) fn colored(width: Option<usize>) -> Self {
        Self { color: true, ..Self::plain(width) }
    }

    /// Returns the width of the terminal; `None` if standard output is not a terminal.
    pub(crate) fn width(self) -> Option<usize> {
        self.width
    }

    /// Whether standard error is a terminal.
    pub(crate) fn stderr_is_terminal(self) -> bool {
        self.stderr_is_terminal
    }

    /// Styles a part of a result.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        painted(self.color, tone, text)
    }

    /// Styles a part of a message.
    pub(crate) fn paint_stderr(self, tone: Tone, text: &str) -> String {
        painted(self.stderr_color, tone, text)
    }

    /// Prints a line of the result.
    pub(crate) fn line(self, text: &str) -> Result<(), Failure> {
        let _transient = self.cleared();
        Ok(writeln!(io::stdout().lock(), "{text}")?)
    }

    /// Writes bytes for the terminal, such as inline images.
    pub(crate) fn raw(self, bytes: &[u8]) -> Result<(), Failure> {
        let _transient = self.cleared();
        Ok(io::stdout().lock().write_all(bytes)?)
    }

    /// Prints text of the server with control characters escaped.
    pub(crate) fn untrusted(self, text: &str) -> Result<(), Failure> {
        visible_lines(text).try_for_each(|line| self.line(&line))
    }

    /// Prints text of the server as Markdown. Without color, prints the source.
    pub(crate) fn markdown(self, text: &str) -> Result<(), Failure> {
        if !self.color {
            return self.untrusted(text);
        }
        markdown::render(self, text).iter().try_for_each(|line| self.line(line))
    }

    /// Prints the result as JSON.
    pub(crate) fn json(self, value: &impl Serialize) -> Result<(), Failure> {
        self.laid_out(serde_json::to_string_pretty(value).map_err(io::Error::from)?)
    }

    /// Prints formatted JSON. Only white space changes.
    pub(crate) fn json_text(self, text: &str) -> Result<(), Failure> {
        self.laid_out(json_text::laid_out(text).unwrap_or_else(|| text.to_owned()))
    }

    fn laid_out(self, text: String) -> Result<(), Failure> {
        let text = json_text::escaped(text);
        if self.color { self.line(&json_text::colored(self, &text)) } else { self.line(&text) }
    }

    /// Prints a message.
    pub(crate) fn note(self, text: &str) {
        let _transient = self.cleared();
        // There is nowhere to report a closed standard error.
        let _: io::Result<()> = writeln!(io::stderr().lock(), "{text}");
    }

    /// Prints a warning.
    pub(crate) fn warn(self, text: &str) {
        let label = self.paint_stderr(Tone::Warning, "warning:");
        self.note(&format!("{label} {text}"));
    }

    /// Prints a prompt without a line break.
    pub(crate) fn prompt(self, text: &str) {
        let _transient = self.cleared();
        let mut stderr = io::stderr().lock();
        let _: io::Result<()> = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }

    /// Shows a line that the next output replaces. Only for terminals.
    pub(crate) fn transient(self, text: &str) {
        if HOLDS.load(Ordering::Relaxed) > 0 {
            return;
        }
        let mut transient = self.cleared();
        let mut stderr = io::stderr().lock();
        let _: io::Result<()> = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
        *transient = true;
    }

    /// Removes the transient line.
    pub(crate) fn clear(self) {
        drop(self.cleared());
    }

    #[expect(clippy::unused_self, reason = "belongs to the screen")]
    fn cleared(self) -> MutexGuard<'static, bool> {
        let mut transient = TRANSIENT.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *transient) {
            let _: io::Result<()> = io::stderr().lock().write_all(b"\r\x1b[2K");
        }
        transient
    }

    /// Prints a failure and returns its exit code.
    pub(crate) fn print_failure(self, failure: &Failure) -> ExitCode {
        if !failure.silent && self.json_errors {
            self.note(&json_text::escaped(failure.to_json().to_string()));
        } else if !failure.silent {
            let label = self.paint_stderr(Tone::Bad, "error:");
            let mut lines = visible_lines(&failure.sentence);
            self.note(&format!("{label} {}", lines.next().unwrap_or_default()));
            for line in lines.chain(failure.advice.iter().flat_map(|line| visible_lines(line))) {
                self.note(&format!("  {line}"));
            }
        }
        failure.code.into()
    }
}

#[cfg(unix)]
fn columns() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(size.ws_col).filter(|columns| *columns > 0).map(usize::from)
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|_| io::stdout().is_terminal())
}

fn painted(color: bool, tone: Tone, text: &str) -> String {
    if !color {
        return text.to_owned();
    }
    let style = tone.style();
    format!("{style}{text}{style:#}")
}

/// Prints the output of the command-line parser: help, version, or an error.
pub(crate) fn print_usage(error: &clap::Error, as_json: bool) -> ExitCode {
    if as_json && error.use_stderr() {
        let text = error.to_string();
        let (sentence, advice) = text.split_once("\n\n").unwrap_or((&text, ""));
        let sentence = sentence.trim().trim_start_matches("error: ");
        let advice = advice.lines().map(str::trim).filter(|line| !line.is_empty());
        let failure = advice.fold(Failure::new(Code::Misused, sentence), Failure::advise);
        return Screen::new(clap::ColorChoice::Never).errors_as_json(true).print_failure(&failure);
    }
    let _: io::Result<()> = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}
