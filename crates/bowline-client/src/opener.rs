//! Opens a URL in the user's browser, without a shell.

use bowline_proto::service::BoxFuture;
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

use crate::ShownUrl;

/// The time in which the program can report a failure.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Opens URLs. Only called after consent.
pub trait Opener: Send + Sync {
    /// Opens a URL outside of this program.
    fn open<'a>(&'a self, url: &'a ShownUrl) -> BoxFuture<'a, io::Result<()>>;
}

/// Opens URLs with the program of the desktop: `xdg-open`, `open`, or the URL handler of Windows.
///
/// The URL is passed as one argument, without a shell. A program that still runs after a few seconds counts as
/// successful and keeps running.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemOpener;

impl Opener for SystemOpener {
    fn open<'a>(&'a self, url: &'a ShownUrl) -> BoxFuture<'a, io::Result<()>> {
        Box::pin(start(command(System::here(), url)))
    }
}

/// Starts a program, and waits briefly for it to fail.
async fn start(words: Vec<String>) -> io::Result<()> {
    let [program, arguments @ ..] = &words[..] else { return Err(io::ErrorKind::InvalidInput.into()) };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot start `{program}`: {error}")))?;
    let Ok(status) = tokio::time::timeout(TIMEOUT, child.wait()).await else { return Ok(()) };
    let status = status?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("`{program}` could not open the page ({status})")))
}

/// Systems that open URLs in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum System {
    Mac,
    Windows,
    Other,
}

impl System {
    fn here() -> Self {
        match std::env::consts::OS {
            "macos" => Self::Mac,
            "windows" => Self::Windows,
            _ => Self::Other,
        }
    }
}

/// Returns the program and its arguments.
fn command(system: System, url: &ShownUrl) -> Vec<String> {
    let url = url.as_str();
    let words: &[&str] = match system {
        System::Mac => &["open", url],
        System::Windows => &["rundll32.exe", "url.dll,FileProtocolHandler", url],
        System::Other => &["xdg-open", url],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_is_one_argument_and_no_shell_sees_it() {
        // proves: ELIU-23, SEC-37
        // V-103
        let text = "https://example.com/?a=1&b=$(id);c='x'|true%20";
        assert!(ShownUrl::parse(text).is_err(), "a pipe is not part of a URL");
        let url = ShownUrl::parse("https://example.com/?a=1&b=$(id);c='x'%20").unwrap();
        for system in [System::Mac, System::Windows, System::Other] {
            let words = command(system, &url);
            // The user's browser, never a view inside this program.
            assert!(["open", "rundll32.exe", "xdg-open"].contains(&words[0].as_str()), "{words:?}");
            assert_eq!(words.iter().filter(|word| word.contains("example.com")).count(), 1, "{system:?}");
            assert_eq!(words.last().map(String::as_str), Some(url.as_str()));
            let shells = ["sh", "bash", "cmd", "cmd.exe", "powershell", "powershell.exe"];
            assert!(
                words.iter().all(|word| !shells.contains(&word.as_str()) && word != "-c" && word != "/c")
            );
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_program_gets_one_argument_and_its_failure_is_reported() {
        // V-103
        let folder = std::env::temp_dir().join(format!("bowline-opener-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (script, seen) = (folder.join("open"), folder.join("seen"));
        std::fs::write(&script, format!("printf '%s %s' $# \"$1\" > '{}'", seen.display())).unwrap();
        let url = "https://example.com/?a=1&b=$(id);c='x'";
        let words = ["sh".to_owned(), script.display().to_string(), url.to_owned()];
        start(words.to_vec()).await.unwrap();
        assert_eq!(std::fs::read_to_string(seen).unwrap(), format!("1 {url}"));
        let error = start(vec!["false".to_owned()]).await.unwrap_err().to_string();
        assert!(error.starts_with("`false` could not open the page"), "{error}");
        let missing = folder.join("missing").display().to_string();
        assert_eq!(start(vec![missing]).await.unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
