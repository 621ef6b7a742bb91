//! Hosts of servers that are real processes, and clients in front of them.

use bowline_client::{Backoff, Command, Restart, command};
use bowline_host::{Health, Host, Upstream};
use bowline_policy::{Guard, Policy, Rule};
use bowline_server::{Server, ServerHandle};
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Long enough for the slowest machine, so that only a hang runs into it.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// How long a server has for each step of an orderly end.
const GRACE: Duration = Duration::from_millis(200);
/// How long a lost server stays lost.
const MOMENT: Duration = Duration::from_millis(1);

/// A server with a folder of its own.
pub(super) struct Program {
    folder: PathBuf,
    label: String,
    era: &'static str,
}

impl Program {
    /// A legacy server. The label goes into everything it is and says.
    pub(super) fn new(test: &str, label: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("bowline-{}-{test}-{label}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("there is room for a folder");
        Self { folder, label: label.to_owned(), era: "legacy" }
    }

    pub(super) fn modern(mut self) -> Self {
        self.era = "modern";
        self
    }

    /// Leaves a word for it: `broken`, `held`, `hung` or `go`.
    pub(super) fn tell(&self, word: &str) {
        fs::write(self.folder.join(word), "").expect("the folder can be written to");
    }

    /// Takes a word back.
    pub(super) fn untell(&self, word: &str) {
        fs::remove_file(self.folder.join(word)).expect("it was told");
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap_or_default()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.folder.join(name).exists()
    }

    pub(super) fn command(&self) -> Command {
        command("sh", ["-c", include_str!("server.sh")])
            .env("LABEL", &self.label)
            .env("ERA", self.era)
            .current_dir(&self.folder)
            .grace(GRACE)
            .terminate_grace(GRACE)
            .restart(Restart::AfterExit(Backoff::new().delays(MOMENT, MOMENT)))
    }

    pub(super) fn upstream(&self) -> Upstream {
        self.command().into()
    }

    /// The process id of each start.
    pub(super) fn starts(&self) -> Vec<u32> {
        self.read("starts").lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// How many of its processes are there.
    pub(super) fn alive(&self) -> usize {
        self.starts().into_iter().filter(|id| Path::new(&format!("/proc/{id}")).exists()).count()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A host that allows everything, opened.
pub(super) fn host<const N: usize>(upstreams: [(&str, Upstream); N]) -> (Host, ServerHandle) {
    guarded(Guard::builder().policy(Policy::new([Rule::allow()])).build(), upstreams)
}

/// A host with a guard, opened.
pub(super) fn guarded<const N: usize>(
    guard: Guard,
    upstreams: [(&str, Upstream); N],
) -> (Host, ServerHandle) {
    let builder = Host::builder().guard(guard);
    let host =
        upstreams.into_iter().fold(builder, |builder, (name, upstream)| builder.add(name, upstream)).build();
    let handle = host.open(Server::new("gateway")).expect("the gateway can be built");
    (host, handle)
}

/// A client with a session.
pub(super) async fn caller(handle: &ServerHandle) -> Peer {
    let mut peer = Peer::memory(handle).expect("the host is served").deadline(PATIENCE);
    peer.initialize(Revision::V2025_11_25).await.expect("the host takes the handshake");
    peer
}

/// The result of a request, or the message of its error.
pub(super) async fn ask(peer: &mut Peer, method: &str, params: Value) -> Result<Value, String> {
    let mut answer = peer.request(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"));
    match answer.get("error") {
        Some(error) => Err(error["message"].as_str().unwrap_or_default().to_owned()),
        None => Ok(answer["result"].take()),
    }
}

/// What a tool says.
pub(super) async fn call(peer: &mut Peer, tool: &str) -> Result<String, String> {
    let result = ask(peer, "tools/call", json!({ "name": tool, "arguments": {} })).await?;
    Ok(result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}

/// The names of the tools.
pub(super) async fn tools(peer: &mut Peer) -> Vec<String> {
    let result = ask(peer, "tools/list", json!({})).await.expect("tools are listed");
    let tools = result["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect()
}

/// How a server is doing.
pub(super) fn health(host: &Host, name: &str) -> Option<Health> {
    host.status().into_iter().find(|status| status.name == name).map(|status| status.health)
}

/// Waits for a condition while the runtime goes on.
pub(super) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}
