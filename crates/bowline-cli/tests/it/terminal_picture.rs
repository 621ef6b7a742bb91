//! The picture of a terminal in the README, drawn from what the real program prints.
//!
//! `UPDATE_EXPECT=1 cargo test -p bowline-cli --test it terminal_picture` draws it again.

use crate::{place::Place, pty::Pty};
use expect_test::expect_file;
use std::fmt::Write as _;

const COLUMNS: u16 = 92;
const FONT_SIZE: f32 = 13.0;
const CELL_WIDTH: f32 = 7.8;
const LINE_HEIGHT: f32 = 18.0;
const MARGIN: f32 = 16.0;
const TITLE_BAR: f32 = 28.0;

/// A piece of a line in one style.
struct Span {
    column: u16,
    text: String,
    style: &'static str,
}

/// Converts the lines of a screen for which `wanted` holds.
fn spans(screen: &vt100::Screen, wanted: impl Fn(&str) -> bool) -> Vec<Vec<Span>> {
    let (rows, columns) = screen.size();
    let mut lines = Vec::new();
    for (row, text) in (0..rows.get()).zip(screen.rows(0, columns.get())) {
        if !wanted(&text) {
            continue;
        }
        let mut line: Vec<Span> = Vec::new();
        for column in 0..columns.get() {
            let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) else { continue };
            let style = style(cell);
            match line.last_mut() {
                Some(last)
                    if last.style == style
                        && usize::from(last.column) + last.text.chars().count() == usize::from(column) =>
                {
                    last.text.push_str(cell.contents());
                }
                _ => line.push(Span { column, text: cell.contents().to_owned(), style }),
            }
        }
        lines.push(line);
    }
    lines
}

fn style(cell: &vt100::Cell) -> &'static str {
    match cell.fgcolor() {
        vt100::Color::Idx(1) => "red",
        vt100::Color::Idx(2) => "green",
        vt100::Color::Idx(3) => "yellow",
        vt100::Color::Idx(6) => "cyan",
        _ if cell.bold() => "bold",
        _ if cell.dim() => "dim",
        _ => "plain",
    }
}

fn prompt(command: &str) -> Vec<Span> {
    vec![
        Span { column: 0, text: "$".to_owned(), style: "green" },
        Span { column: 2, text: command.to_owned(), style: "bold" },
    ]
}

/// Runs a command at a terminal and returns what it prints below its prompt.
fn run(place: &Place, command: &str, words: &[&str]) -> Vec<Vec<Span>> {
    let mut program = place.program(words);
    program.env("TERM", "xterm").env_remove("NO_COLOR");
    let screen = Pty::sized(program, 40, COLUMNS).into_screen();
    let mut lines = vec![prompt(command)];
    lines.extend(spans(&screen, |line| !line.trim().is_empty()));
    lines.push(Vec::new());
    lines
}

/// Starts the gateway without a configuration and returns its table of servers.
fn run_gateway(place: &Place) -> Vec<Vec<Span>> {
    let mut program = place.program(&["up", "--port", "0"]);
    program.env("TERM", "xterm").env_remove("NO_COLOR");
    // The instructions above the table need a wide terminal.
    let mut gateway = Pty::sized(program, 60, 300);
    gateway.wait("all servers", |screen| screen.matches(" ready ").count() == 3);
    gateway.keys("\u{3}");
    let url = Span { column: 19, text: "http://127.0.0.1:7337/mcp".to_owned(), style: "plain" };
    let title = Span { column: 0, text: "Gateway running at".to_owned(), style: "bold" };
    let mut lines = vec![prompt("bowline"), vec![title, url]];
    lines.extend(spans(gateway.screen_cells(), |line| {
        line.trim_start().starts_with("SERVER") || line.contains(" ready ")
    }));
    lines.push(Vec::new());
    lines
}

/// Splits a span at runs of spaces, which SVG viewers collapse.
fn pieces(span: &Span) -> Vec<(usize, &str, &'static str)> {
    let mut column = usize::from(span.column);
    let mut pieces = Vec::new();
    for piece in span.text.split("  ") {
        let trimmed = piece.trim_start();
        if !trimmed.is_empty() {
            pieces.push((column + piece.len() - trimmed.len(), trimmed.trim_end(), span.style));
        }
        column += piece.chars().count() + 2;
    }
    pieces
}

/// A number of rows or columns, which are few.
fn cells(count: usize) -> f32 {
    f32::from(u16::try_from(count).expect("the terminal is small"))
}

fn draw(lines: &[Vec<Span>]) -> String {
    let count = cells(lines.len());
    let width = f32::from(COLUMNS) * CELL_WIDTH + 2.0 * MARGIN;
    let height = TITLE_BAR + count * LINE_HEIGHT + MARGIN;
    let mut svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0} {height:.0}" width="{width:.0}" height="{height:.0}" font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="{FONT_SIZE}">
<style>.plain{{fill:#d6deeb}}.bold{{fill:#fff;font-weight:600}}.dim{{fill:#7f8ea3}}.cyan{{fill:#5fd7ff}}.green{{fill:#7ee787}}.yellow{{fill:#e3b341}}.red{{fill:#ff7b72}}</style>
<rect width="{width:.0}" height="{height:.0}" rx="8" fill="#0d1117"/>
<circle cx="18" cy="14" r="5" fill="#ff5f57"/><circle cx="36" cy="14" r="5" fill="#febc2e"/><circle cx="54" cy="14" r="5" fill="#28c840"/>
"##
    );
    for (row, line) in lines.iter().enumerate() {
        let y = TITLE_BAR + (cells(row) + 0.8) * LINE_HEIGHT;
        for (column, text, style) in line.iter().flat_map(pieces) {
            let x = MARGIN + cells(column) * CELL_WIDTH;
            let length = cells(text.chars().count()) * CELL_WIDTH;
            let text = text.replace('&', "&amp;").replace('<', "&lt;");
            let _ = writeln!(
                svg,
                r#"<text x="{x:.1}" y="{y:.1}" class="{style}" textLength="{length:.1}" lengthAdjust="spacingAndGlyphs">{text}</text>"#
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

#[test]
fn the_picture_shows_what_the_program_prints() {
    let place = Place::new();
    let query = "sql=SELECT city, count(*) AS customers FROM customers GROUP BY city LIMIT 3";
    let mut lines = run_gateway(&place);
    lines.extend(run(&place, "bowline tools database", &["tools", "database"]));
    lines.extend(run(
        &place,
        "bowline call database query sql='SELECT city, count(*) AS customers … LIMIT 3'",
        &["call", "database", "query", query],
    ));
    lines.extend(run(
        &place,
        "bowline call everything ecko message=hi",
        &["call", "everything", "ecko", "message=hi"],
    ));
    expect_file!["../../../../docs/terminal.svg"].assert_eq(&draw(&lines));
}
