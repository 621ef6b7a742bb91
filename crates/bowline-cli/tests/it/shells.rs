//! Completion in real shells, with a server whose tool names contain shell commands.

use crate::{place::Place, pty::Pty};
use std::{path::Path, process::Command};

/// A unique prefix of each name, and the name.
const HOSTILE: [(&str, &str); 13] = [
    ("a", "a$(touch pwned)"),
    ("b", "b`touch pwned`"),
    ("c", "c;touch pwned;"),
    ("d", "d&touch pwned&"),
    ("e", "e|touch pwned"),
    ("f", "f'; touch pwned; '"),
    ("g", "g\"; touch pwned; \""),
    ("h", "h>pwned"),
    ("i", "i(touch pwned)"),
    ("j", "j{touch,pwned}"),
    ("k", "k*!!~"),
    ("\\=", "=ls"),
    ("\\~", "~root"),
];

/// Returns a place with the hostile server configured and its names cached.
fn place() -> Place {
    let place = Place::new();
    let server = format!("{}/tests/it/servers/hostile_names.sh", env!("CARGO_MANIFEST_DIR"));
    let calls = place.path("calls");
    place.put("calls", "");
    place.put(
        "user/.config/bowline/bowline.toml",
        &format!(
            "[servers.hostile]\ncommand = \"/bin/sh\"\nargs = [{server:?}, {:?}]\n",
            calls.display().to_string()
        ),
    );
    let (printed, code) = place.run(&["tools", "hostile"]);
    assert_eq!(code, Some(0), "{printed}");
    place
}

/// Returns whether a program is installed. Otherwise the test is skipped.
fn is_installed(program: &str) -> bool {
    let is_there = ["/usr/bin", "/bin"].iter().any(|folder| Path::new(folder).join(program).exists());
    if !is_there {
        bowline_testing::skip(&format!("{program} is not installed"));
    }
    is_there
}

/// Starts a shell at its own terminal and loads the completion script.
fn start(place: &Place, shell: &[&str], prompt: &str, load: &str) -> Pty {
    let program = Path::new(env!("CARGO_BIN_EXE_bowline")).parent().expect("it is in a folder");
    // The shell needs a controlling terminal, and must not take the one of the test runner.
    let mut command = Command::new("/usr/bin/setsid");
    command.args(["--ctty", "--wait"]).args(shell).env_clear();
    command
        .env("HOME", place.path("user"))
        .env("XDG_RUNTIME_DIR", place.path("login"))
        .env("PATH", format!("{}:/usr/bin:/bin", program.display()))
        .env("TERM", "xterm")
        .env("LANG", "C.UTF-8")
        .env("NO_COLOR", "1")
        .env("PS1", "prompt$ ")
        .current_dir(place.path("here"));
    let mut pty = Pty::sized(command, 24, 200);
    pty.expect(prompt).enter(load);
    pty.enter("echo is''ready").expect("isready");
    pty
}

/// Completes each hostile name, runs the line, and checks that the server got the name and the shell ran nothing else.
///
/// A shell with a `menu` shows that text while it waits for Enter to take the only candidate.
fn check(place: &Place, mut pty: Pty, names: &[(&str, &str)], menu: Option<&str>) {
    for (number, (start, name)) in (1..).zip(names) {
        pty.keys(&format!("bowline call hostile {start}\t"));
        if let Some(menu) = menu {
            pty.expect(menu).enter("");
            pty.wait("the end of the menu", |screen| !screen.contains(menu));
        }
        // The name appears with quotes of the shell's choice between its characters.
        let end = name.chars().rev().find(char::is_ascii_alphanumeric).map(String::from).unwrap_or_default();
        pty.wait(name, |screen| {
            screen.lines().last().and_then(|line| line.split_once("hostile ")).is_some_and(|(_, typed)| {
                typed.len() > start.len() && (name.starts_with('k') || typed.contains(&end))
            })
        });
        pty.enter("").expect(&format!("this was call {number}."));
        let calls = place.get("calls");
        let last: serde_json::Value =
            serde_json::from_str(calls.lines().last().expect("a call was made")).expect("it is JSON");
        assert_eq!(last["params"]["name"], *name);
        assert!(!place.path("here/pwned").exists(), "the shell ran `{name}`");
    }
}

#[test]
fn bash_does_not_interpret_names() {
    if !is_installed("bash") || !is_installed("setsid") {
        return;
    }
    let place = place();
    let shell = ["bash", "--noprofile", "--norc", "-i"];
    check(&place, start(&place, &shell, "prompt$", r#"eval "$(bowline completions bash)""#), &HOSTILE, None);
    // Inside quotes the name is not completed: it would be run there, or could close them.
    for quote in ['"', '\''] {
        let mut pty = start(&place, &shell, "prompt$", r#"eval "$(bowline completions bash)""#);
        for (start, _) in &HOSTILE[..11] {
            pty.keys(&format!("bowline call hostile {quote}{start}\t")).enter(&quote.to_string());
        }
        pty.enter("echo is''done").expect("isdone");
        assert!(!place.path("here/pwned").exists(), "{}", pty.screen());
    }
}

#[test]
fn zsh_does_not_interpret_names() {
    if !is_installed("zsh") || !is_installed("setsid") {
        return;
    }
    let place = place();
    let load = "autoload -U compinit && compinit -u -D; source <(bowline completions zsh)";
    check(&place, start(&place, &["zsh", "-f", "-i"], "prompt$", load), &HOSTILE, None);
}

#[test]
fn fish_does_not_interpret_names() {
    if !is_installed("fish") || !is_installed("setsid") {
        return;
    }
    let place = place();
    let prompt = "function fish_prompt; echo '$ '; end; set -g fish_greeting";
    let shell = ["fish", "--no-config", "--init-command", prompt, "-i"];
    check(&place, start(&place, &shell, "$", "bowline completions fish | source"), &HOSTILE, None);
}

#[test]
fn elvish_does_not_interpret_names() {
    if !is_installed("elvish") || !is_installed("setsid") {
        return;
    }
    let place = place();
    let load = "eval (bowline completions elvish | slurp)";
    // PowerShell cannot type the last two names, because it has no backslash escapes.
    check(&place, start(&place, &["elvish", "-norc"], "here", load), &HOSTILE[..11], Some("COMPLETING"));
}

#[test]
fn unprintable_names_are_not_completed() {
    let place = place();
    for shell in [&[][..], &["--shell", "bash"], &["--shell", "zsh"], &["--shell", "powershell"]] {
        let words = [&["__complete"], shell, &["--", "call", "hostile", "l"]].concat();
        assert_eq!(place.run(&words), (String::new(), Some(0)));
        let words = [&["__complete"], shell, &["--", "call", "hostile", ""]].concat();
        let (offered, _) = place.run(&words);
        assert!(!offered.contains("--record"), "{offered}");
        if shell.is_empty() {
            assert_eq!(offered, "");
        }
    }
    let bash = ["__complete", "--shell", "bash", "--line", "bowline call hostile "];
    let (offered, _) = place.run(&bash);
    assert!(offered.contains(r"a\$\(touch\ pwned\)"), "{offered}");
    assert!(!offered.contains("--record") && !offered.lines().any(|line| line.starts_with('l')), "{offered}");
}
