//! Programs as servers: lost, started again, and ended in order.

use bowline_client::{Backoff, Change, Client, Command, Exit, Restart, command};
use bowline_types::{Revision, SubscriptionFilter};
use serde_json::json;
use std::{path::PathBuf, time::Duration};

/// Long enough for the slowest machine, so that only a hang runs into it.
const PATIENCE: Duration = Duration::from_secs(60);

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("the test does not hang")
}

/// A folder of its own for what a program leaves behind, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("bowline-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn quickly() -> Restart {
    Restart::AfterExit(Backoff::new().delays(Duration::from_millis(1), Duration::from_millis(1)))
}

/// A server in shell: it keeps what it reads in `log`, a line `start` before each start, and answers what it knows.
/// The tool `die` ends it.
fn server(folder: &Folder, modern: bool) -> Command {
    let script = r#"
        echo start >> log
        echo "a word on standard error" >&2
        while read -r line; do
            printf '%s\n' "$line" >> log
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            reply() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
            case "$line" in
                *'"server/discover"'*)
                    if [ "$MODERN" = 1 ]; then
                        reply '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}}}'
                    else
                        printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"
                    fi ;;
                *'"initialize"'*)
                    reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{"subscribe":true}},"serverInfo":{"name":"sh","version":"1"}}' ;;
                *'"subscriptions/listen"'*)
                    printf '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}\n' "$id" ;;
                *'"resources/subscribe"'*) reply '{}' ;;
                *'"die"'*) echo "dying of it" >&2; exit 3 ;;
                *'"tools/call"'*) reply '{"content":[{"type":"text","text":"alive"}]}' ;;
            esac
        done
        echo end >> log
    "#;
    command("sh", ["-c", script])
        .current_dir(&folder.0)
        .env("MODERN", if modern { "1" } else { "0" })
        .restart(quickly())
}

fn methods(log: &str) -> Vec<String> {
    let method = |line: &str| -> Option<String> {
        let frame: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(frame["method"].as_str()?.to_owned())
    };
    log.lines().map(|line| method(line).unwrap_or_else(|| line.to_owned())).collect()
}

#[tokio::test]
async fn a_lost_legacy_program_is_started_and_opened_again() {
    // proves: STDIO-18, STDIO-07, STDIO-08, STDIO-09, VER-15
    let folder = Folder::new("legacy");
    let client = within(Client::connect(server(&folder, false))).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_06_18);
    within(client.subscribe("a:b")).await.unwrap();
    let error = within(client.call("die", ())).await.unwrap_err();
    assert!(error.is_closed());
    assert_eq!(error.process().unwrap().exit(), Some(Exit::Code(3)));
    let text = error.to_string();
    assert!(text.contains("exited with code 3") && text.contains("dying of it"), "{text}");
    // What is asked meanwhile waits.
    assert_eq!(within(client.call("x", ())).await.unwrap().text(), "alive");
    within(client.close()).await;
    let log = methods(&folder.read("log"));
    let first = [
        "start",
        "server/discover",
        "initialize",
        "notifications/initialized",
        "resources/subscribe",
        "tools/call",
    ];
    assert_eq!(log[..6], first);
    // The era is known by now, and the subscription is asked for again.
    assert_eq!(log[6..9], ["start", "initialize", "notifications/initialized"]);
    let mut rest = log[9..].to_vec();
    rest.sort();
    assert_eq!(rest, ["end", "resources/subscribe", "tools/call"]);
}

#[tokio::test]
async fn a_restarted_modern_program_is_subscribed_to_again() {
    // proves: SUB-19, STDIO-18
    let folder = Folder::new("modern");
    let client = within(Client::connect(server(&folder, true))).await.unwrap();
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let mut listen = within(client.listen(filter)).await.unwrap();
    within(client.call("die", ())).await.unwrap_err();
    // Anything may have changed meanwhile.
    assert_eq!(within(listen.next()).await, Some(Change::Tools));
    assert_eq!(within(client.call("x", ())).await.unwrap().text(), "alive");
    let log = methods(&folder.read("log"));
    assert_eq!(log.iter().filter(|line| *line == "subscriptions/listen").count(), 2, "{log:?}");
    assert!(!log.contains(&"initialize".to_owned()));
    drop(listen);
    within(client.close()).await;
}

#[tokio::test]
async fn a_program_that_keeps_crashing_is_not_restarted() {
    let folder = Folder::new("crash");
    let policy = Backoff::new()
        .delays(Duration::from_millis(1), Duration::from_millis(1))
        .give_up_after(3, Duration::from_secs(3600));
    let command = server(&folder, false).restart(Restart::AfterExit(policy));
    let client = within(Client::connect(command)).await.unwrap();
    let listen_end = within(client.listen(SubscriptionFilter::default())).await;
    for _ in 0..3 {
        within(client.call("die", ())).await.unwrap_err();
    }
    let reason = within(client.closed()).await;
    assert!(reason.to_string().contains("exited with code 3"), "{reason}");
    assert!(within(client.call("x", ())).await.unwrap_err().is_closed());
    assert!(within(listen_end.unwrap().next()).await.is_none());
    assert_eq!(folder.read("log").matches("start\n").count(), 3);
}

#[tokio::test]
async fn a_program_that_must_not_be_started_again_is_not() {
    let folder = Folder::new("never");
    let client = within(Client::connect(server(&folder, false).restart(Restart::Never))).await.unwrap();
    within(client.call("die", ())).await.unwrap_err();
    assert!(within(client.closed()).await.process().is_some());
    assert_eq!(folder.read("log").matches("start\n").count(), 1);
}

#[tokio::test]
async fn an_unusable_program_is_reported_at_connect() {
    let error = within(Client::connect(command("no-such-program-anywhere", [""; 0]))).await.unwrap_err();
    assert_eq!(error.to_string(), "program `no-such-program-anywhere` not found in PATH");
    let error = within(Client::connect(command("sh", ["-c", "echo broken >&2; exit 4"]))).await.unwrap_err();
    assert_eq!(error.process().unwrap().exit(), Some(Exit::Code(4)));
    assert!(error.to_string().contains("broken"), "{error}");
}

#[tokio::test]
async fn a_program_that_exits_on_the_probe_gets_the_handshake() {
    let folder = Folder::new("picky");
    let script = r#"
        read -r line
        printf '%s\n' "$line" >> log
        case "$line" in *'"initialize"'*) ;; *) echo "expected initialize" >&2; exit 1 ;; esac
        printf '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"sh","version":"1"}}}\n'
        cat >> log
    "#;
    let client = within(Client::connect(command("sh", ["-c", script]).current_dir(&folder.0))).await.unwrap();
    assert_eq!(client.revision(), Revision::V2025_03_26);
    within(client.close()).await;
    assert_eq!(methods(&folder.read("log")), ["server/discover", "initialize", "notifications/initialized"]);
}

#[tokio::test]
async fn closing_lets_a_program_end_by_itself() {
    // proves: LIFE-18, STDIO-16
    let folder = Folder::new("close");
    let client = within(Client::connect(server(&folder, true))).await.unwrap();
    within(client.close()).await;
    assert!(folder.read("log").ends_with("end\n"));
    // One that does not want to is made to.
    let deaf = r#"trap '' TERM; echo $$ > pid; while :; do read -r line && printf '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}\n' || sleep 0.1; done"#;
    let short = Duration::from_millis(20);
    let command = command("sh", ["-c", deaf]).current_dir(&folder.0).grace(short).terminate_grace(short);
    let client = within(Client::connect(command)).await.unwrap();
    within(client.close()).await;
    let pid = folder.read("pid");
    assert!(!std::path::Path::new(&format!("/proc/{}", pid.trim())).exists());
}

#[tokio::test]
async fn dropping_the_client_ends_its_program() {
    let folder = Folder::new("drop");
    let client = within(Client::connect(server(&folder, true))).await.unwrap();
    let call = client.call("x", json!({}));
    within(call).await.unwrap();
    drop(client);
    within(async {
        while !folder.read("log").ends_with("end\n") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
