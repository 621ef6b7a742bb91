//! A program at a terminal, as a person meets it.

use std::{
    fs::File,
    io::{Read, Write},
    num::NonZero,
    os::fd::OwnedFd,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Condvar, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

/// How long anything may take before the test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program and the terminal it runs in.
pub(crate) struct Session {
    child: Child,
    keyboard: File,
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

struct Shared {
    terminal: Mutex<Seen>,
    changed: Condvar,
}

struct Seen {
    parser: vt100::Parser,
    /// The program has closed the terminal.
    is_over: bool,
}

impl Session {
    /// Starts a program in a terminal of this size.
    pub(crate) fn start(mut command: Command, rows: u16, columns: u16) -> Self {
        let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
        let ours = rustix::pty::openpt(flags).expect("the system has terminals");
        rustix::pty::grantpt(&ours).expect("the terminal is ours");
        rustix::pty::unlockpt(&ours).expect("the terminal is ours");
        let name = rustix::pty::ptsname(&ours, Vec::new()).expect("the terminal has a name");
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let theirs =
            rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty()).expect("it can be opened");
        let size = rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&theirs, size).expect("the terminal has a size");
        let end = |fd: &OwnedFd| Stdio::from(fd.try_clone().expect("there are descriptors left"));
        command.stdin(end(&theirs)).stdout(end(&theirs)).stderr(end(&theirs));
        let child = command.spawn().expect("the program can be started");
        // The command holds ends of its own; when the program ends, the terminal has to be over.
        drop((command, theirs));

        let keyboard = File::from(ours);
        let mut output = keyboard.try_clone().expect("there are descriptors left");
        let some = |count: u16| NonZero::new(count).expect("a terminal has a size");
        let parser = vt100::Parser::new(some(rows), some(columns), 1000);
        let seen = Mutex::new(Seen { parser, is_over: false });
        let shared = Arc::new(Shared { terminal: seen, changed: Condvar::new() });
        let reader = {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                loop {
                    // Linux reports an error when the other side is gone.
                    let count = output.read(&mut buffer).unwrap_or(0);
                    let mut seen = shared.terminal.lock().expect("no reader panics");
                    seen.parser.process(&buffer[..count]);
                    seen.is_over = count == 0;
                    shared.changed.notify_all();
                    if count == 0 {
                        return;
                    }
                }
            })
        };
        Self { child, keyboard, shared, reader: Some(reader) }
    }

    /// Waits until the screen is as wanted, and gives it.
    pub(crate) fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        let mut seen = self.shared.terminal.lock().expect("no reader panics");
        loop {
            let screen = screen(&seen);
            if wanted(&screen) {
                return screen;
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !seen.is_over, "waited for {what}; this is to be seen:\n{screen}");
            seen = self.shared.changed.wait_timeout(seen, left).expect("no reader panics").0;
        }
    }

    /// Waits until a text is on the screen.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        self.wait(text, |screen| screen.contains(text))
    }

    /// Types a line.
    pub(crate) fn type_line(&mut self, line: &str) {
        writeln!(self.keyboard, "{line}").expect("the terminal can be written");
    }

    /// What Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        let pid = pid.expect("the program has a number");
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("the program runs");
    }

    /// Waits for the end of the program: how it ended, and what is on the screen.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        self.reader.take().expect("it is ended once").join().expect("no reader panics");
        let status = self.child.wait().expect("the program was started");
        let seen = self.shared.terminal.lock().expect("no reader panics");
        (status, screen(&seen))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The screen without blanks at the ends of lines.
fn screen(seen: &Seen) -> String {
    let (_, columns) = seen.parser.screen().size();
    let lines: Vec<String> =
        seen.parser.screen().rows(0, columns.get()).map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n").trim_end().to_owned()
}
