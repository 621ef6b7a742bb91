//! How many heap allocations a call costs the server, from bytes to bytes.

use bowline_server::{Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream},
    runtime::Runtime,
};

#[derive(Deserialize, JsonSchema)]
struct Echo {
    message: String,
}

async fn echo(Echo { message }: Echo) -> String {
    message
}

fn server(tools: usize) -> Server {
    let others = (1..tools).map(|number| Tool::new(format!("tool-{number}")).handler(echo));
    others.fold(Server::new("echo").tool(Tool::new("echo").handler(echo)), Server::tool)
}

/// Sends a frame and waits for the reply, without allocating.
async fn exchange(stream: &mut DuplexStream, frame: &[u8], buffer: &mut [u8]) -> usize {
    stream.write_all(frame).await.unwrap();
    let mut length = 0;
    while length == 0 || buffer[length - 1] != b'\n' {
        length += stream.read(&mut buffer[length..]).await.unwrap();
    }
    length
}

fn allocations_per_call(tools: usize, meta: &str) -> u64 {
    const CALLS: u64 = 200;
    let runtime: Runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
    let server = server(tools).build().unwrap();
    runtime.spawn(async move {
        let (read, write) = tokio::io::split(theirs);
        server.serve(read, write).await.unwrap();
    });
    let text = "x".repeat(100);
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{{meta}"name":"echo","arguments":{{"message":"{text}"}}}}}}"#
    ) + "\n";
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let mut buffer = vec![0; 64 * 1024];
    runtime.block_on(async {
        exchange(&mut ours, format!("{initialize}\n").as_bytes(), &mut buffer).await;
        for _ in 0..20 {
            let length = exchange(&mut ours, call.as_bytes(), &mut buffer).await;
            let reply = String::from_utf8_lossy(&buffer[..length]).into_owned();
            assert!(reply.contains(&text) && !reply.contains("isError"), "{reply}");
        }
    });
    let counted = allocation_counter::measure(|| {
        runtime.block_on(async {
            for _ in 0..CALLS {
                exchange(&mut ours, call.as_bytes(), &mut buffer).await;
            }
        });
    });
    counted.count_total.div_ceil(CALLS)
}

const LEGACY: &str = "";
const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}},"#;

#[test]
fn a_call_needs_at_most_twelve_allocations_for_any_number_of_tools() {
    for meta in [LEGACY, MODERN] {
        let few = allocations_per_call(1, meta);
        let many = allocations_per_call(1000, meta);
        assert_eq!(few, many, "the number of tools must not matter");
        assert!(few <= 12, "{few} allocations per call");
    }
}
