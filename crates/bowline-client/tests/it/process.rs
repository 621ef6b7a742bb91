//! Child processes, with real programs.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use bowline_client::{Child, Client, Command, Environment, Exit, Limits, Restart, StderrMode, command};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

/// Long enough for the slowest machine, so that only a hang runs into it.
const PATIENCE: Duration = Duration::from_secs(60);

fn shell(script: &str) -> Command {
    command("sh", ["-c", script])
}

/// A shell, its child and its grandchild, each with a sleeping child, all deaf to gentle signals. Each of the
/// shells prints its process id.
fn stubborn_tree() -> Command {
    let level = r#"
        trap '' HUP INT TERM
        echo "$$"
        [ "$2" -eq 1 ] || sh -c "$1" sh "$1" "$(($2 - 1))" &
        while :; do sleep 1000; done
    "#;
    command("sh", ["-c", level, "sh", level, "3"])
}

fn impatient(command: Command) -> Command {
    command.grace(Duration::from_millis(50)).terminate_grace(Duration::from_millis(50))
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("the test does not hang")
}

/// The next lines of a program's standard output.
async fn lines(child: &mut Child, count: usize) -> Vec<String> {
    let mut reader = tokio::io::BufReader::new(child.take_stdout().unwrap()).lines();
    let mut lines = Vec::new();
    while lines.len() < count {
        lines.push(within(reader.next_line()).await.unwrap().expect("another line"));
    }
    lines
}

/// Everything a program writes to standard output.
async fn output(child: &mut Child) -> String {
    let mut text = String::new();
    within(child.take_stdout().unwrap().read_to_string(&mut text)).await.unwrap();
    text
}

async fn failure(command: Command) -> String {
    within(command.spawn().unwrap().failure()).await.to_string()
}

fn start_failure(command: &Command) -> String {
    command.spawn().unwrap_err().to_string()
}

/// Waits for a condition while the runtime goes on.
async fn until(mut condition: impl FnMut() -> bool) {
    within(async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

fn eventually(mut condition: impl FnMut() -> bool, limit: Duration, what: &str) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_program_that_floods_standard_error_still_answers() {
    // V-74
    let script =
        "yes 'something went on and is written down' | head -c 104857600 >&2; read word; echo \"got $word\"";
    let mut child = shell(script).spawn().unwrap();
    child.take_stdin().unwrap().write_all(b"it\n").await.unwrap();
    assert_eq!(output(&mut child).await, "got it\n");
    assert_eq!(within(child.shutdown()).await, Exit::Code(0));
    let tail = child.stderr_tail();
    assert!(tail.starts_with("something went on"), "kept from the start of a line");
    assert!(tail.len() <= 64 * 1024 && tail.len() > 63 * 1024);
}

#[tokio::test]
async fn a_blocking_callback_does_not_block_the_program() {
    // V-74
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&seen);
    let callback = StderrMode::callback(move |line| {
        // The sender is dropped after the answer, which ends the wait for good.
        let _ = released.lock().unwrap().recv();
        lines.lock().unwrap().push(line.to_owned());
    });
    let script = "yes line | head -c 10485760 >&2; echo last >&2; echo answer";
    let mut child = shell(script).stderr(callback).spawn().unwrap();
    assert_eq!(output(&mut child).await, "answer\n");
    drop(release);
    let skipped =
        |line: &String| line.strip_prefix('[')?.strip_suffix(" lines skipped]")?.parse::<usize>().ok();
    let is_complete = || {
        let seen = seen.lock().unwrap();
        let skipped: Vec<usize> = seen.iter().filter_map(skipped).collect();
        !skipped.is_empty()
            && seen.len() - skipped.len() + skipped.iter().sum::<usize>() == 10_485_760 / 5 + 1
    };
    until(is_complete).await;
    assert!(child.stderr_tail().ends_with("line\nlast\n"));
}

#[tokio::test]
async fn the_callback_sees_the_lines_before_shutdown_returns() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&seen);
    let callback = StderrMode::callback(move |line| lines.lock().unwrap().push(line.to_owned()));
    let mut child = shell("echo one >&2; printf two >&2").stderr(callback).spawn().unwrap();
    within(child.shutdown()).await;
    assert_eq!(*seen.lock().unwrap(), ["one", "two"]);
    assert_eq!(child.stderr().lines(), ["one", "two"]);
}

#[tokio::test]
async fn an_early_exit_is_reported_with_code_and_standard_error() {
    let message = failure(shell("echo 'no key in DEMO_KEY' >&2; exit 3")).await;
    assert_eq!(
        message,
        "program `sh` exited with code 3 before answering; its standard error ended with:\n  no key in DEMO_KEY"
    );
    let message = failure(shell("kill -KILL $$")).await;
    assert_eq!(message, "program `sh` was terminated by signal 9 (SIGKILL) before answering");
}

#[tokio::test]
async fn an_error_answers_questions() {
    let error = within(shell("echo text >&2; exit 3").spawn().unwrap().failure()).await;
    assert_eq!((error.program(), error.exit(), error.stderr()), ("sh", Some(Exit::Code(3)), "text\n"));
    assert!(!error.is_not_found() && !error.is_permission_denied());
    assert!(Command::new("bowline-no-such-program").spawn().unwrap_err().is_not_found());
    assert!(Command::new("/").spawn().unwrap_err().is_permission_denied());
}

#[tokio::test]
async fn closed_output_of_a_running_program_is_reported() {
    let mut child = shell("exec >&-; read line").grace(Duration::from_millis(50)).spawn().unwrap();
    assert_eq!(output(&mut child).await, "");
    assert_eq!(within(child.failure()).await.to_string(), "program `sh` closed its output before answering");
}

#[tokio::test]
async fn a_program_that_cannot_start_is_reported_with_the_reason() {
    let missing = Command::new("bowline-no-such-program");
    assert_eq!(start_failure(&missing), "program `bowline-no-such-program` not found in PATH");
    assert_eq!(
        start_failure(&missing.env_remove("PATH")),
        "program `bowline-no-such-program` not found in PATH"
    );
    assert_eq!(start_failure(&Command::new("./no/such")), "program `./no/such` not found");
    assert_eq!(start_failure(&Command::new("/")), "permission denied to run program `/`");
    assert_eq!(
        start_failure(&Command::new("sh").current_dir("/no/such")),
        "program `sh` not started: working directory `/no/such` not found"
    );
    let message = start_failure(&Command::new("sh").arg("a\0b"));
    assert!(message.starts_with("program `sh` could not be started: "), "{message}");
}

#[tokio::test]
async fn a_missing_interpreter_is_not_a_missing_program() {
    use std::os::unix::fs::PermissionsExt;

    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let script = directory.join("bowline-script-without-interpreter");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let by_name = Command::new(script.file_name().unwrap()).env("PATH", directory);
    let message = start_failure(&by_name);
    assert!(message.starts_with("the interpreter or loader of program "), "{message}");
    assert_eq!(start_failure(&Command::new(&script)).split(' ').next(), Some("the"));
}

#[test]
fn without_a_runtime_there_is_an_error() {
    let message = start_failure(&Command::new("cat"));
    assert!(message.starts_with("program `cat` could not be started: "), "{message}");
}

#[tokio::test]
async fn closing_standard_input_is_enough_for_a_program_that_listens() {
    let mut child = Command::new("cat").grace(PATIENCE).spawn().unwrap();
    assert_eq!(child.exit(), None);
    assert!(child.id().is_some());
    assert_eq!(within(child.shutdown()).await, Exit::Code(0));
    assert_eq!(within(child.shutdown()).await, Exit::Code(0));
    assert_eq!(within(child.wait()).await, Exit::Code(0));
    assert_eq!((child.exit(), child.id()), (Some(Exit::Code(0)), None));
}

#[tokio::test]
async fn sigterm_comes_before_sigkill() {
    let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let command = shell(script).grace(Duration::from_millis(50)).terminate_grace(PATIENCE);
    let mut child = command.spawn().unwrap();
    let mut stdout = child.take_stdout().unwrap();
    within(stdout.read_u8()).await.unwrap();
    assert_eq!(within(child.shutdown()).await, Exit::Code(7));
}

#[tokio::test]
async fn wait_returns_as_often_as_it_is_called() {
    let mut child = shell("exit 5").spawn().unwrap();
    for _ in 0..2 {
        assert_eq!(within(child.wait()).await, Exit::Code(5));
    }
    assert_eq!(within(child.shutdown()).await, Exit::Code(5));
}

#[tokio::test]
async fn waits_of_many_programs_do_not_disturb_each_other() {
    let mut children: Vec<Child> =
        (0..20).map(|code| shell(&format!("read line; exit {code}")).spawn().unwrap()).collect();
    let mut first = children.remove(0);
    let input = first.take_stdin();
    let others = async {
        for (code, child) in (1..20).zip(&mut children).rev() {
            drop(child.take_stdin());
            assert_eq!(within(child.wait()).await, Exit::Code(code));
        }
        drop(input);
    };
    let (exit, ()) = tokio::join!(within(first.wait()), others);
    assert_eq!(exit, Exit::Code(0));
}

#[tokio::test]
async fn the_working_directory_is_set() {
    let mut child = Command::new("pwd").current_dir("/").spawn().unwrap();
    assert_eq!(output(&mut child).await, "/\n");
}

/// The names of the variables a program receives.
async fn variables(command: Command) -> Vec<String> {
    let mut child = command.spawn().unwrap();
    output(&mut child).await.lines().filter_map(|line| Some(line.split_once('=')?.0.to_owned())).collect()
}

#[tokio::test]
async fn variables_of_this_process_stay_here_unless_wanted() {
    // V-71
    // Set by cargo for the run of every test; it stands for a secret.
    let canary = "CARGO_PKG_NAME".to_owned();
    let env = || Command::new("/usr/bin/env").env("DECLARED", "1");
    let minimal = variables(env()).await;
    assert!(minimal.contains(&"DECLARED".to_owned()) && minimal.contains(&"PATH".to_owned()));
    assert!(!minimal.contains(&canary));
    let inherited = variables(env().environment(Environment::Inherit)).await;
    assert!(inherited.contains(&"DECLARED".to_owned()) && inherited.contains(&canary));
    let removed = variables(env().environment(Environment::Inherit).env_remove(&canary)).await;
    assert!(removed.contains(&"PATH".to_owned()) && !removed.contains(&canary));
    assert_eq!(variables(env().environment(Environment::Empty)).await, ["DECLARED"]);
}

#[tokio::test]
async fn further_variables_are_passed_by_name_or_pattern() {
    let env = || Command::new("/usr/bin/env");
    let named = variables(env().inherit_env(["CARGO_PKG_NAME"])).await;
    assert!(named.contains(&"CARGO_PKG_NAME".to_owned()) && !named.contains(&"CARGO_PKG_VERSION".to_owned()));
    let matched = variables(env().inherit_env(["CARGO_PKG_*"])).await;
    assert!(matched.contains(&"CARGO_PKG_VERSION".to_owned()) && matched.contains(&"PATH".to_owned()));
    let removed = variables(env().inherit_env(["CARGO_PKG_*"]).env_remove("CARGO_PKG_NAME")).await;
    assert!(!removed.contains(&"CARGO_PKG_NAME".to_owned()));
}

#[tokio::test]
async fn a_failed_start_shows_the_standard_error_of_the_program() {
    // V-74
    // It answers the probe with an error of the modern era, which ends the opening.
    let refuse = r#"printf 'first\n\033[2Jno proxy\n' >&2; read -r line
        echo '{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["1900-01-01"]}}}'; cat >/dev/null"#;
    let error = Client::connect(command("/bin/sh", ["-c", refuse])).await.unwrap_err().to_string();
    assert!(error.ends_with("; its standard error ended with:\n  first\n  \\u{1b}[2Jno proxy"), "{error}");

    // It answers nothing.
    let silent = "printf 'cannot reach \\033]0;registry\\n' >&2; cat >/dev/null";
    let connecting =
        Client::builder().connect_timeout(Duration::from_secs(3)).connect(command("/bin/sh", ["-c", silent]));
    let error = within(connecting).await.unwrap_err();
    assert!(error.is_timeout(), "{error}");
    assert_eq!(
        error.to_string(),
        "starting the server timed out after 3s; its standard error ended with:\n  cannot reach \\u{1b}]0;registry"
    );
}

#[test]
fn debug_hides_the_values_of_variables() {
    // V-71
    let command = command("npx", ["-y", "demo"]).env("TOKEN", "hunter2").restart(Restart::Never);
    assert_eq!(
        format!("{command:?}"),
        r#"Command { program: "npx", args: ["-y", "demo"], environment: Minimal, env: {"TOKEN": ***}, "#
            .to_owned()
            + "current_dir: None, stderr: Keep, grace: 2s, terminate_grace: 2s, restart: Never, "
            + "limits: Limits { memory: None, cpu_time: None, files: None } }"
    );
    assert_eq!(command.restart_policy(), &Restart::Never);
}

/// What can be seen of processes only in `/proc`.
#[cfg(target_os = "linux")]
mod linux {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    /// How long a killed process may take to be gone.
    const GONE_LIMIT: Duration = Duration::from_secs(5);

    /// State, parent and group of a process.
    struct Stat {
        state: String,
        parent: u32,
        group: u32,
    }

    fn stat(id: u32) -> Option<Stat> {
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name in parentheses may hold anything.
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?.to_owned();
        Some(Stat { state, parent: fields.next()?.parse().ok()?, group: fields.next()?.parse().ok()? })
    }

    fn processes() -> impl Iterator<Item = (u32, Stat)> {
        let ids = std::fs::read_dir("/proc").unwrap();
        ids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter_map(|id| Some((id, stat(id)?)))
    }

    /// The members of a process group that are alive.
    fn members(group: u32) -> Vec<u32> {
        let alive =
            processes().filter(|(_, stat)| stat.group == group && stat.state != "Z" && stat.state != "X");
        alive.map(|(id, _)| id).collect()
    }

    fn assert_group_gone(group: u32) {
        eventually(|| members(group).is_empty(), GONE_LIMIT, "every process of the group is gone");
    }

    /// A program, and the group it is in.
    fn places(child: &Child) -> (u32, u32) {
        let program = child.id().unwrap();
        (program, stat(program).unwrap().group)
    }

    /// Starts the tree and waits until it is complete.
    async fn grown_tree() -> (Child, u32) {
        let mut child = impatient(stubborn_tree()).spawn().unwrap();
        let (program, group) = places(&child);
        assert_ne!(group, stat(std::process::id()).unwrap().group);
        let ids: Vec<u32> = lines(&mut child, 3).await.iter().map(|line| line.parse().unwrap()).collect();
        assert!(ids.contains(&program));
        eventually(|| members(group).len() >= 6, PATIENCE, "three shells sleep");
        assert!(ids.iter().all(|id| members(group).contains(id)));
        (child, group)
    }

    #[tokio::test]
    async fn shutdown_ends_a_tree_that_ignores_sigterm() {
        // V-72
        let (mut child, group) = grown_tree().await;
        let (program, _) = places(&child);
        assert_eq!(within(child.shutdown()).await, Exit::Signal(9));
        assert!(stat(program).is_none(), "the program is reaped");
        assert_group_gone(group);
        assert_eq!(within(child.shutdown()).await, Exit::Signal(9));
    }

    #[tokio::test]
    async fn shutdown_kills_the_remaining_processes_of_an_exited_program() {
        // V-72
        let mut child = shell("trap '' TERM; sleep 1000 & exit 4").spawn().unwrap();
        let (program, group) = places(&child);
        assert_eq!(within(child.wait()).await, Exit::Code(4));
        assert_eq!(stat(program).unwrap().state, "Z", "the number of the group stays taken");
        assert_eq!(members(group).len(), 1);
        assert_eq!(within(child.shutdown()).await, Exit::Code(4));
        assert!(stat(program).is_none(), "the program is reaped");
        assert_group_gone(group);
    }

    #[tokio::test]
    async fn dropping_kills_and_reaps() {
        let (child, group) = grown_tree().await;
        let (program, _) = places(&child);
        drop(child);
        assert_group_gone(group);
        until(|| stat(program).is_none()).await;
    }

    #[tokio::test]
    async fn many_dropped_programs_leave_no_zombies() {
        // V-72
        let children: Vec<Child> = (0..100).map(|_| Command::new("cat").spawn().unwrap()).collect();
        let ids: Vec<u32> = children.iter().map(|child| child.id().unwrap()).collect();
        drop(children);
        let own = std::process::id();
        until(|| ids.iter().all(|id| stat(*id).is_none_or(|stat| stat.parent != own))).await;
    }

    #[test]
    fn dropping_after_the_runtime_kills_too() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (child, group) = runtime.block_on(grown_tree());
        drop(runtime);
        drop(child);
        assert_group_gone(group);
    }

    #[tokio::test]
    async fn dropping_kills_the_remaining_processes_of_an_exited_program() {
        // V-72
        let mut child = shell("sleep 1000 & exit 0").spawn().unwrap();
        let (program, group) = places(&child);
        within(child.wait()).await;
        assert_eq!(members(group).len(), 1);
        drop(child);
        assert!(stat(program).is_none(), "the program is reaped");
        assert_group_gone(group);
    }

    #[tokio::test]
    async fn a_shutdown_that_was_dropped_can_be_repeated() {
        let (mut child, group) = grown_tree().await;
        assert!(tokio::time::timeout(Duration::ZERO, child.shutdown()).await.is_err());
        assert!(!members(group).is_empty());
        assert_eq!(within(child.shutdown()).await, Exit::Signal(9));
        assert_group_gone(group);
    }

    fn descriptors(id: u32) -> Vec<(u32, PathBuf)> {
        let entries = std::fs::read_dir(format!("/proc/{id}/fd")).unwrap();
        let number = |name: std::ffi::OsString| name.to_str().unwrap().parse().unwrap();
        let descriptor = |entry: std::fs::DirEntry| {
            Some((number(entry.file_name()), std::fs::read_link(entry.path()).ok()?))
        };
        let mut all: Vec<_> = entries.filter_map(|entry| descriptor(entry.unwrap())).collect();
        all.sort();
        all
    }

    fn watchdog() -> u32 {
        let is_watchdog = |id: u32| {
            std::fs::read(format!("/proc/{id}/cmdline"))
                .is_ok_and(|line| line.ends_with(b"\0bowline-watchdog\0"))
        };
        let parent = std::process::id();
        let found: Vec<u32> = processes()
            .filter(|(id, stat)| stat.parent == parent && is_watchdog(*id))
            .map(|(id, _)| id)
            .collect();
        let [id] = found[..] else { panic!("one watchdog for all children, found {found:?}") };
        id
    }

    /// What whoever started the tests left open for every program, which is not ours to close.
    fn inheritable() -> Vec<u32> {
        let is_inheritable = |number: &u32| {
            let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or_default();
            i32::from_str_radix(flags.trim(), 8).is_ok_and(|flags| flags & 0o2_000_000 == 0)
        };
        descriptors(std::process::id()).into_iter().map(|(number, _)| number).filter(is_inheritable).collect()
    }

    /// The pipes among the standard streams of a program, once it has nothing else open.
    fn pipes(id: u32, inheritable: &[u32]) -> Vec<PathBuf> {
        let mut held = Vec::new();
        let has_only_streams = || {
            held = descriptors(id);
            held.retain(|(number, _)| *number < 3 || !inheritable.contains(number));
            held.iter().map(|(number, _)| *number).eq(0..3)
        };
        // A program that is being loaded opens its libraries for a moment.
        eventually(has_only_streams, PATIENCE, "nothing but the standard streams is open");
        held.into_iter()
            .map(|(_, target)| target)
            .filter(|target| target.to_string_lossy().starts_with("pipe:"))
            .collect()
    }

    #[tokio::test]
    async fn no_process_inherits_pipes_of_another() {
        // V-71
        let children: Vec<Child> = (0..3).map(|_| Command::new("cat").spawn().unwrap()).collect();
        let inheritable = inheritable();
        let ids = children.iter().map(|child| child.id().unwrap()).chain([watchdog()]);
        let held: Vec<Vec<PathBuf>> = ids.map(|id| pipes(id, &inheritable)).collect();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3, 1]);
        let distinct: BTreeSet<&PathBuf> = held.iter().flatten().collect();
        assert_eq!(distinct.len(), 10);
        assert_ne!(stat(watchdog()).unwrap().group, stat(std::process::id()).unwrap().group);
    }

    #[tokio::test]
    async fn the_limits_of_a_program_are_enforced() {
        let mut limits = Limits::new();
        limits.memory = Some(64 * 1024 * 1024);
        limits.cpu_time = Some(Duration::from_secs(7));
        limits.files = Some(33);
        // It prints its limits, and so does the program that it starts.
        let look = "ulimit -d; ulimit -t; ulimit -n";
        let mut child = shell(&format!("read -r _; {look}; sh -c '{look}'")).limits(limits).spawn().unwrap();
        child.take_stdin().unwrap().write_all(b"\n").await.unwrap();
        let printed = output(&mut child).await;
        assert_eq!(printed.lines().collect::<Vec<_>>(), ["65536", "7", "33", "65536", "7", "33"]);
    }

    #[tokio::test]
    async fn inherited_standard_error_is_the_one_of_this_process() {
        let child = Command::new("cat").stderr(StderrMode::Inherit).spawn().unwrap();
        let target = |id: u32| std::fs::read_link(format!("/proc/{id}/fd/2")).unwrap();
        assert_eq!(target(child.id().unwrap()), target(std::process::id()));
        assert_eq!(child.stderr_tail(), "");
    }

    /// Chooses what [`killed_parent`] does; unset in an ordinary run.
    const PARENT: &str = "BOWLINE_TEST_KILLED_PARENT";

    /// The parent of the next test, in a process of its own: starts the tree, prints its group, waits.
    #[tokio::test]
    async fn killed_parent() {
        if std::env::var_os(PARENT).is_none() {
            return;
        }
        let (_child, group) = grown_tree().await;
        writeln!(std::io::stdout(), "\ngroup {group}").unwrap();
        let mut end = String::new();
        std::io::stdin().read_line(&mut end).unwrap();
    }

    #[test]
    fn nothing_survives_a_parent_that_is_killed() {
        // V-72
        let mut parent = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process::linux::killed_parent", "--nocapture"])
            .env(PARENT, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(parent.stdout.take().unwrap());
        let mut lines = output.lines().map(Result::unwrap);
        let group =
            lines.find_map(|line| line.strip_prefix("group ")?.parse().ok()).expect("the parent prints");
        assert!(members(group).len() >= 6);
        parent.kill().unwrap();
        parent.wait().unwrap();
        assert_group_gone(group);
    }
}
