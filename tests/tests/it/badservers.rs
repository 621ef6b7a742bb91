//! Servers that no client should meet, as processes of their own: what the client makes of them.

#![cfg(unix)]

use bowline_client::{Client, ClientBuilder, Command, Error, Exit, command};
use bowline_types::Revision;
use serde_json::json;
use std::time::Duration;

/// A script; `"$0"` in it is the program of the fixtures.
fn script(text: &str) -> Command {
    command("sh", ["-c", text, env!("CARGO_BIN_EXE_fixture")])
}

/// A client that speaks one revision with a handshake, so that a script knows what comes.
fn client() -> ClientBuilder {
    Client::builder().revisions([Revision::V2025_11_25])
}

/// Answers the handshake, reads on until the first call is there, and then does what `rest` says.
fn greets_then(rest: &str) -> Command {
    let greeting = json!({
        "jsonrpc": "2.0", "id": 1,
        "result": {
            "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
            "serverInfo": { "name": "script", "version": "1" },
        },
    });
    script(&format!("read initialize; echo '{greeting}'; read initialized; read call; {rest}"))
}

async fn connects(target: Command) -> Client {
    // What is printed or logged first takes its time on a busy machine.
    let client = Client::builder().probe_timeout(Duration::from_secs(120));
    client.connect(target).await.unwrap_or_else(|error| panic!("{error}"))
}

async fn check_call(client: &Client) {
    let called =
        client.call("echo", json!({ "message": "hi" })).await.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(called.text(), "hi");
}

/// The error of a call that the server does not survive.
async fn lost(target: Command) -> Error {
    let client = client().connect(target).await.unwrap_or_else(|error| panic!("{error}"));
    let Err(error) = client.call("anything", ()).await else { panic!("nobody can have answered") };
    client.close().await;
    assert!(error.is_closed() && !error.is_timeout() && !error.is_rpc(), "{error}");
    error
}

#[tokio::test]
async fn noise_on_standard_output_is_skipped() {
    // V-73
    let noisy = r#"
        echo "Server v1.2 ready!"; echo; echo "[1, 2"; echo '{"level":"info","message":"listening"}'; printf '\377\n'
        exec "$0" everything"#;
    let client = connects(script(noisy)).await;
    assert_eq!(client.revision(), Revision::LATEST);
    check_call(&client).await;
    let noise = client.noise();
    assert_eq!(noise.count, 4, "{noise:?}");
    assert_eq!(noise.last.front().map(String::as_str), Some("Server v1.2 ready!"));
    client.close().await;
}

#[tokio::test]
async fn a_program_that_ends_at_once_is_explained() {
    // proves: LIFE-19
    let ends = r#"echo "loading" >&2; echo "no such table: users" >&2; exit 3"#;
    for builder in [client(), Client::builder()] {
        let Err(error) = builder.connect(script(ends)).await else { panic!("there is nobody to connect to") };
        assert!(error.is_closed(), "{error}");
        assert_eq!(error.process().and_then(bowline_client::ProcessError::exit), Some(Exit::Code(3)));
        assert_eq!(
            error.to_string(),
            "program `sh` exited with code 3 before answering; its standard error ended with:\n  \
             loading\n  no such table: users"
        );
    }
}

#[tokio::test]
async fn a_hundred_mebibytes_of_standard_error_block_nothing() {
    // V-74
    // proves: STDIO-06, STDIO-07, STDIO-08
    let chatty = r#"head -c 104857600 /dev/zero | tr '\0' 'x' >&2; echo >&2; exec "$0" everything"#;
    let client = connects(script(chatty)).await;
    check_call(&client).await;
    client.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_program_that_never_responds_times_out() {
    // proves: LIFE-21, LIFE-26
    let Err(error) = Client::connect(script("exec sleep 1000")).await else {
        panic!("it cannot have answered")
    };
    assert_eq!(error.to_string(), "the server did not answer `initialize`");
    assert!(!error.is_rpc(), "{error}");
}

#[tokio::test]
async fn a_call_without_a_response_times_out() {
    // proves: LIFE-21, BASE-43
    let mute = greets_then("exec sleep 1000");
    let client = client().connect(mute).await.unwrap_or_else(|error| panic!("{error}"));
    // The script has answered for good; from here on, time passes as soon as everybody waits.
    tokio::time::pause();
    let call = client.call("anything", ()).timeout(Duration::from_secs(5));
    let Err(error) = call.await else { panic!("it cannot have answered") };
    assert!(error.is_timeout() && error.as_rpc().is_none(), "{error}");
    assert_eq!(error.to_string(), "tools/call timed out after 5s");
    client.close().await;
}

#[tokio::test]
async fn a_program_that_exits_during_a_call_fails_it_immediately() {
    let error = lost(greets_then(r#"echo "out of cheese" >&2; exit 7"#)).await;
    assert_eq!(error.process().and_then(bowline_client::ProcessError::exit), Some(Exit::Code(7)));
    assert!(error.to_string().ends_with("\n  out of cheese"), "{error}");
    let error = lost(greets_then("kill -KILL $$")).await;
    assert_eq!(error.process().and_then(bowline_client::ProcessError::exit), Some(Exit::Signal(9)));
}

#[tokio::test]
async fn a_partial_line_is_not_an_answer() {
    // V-73
    let error = lost(greets_then(r#"printf '{"jsonrpc":"2.0","id":2,"resu'; exit 0"#)).await;
    assert_eq!(error.process().and_then(bowline_client::ProcessError::exit), Some(Exit::Code(0)));
}

#[tokio::test]
async fn a_line_of_twenty_mebibytes_is_skipped() {
    let long = r#"head -c 20971520 /dev/zero | tr '\0' 'x'; echo; exec "$0" everything"#;
    let client = connects(script(long)).await;
    check_call(&client).await;
    assert_eq!(client.noise().count, 1);
    client.close().await;
}

#[tokio::test]
async fn a_missing_program_is_named() {
    let Err(error) = Client::connect(command("no-such-program-anywhere", [""; 0])).await else {
        panic!("there is no such program")
    };
    assert_eq!(error.to_string(), "program `no-such-program-anywhere` not found in PATH");
}
