//! The context of a command: terminal output, process environment and common options.

use crate::{environment::ProcessEnvironment, failure::Failure, recording::Recording, screen::Screen};
use bowline_client::{Client, ClientBuilder, Direction};
use bowline_text::{rfc3339, visible};
use bowline_transcript::Side;
use bowline_types::Revision;
use clap::Args;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

/// Options of every command.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Common {
    /// Print results and errors as JSON in a stable format
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) json: bool,
    /// Read this configuration file instead of the default ones; can be repeated
    #[arg(long, short = 'c', global = true, value_name = "FILE", help_heading = "Common options")]
    pub(crate) config: Vec<PathBuf>,
    /// Change to this directory first
    #[arg(long, short = 'C', global = true, value_name = "DIR", help_heading = "Common options")]
    pub(crate) directory: Option<PathBuf>,
    /// Use only this protocol revision
    #[arg(long, global = true, value_name = "DATE", value_parser = revision, help_heading = "Common options")]
    pub(crate) revision: Option<Revision>,
    /// Print every message with a timestamp to standard error
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) trace: bool,
    /// Record all messages to this file; `bowline replay` can play it back
    #[arg(long, global = true, value_name = "FILE", help_heading = "Common options")]
    pub(crate) record: Option<PathBuf>,
    /// Never prompt, even at a terminal
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) no_input: bool,
    /// When to use colors; `auto` uses them at a terminal unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Common options")]
    pub(crate) color: clap::ColorChoice,
}

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) screen: Screen,
    pub(crate) environment: ProcessEnvironment,
    common: Common,
    /// Records the messages of every client.
    recording: Option<Arc<Recording>>,
}

impl Context {
    pub(crate) fn new(common: Common) -> Self {
        let screen = Screen::new(common.color).errors_as_json(common.json);
        let environment = ProcessEnvironment::of_process(&common.config);
        Self { screen, environment, common, recording: None }
    }

    /// Returns a context with the same options that does not record, for work that outlives the borrow of this one.
    pub(crate) fn detached(&self) -> Self {
        Self::new(self.common.clone())
    }

    /// Starts the recording if `--record` is set.
    pub(crate) fn begin_recording(&mut self) -> Result<(), Failure> {
        if let Some(path) = &self.common.record {
            self.recording = Some(Arc::new(self.recording(path, "bowline")?));
        }
        Ok(())
    }

    /// Starts recording a conversation with this server.
    pub(crate) fn recording(&self, path: &Path, server: &str) -> Result<Recording, Failure> {
        let variables: Vec<(String, String)> = std::env::vars().collect();
        let recording = Recording::begin(path, server, &variables)?;
        if recording.path != path {
            let (path, other) = (path.display(), recording.path.display());
            self.screen.note(&format!("`{path}` already exists; recording to `{other}`"));
        }
        Ok(recording)
    }

    /// Returns whether results are printed as JSON.
    pub(crate) fn json(&self) -> bool {
        self.common.json
    }

    /// Returns whether every message is printed.
    pub(crate) fn trace(&self) -> bool {
        self.common.trace
    }

    /// Returns the revision set by `--revision`.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.common.revision
    }

    /// Returns whether the user can be prompted.
    pub(crate) fn interactive(&self) -> bool {
        !self.common.no_input && self.environment.terminal
    }

    /// Returns whether standard input may be read, from a terminal or not.
    pub(crate) fn allows_input(&self) -> bool {
        !self.common.no_input
    }

    /// Returns a client builder with the common options applied.
    pub(crate) fn client(&self) -> ClientBuilder {
        let mut builder = Client::builder().name("bowline").version(env!("CARGO_PKG_VERSION"));
        if let Some(revision) = self.revision() {
            builder = builder.revisions([revision]);
        }
        if self.trace() || self.recording.is_some() {
            let frames = self.frames();
            builder = builder.on_frame(move |direction, frame| frames.show(direction, frame));
        }
        builder
    }

    /// Returns the sink for messages, for commands that also process them in another way.
    pub(crate) fn frames(&self) -> Frames {
        Frames { screen: self.screen, trace: self.trace(), recording: self.recording.clone() }
    }
}

/// Prints and records messages according to the common options.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    screen: Screen,
    trace: bool,
    recording: Option<Arc<Recording>>,
}

impl Frames {
    pub(crate) fn show(&self, direction: Direction, frame: &[u8]) {
        let (mark, side) = match direction {
            Direction::Sent => ('>', Side::Client),
            Direction::Received => ('<', Side::Server),
        };
        if self.trace {
            let text = String::from_utf8_lossy(frame.trim_ascii_end());
            let now = rfc3339(SystemTime::now());
            let time_of_day = now.split_once('T').map_or(now.as_str(), |(_, time)| time);
            self.screen.note(&format!("{time_of_day} {mark} {}", visible(&text)));
        }
        if let Some(recording) = &self.recording
            && let Err(error) = recording.frame(side, frame)
        {
            self.screen.note(&format!("recording stopped: {error}"));
        }
    }
}

fn revision(text: &str) -> Result<Revision, String> {
    text.parse().map_err(|_| {
        let known: Vec<&str> = Revision::ALL.iter().map(|revision| revision.as_str()).collect();
        format!("expected one of {}", known.join(", "))
    })
}
