//! What the program tells while it runs: how much, in which form, and where.

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

/// The log on the command line.
#[derive(Args, Debug, Default)]
pub(crate) struct LogArguments {
    /// How much to tell: error, warn, info, debug or trace, or as in `warn,bowline_host=debug`; BOWLINE_LOG says it as well
    #[arg(long, global = true, value_name = "LEVEL", help_heading = "Log")]
    log: Option<String>,
    /// How to write it: lines for people, or a JSON object each
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
    /// Starts to write the log. `usual` is how much is told where nobody says it.
    pub(crate) fn start(&self, context: &Context, usual: &str, writer: BoxMakeWriter) -> Result<(), Failure> {
        let variable = context.environment.variables.variable("BOWLINE_LOG");
        let wanted = self.log.as_deref().or(variable).filter(|text| !text.is_empty()).unwrap_or(usual);
        let filter = filter(wanted).ok_or_else(|| {
            Failure::misused(format!("the level of the log `{wanted}` cannot be understood"))
                .advise("expected error, warn, info, debug or trace, or such as `warn,bowline_host=debug`")
        })?;
        let lines = fmt::layer().with_writer(Escaped(writer)).with_ansi(false).with_target(false);
        let lines = match self.log_format {
            Format::Text => lines.boxed(),
            Format::Json => lines.json().flatten_event(true).boxed(),
        };
        // Fails only where something else has set one, which then is the one to keep.
        let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
        Ok(())
    }
}

/// Writes each event on one line in which every character can be seen. Text of servers and clients is in many events: it
/// must not begin a line of its own, nor reach the terminal as an escape sequence.
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
    /// Takes a whole event, as the subscriber writes them.
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

/// What is told. A word alone has to be a level: as the name of a part it would silence all others.
fn filter(wanted: &str) -> Option<EnvFilter> {
    let is_plain = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
    wanted.split(',').all(is_plain).then(|| EnvFilter::try_new(wanted).ok())?
}

/// The log on standard error.
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
    fn text_of_servers_forges_no_line_and_moves_no_cursor() {
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
