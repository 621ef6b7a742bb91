//! The table of servers, fitted to the width of the terminal.

use crate::screen::{Screen, Tone};
use bowline_host::{
    Gateway, Health, UpstreamStatus,
    gateway::{EntryState, EntryStatus},
};
use bowline_text::visible;
use std::collections::BTreeMap;

/// The row of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) state: State,
    revision: String,
    tools: Option<usize>,
    calls: u64,
    errors: u64,
    running: usize,
}

/// The state of a server, with the reason if it is unusable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Starting,
    Ready,
    Failed(String),
    Disabled,
    NeedsApproval,
    Broken(String),
}

impl State {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Failed(_) => "failed",
            Self::Disabled => "off",
            Self::NeedsApproval => "not approved",
            Self::Broken(_) => "invalid",
        }
    }

    fn tone(&self) -> Tone {
        match self {
            Self::Idle | Self::Disabled => Tone::Faint,
            Self::Starting | Self::NeedsApproval => Tone::Warning,
            Self::Ready => Tone::Good,
            Self::Failed(_) | Self::Broken(_) => Tone::Bad,
        }
    }

    /// Returns why the server is unusable.
    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed(reason) | Self::Broken(reason) => Some(reason),
            Self::Idle | Self::Starting | Self::Ready | Self::Disabled | Self::NeedsApproval => None,
        }
    }
}

/// Returns the rows of a gateway by name: configured servers and in-process servers.
pub(super) fn rows(gateway: &Gateway) -> Vec<Row> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for EntryStatus { name, state, instances, .. } in gateway.status() {
        let row = row(&name, Some(&state), &instances);
        rows.insert(name, row);
    }
    let running = gateway.host().status();
    for name in gateway.host().names() {
        let instances: Vec<_> = running.iter().filter(|status| status.name == name).cloned().collect();
        rows.entry(name.clone()).or_insert_with(|| row(&name, None, &instances));
    }
    rows.into_values().collect()
}

fn row(name: &str, entry: Option<&EntryState>, instances: &[UpstreamStatus]) -> Row {
    let health = || {
        let of = |wanted: fn(&Health) -> bool| instances.iter().find(|status| wanted(&status.health));
        // Show the best instance: the next caller uses it.
        let best = of(|health| *health == Health::Ready)
            .or_else(|| of(|health| *health == Health::Starting))
            .or_else(|| of(|health| matches!(health, Health::Failed(_))));
        let Some(best) = best else { return State::Idle };
        match &best.health {
            Health::Idle => State::Idle,
            Health::Starting => State::Starting,
            // A server whose lists cannot be read offers nothing.
            Health::Ready => best.list_problem.clone().map_or(State::Ready, State::Failed),
            Health::Failed(reason) => State::Failed(reason.clone()),
        }
    };
    let state = match entry {
        Some(EntryState::Disabled) => State::Disabled,
        Some(EntryState::NeedsApproval(_)) => State::NeedsApproval,
        Some(EntryState::Broken(reason)) => State::Broken(reason.clone()),
        Some(_) | None => health(),
    };
    Row {
        name: name.to_owned(),
        state,
        revision: instances
            .iter()
            .find_map(|status| status.revision)
            .map_or_else(|| "-".to_owned(), |revision| revision.to_string()),
        tools: instances.iter().find_map(|status| status.tools),
        calls: instances.iter().map(|status| status.calls).sum(),
        errors: instances.iter().map(|status| status.errors).sum(),
        running: instances.iter().map(|status| status.running).sum(),
    }
}

/// The maximum width of a name.
const NAME: usize = 32;

/// Returns the lines of the table with their widths. No line is wider than `width`.
pub(super) fn lines(screen: Screen, rows: &[Row], width: usize) -> Vec<(String, usize)> {
    let names: Vec<String> =
        rows.iter().map(|row| cut(&visible(&row.name), NAME.min((width / 3).max(6)))).collect();
    let widest = names.iter().map(|name| columns(name)).chain([6]).max().unwrap_or(6);
    let mut page = Page { screen, width, lines: Vec::new() };
    let shown = Column::that_fit(widest, width);
    let cells = |text: &dyn Fn(Column) -> (Option<Tone>, String)| -> Vec<(Option<Tone>, String)> {
        let cell = |column: &Column| {
            let (tone, text) = text(*column);
            (tone, column.aligned(&text, widest))
        };
        shown.iter().map(cell).collect()
    };
    page.line(&cells(&|column| (Some(Tone::Heading), column.heading().to_owned())));
    for (row, name) in rows.iter().zip(&names) {
        page.line(&cells(&|column| match column {
            Column::Server => (Some(Tone::Name), name.clone()),
            Column::State => (Some(row.state.tone()), row.state.word().to_owned()),
            Column::Revision => (Some(Tone::Faint), row.revision.clone()),
            Column::Tools => (None, row.tools.map_or_else(|| "-".to_owned(), |tools| tools.to_string())),
            Column::Calls => (None, row.calls.to_string()),
            Column::Errors => (None, row.errors.to_string()),
            Column::Running => (None, row.running.to_string()),
        }));
    }
    for (row, name) in rows.iter().zip(&names) {
        if let Some(reason) = row.state.reason() {
            page.line(&[(Some(Tone::Warning), format!("! {name}: {}", one_line(reason)))]);
        }
    }
    page.lines
}

/// Cuts the lines to the available rows. The last line then shows how many are missing.
pub(super) fn fitting(mut lines: Vec<(String, usize)>, room: usize) -> Vec<(String, usize)> {
    if lines.len() > room {
        let kept = room.saturating_sub(1);
        let more = format!("  … {} more", lines.len() - kept);
        lines.truncate(kept);
        let taken = columns(&more);
        lines.push((more, taken));
    }
    lines
}

/// The columns of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Server,
    State,
    Revision,
    Tools,
    Calls,
    Errors,
    Running,
}

impl Column {
    const ALL: [Self; 7] =
        [Self::Server, Self::State, Self::Revision, Self::Tools, Self::Calls, Self::Errors, Self::Running];

    /// The columns to drop on narrow terminals, in this order.
    const SPARED: [Self; 5] = [Self::Revision, Self::Running, Self::Calls, Self::Tools, Self::Errors];

    fn heading(self) -> &'static str {
        match self {
            Self::Server => "SERVER",
            Self::State => "STATE",
            Self::Revision => "REVISION",
            Self::Tools => "TOOLS",
            Self::Calls => "CALLS",
            Self::Errors => "ERRORS",
            Self::Running => "RUNNING",
        }
    }

    fn width(self, widest: usize) -> usize {
        match self {
            Self::Server => widest,
            Self::State => 12,
            Self::Revision => 10,
            Self::Tools | Self::Calls | Self::Errors | Self::Running => self.heading().len(),
        }
    }

    fn aligned(self, text: &str, widest: usize) -> String {
        let width = self.width(widest);
        match self {
            Self::Server | Self::State | Self::Revision => pad(text, width),
            Self::Tools | Self::Calls | Self::Errors | Self::Running => format!("{text:>width$}"),
        }
    }

    /// Returns the columns that fit.
    fn that_fit(widest: usize, width: usize) -> Vec<Self> {
        let mut shown = Self::ALL.to_vec();
        for spared in Self::SPARED {
            if shown.iter().map(|column| column.width(widest) + 2).sum::<usize>() <= width {
                break;
            }
            shown.retain(|column| *column != spared);
        }
        shown
    }
}

struct Page {
    screen: Screen,
    width: usize,
    lines: Vec<(String, usize)>,
}

impl Page {
    /// Adds a line of cells, cut to the width.
    fn line(&mut self, cells: &[(Option<Tone>, String)]) {
        let (mut line, mut taken) = ("  ".to_owned(), 2);
        for (place, (tone, text)) in cells.iter().enumerate() {
            let gap = if place == 0 { 0 } else { 2 };
            let Some(room) = self.width.checked_sub(taken + gap).filter(|room| *room > 0) else { break };
            let text = cut(text, room);
            line.push_str(&" ".repeat(gap));
            match tone {
                Some(tone) => line.push_str(&self.screen.paint_stderr(*tone, &text)),
                None => line.push_str(&text),
            }
            taken += gap + columns(&text);
        }
        self.lines.push((line, taken));
    }
}

/// Approximates the width of a text. Terminals differ on wide and zero-width characters.
fn columns(text: &str) -> usize {
    text.chars().count()
}

fn pad(text: &str, width: usize) -> String {
    format!("{text:<width$}")
}

/// Cuts a text to a width.
pub(super) fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept.push('…');
    kept
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    visible(&words.join(" "))
}

#[cfg(test)]
#[expect(clippy::needless_raw_string_hashes, reason = "snapshots are written with hashes, needed or not")]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(width: usize, expected: &Expect) {
        let row = |name: &str, state, tools, calls| Row {
            name: name.to_owned(),
            revision: if state == State::Ready { "2026-07-28" } else { "-" }.to_owned(),
            state,
            tools,
            calls,
            errors: 0,
            running: 0,
        };
        let rows = [
            row("files", State::Ready, Some(12), 3),
            row("ti\u{1b}[2Jckets", State::Failed("exited with 1:\n  no \u{7}token".into()), None, 0),
            row("very-long-name-of-a-server-that-nobody-reads", State::NeedsApproval, None, 0),
        ];
        let screen = Screen::new(clap::ColorChoice::Never);
        let lines = lines(screen, &rows, width);
        assert!(lines.iter().all(|(line, taken)| columns(line) == *taken && *taken <= width));
        let lines: Vec<String> = lines.iter().map(|(line, _)| format!("|{}", line.trim_end())).collect();
        expected.assert_eq(&lines.join("\n"));
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        let lines: Vec<_> = ["a", "b", "c", "d"].map(|line| (line.to_owned(), 1)).into();
        let kept = |room| {
            let lines = fitting(lines.clone(), room);
            lines.into_iter().map(|(line, _)| line).collect::<Vec<_>>()
        };
        assert_eq!(kept(4), ["a", "b", "c", "d"]);
        assert_eq!(kept(3), ["a", "b", "  … 2 more"]);
    }

    #[test]
    fn the_table_fits_the_width_and_escapes_control_characters() {
        check(
            100,
            &expect![[r#"
                |  SERVER                            STATE         REVISION    TOOLS  CALLS  ERRORS  RUNNING
                |  files                             ready         2026-07-28     12      3       0        0
                |  ti<U+001B>[2Jckets                failed        -               -      0       0        0
                |  very-long-name-of-a-server-that…  not approved  -               -      0       0        0
                |  ! ti<U+001B>[2Jckets: exited with 1: no <U+0007>token"#]],
        );
        check(
            60,
            &expect![[r#"
            |  SERVER                STATE         TOOLS  CALLS  ERRORS
            |  files                 ready            12      3       0
            |  ti<U+001B>[2Jckets    failed            -      0       0
            |  very-long-name-of-a…  not approved      -      0       0
            |  ! ti<U+001B>[2Jckets: exited with 1: no <U+0007>token"#]],
        );
        check(
            40,
            &expect![[r#"
                |  SERVER         STATE         ERRORS
                |  files          ready              0
                |  ti<U+001B>[2…  failed             0
                |  very-long-na…  not approved       0
                |  ! ti<U+001B>[2…: exited with 1: no <U…"#]],
        );
    }
}
