//! The program at a terminal, as a person sees it.

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};
use std::{
    fs::{File, OpenOptions},
    io::{Read, Write},
    num::NonZero,
    process::{Child, Command},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

/// How long the program may take to show something before the test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program whose standard streams are a terminal.
pub(crate) struct Pty {
    child: Child,
    keyboard: File,
    shown: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

impl Pty {
    /// Starts a program at a terminal of 24 lines of 80 columns.
    pub(crate) fn start(command: Command) -> Self {
        Self::sized(command, 24, 80)
    }

    /// Starts a program at a terminal of so many lines and columns.
    pub(crate) fn sized(mut command: Command, rows: u16, columns: u16) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
        grantpt(&ours).expect("the terminal is ours");
        unlockpt(&ours).expect("the terminal can be used");
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).expect("the terminal has a size");
        let name = ptsname(&ours, Vec::new()).expect("the terminal has a name");
        let name = name.to_str().expect("its name is text").to_owned();
        let theirs = || OpenOptions::new().read(true).write(true).open(&name).expect("it can be opened");
        command.stdin(theirs()).stdout(theirs()).stderr(theirs());
        let child = command.spawn().expect("the program can be started");
        // The ends that are the program's alone are closed here, so that its end is seen.
        drop(command);
        let keyboard = File::from(ours);
        let mut display = keyboard.try_clone().expect("the terminal can be read and written");
        let (sender, shown) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading fails when the program has closed the terminal.
            while let Ok(count @ 1..) = display.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        let some = |count| NonZero::new(count).expect("a terminal has a size");
        let screen = vt100::Parser::new(some(rows), some(columns), 1000);
        Self { child, keyboard, shown, screen }
    }

    /// Waits until a text stands on the screen.
    pub(crate) fn expect(&mut self, text: &str) -> &mut Self {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Waits until the screen is as it is wanted.
    pub(crate) fn wait(&mut self, what: &str, is_wanted: impl Fn(&str) -> bool) -> &mut Self {
        let deadline = Instant::now() + PATIENCE;
        while !is_wanted(&self.screen()) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => self.screen.process(&bytes),
                Err(error) => {
                    panic!("`{what}` never appeared ({error}); the screen shows:\n{}", self.screen())
                }
            }
        }
        self
    }

    /// Types a line.
    pub(crate) fn enter(&mut self, line: &str) -> &mut Self {
        writeln!(self.keyboard, "{line}").expect("the terminal takes what is typed");
        self
    }

    /// Types keys, without Enter.
    pub(crate) fn keys(&mut self, keys: &str) -> &mut Self {
        self.keyboard.write_all(keys.as_bytes()).expect("the terminal takes what is typed");
        self
    }

    /// What the screen shows.
    pub(crate) fn screen(&self) -> String {
        let contents = self.screen.screen().contents();
        let lines: Vec<&str> = contents.lines().map(str::trim_end).collect();
        lines.join("\n")
    }

    /// Waits for the program's end, and gives what the screen shows without and with its colors.
    pub(crate) fn finish_with_colors(mut self) -> (String, String) {
        self.drain();
        let colors = self.screen.screen().contents_formatted();
        (self.screen(), colors)
    }

    /// The id of the program, for signals.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the program's end, and gives its exit code with what the screen shows then.
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        self.drain();
        let status = self.child.wait().expect("the program is our child");
        (status.code(), self.screen())
    }

    /// Reads until the terminal ends, which it does with the last program that holds it.
    fn drain(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while let Ok(bytes) = self.shown.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.screen.process(&bytes);
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // It has ended, unless the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
