//! Reads lines with editing and completion on a separate thread.

use crate::{
    cache::Names,
    completion::{candidates, split},
    failure::Failure,
};
use rustyline::{
    Context, Editor, ExternalPrinter, Helper,
    completion::{Completer, Pair},
    error::ReadlineError,
    highlight::Highlighter,
    hint::Hinter,
    history::FileHistory,
    validate::Validator,
};
use std::{
    fmt,
    io::{self, IsTerminal},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, mpsc as threads},
    thread,
    time::Duration,
};
use tokio::sync::mpsc;

/// How long completion waits for the server.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(2);

/// A request of the editor thread.
#[derive(Debug)]
pub(super) enum ReaderRequest {
    /// A line to run.
    Line(String),
    /// Completes an argument of a prompt.
    Values {
        prompt: String,
        argument: String,
        start: String,
        /// The arguments that already have values.
        known: Vec<(String, String)>,
        reply: threads::Sender<Vec<String>>,
    },
}

/// Reads lines, one at a time.
pub(super) struct Reader {
    asked: mpsc::Receiver<ReaderRequest>,
    go: threads::Sender<()>,
    printer: Option<Box<dyn ExternalPrinter + Send>>,
}

impl Reader {
    pub(super) fn start(
        prompt: String,
        history: Option<PathBuf>,
        names: Arc<Mutex<Names>>,
    ) -> Result<Self, Failure> {
        let failed = |error: ReadlineError| Failure::from(io::Error::other(error));
        let (sender, asked) = mpsc::channel(1);
        let (go, gone) = threads::channel();
        let mut editor: Editor<LineHelper, FileHistory> = Editor::new().map_err(failed)?;
        editor.set_helper(Some(LineHelper { names, asked: sender.clone() }));
        if let Some(path) = &history {
            // There is no history on the first run.
            let _ = editor.load_history(path);
        }
        let printer = if io::stdin().is_terminal() {
            Some(Box::new(editor.create_external_printer().map_err(failed)?)
                as Box<dyn ExternalPrinter + Send>)
        } else {
            None
        };
        // The thread ends when the channels close, or with the program.
        thread::spawn(move || {
            while gone.recv().is_ok() {
                let line = match editor.readline(&prompt) {
                    Ok(line) => line,
                    Err(ReadlineError::Interrupted) => String::new(),
                    Err(_) => return,
                };
                if !line.trim().is_empty() {
                    let _ = editor.add_history_entry(line.as_str());
                    keep(&mut editor, history.as_deref());
                }
                if sender.blocking_send(ReaderRequest::Line(line)).is_err() {
                    return;
                }
            }
        });
        Ok(Self { asked, go, printer })
    }

    /// Starts reading the next line.
    pub(super) fn next(&self) {
        // Fails only if the thread has ended.
        let _ = self.go.send(());
    }

    /// Returns the next request; `None` at the end of the input.
    pub(super) async fn asked(&mut self) -> Option<ReaderRequest> {
        self.asked.recv().await
    }

    /// Prints a line above the prompt.
    pub(super) fn print(&mut self, line: &str) {
        match &mut self.printer {
            Some(printer) => drop(printer.print(format!("{line}\n"))),
            None => drop(io::Write::write_all(&mut io::stderr(), format!("{line}\n").as_bytes())),
        }
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// Saves the history, which can contain secrets, in a private directory.
fn keep(editor: &mut Editor<LineHelper, FileHistory>, history: Option<&std::path::Path>) {
    let Some(path) = history else { return };
    let kept = path.parent().map_or(Ok(()), crate::paths::create_private_dir);
    let kept = kept.map_err(ReadlineError::from).and_then(|()| editor.save_history(path));
    if let Err(error) = kept {
        tracing::debug!(%error, "cannot save the history");
    }
}

/// Completes lines.
struct LineHelper {
    names: Arc<Mutex<Names>>,
    asked: mpsc::Sender<ReaderRequest>,
}

impl Helper for LineHelper {}

impl Highlighter for LineHelper {}

impl Validator for LineHelper {}

impl Hinter for LineHelper {
    type Hint = String;
}

impl LineHelper {
    /// Asks the server to complete an argument of a prompt.
    fn values(&self, prompt: &str, given: &[&str], current: &str) -> Option<Vec<String>> {
        let (argument, start) = current.split_once('=')?;
        let (reply, replied) = threads::channel();
        let known = given.iter().filter_map(|word| word.split_once('='));
        let asked = ReaderRequest::Values {
            prompt: prompt.to_owned(),
            argument: argument.to_owned(),
            start: start.to_owned(),
            known: known.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            reply,
        };
        self.asked.blocking_send(asked).ok()?;
        let values = replied.recv_timeout(COMPLETION_TIMEOUT).ok()?;
        Some(values.into_iter().map(|value| format!("{argument}={value}")).collect())
    }
}

impl Completer for LineHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let line = line.get(..position).unwrap_or(line);
        let mut words = split(line);
        let current = words.pop().unwrap_or_default();
        // Quoted words are not completed: their start position is unknown.
        let Some(start) = line.len().checked_sub(current.len()).filter(|_| line.ends_with(&current)) else {
            return Ok((position, Vec::new()));
        };
        let known = candidates(&self.names.lock().unwrap_or_else(PoisonError::into_inner), &words, &current);
        let found = match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["prompt" | "complete", prompt, given @ ..] if known.is_empty() => {
                self.values(prompt, given, &current).unwrap_or_default()
            }
            _ => known,
        };
        let quoted = |candidate: &str| {
            if candidate.contains([' ', '"', '\'', '\\']) {
                format!("{candidate:?}")
            } else {
                candidate.to_owned()
            }
        };
        let typed = |candidate: &str| {
            let quoted = quoted(candidate);
            // The value follows directly after `name=`; everything else is followed by a space.
            if quoted.ends_with('=') { quoted } else { quoted + " " }
        };
        let pair = |candidate: String| Pair { replacement: typed(&candidate), display: candidate };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}
