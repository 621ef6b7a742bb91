//! Kills the child processes if this process is killed.
//!
//! No handler runs on SIGKILL, and there is no portable way to tie a process group to its parent. So one shell per
//! process reads from a pipe and keeps a list of the running groups. When this process ends for any reason, the pipe is
//! closed, and the shell kills the listed groups.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

pub(super) const SHELL: &str = "/bin/sh";

/// The name of the watchdog in the process list.
const NAME: &str = "bowline-watchdog";

// The shell ignores the signals that a terminal or supervisor sends to stop this process, because the watchdog must
// outlive it. `read` fails at the end of the pipe. Only shell builtins are used, so that it works without PATH. The
// first form of `kill` is that of POSIX; dash rejects `-KILL --`, and older shells know only the second form. If a
// group is already gone, both fail, which is fine.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
groups=
while read -r verb group; do
    case $verb in
    add) groups="$groups $group" ;;
    del)
        kept=
        for other in $groups; do
            [ "$other" = "$group" ] || kept="$kept $other"
        done
        groups=$kept
        ;;
    esac
done
for group in $groups; do
    kill -s KILL -- "-$group" || kill -KILL "-$group"
done
"#;

static WATCHDOG: Mutex<Watchdog> = Mutex::new(Watchdog::new(SHELL));

/// Starts the watchdog, unless it already runs.
pub(super) fn start() {
    lock().start();
}

/// Adds a group to kill when this process ends.
pub(super) fn add(group: Pid) {
    lock().add(group.as_raw_nonzero().get());
}

/// Removes a group. Must be called before the last process of it is reaped, while its id cannot be reused.
pub(super) fn remove(group: Pid) {
    lock().remove(group.as_raw_nonzero().get());
}

fn lock() -> MutexGuard<'static, Watchdog> {
    WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Watchdog {
    shell: &'static str,
    state: State,
    groups: BTreeSet<i32>,
}

enum State {
    Idle,
    Running(Child),
    Unavailable,
}

impl Watchdog {
    const fn new(shell: &'static str) -> Self {
        Self { shell, state: State::Idle, groups: BTreeSet::new() }
    }

    /// Starts the shell if there is none, and sends it all groups.
    fn start(&mut self) {
        if !matches!(self.state, State::Idle) {
            return;
        }
        match spawn(self.shell, &[SCRIPT, NAME]) {
            Ok(mut child) => {
                // If the write fails, the shell is replaced at the next change.
                let _ = self.groups.iter().try_for_each(|group| write(&mut child, &format!("add {group}\n")));
                self.state = State::Running(child);
            }
            Err(error) => {
                let shell = self.shell;
                tracing::warn!(%error, "{shell} not started: child processes may survive if this process is killed");
                // A missing shell stays missing, but a lack of processes or memory is temporary.
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) {
                    self.state = State::Unavailable;
                }
            }
        }
    }

    fn add(&mut self, group: i32) {
        self.groups.insert(group);
        self.send(&format!("add {group}\n"));
    }

    fn remove(&mut self, group: i32) {
        if self.groups.remove(&group) {
            self.send(&format!("del {group}\n"));
        }
    }

    fn send(&mut self, line: &str) {
        if let State::Running(child) = &mut self.state {
            let Err(error) = write(child, line) else { return };
            tracing::warn!(%error, "the watchdog for child processes exited; restarting it");
            // It has exited, or does not read and is killed here; it can be reaped without waiting.
            let _ = child.kill();
            let _ = child.wait();
            self.state = State::Idle;
        }
        self.start();
    }
}

/// Starts the shell in its own group, so that a signal to the group of this process does not reach it. It inherits no
/// descriptor except its end of the pipe, because those of the standard library are close-on-exec.
pub(super) fn spawn(shell: &str, words: &[&str]) -> io::Result<Child> {
    Command::new(shell)
        .arg("-c")
        .args(words)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

fn write(child: &mut Child, text: &str) -> io::Result<()> {
    let Some(stdin) = &mut child.stdin else { return Err(io::ErrorKind::BrokenPipe.into()) };
    stdin.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    use rustix::process::{Signal, kill_process};

    fn eventually(mut condition: impl FnMut() -> bool, what: &str) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !condition() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A process in its own group that ends with the test at the latest.
    struct Sleeper(Child);

    impl Sleeper {
        fn new() -> Self {
            Self(Command::new("sleep").arg("1000").process_group(0).spawn().unwrap())
        }

        fn group(&self) -> i32 {
            i32::try_from(self.0.id()).unwrap()
        }

        fn is_alive(&mut self) -> bool {
            self.0.try_wait().unwrap().is_none()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn running(watchdog: &mut Watchdog) -> &mut Child {
        let State::Running(child) = &mut watchdog.state else { panic!("the watchdog runs") };
        child
    }

    /// Closes the pipe, like the end of this process, and waits for the shell.
    fn end(mut watchdog: Watchdog) {
        let child = running(&mut watchdog);
        drop(child.stdin.take());
        eventually(|| child.try_wait().unwrap().is_some(), "the shell ends with its pipe");
    }

    #[test]
    fn the_end_of_the_pipe_kills_the_registered_groups() {
        let (mut kept, mut removed, mut other) = (Sleeper::new(), Sleeper::new(), Sleeper::new());
        let mut watchdog = Watchdog::new(SHELL);
        for group in [kept.group(), removed.group(), other.group()] {
            watchdog.add(group);
        }
        watchdog.remove(removed.group());
        end(watchdog);
        eventually(|| !kept.is_alive() && !other.is_alive(), "listed groups are killed");
        assert!(removed.is_alive());
    }

    #[test]
    fn a_finished_group_does_not_protect_the_next() {
        let gone = Sleeper::new().group();
        let mut alive = Sleeper::new();
        let mut watchdog = Watchdog::new(SHELL);
        watchdog.add(gone);
        watchdog.add(alive.group());
        end(watchdog);
        eventually(|| !alive.is_alive(), "the group after the missing one is killed");
    }

    #[test]
    fn a_watchdog_that_was_killed_has_a_successor_that_knows_all_groups() {
        let (mut early, mut late) = (Sleeper::new(), Sleeper::new());
        let mut watchdog = Watchdog::new(SHELL);
        watchdog.add(early.group());
        let first = running(&mut watchdog);
        first.kill().unwrap();
        first.wait().unwrap();
        watchdog.add(late.group());
        end(watchdog);
        eventually(|| !early.is_alive() && !late.is_alive(), "both groups are killed");
    }

    #[test]
    fn without_a_shell_nothing_fails() {
        let mut watchdog = Watchdog::new("/nonexistent/sh");
        watchdog.add(1);
        watchdog.remove(1);
        assert!(matches!(watchdog.state, State::Unavailable));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn signals_that_end_this_process_do_not_end_the_watchdog() {
        let mut sleeper = Sleeper::new();
        let mut watchdog = Watchdog::new(SHELL);
        watchdog.add(sleeper.group());
        let child = running(&mut watchdog);
        let id = Pid::from_child(child);
        let wanted = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM];
        let mask = wanted.iter().fold(0, |mask, signal| mask | 1_u64 << (signal.as_raw() - 1));
        eventually(|| ignored_signals(id) & mask == mask, "the shell ignores the signals");
        for signal in wanted {
            kill_process(id, signal).unwrap();
        }
        end(watchdog);
        eventually(|| !sleeper.is_alive(), "the watchdog did its work");
    }

    #[cfg(target_os = "linux")]
    fn ignored_signals(id: Pid) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    }
}
