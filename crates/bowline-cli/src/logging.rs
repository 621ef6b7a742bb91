//! Logging: level, format and destination.

use crate::{context::Context, failure::Failure};
use bowline_text::visible;
use clap::{Args, ValueEnum};
use std::io::Write;
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::LevelFilter,
    fmt,
    fmt::{MakeWriter, writer::BoxMakeWriter},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// Logging options.
#[derive(Args, Debug, Default)]
pub(crate) struct LogArguments {
    /// Log level: error, warn, info, debug, trace, or a filter such as `warn,bowline_host=debug` [env: BOWLINE_LOG]
    #[arg(long, global = true, value_name = "LEVEL", help_heading = "Log")]
    log: Option<String>,
    /// Log format
    #[arg(long, value_name = "FORMAT", global = true, value_enum, default_value_t = Format::Text, help_heading = "Log")]
    log_format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Text,
    Json,
}

impl LogArguments {
    /// Starts logging. `usual` is the default filter.
    pub(crate) fn start(&self, context: &Context, usual: &str, writer: BoxMakeWriter) -> Result<(), Failure> {
        let variable = context.environment.variables.variable("BOWLINE_LOG");
        let wanted = self.log.as_deref().or(variable).filter(|text| !text.is_empty()).unwrap_or(usual);
        let filter = filter(wanted).ok_or_else(|| {
            Failure::misused(format!("invalid log level `{wanted}`")).advise(
                "expected error, warn, info, debug, trace, or a filter such as `warn,bowline_host=debug`",
            )
        })?;
        let lines = fmt::layer().with_writer(Escaped(writer)).with_ansi(false).with_target(false);
        let lines = match self.log_format {
            Format::Text => lines.boxed(),
            Format::Json => lines.json().flatten_event(true).boxed(),
        };
        // Fails only if a subscriber is already set, which then stays in place.
        let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
        Ok(())
    }
}

/// Starts logging to standard error if `BOWLINE_LOG` is set. For commands without logging options of their own.
pub(crate) fn start_if_wanted(context: &Context) -> Result<(), Failure> {
    let is_wanted =
        context.environment.variables.variable("BOWLINE_LOG").is_some_and(|text| !text.is_empty());
    if is_wanted {
        LogArguments::default().start(context, "off", to_stderr())?;
        tracing::trace!(version = env!("CARGO_PKG_VERSION"), "logging started");
    }
    Ok(())
}

/// Writes each event on one line with control characters escaped. Events contain text of servers and clients, which must not
/// forge log lines or send escape sequences to the terminal.
struct Escaped<M>(M);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Escaped<M> {
    type Writer = EscapedWriter<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        EscapedWriter(self.0.make_writer())
    }

    fn make_writer_for(&'a self, metadata: &tracing::Metadata<'_>) -> Self::Writer {
        EscapedWriter(self.0.make_writer_for(metadata))
    }
}

struct EscapedWriter<W>(W);

impl<W: Write> Write for EscapedWriter<W> {
    /// Writes one event. The subscriber writes whole events.
    fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let end = if line.len() < text.len() { "\n" } else { "" };
        self.0.write_all(format!("{}{end}", visible(line)).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Parses a filter. A word alone must be a level: as a target it would silence everything else.
fn filter(wanted: &str) -> Option<EnvFilter> {
    let is_plain = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
    wanted.split(',').all(is_plain).then(|| EnvFilter::try_new(wanted).ok())?
}

/// Returns a writer for standard error.
pub(crate) fn to_stderr() -> BoxMakeWriter {
    BoxMakeWriter::new(std::io::stderr)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn server_text_cannot_forge_log_lines() {
        let hostile = "x\n2026-01-01T00:00:00Z  INFO all is well\r\u{1b}[2J\u{9b}31m\u{202e}\u{7}";
        for json in [false, true] {
            let kept = Kept::default();
            let made = kept.clone();
            let writer = Escaped(BoxMakeWriter::new(move || made.clone()));
            let lines = fmt::layer().with_writer(writer).with_ansi(false);
            let lines = if json { lines.json().flatten_event(true).boxed() } else { lines.boxed() };
            tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
                tracing::warn!(text = hostile, shown = %hostile, debug = ?hostile, "{hostile}");
                tracing::warn!("the next line");
            });
            let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
            assert_eq!(text.lines().count(), 2, "{text}");
            let hidden = text.chars().filter(|character| *character != '\n');
            assert!(
                hidden.clone().all(|character| !character.is_control() && character != '\u{202e}'),
                "{text:?}"
            );
        }
    }
}
