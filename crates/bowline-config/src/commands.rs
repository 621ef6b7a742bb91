//! Splits the commands of `${cmd:…}` variables into words and runs them without a shell.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::environment::Commands;

/// The maximum number of bytes that a command may print.
const MAX_OUTPUT: u64 = 64 * 1024;

/// Runs commands as child processes, with the environment of this process and no standard input.
#[derive(Debug, Clone)]
pub struct ChildCommands {
    timeout: Duration,
}

impl ChildCommands {
    /// Creates a runner with this time limit per command.
    pub fn new(timeout: Duration) -> Self {
        Self { timeout }
    }
}

impl Default for ChildCommands {
    /// Ten seconds are enough for a secret store that asks for a fingerprint.
    fn default() -> Self {
        Self::new(Duration::from_secs(10))
    }
}

impl Commands for ChildCommands {
    fn run(&self, words: &[String]) -> Result<String, String> {
        let deadline = Instant::now() + self.timeout;
        let (program, arguments) = words.split_first().ok_or("expected a command, got nothing")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start `{program}`: {error}"))?;
        let stdout = child.stdout.take();
        let (sender, receiver) = mpsc::channel();
        // The reader ends when the pipe closes, at the latest after the kill below. A late result is dropped.
        let reader = thread::spawn(move || {
            let mut output = Vec::new();
            let read = stdout.map_or(Ok(0), |stdout| stdout.take(MAX_OUTPUT + 1).read_to_end(&mut output));
            drop(sender.send(read.map(|_| output)));
        });
        let output = receiver.recv_timeout(self.timeout);
        let status =
            wait(&mut child, deadline).map_err(|error| format!("cannot wait for `{program}`: {error}"))?;
        let (Ok(output), Some(status)) = (output, status) else {
            return Err(format!("`{program}` timed out after {:?}", self.timeout));
        };
        let output = output.map_err(|error| format!("cannot read the output of `{program}`: {error}"))?;
        drop(reader.join());
        if !status.success() {
            return Err(format!("`{program}` failed: {status}"));
        }
        if output.len() as u64 > MAX_OUTPUT {
            return Err(format!("`{program}` printed more than {MAX_OUTPUT} bytes"));
        }
        String::from_utf8(output).map_err(|_| format!("the output of `{program}` is not valid UTF-8"))
    }
}

/// Waits for a process that has closed its output or has no time left, and kills it at the deadline.
fn wait(child: &mut Child, deadline: Instant) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            // A process that cannot be killed has already ended.
            child.kill().ok();
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Splits a command line at spaces. Quotes and backslashes work as in a shell; nothing else does.
pub(crate) fn split_words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some('\''), _) => word.get_or_insert_default().push(c),
            (_, '\\') => {
                let next = characters.next().ok_or("trailing backslash")?;
                // In double quotes, a backslash escapes only a quote or a backslash.
                if quote.is_some() && !matches!(next, '"' | '\\') {
                    word.get_or_insert_default().push('\\');
                }
                word.get_or_insert_default().push(next);
            }
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            (Some(_) | None, _) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("unclosed quote");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split_words;

    #[test]
    fn words_are_split_as_in_a_shell_but_nothing_is_run() {
        for (line, words) in [
            ("op read op://vault/item", vec!["op", "read", "op://vault/item"]),
            ("  a  'b c' \"d \\\"e\\\"\" f\\ g ''", vec!["a", "b c", "d \"e\"", "f g", ""]),
            ("echo $(id) `id` ; rm -rf /", vec!["echo", "$(id)", "`id`", ";", "rm", "-rf", "/"]),
            ("\"C:\\bin\"", vec!["C:\\bin"]),
            ("", vec![]),
        ] {
            assert_eq!(split_words(line).expect("the line is complete"), words, "{line}");
        }
        assert!(split_words("a 'b").is_err());
        assert!(split_words("a\\").is_err());
    }

    #[cfg(unix)]
    mod unix {
        use std::time::Duration;

        use super::super::{ChildCommands, Commands as _};

        fn run(words: &[&str]) -> Result<String, String> {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            ChildCommands::new(Duration::from_secs(5)).run(&words)
        }

        #[test]
        fn a_command_runs_without_a_shell() {
            // V-70
            assert_eq!(run(&["printf", "%s", "$(id);x"]).as_deref(), Ok("$(id);x"));
        }

        #[test]
        fn failures_name_what_failed() {
            assert_eq!(run(&["false"]).unwrap_err(), "`false` failed: exit status: 1");
            assert!(
                run(&["/nonexistent/program"])
                    .unwrap_err()
                    .starts_with("cannot start `/nonexistent/program`: ")
            );
            assert!(run(&["head", "-c", "100000", "/dev/zero"]).is_err());
            assert_eq!(run(&[]).unwrap_err(), "expected a command, got nothing");
        }

        #[test]
        fn a_command_that_times_out_is_killed() {
            let runner = ChildCommands::new(Duration::from_millis(20));
            let words = ["sleep", "600"].map(str::to_owned);
            assert_eq!(runner.run(&words).unwrap_err(), "`sleep` timed out after 20ms");
            // A process that closes its output is killed, too.
            let words = ["sh", "-c", "exec >&-; exec sleep 600"].map(str::to_owned);
            assert_eq!(runner.run(&words).unwrap_err(), "`sh` timed out after 20ms");
        }
    }
}
