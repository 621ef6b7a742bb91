//! Runs the console examples of the book, and checks that its reference is current.

use crate::program;
use expect_test::expect_file;
use std::{
    fs,
    io::{self, Read as _},
    path::Path,
    process::{Command, Stdio},
};

const BOOK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

/// A command and its documented output.
struct Shown {
    line: usize,
    command: String,
    printed: String,
}

/// Returns the commands in `console` blocks.
fn shown(page: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut inside = false;
    for (number, line) in (1..).zip(page.lines()) {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if !inside {
        } else if let Some(command) = line.strip_prefix("$ ") {
            all.push(Shown { line: number, command: command.to_owned(), printed: String::new() });
        } else if let Some(last) = all.last_mut() {
            last.printed.push_str(line);
            last.printed.push('\n');
        }
    }
    all
}

/// Splits a command into words; quotes group words.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in command.chars() {
        match (character, quote) {
            ('\'' | '"', None) => quote = Some(character),
            (mark, Some(open)) if mark == open => quote = None,
            (' ', None) => words.push(String::new()),
            (character, _) => words.last_mut().expect("there is always a word").push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether an actual line matches a documented one, in which `…` matches anything.
fn fits(shown: &str, actual: &str) -> bool {
    let (shown, actual) = (shown.trim_end(), actual.trim_end());
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = actual.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Returns the combined output of a command.
fn run(command: &mut Command) -> String {
    let (mut reader, writer) = io::pipe().expect("there is a pipe");
    let also = writer.try_clone().expect("a pipe has room for two");
    let mut child = command.stdout(writer).stderr(also).spawn().expect("the program starts");
    // Otherwise the command would keep its ends of the pipe open.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut actual = String::new();
    reader.read_to_string(&mut actual).expect("the program prints text");
    child.wait().expect("the program ends");
    actual
}

fn check(path: &Path) -> usize {
    let page = fs::read_to_string(path).expect("the page can be read");
    let folder = tempfile::tempdir().expect("there is room for a folder");
    fs::write(folder.path().join("notes.txt"), "milk\nbread\n").expect("there is room for a file");
    // Examples can start the program itself as a server.
    let own =
        Path::new(env!("CARGO_BIN_EXE_bowline")).parent().expect("the program is in a folder").to_owned();
    let commands = shown(&page);
    for Shown { line, command, printed } in &commands {
        let place = format!("{}:{line}: {command}", path.display());
        let words = words(command);
        let (first, rest) = words.split_first().expect("a command has a name");
        assert_eq!(first, "bowline", "{place}");
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        let actual = run(program(&rest).current_dir(folder.path()).env("PATH", &own));
        let lines: Vec<&str> = actual.lines().collect();
        let wanted: Vec<&str> = printed.lines().collect();
        let is_same = lines.len() == wanted.len()
            && wanted.iter().zip(&lines).all(|(shown, actual)| fits(shown, actual));
        assert!(is_same, "{place}\nexpected:\n{printed}\ngot:\n{actual}");
    }
    commands.len()
}

#[test]
fn the_console_examples_of_the_book_are_correct() {
    let pages =
        fs::read_dir(BOOK).expect("the book is there").map(|entry| entry.expect("it can be read").path());
    let checked: usize =
        pages.filter(|path| path.extension().is_some_and(|end| end == "md")).map(|path| check(&path)).sum();
    assert!(checked > 5, "the book shows {checked} commands");
}

#[test]
fn the_command_reference_of_the_book_is_current() {
    let output = program(&["__reference", "commands"]).output().expect("the program starts");
    assert!(output.status.success());
    let page = String::from_utf8(output.stdout).expect("the page is text");
    expect_file!["../../../../docs/reference/commands.md"].assert_eq(&page);
}

#[test]
fn the_configuration_reference_of_the_book_is_current() {
    let output = program(&["__reference", "configuration"]).output().expect("the program starts");
    let page = String::from_utf8(output.stdout).expect("the page is text");
    expect_file!["../../../../docs/reference/configuration.md"].assert_eq(&page);
}
