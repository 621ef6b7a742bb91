//! What a command has at hand: the screen, where it runs, and what the user said for all commands.

use crate::{arguments::Common, screen::Screen, surroundings::Surroundings};
use bowline_client::{Client, ClientBuilder, Direction};
use bowline_host::policy::visible;
use bowline_types::Revision;

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) screen: Screen,
    pub(crate) surroundings: Surroundings,
    common: Common,
}

impl Context {
    pub(crate) fn new(common: Common) -> Self {
        let screen = Screen::new(common.color);
        let surroundings = Surroundings::of_this_process(&common.config);
        Self { screen, surroundings, common }
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
        !self.common.no_input && self.surroundings.terminal
    }

    /// A client as the common options want it; handlers are the command's to add.
    pub(crate) fn client(&self) -> ClientBuilder {
        let mut builder = Client::builder().name("bowline").version(env!("CARGO_PKG_VERSION"));
        if let Some(revision) = self.revision() {
            builder = builder.revisions([revision]);
        }
        if self.trace() {
            let screen = self.screen;
            builder = builder.on_frame(move |direction, frame| {
                let mark = match direction {
                    Direction::Sent => '>',
                    Direction::Received => '<',
                };
                screen
                    .aside(&format!("{mark} {}", visible(&String::from_utf8_lossy(frame.trim_ascii_end()))));
            });
        }
        builder
    }
}
