//! Progress of a call: a bar or a waiting line at a terminal, lines elsewhere.

use crate::{screen::Screen, table};
use bowline_text::visible;
use bowline_types::ProgressParams;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The width of the bar and of the text next to it.
const BAR: u32 = 24;
const TEXT: usize = 48;

/// How often the line about a waiting command is updated at a terminal.
const INTERVAL: Duration = Duration::from_secs(1);

/// Prints progress notifications to standard error.
pub(crate) fn reporter(screen: Screen) -> impl Fn(ProgressParams) + Send + Sync + 'static {
    move |update| {
        let line = line(&update, screen.stderr_is_terminal());
        if screen.stderr_is_terminal() { screen.transient(&line) } else { screen.note(&line) }
    }
}

fn line(update: &ProgressParams, bar: bool) -> String {
    let message = update.message.as_deref().map(visible).unwrap_or_default();
    let total = update.total.filter(|total| *total > 0.0 && update.progress.is_finite());
    let text = match total {
        Some(total) if bar => {
            let share = (update.progress / total).clamp(0.0, 1.0);
            let full = (0..BAR).filter(|column| f64::from(*column) < share * f64::from(BAR)).count();
            let columns: String =
                (0..BAR as usize).map(|column| if column < full { '#' } else { '.' }).collect();
            let message: String = message.chars().take(TEXT).collect();
            format!("[{columns}] {:3.0}% {message}", share * 100.0)
        }
        Some(total) => format!("progress: {}/{total} {message}", update.progress),
        None if bar => format!("... {} {}", update.progress, message.chars().take(TEXT).collect::<String>()),
        None => format!("progress: {} {message}", update.progress),
    };
    text.trim_end().to_owned()
}

/// Shows at a terminal that the command waits, for how long, and the last message of the server.
#[derive(Clone)]
pub(crate) struct WaitIndicator {
    screen: Screen,
    shown: Arc<Mutex<Shown>>,
}

#[derive(Default)]
struct Shown {
    /// Whether a task is waited for. Other calls show only their progress.
    is_task: bool,
    /// Whether a progress bar is shown instead.
    has_bar: bool,
    message: Option<String>,
}

impl WaitIndicator {
    pub(crate) fn new(screen: Screen) -> Self {
        Self { screen, shown: Arc::default() }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a task is waited for.
    pub(crate) fn for_task(&self) {
        self.shown().is_task = true;
    }

    /// Returns the handler for progress.
    pub(crate) fn reporter(&self) -> impl Fn(ProgressParams) + Send + Sync + 'static {
        let (indicator, report) = (self.clone(), reporter(self.screen));
        move |update| {
            let mut shown = indicator.shown();
            shown.has_bar = update.total.is_some();
            if let Some(text) = &update.message {
                shown.message = Some(visible(text));
            }
            drop(shown);
            report(update);
        }
    }

    /// Waits for `work`.
    pub(crate) async fn show<T>(&self, work: impl Future<Output = T>) -> T {
        if !self.screen.stderr_is_terminal() {
            return work.await;
        }
        let mut work = std::pin::pin!(work);
        let start = Instant::now();
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::time::sleep(INTERVAL) => {
                    let shown = self.shown();
                    if !shown.is_task || shown.has_bar {
                        continue;
                    }
                    let message = shown.message.as_ref().map(|text| format!(": {}", table::cut(text, TEXT)));
                    drop(shown);
                    let (seconds, message) = (start.elapsed().as_secs(), message.unwrap_or_default());
                    self.screen.transient(&format!("waiting ({seconds} s), Ctrl-C to stop{message}"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_types::Id;

    #[test]
    fn progress_is_a_bar_or_a_line() {
        let update = |progress: f64, total| {
            let mut params = ProgressParams::new(Id::from(1), progress).message("half\u{1b}way");
            params.total = total;
            params
        };
        assert_eq!(line(&update(5.0, Some(10.0)), false), "progress: 5/10 half<U+001B>way");
        assert_eq!(line(&update(5.0, Some(10.0)), true), "[############............]  50% half<U+001B>way");
        assert_eq!(line(&update(3.0, None), true), "... 3 half<U+001B>way");
        assert_eq!(line(&update(20.0, Some(10.0)), true), "[########################] 100% half<U+001B>way");
        assert_eq!(line(&update(f64::INFINITY, Some(0.0)), false), "progress: inf half<U+001B>way");
    }
}
