//! Progress of a call: a bar at a terminal, lines elsewhere.

use crate::screen::Screen;
use bowline_text::visible;
use bowline_types::ProgressParams;

/// The width of the bar and of the text next to it.
const BAR: u32 = 24;
const TEXT: usize = 48;

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
