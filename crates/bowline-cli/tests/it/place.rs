//! A temporary home and working directory for a test, and the program in them.

use crate::program;
use expect_test::Expect;
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
};
use tempfile::TempDir;

/// An empty home, an empty working directory, and a runtime directory.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("there is a folder for temporary files"));
        for name in ["user", "here", "login", "tmp"] {
            fs::create_dir(place.path(name)).expect("it is ours");
        }
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
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

    /// Returns the program in the working directory.
    pub(crate) fn program(&self, words: &[&str]) -> Command {
        self.here(program(words))
    }

    /// Returns a shell command line, as the program suggests it to users.
    pub(crate) fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).env_clear().stdin(Stdio::null());
        self.here(command)
    }

    fn here(&self, mut command: Command) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_bowline")).parent().expect("it is in a folder");
        command
            .env("HOME", self.path("user"))
            .env("XDG_RUNTIME_DIR", self.path("login"))
            .env("TMPDIR", self.path("tmp"))
            .env("NO_COLOR", "1")
            .env("PATH", format!("{}:/usr/bin:/bin", program.display()))
            .current_dir(self.path("here"));
        command
    }

    /// Runs a command and returns the output of both streams and the exit code.
    pub(crate) fn run(&self, words: &[&str]) -> (String, Option<i32>) {
        self.output(self.program(words))
    }

    pub(crate) fn output(&self, mut command: Command) -> (String, Option<i32>) {
        let output = command.output().expect("the program can be started");
        let printed = String::from_utf8(output.stdout).expect("it is text")
            + &String::from_utf8(output.stderr).expect("it is text");
        (self.masked(&printed), output.status.code())
    }

    /// Masks everything that differs from run to run.
    pub(crate) fn masked(&self, text: &str) -> String {
        let real = fs::canonicalize(self.0.path()).expect("it is there");
        let place = |path: &Path| path.display().to_string();
        let text = text.replace(&place(&real), "").replace(&place(self.0.path()), "");
        without_tokens(&text.replace(env!("CARGO_BIN_EXE_bowline"), "bowline"))
    }

    pub(crate) fn check(&self, words: &[&str], code: i32, expected: &Expect) {
        let (printed, ended) = self.run(words);
        expected.assert_eq(&printed);
        assert_eq!(ended, Some(code), "{words:?}");
    }
}

/// Masks the tokens of a gateway.
fn without_tokens(text: &str) -> String {
    let mut parts = text.split("bowline_");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|digit: char| digit.is_ascii_hexdigit());
        if part.len() - rest.len() == 48 { text + "TOKEN" + rest } else { text + "bowline_" + part }
    })
}

/// A background program. It is killed if the test fails.
pub(crate) struct Background {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Background {
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program can be started");
        let output = BufReader::new(child.stdout.take().expect("it is a pipe"));
        Self { child, output }
    }

    /// Returns the next line of its standard output.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it is text");
        line.trim_end().to_owned()
    }

    /// Writes a line to its input.
    pub(crate) fn write(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("it is open");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("it reads");
    }

    /// Writes a message to its input.
    pub(crate) fn send(&mut self, message: &serde_json::Value) {
        let input = self.child.stdin.as_mut().expect("it is a pipe");
        writeln!(input, "{message}").expect("it reads");
    }

    /// Closes its input.
    pub(crate) fn close_input(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Returns the first line of its standard error that contains a text.
    pub(crate) fn message(&mut self, wanted: &str) -> String {
        let messages = self.child.stderr.as_mut().expect("it is a pipe");
        let mut line = Vec::new();
        let mut byte = [0];
        // One byte at a time: what follows the line stays in the pipe for the next call.
        while messages.read(&mut byte).expect("it is a pipe") > 0 {
            line.extend(byte);
            if line.ends_with(b"\n") {
                let text = String::from_utf8(std::mem::take(&mut line)).expect("it is text");
                if text.contains(wanted) {
                    return text;
                }
            }
        }
        panic!("no message with `{wanted}`");
    }

    /// Returns the number of the process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        crate::place::signal(self.child.id(), signal);
    }

    /// Waits for its end, and returns the exit code and the unread messages.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut messages = String::new();
        let unread = self.child.stderr.as_mut().expect("it is a pipe");
        unread.read_to_string(&mut messages).expect("it is text");
        (self.child.wait().expect("it was started").code(), messages)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
pub(crate) fn signal(id: u32, signal: rustix::process::Signal) {
    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw).expect("it has a number");
    rustix::process::kill_process(id, signal).expect("it runs");
}
