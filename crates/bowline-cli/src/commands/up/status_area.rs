//! The part of the terminal that is drawn again and again: always at the end, under everything that was written.
//!
//! What was written stays where it is and can be scrolled back to; only the lines of the area itself are ever erased.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tracing_subscriber::fmt::MakeWriter;

/// The area. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct StatusArea {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    /// What is to be seen, a line each, with the columns it takes.
    lines: Vec<(String, usize)>,
    /// The columns of the lines that are on the terminal now.
    drawn: Vec<usize>,
    /// How many want the terminal for themselves.
    paused: usize,
    /// What was to be written meanwhile.
    held: String,
}

/// Keeps the area off the terminal until it is dropped.
#[derive(Debug)]
pub(super) struct Pause(StatusArea);

impl StatusArea {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows these lines from now on.
    pub(super) fn show(&self, lines: Vec<(String, usize)>, size: Size) {
        let mut inner = self.inner();
        if inner.lines == lines && inner.drawn.len() == inner.visible(size).len() {
            return;
        }
        inner.lines = lines;
        inner.draw("", size);
    }

    /// Writes text above the area, whole lines of it.
    pub(super) fn write(&self, text: &str) {
        self.inner().draw(text, Size::now());
    }

    /// Leaves the terminal to somebody else.
    pub(super) fn pause(&self) -> Pause {
        let mut inner = self.inner();
        inner.paused += 1;
        let erased = inner.erase(Size::now());
        put(&erased);
        Pause(self.clone())
    }

    /// Takes the area off the terminal for good.
    pub(super) fn end(&self) {
        let mut inner = self.inner();
        inner.lines.clear();
        inner.draw("", Size::now());
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        let mut inner = self.0.inner();
        inner.paused = inner.paused.saturating_sub(1);
        if inner.paused == 0 {
            let held = std::mem::take(&mut inner.held);
            inner.draw(&held, Size::now());
        }
    }
}

impl Inner {
    /// The lines that fit. What is written above has to have a line left to scroll through.
    fn visible(&self, size: Size) -> &[(String, usize)] {
        self.lines.get(..self.lines.len().min(size.rows.saturating_sub(1))).unwrap_or_default()
    }

    /// What takes the area off the terminal.
    fn erase(&mut self, size: Size) -> String {
        // Lines that were drawn wider than the terminal is now have been broken by it.
        let rows: usize =
            self.drawn.drain(..).map(|columns| columns.div_ceil(size.columns.max(1)).max(1)).sum();
        match rows {
            0 => String::new(),
            // To the first of its lines, and everything from there on.
            rows => format!("\r\x1b[{rows}A\x1b[J"),
        }
    }

    fn draw(&mut self, above: &str, size: Size) {
        if self.paused > 0 {
            self.held.push_str(above);
            return;
        }
        // All at once, so that there is nothing to be seen of the way there.
        let mut text = "\x1b[?2026h".to_owned();
        text.push_str(&self.erase(size));
        text.push_str(above);
        for (line, _) in self.visible(size) {
            let _ = writeln!(text, "{line}");
        }
        self.drawn = self.visible(size).iter().map(|(_, columns)| *columns).collect();
        text.push_str("\x1b[?2026l");
        put(&text);
    }
}

fn put(text: &str) {
    let mut terminal = io::stderr().lock();
    // A terminal that is gone has nobody to tell it to.
    let _: io::Result<()> = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}

/// How large the terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Size {
    #[cfg(unix)]
    pub(super) fn now() -> Self {
        let known = rustix::termios::tcgetwinsize(io::stderr()).ok();
        let known = known.filter(|size| size.ws_row > 0 && size.ws_col > 0);
        known.map_or(Self::USUAL, |size| Self { rows: size.ws_row.into(), columns: size.ws_col.into() })
    }

    #[cfg(not(unix))]
    pub(super) fn now() -> Self {
        Self::USUAL
    }

    const USUAL: Self = Self { rows: 24, columns: 80 };
}

/// The log is written above the area.
impl<'a> MakeWriter<'a> for StatusArea {
    type Writer = Above<'a>;

    fn make_writer(&'a self) -> Above<'a> {
        Above { area: self, text: Vec::new() }
    }
}

/// Something that is being written above the area. It appears when it is dropped.
#[derive(Debug)]
pub(super) struct Above<'a> {
    area: &'a StatusArea,
    text: Vec<u8>,
}

impl io::Write for Above<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Above<'_> {
    fn drop(&mut self) {
        self.area.write(&String::from_utf8_lossy(&self.text));
    }
}
