//! A status area at the bottom of the terminal that is redrawn in place.
//!
//! Other output is printed above it and stays in the scrollback; only the lines of the area are erased.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

/// The status area. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct StatusArea {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The lines to show, with their widths.
    lines: Vec<(String, usize)>,
    /// The widths of the lines that are currently on the terminal.
    drawn: Vec<usize>,
    /// The number of active pauses.
    paused: usize,
    /// The output that was held back during a pause.
    held: String,
}

/// Hides the area until it is dropped.
#[derive(Debug)]
pub(super) struct Pause(StatusArea);

impl StatusArea {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows these lines.
    pub(super) fn show(&self, lines: Vec<(String, usize)>, size: Size) {
        let mut inner = self.inner();
        if inner.lines == lines && inner.drawn.len() == inner.visible(size).len() {
            return;
        }
        inner.lines = lines;
        inner.draw("", size);
    }

    /// Writes whole lines above the area.
    pub(super) fn write(&self, text: &str) {
        self.inner().draw(text, Size::now());
    }

    /// Writes whole lines at once, also below a prompt.
    fn interrupt(&self, text: &str) {
        let mut inner = self.inner();
        if inner.paused == 0 {
            inner.draw(text, Size::now());
        } else {
            // The cursor is behind the prompt.
            put(&format!("\n{text}"));
        }
    }

    /// Hides the area, for example during a prompt.
    pub(super) fn pause(&self) -> Pause {
        let mut inner = self.inner();
        inner.paused += 1;
        let erased = inner.erase(Size::now());
        put(&erased);
        Pause(self.clone())
    }

    /// Removes the area.
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
    /// Returns the lines that fit. One row is left for output above the area.
    fn visible(&self, size: Size) -> &[(String, usize)] {
        self.lines.get(..self.lines.len().min(size.rows.saturating_sub(1))).unwrap_or_default()
    }

    /// Returns the escape sequence that erases the area.
    fn erase(&mut self, size: Size) -> String {
        // Lines that are wider than the terminal is now have been wrapped.
        let rows: usize =
            self.drawn.drain(..).map(|columns| columns.div_ceil(size.columns.max(1)).max(1)).sum();
        match rows {
            0 => String::new(),
            // Move to the first line of the area and erase to the end.
            rows => format!("\r\x1b[{rows}A\x1b[J"),
        }
    }

    fn draw(&mut self, above: &str, size: Size) {
        if self.paused > 0 {
            self.held.push_str(above);
            return;
        }
        // Use a synchronized update to avoid flicker.
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
    // There is nowhere to report a closed terminal.
    let _: io::Result<()> = terminal.write_all(text.as_bytes()).and_then(|()| terminal.flush());
}

/// The size of the terminal.
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

/// The module whose warnings concern the question at the prompt, so that they cannot wait for its answer. It limits them to one per
/// server and minute; others could push the question off the screen.
const URGENT: &str = "bowline_policy::limit";

/// Writes log lines above the area.
impl<'a> MakeWriter<'a> for StatusArea {
    type Writer = Above<'a>;

    fn make_writer(&'a self) -> Above<'a> {
        Above { area: self, text: Vec::new(), is_urgent: false }
    }

    fn make_writer_for(&'a self, event: &Metadata<'_>) -> Above<'a> {
        Above { area: self, text: Vec::new(), is_urgent: event.target() == URGENT }
    }
}

/// Buffers output and writes it above the area when dropped.
#[derive(Debug)]
pub(super) struct Above<'a> {
    area: &'a StatusArea,
    text: Vec<u8>,
    /// Whether to write even during a pause.
    is_urgent: bool,
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
        let text = String::from_utf8_lossy(&self.text);
        if self.is_urgent {
            self.area.interrupt(&text);
        } else {
            self.area.write(&text);
        }
    }
}
