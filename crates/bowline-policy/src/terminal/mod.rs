//! The gate in a terminal: asks one question at a time.

mod console;
mod form;
mod sample;
mod show;

use bowline_proto::service::BoxFuture;
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio::sync::Mutex;

use super::gate::{Covers, Gate, Granted, Question, Scope, Verdict};
use console::Console;
use show::Shown;

pub use show::hints;

/// Asks questions in a terminal, or on any other line-based input and output.
///
/// - Questions are asked one at a time.
/// - Lines of a server or a model start with `|`, and their invisible characters are escaped. So they cannot be mistaken for
///   the question, and nothing in them is hidden. The name of the server is always shown.
/// - The end of the input cancels the question and all later ones.
/// - If a question is withdrawn, the next question is shown and the next line is discarded, so that an answer that was
///   being typed is not used for another question.
///
/// `Terminal::new(BufReader::new(tokio::io::stdin()), tokio::io::stderr())` leaves standard output to the protocol.
pub struct Terminal<R, W> {
    console: Mutex<Console<R, W>>,
}

impl<R, W> Terminal<R, W> {
    /// Creates a gate that reads answers from `input` and writes questions to `output`.
    pub fn new(input: R, output: W) -> Self {
        Self { console: Mutex::new(Console::new(input, output)) }
    }

    /// Asks a question of the program itself and returns the entered line, trimmed.
    ///
    /// Fails with [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) at the end of the input.
    pub async fn line(&self, prompt: &str) -> io::Result<String>
    where
        R: AsyncBufRead + Unpin + Send,
        W: AsyncWrite + Unpin + Send,
    {
        let mut console = self.console.lock().await;
        console.open_with(prompt).await?;
        let line = console.prompt().await?;
        console.close();
        Ok(line)
    }

    /// Returns the input and the output.
    pub fn into_inner(self) -> (R, W) {
        self.console.into_inner().into_inner()
    }
}

impl<R, W> fmt::Debug for Terminal<R, W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Terminal").finish_non_exhaustive()
    }
}

impl<R, W> Gate for Terminal<R, W>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    fn ask(&self, question: Question) -> BoxFuture<'_, Verdict> {
        Box::pin(async move {
            let mut console = self.console.lock().await;
            match ask(&mut console, question).await {
                Ok(verdict) => verdict,
                Err(error) => {
                    if error.kind() != io::ErrorKind::UnexpectedEof {
                        tracing::warn!(%error, "cannot ask on the terminal; cancelled");
                    }
                    Verdict::Cancel
                }
            }
        })
    }
}

/// Describes a yes-or-no question in lines of text. Returns `None` for questions with other dialogs.
pub fn describe_question(question: &Question) -> Option<String> {
    let has_dialog =
        matches!(question, Question::Form { .. } | Question::Sample { .. } | Question::SampleResult { .. });
    (!has_dialog).then(|| show::question(question).0.as_str().trim().to_owned())
}

/// Asks a question. Fails with `UnexpectedEof` at the end of the input.
async fn ask<R, W>(console: &mut Console<R, W>, question: Question) -> io::Result<Verdict>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    console.open(question.server()).await?;
    let verdict = match question {
        Question::Form { server, message, schema } => form::ask(console, &server, &message, &schema).await?,
        Question::Sample { server, request, why, scopes } => {
            sample::request(console, &server, *request, &why, &scopes).await?
        }
        Question::SampleResult { server, result } => sample::result(console, &server, *result).await?,
        simple => {
            let (shown, scopes, covers) = show::question(&simple);
            console.show(&shown).await?;
            choose(console, &scopes, &covers).await?
        }
    };
    console.close();
    Ok(verdict)
}

/// Lets the user choose an answer with one of these scopes.
async fn choose<R, W>(console: &mut Console<R, W>, scopes: &[Scope], covers: &[Covers]) -> io::Result<Verdict>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let mut shown = Shown::default();
    shown.line(&menu(scopes));
    for line in wider(scopes, covers) {
        shown.line(&line);
    }
    console.show(&shown).await?;
    loop {
        let answer = console.prompt().await?;
        match read_choice(&answer, scopes, covers) {
            Ok(verdict) => return Ok(verdict),
            Err(reason) => console.show_error(&reason).await?,
        }
    }
}

fn menu(scopes: &[Scope]) -> String {
    let mut menu = String::from("[y] yes");
    for (scope, text) in [
        (Scope::Run, "  [r] yes, for this run"),
        (Scope::Project, "  [p] yes, in this project"),
        (Scope::Always, "  [a] yes, always"),
    ] {
        if scopes.contains(&scope) {
            menu.push_str(text);
        }
    }
    menu.push_str("  [n] no  [c] cancel");
    if scopes.contains(&Scope::Always) {
        menu.push_str("  [x] never");
    }
    if scopes.contains(&Scope::Run) {
        menu.push_str("  (add a duration to limit it: `r 30m`)");
    }
    menu
}

/// Returns the answers that cover more than the tool of the question, one per line, for the longest scope.
fn wider(scopes: &[Scope], covers: &[Covers]) -> Vec<String> {
    let until = match longest(scopes) {
        Scope::Always => "always",
        Scope::Once | Scope::Run | Scope::Project => "for this run",
    };
    let line = |covers: &Covers| match covers {
        Covers::Tool => None,
        Covers::ReadOnlyTools => Some(format!("[o] yes, all read-only tools of this server, {until}")),
        Covers::Server => Some(format!("[e] yes, everything from this server, {until}")),
    };
    covers.iter().filter_map(line).collect()
}

fn longest(scopes: &[Scope]) -> Scope {
    if scopes.contains(&Scope::Always) { Scope::Always } else { Scope::Run }
}

fn read_choice(answer: &str, scopes: &[Scope], covers: &[Covers]) -> Result<Verdict, String> {
    let mut words = answer.split_whitespace();
    let word = words.next().unwrap_or_default().to_ascii_lowercase();
    let time = words.next();
    if words.next().is_some() {
        return Err("expected one letter, optionally followed by a time".to_owned());
    }
    let (scope, wanted) = match word.as_str() {
        "y" | "yes" => (Scope::Once, Covers::Tool),
        "r" => (Scope::Run, Covers::Tool),
        "p" => (Scope::Project, Covers::Tool),
        "a" => (Scope::Always, Covers::Tool),
        "o" if covers.contains(&Covers::ReadOnlyTools) => (longest(scopes), Covers::ReadOnlyTools),
        "e" if covers.contains(&Covers::Server) => (longest(scopes), Covers::Server),
        "n" | "no" if time.is_none() => return Ok(Verdict::decline()),
        "c" | "cancel" if time.is_none() => return Ok(Verdict::Cancel),
        "x" if time.is_none() && scopes.contains(&Scope::Always) => {
            return Ok(Verdict::Decline { scope: Scope::Always, reason: None });
        }
        _ => return Err("expected one of the letters above".to_owned()),
    };
    if scope != Scope::Once && !scopes.contains(&scope) {
        return Err("expected one of the letters above".to_owned());
    }
    let lasts = match time {
        None => None,
        Some(_) if scope == Scope::Once => return Err("a one-time permission has no duration".to_owned()),
        Some(time) => Some(read_time(time).ok_or("expected a time such as 30m, 8h or 7d")?),
    };
    Ok(Verdict::Allow(Granted { scope, lasts, covers: wanted, ..Granted::default() }))
}

fn read_time(text: &str) -> Option<Duration> {
    let unit = match text.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86_400,
        _ => return None,
    };
    let number: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    (number > 0).then(|| Duration::from_secs(number.saturating_mul(unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_letters_with_a_time() {
        let all = [Scope::Once, Scope::Run, Scope::Project, Scope::Always];
        let yes = |scope, lasts: Option<u64>| Ok(Verdict::allow_for(scope, lasts.map(Duration::from_secs)));
        assert_eq!(read_choice(" Y ", &all, &[]), yes(Scope::Once, None));
        assert_eq!(read_choice("r 30m", &all, &[]), yes(Scope::Run, Some(1800)));
        assert_eq!(read_choice("p 7d", &all, &[]), yes(Scope::Project, Some(604_800)));
        assert_eq!(read_choice("a", &all, &[]), yes(Scope::Always, None));
        assert_eq!(read_choice("no", &all, &[]), Ok(Verdict::decline()));
        assert_eq!(read_choice("x", &all, &[]), Ok(Verdict::Decline { scope: Scope::Always, reason: None }));
        for answer in ["", "yy", "y 1h", "r 0m", "r 1", "r -1h", "r é", "n 1h", "x 1h", "a 1h 2h", "ok"] {
            assert!(read_choice(answer, &all, &[]).is_err(), "{answer}");
        }
        for answer in ["r", "p", "a", "x"] {
            assert!(read_choice(answer, &[Scope::Once], &[]).is_err(), "{answer}");
        }
    }
    #[test]
    fn an_answer_may_cover_more_of_the_server_where_that_is_offered() {
        let wider = [Covers::ReadOnlyTools, Covers::Server];
        let yes = |scope, covers| Ok(Verdict::Allow(Granted { scope, covers, ..Granted::default() }));
        let kept = [Scope::Once, Scope::Run, Scope::Always];
        assert_eq!(read_choice("o", &kept, &wider), yes(Scope::Always, Covers::ReadOnlyTools));
        assert_eq!(read_choice("e", &[Scope::Once, Scope::Run], &wider), yes(Scope::Run, Covers::Server));
        assert_eq!(read_choice("c", &kept, &wider), Ok(Verdict::Cancel));
        for answer in ["o", "e"] {
            assert!(read_choice(answer, &kept, &[]).is_err(), "{answer}");
        }
    }
}
