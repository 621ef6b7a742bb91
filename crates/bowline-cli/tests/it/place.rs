//! A home of its own for each test.

use crate::program;
use expect_test::Expect;
use std::{fs, path::Path, process::Command};
use tempfile::TempDir;

/// A home and a folder to work in, both empty.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("there is a folder for temporary files"));
        fs::create_dir(place.path("home")).expect("it is ours");
        fs::create_dir(place.path("work")).expect("it is ours");
        place
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("it is ours");
        fs::write(path, text).expect("it is ours");
    }

    pub(crate) fn get(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("it was written")
    }

    /// The program in this place.
    pub(crate) fn program(&self, words: &[&str]) -> Command {
        let mut command = program(words);
        command.env("HOME", self.path("home")).current_dir(self.path("work"));
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> (String, Option<i32>) {
        let output = self.program(words).output().expect("the program can be started");
        let told = String::from_utf8(output.stdout).expect("it is text")
            + &String::from_utf8(output.stderr).expect("it is text");
        (self.masked(&told), output.status.code())
    }

    /// Without what differs from run to run.
    pub(crate) fn masked(&self, text: &str) -> String {
        let real = fs::canonicalize(self.0.path()).expect("it is there");
        let place = |path: &Path| path.display().to_string();
        let text = text.replace(&place(&real), "").replace(&place(self.0.path()), "");
        text.replace(env!("CARGO_BIN_EXE_bowline"), "bowline")
    }

    pub(crate) fn check(&self, words: &[&str], code: i32, expected: &Expect) {
        let (told, ended) = self.run(words);
        expected.assert_eq(&told);
        assert_eq!(ended, Some(code), "{words:?}");
    }
}
