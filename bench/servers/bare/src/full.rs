//! A sketch of what a lean but honest implementation has to do per 2026-07-28 request, to tell
//! apart the cost of the protocol from the cost of an SDK: borrowed parse with the metadata,
//! every header and `_meta` check of the revision, look-up by name, typed arguments (owned),
//! a type-erased async handler, a serde-serialized result, a tools/list rendered once.
//! Not an SDK: no sessions, notifications, tasks or extensions.
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::HashMap, future::Future, pin::Pin, sync::Arc};

pub const VERSION: &str = "2026-07-28";

#[derive(Deserialize)]
pub struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Cow<'a, str>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
    #[serde(borrow, rename = "protocolVersion")]
    protocol_version: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    client: Option<ClientInfo<'a>>,
    #[serde(borrow, rename = "progressToken")]
    _progress: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ClientInfo<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    version: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Content {
    Text { text: String },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallResult {
    result_type: &'static str,
    content: Vec<Content>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_content: Option<Box<RawValue>>,
    is_error: bool,
}

#[derive(Serialize)]
struct Response<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: R,
}

pub struct Failure {
    pub status: u16,
    pub code: i32,
    pub message: String,
}

fn fail(status: u16, code: i32, message: impl Into<String>) -> Failure {
    Failure { status, code, message: message.into() }
}

pub struct Context {
    pub client: Option<(String, String)>,
}

type Fut = Pin<Box<dyn Future<Output = Result<CallResult, Failure>> + Send>>;
type Handler = Box<dyn Fn(Option<&RawValue>, Context) -> Result<Fut, Failure> + Send + Sync>;

pub struct Server {
    tools: HashMap<String, Handler>,
    list: String,
}

fn typed<A, F, R>(f: F) -> Handler
where
    A: for<'de> Deserialize<'de> + Send + 'static,
    F: Fn(A, Context) -> R + Send + Sync + 'static,
    R: Future<Output = CallResult> + Send + 'static,
{
    let f = Arc::new(f);
    Box::new(move |raw, cx| {
        let args: A = serde_json::from_str(raw.map_or("{}", RawValue::get))
            .map_err(|e| fail(200, -32602, e.to_string()))?;
        let f = f.clone();
        Ok(Box::pin(async move { Ok(f(args, cx).await) }))
    })
}

pub fn text(t: String) -> CallResult {
    CallResult {
        result_type: "complete",
        content: vec![Content::Text { text: t }],
        structured_content: None,
        is_error: false,
    }
}

#[derive(Deserialize)]
struct EchoArgs {
    message: String,
}
#[derive(Deserialize)]
struct AddArgs {
    a: f64,
    b: f64,
}
#[derive(Serialize)]
struct Sum {
    sum: f64,
}

/// The headers the revision mirrors from the body; `None` on stdio.
pub struct Mirror<'a> {
    pub version: Option<&'a str>,
    pub method: Option<&'a str>,
    pub name: Option<&'a str>,
}

pub enum Step<'a> {
    /// A notification: nothing to answer.
    Accepted,
    /// Rendered already.
    Done(Vec<u8>),
    Call(&'a RawValue, Fut),
    Failed(Option<&'a RawValue>, Failure),
}

impl Server {
    pub fn bench() -> Self {
        let mut tools: HashMap<String, Handler> = HashMap::new();
        tools.insert("echo".into(), typed(|a: EchoArgs, _| async move { text(a.message) }));
        tools.insert(
            "add".into(),
            typed(|a: AddArgs, _| async move {
                let mut r = text((a.a + a.b).to_string());
                r.structured_content = serde_json::value::to_raw_value(&Sum { sum: a.a + a.b }).ok();
                r
            }),
        );
        let all: Vec<serde_json::Value> = serde_json::from_str(crate::TOOLS).unwrap();
        for t in &all[2..] {
            tools.insert(
                t["name"].as_str().unwrap().into(),
                typed(|_: serde_json::Value, _| async { text("ok".into()) }),
            );
        }
        Self { tools, list: crate::TOOLS.into() }
    }

    pub fn step<'a>(&self, body: &'a [u8], mirror: Option<Mirror<'_>>) -> Step<'a> {
        let e: Envelope = match serde_json::from_slice(body) {
            Ok(e) => e,
            Err(x) => return Step::Failed(None, fail(400, -32700, x.to_string())),
        };
        let Some(id) = e.id else {
            return Step::Accepted;
        };
        match self.request(e, id, mirror) {
            Ok(s) => s,
            Err(f) => Step::Failed(Some(id), f),
        }
    }

    fn request<'a>(
        &self,
        e: Envelope<'a>,
        id: &'a RawValue,
        mirror: Option<Mirror<'_>>,
    ) -> Result<Step<'a>, Failure> {
        if e.jsonrpc != "2.0" || !matches!(id.get().as_bytes()[0], b'"' | b'-' | b'0'..=b'9') {
            return Err(fail(400, -32600, "not a JSON-RPC 2.0 request"));
        }
        let p = e.params.unwrap_or_default();
        let legacy = mirror.is_none() && p.meta.is_none();
        let mut client = None;
        if !legacy {
            let meta = p.meta.as_ref().ok_or_else(|| fail(400, -32602, "_meta is missing"))?;
            let version =
                meta.version.as_deref().ok_or_else(|| fail(400, -32602, "protocolVersion is missing"))?;
            if !meta.capabilities.is_some_and(|c| c.get().starts_with('{')) {
                return Err(fail(400, -32602, "clientCapabilities is missing"));
            }
            if let Some(m) = &mirror {
                if m.version != Some(version) {
                    return Err(fail(400, -32020, "MCP-Protocol-Version does not match"));
                }
                if m.method != Some(&*e.method) {
                    return Err(fail(400, -32020, "Mcp-Method does not match"));
                }
                if matches!(&*e.method, "tools/call" | "prompts/get") && m.name != p.name.as_deref() {
                    return Err(fail(400, -32020, "Mcp-Name does not match"));
                }
            }
            if version != VERSION {
                return Err(fail(400, -32022, "unsupported protocol version"));
            }
            client =
                meta.client.as_ref().map(|c| (c.name.clone().into_owned(), c.version.clone().into_owned()));
        }
        let done = |parts: &[&str]| {
            let mut v =
                Vec::with_capacity(64 + id.get().len() + parts.iter().map(|p| p.len()).sum::<usize>());
            v.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            v.extend_from_slice(id.get().as_bytes());
            v.extend_from_slice(br#","result":"#);
            for p in parts {
                v.extend_from_slice(p.as_bytes());
            }
            v.push(b'}');
            Ok(Step::Done(v))
        };
        match &*e.method {
            "tools/call" => {
                let name = p.name.as_deref().ok_or_else(|| fail(400, -32602, "name is missing"))?;
                let tool = self.tools.get(name).ok_or_else(|| fail(200, -32602, "unknown tool"))?;
                Ok(Step::Call(id, tool(p.arguments, Context { client })?))
            }
            "tools/list" => done(&[r#"{"resultType":"complete","tools":"#, &self.list, "}"]),
            "initialize" if mirror.is_none() => {
                let _ = p.protocol_version;
                done(&[
                    r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"full","version":"0"}}"#,
                ])
            }
            "server/discover" => done(&[
                r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#,
            ]),
            _ => Err(fail(404, -32601, "method not found")),
        }
    }
}

/// `--simd`: escape text sixteen bytes at a time instead of serde_json's one.
fn simd() -> bool {
    static ON: std::sync::LazyLock<bool> =
        std::sync::LazyLock::new(|| std::env::args().any(|a| a == "--simd"));
    *ON
}

pub fn render(id: &RawValue, result: &CallResult, out: &mut Vec<u8>) {
    #[cfg(target_arch = "x86_64")]
    if simd()
        && let ([Content::Text { text }], None, false) =
            (&result.content[..], &result.structured_content, result.is_error)
    {
        // the shape nearly every tool returns; serde_json escapes byte by byte
        out.reserve(text.len() + text.len() / 32 + 128);
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        out.extend_from_slice(id.get().as_bytes());
        out.extend_from_slice(br#","result":{"resultType":"complete","content":[{"type":"text","text":"#);
        escape(text, out);
        out.extend_from_slice(br#"}],"isError":false}}"#);
        return;
    }
    serde_json::to_writer(out, &Response { jsonrpc: "2.0", id, result }).unwrap();
}

/// A JSON string literal, found sixteen bytes at a time (SSE2 is in every x86-64).
#[cfg(target_arch = "x86_64")]
fn escape(s: &str, out: &mut Vec<u8>) {
    use std::arch::x86_64::*;
    let b = s.as_bytes();
    out.push(b'"');
    let (mut i, mut done) = (0, 0);
    while i < b.len() {
        let n = if i + 16 <= b.len() {
            // SAFETY: sixteen bytes are readable at i
            let mask = unsafe {
                let v = _mm_loadu_si128(b.as_ptr().add(i).cast());
                let ctl = _mm_cmpeq_epi8(_mm_min_epu8(v, _mm_set1_epi8(0x1f)), v);
                let quote = _mm_cmpeq_epi8(v, _mm_set1_epi8(b'"' as i8));
                let back = _mm_cmpeq_epi8(v, _mm_set1_epi8(b'\\' as i8));
                _mm_movemask_epi8(_mm_or_si128(ctl, _mm_or_si128(quote, back))) as u32
            };
            if mask == 0 {
                i += 16;
                continue;
            }
            mask.trailing_zeros() as usize
        } else if b[i] < 0x20 || matches!(b[i], b'"' | b'\\') {
            0
        } else {
            i += 1;
            continue;
        };
        i += n;
        out.extend_from_slice(&b[done..i]);
        match b[i] {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            c => out.extend_from_slice(format!("\\u{c:04x}").as_bytes()),
        }
        i += 1;
        done = i;
    }
    out.extend_from_slice(&b[done..]);
    out.push(b'"');
}

#[cfg(all(test, target_arch = "x86_64"))]
#[test]
fn escape_is_serde_json() {
    let mut x = 1u64;
    for n in 0..3000usize {
        let mut s = String::new();
        for _ in 0..n % 97 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            s.push(match x % 9 {
                0 => '"',
                1 => '\\',
                2 => char::from((x >> 8) as u8 % 0x20),
                3 => 'é',
                4 => '\u{7f}',
                5 => '😀',
                _ => char::from(b'a' + (x >> 8) as u8 % 26),
            });
        }
        let mut out = Vec::new();
        escape(&s, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&s).unwrap());
    }
}

pub fn render_failure(id: Option<&RawValue>, f: &Failure) -> Vec<u8> {
    let id = id.map_or("null", RawValue::get);
    let message = serde_json::to_string(&f.message).unwrap();
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{},"message":{message}}}}}"#, f.code).into_bytes()
}
