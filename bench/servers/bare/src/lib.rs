//! The least work that still gives a correct answer: one borrowed parse of the envelope and a
//! reply of the same size as a real server's. No validation, no sessions, no dispatch.
pub mod full;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: &'a str,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    a: Option<f64>,
    b: Option<f64>,
}

pub const TOOLS: &str = include_str!("../../tools.json");

#[derive(PartialEq)]
pub enum Reply {
    None,
    Message,
    /// `subscriptions/listen`: the acknowledgement, then the stream stays open.
    Stream,
}

/// Appends the reply to `out`.
pub fn answer(body: &[u8], out: &mut Vec<u8>) -> Reply {
    let e: Envelope = serde_json::from_slice(body).expect("envelope");
    let Some(id) = e.id.map(RawValue::get) else {
        return Reply::None;
    };
    let mut put = |parts: &[&str]| {
        out.reserve(parts.iter().map(|p| p.len()).sum());
        for p in parts {
            out.extend_from_slice(p.as_bytes());
        }
    };
    match e.method {
        "tools/call" => {
            let args = e.params.and_then(|p| p.arguments);
            if let Some(Arguments { a: Some(a), b: Some(b), .. }) = args {
                put(&[
                    r#"{"jsonrpc":"2.0","id":"#,
                    id,
                    r#","result":{"resultType":"complete","content":[],"structuredContent":{"sum":"#,
                    &(a + b).to_string(),
                    "}}}",
                ]);
                return Reply::Message;
            }
            let text = args.and_then(|a| a.message).map_or("\"\"", RawValue::get);
            put(&[
                r#"{"jsonrpc":"2.0","id":"#,
                id,
                r#","result":{"resultType":"complete","content":[{"type":"text","text":"#,
                text,
                r#"}],"isError":false}}"#,
            ]);
        }
        "tools/list" => put(&[
            r#"{"jsonrpc":"2.0","id":"#,
            id,
            r#","result":{"resultType":"complete","tools":"#,
            TOOLS,
            "}}",
        ]),
        "initialize" => put(&[
            r#"{"jsonrpc":"2.0","id":"#,
            id,
            r#","result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bare","version":"0"}}}"#,
        ]),
        "server/discover" => put(&[
            r#"{"jsonrpc":"2.0","id":"#,
            id,
            r#","result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bare","version":"0"}}}}"#,
        ]),
        "subscriptions/listen" => {
            put(&[
                "data: ",
                r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"#,
                id,
                r#"},"notifications":{"toolsListChanged":true}}}"#,
                "\n\n",
            ]);
            return Reply::Stream;
        }
        _ => put(&[r#"{"jsonrpc":"2.0","id":"#, id, r#","result":{}}"#]),
    }
    Reply::Message
}

pub fn port() -> u16 {
    let mut a = std::env::args().skip(1);
    while let Some(x) = a.next() {
        if x == "--port" {
            return a.next().and_then(|p| p.parse().ok()).expect("--port N");
        }
    }
    panic!("--port N");
}
