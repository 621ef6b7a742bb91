//! What a command has at hand: the screen, where it runs, and what the user said for all commands.

use crate::{
    arguments::Common, clock, environment::ProcessEnvironment, failure::Failure, recording::Recording,
    screen::Screen,
};
use bowline_client::{Client, ClientBuilder, Direction};
use bowline_testing::transcript::Side;
use bowline_text::visible;
use bowline_types::Revision;
use std::{path::Path, sync::Arc, time::SystemTime};

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) screen: Screen,
    pub(crate) environment: ProcessEnvironment,
    common: Common,
    /// Where the messages of every client go.
    recording: Option<Arc<Recording>>,
}

impl Context {
    pub(crate) fn new(common: Common) -> Self {
        let screen = Screen::new(common.color).errors_as_json(common.json);
        let environment = ProcessEnvironment::of_process(&common.config);
        Self { screen, environment, common, recording: None }
    }

    /// Begins the recording that the common options want.
    pub(crate) fn begin_recording(&mut self) -> Result<(), Failure> {
        if let Some(path) = &self.common.record {
            self.recording = Some(Arc::new(self.recording(path, "bowline")?));
        }
        Ok(())
    }

    /// Begins a recording of a conversation with this server.
    pub(crate) fn recording(&self, path: &Path, server: &str) -> Result<Recording, Failure> {
        let variables: Vec<(String, String)> = std::env::vars().collect();
        let recording = Recording::begin(path, server, &variables)?;
        if recording.path != path {
            let (path, other) = (path.display(), recording.path.display());
            self.screen.note(&format!("`{path}` is there already; recording to `{other}`"));
        }
        Ok(recording)
    }

    /// Whether results are written as JSON.
    pub(crate) fn json(&self) -> bool {
        self.common.json
    }

    /// Whether every message is shown.
    pub(crate) fn trace(&self) -> bool {
        self.common.trace
    }

    /// The only revision that is to be spoken.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.common.revision
    }

    /// Whether the user can be asked.
    pub(crate) fn interactive(&self) -> bool {
        !self.common.no_input && self.environment.terminal
    }

    /// A client as the common options want it; handlers are the command's to add.
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

    /// What becomes of every message, for a command that has its own use for them as well.
    pub(crate) fn frames(&self) -> Frames {
        Frames { screen: self.screen, trace: self.trace(), recording: self.recording.clone() }
    }
}

/// Shows and records messages, as the common options want it.
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
            self.screen.note(&format!("{} {mark} {}", clock::time_of_day(SystemTime::now()), visible(&text)));
        }
        if let Some(recording) = &self.recording
            && let Err(error) = recording.frame(side, frame)
        {
            self.screen.note(&format!("the recording ends here: {error}"));
        }
    }
}
