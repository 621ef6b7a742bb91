//! Streams of bytes without end, and of frames that are none.

use super::support::{Watch, server};
use bowline::unstable::proto::sse::{Decoder, Limits};
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

const MEBIBYTE: usize = 1024 * 1024;

/// How much memory a process had at most, in bytes.
#[cfg(target_os = "linux")]
fn peak_memory(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() * 1024
}

/// In a process of its own, so that its memory is its own.
#[cfg(target_os = "linux")]
#[test]
fn v17_an_endless_line_is_not_buffered() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_fixture"))
        .arg("everything")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&output.next().unwrap().unwrap()).unwrap();
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))
        .unwrap();
    assert_eq!(next()["id"], 0);
    let before = peak_memory(server.id());
    let part = vec![b'x'; MEBIBYTE];
    for _ in 0..256 {
        input.write_all(&part).unwrap();
    }
    input.write_all(b"\n").unwrap();
    writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).unwrap();
    let refused = next();
    assert_eq!((&refused["error"]["code"], refused.get("id")), (&json!(-32600), None));
    assert_eq!(next()["id"], 1, "the next line is answered");
    let grown = peak_memory(server.id()) - before;
    // A frame of four mebibytes, and the buffer it outgrew.
    assert!(grown < 16 * MEBIBYTE, "256 MiB have cost {grown} bytes");
    drop(input);
    assert!(server.wait().unwrap().success());
}

#[tokio::test]
async fn v17_the_limit_of_a_frame_is_exact() {
    let watch = Watch::default();
    let mut peer = Peer::memory(server(&watch)).unwrap();
    peer.initialize(Revision::V2025_11_25).await.unwrap();
    let call = |length: usize| {
        let frame = |padding: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","id":"n","method":"tools/call","params":{{"name":"hit","padding":"{padding}"}}}}"#
            )
        };
        frame(&"x".repeat(length - frame("").len())) + "\n"
    };
    peer.send_raw(call(4 * MEBIBYTE)).await.unwrap();
    assert_eq!(peer.recv().await.unwrap()["id"], "n");
    peer.send_raw(call(4 * MEBIBYTE + 1)).await.unwrap();
    assert_eq!(peer.recv().await.unwrap()["error"]["code"], -32600);
    assert_eq!(watch.ran(), 1);
}

#[test]
fn v17_endless_events_are_not_buffered() {
    let limit = 64 * 1024;
    let part = vec![b'x'; 16 * 1024];
    let feed = |first: &[u8], part: &[u8], last: &[u8]| {
        let mut decoder = Decoder::new(Limits::new(limit, limit));
        let (mut events, mut too_long) = (0, 0);
        let counted = allocation_counter::measure(|| {
            let parts = std::iter::once(first).chain(std::iter::repeat_n(part, 256)).chain([last]);
            for bytes in parts {
                decoder.feed(bytes);
                for next in decoder.by_ref() {
                    *if next.is_ok() { &mut events } else { &mut too_long } += 1;
                }
            }
        });
        assert!(counted.bytes_max < 4 * limit as u64, "{} bytes", counted.bytes_max);
        (events, too_long)
    };
    // Each time the event is given up that was too long, and the next one is read.
    assert_eq!(feed(b"data: ", &part, b"\n\ndata: {}\n\n"), (1, 1));
    assert_eq!(feed(b": ", &part, b"\n\ndata: {}\n\n"), (1, 1));
    assert_eq!(feed(b"event: ", &part, b"\n\ndata: {}\n\n"), (1, 1));
    assert_eq!(feed(b"", &b"data:\n".repeat(1000), b"\ndata: {}\n\n"), (1, 1));
    assert_eq!(feed(b"", b":x\n", b"data: {}\n\n"), (1, 0));
}

/// Runs a test where there is little room for frames of the stack.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 * 1024).spawn(test).unwrap();
    thread.join().expect("loops do not need a stack");
}

#[test]
fn v18_events_to_skip_take_no_stack() {
    on_a_small_stack(|| {
        let mut decoder = Decoder::new(Limits::new(MEBIBYTE, MEBIBYTE));
        decoder.feed(&b": comment\n\nevent: unknown\n\nretry: x\n\n".repeat(50_000));
        decoder.feed(b"data: {}\n\n");
        let mut events = 0;
        while decoder.next().is_some() {
            events += 1;
        }
        assert_eq!(events, 1);
    });
}

#[test]
fn v18_lines_to_skip_take_no_stack() {
    on_a_small_stack(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            use tokio::io::AsyncReadExt;
            let watch = Watch::default();
            // Blank lines, responses to nothing and unknown notifications: there before they are read, and more than the
            // stack has bytes for, if each took but two of them.
            let noise = "\n\r\n{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n";
            let input = noise.repeat(40_000) + "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
            let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
            let handle = server(&watch).build().unwrap();
            let serving = async { handle.serve(input.as_bytes(), theirs).await.unwrap() };
            let mut told = String::new();
            let ((), read) = tokio::join!(serving, ours.read_to_string(&mut told));
            read.unwrap();
            assert_eq!(told, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
        });
    });
}
