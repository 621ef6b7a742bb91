//! Runs the program at a pseudo terminal.

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

/// How long to wait for output before the test fails.
const TIMEOUT: Duration = Duration::from_secs(60);

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

    /// Starts a program at a terminal of the given size.
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
        // Close our copies of the program's end, so that its exit is noticed.
        drop(command);
        let keyboard = File::from(ours);
        let mut display = keyboard.try_clone().expect("the terminal can be read and written");
        let (sender, shown) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading fails when the program closes the terminal.
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

    /// Waits until the screen contains a text.
    pub(crate) fn expect(&mut self, text: &str) -> &mut Self {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Waits until the screen satisfies a condition.
    pub(crate) fn wait(&mut self, what: &str, is_wanted: impl Fn(&str) -> bool) -> &mut Self {
        let deadline = Instant::now() + TIMEOUT;
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

    /// Returns the text on the screen.
    pub(crate) fn screen(&self) -> String {
        let contents = self.screen.screen().contents();
        let lines: Vec<&str> = contents.lines().map(str::trim_end).collect();
        lines.join("\n")
    }

    /// Waits for the program's end, and returns the screen without and with colors.
    pub(crate) fn finish_with_colors(mut self) -> (String, String) {
        self.drain();
        let colors = self.screen.screen().contents_formatted();
        (self.screen(), colors)
    }

    /// Waits for the program's end, and returns the screen with its styles.
    pub(crate) fn into_screen(mut self) -> vt100::Screen {
        self.drain();
        self.screen.screen().clone()
    }

    /// Returns the screen with its styles.
    pub(crate) fn screen_cells(&self) -> &vt100::Screen {
        self.screen.screen()
    }

    /// Returns the process id, for signals.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the program's end, and returns its exit code and the screen.
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        self.drain();
        let status = self.child.wait().expect("the program is our child");
        (status.code(), self.screen())
    }

    /// Reads until the last program that uses the terminal exits.
    fn drain(&mut self) {
        let deadline = Instant::now() + TIMEOUT;
        while let Ok(bytes) = self.shown.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            self.screen.process(&bytes);
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // The program has exited, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
