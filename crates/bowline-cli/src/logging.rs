//! What the program tells while it runs: how much, in which form, and where.

use crate::{context::Context, failure::Failure};
use clap::{Args, ValueEnum};
use tracing_subscriber::{
    EnvFilter, Layer, filter::LevelFilter, fmt, fmt::writer::BoxMakeWriter, layer::SubscriberExt,
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
        let variable = context.surroundings.environment.variable("BOWLINE_LOG");
        let wanted = self.log.as_deref().or(variable).filter(|text| !text.is_empty()).unwrap_or(usual);
        let filter = filter(wanted).ok_or_else(|| {
            Failure::misused(format!("the level of the log `{wanted}` cannot be understood"))
                .advise("expected error, warn, info, debug or trace, or such as `warn,bowline_host=debug`")
        })?;
        let lines = fmt::layer().with_writer(writer).with_ansi(false).with_target(false);
        let lines = match self.log_format {
            Format::Text => lines.boxed(),
            Format::Json => lines.json().flatten_event(true).boxed(),
        };
        // Fails only where something else has set one, which then is the one to keep.
        let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
        Ok(())
    }
}

/// What is told. A word alone has to be a level: as the name of a part it would silence all others.
fn filter(wanted: &str) -> Option<EnvFilter> {
    let is_plain = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
    wanted.split(',').all(is_plain).then(|| EnvFilter::try_new(wanted).ok())?
}

/// The log on standard error.
pub(crate) fn aside() -> BoxMakeWriter {
    BoxMakeWriter::new(std::io::stderr)
}
