//! What is sent (request bodies and headers per revision) and what counts as a correct answer.
use serde_json::Value;

/// Ids always have eight digits, so a request can be reused by patching the id in place.
pub const FIRST_ID: u64 = 10_000_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proto {
    /// 2025-11-25: `initialize` handshake, `Mcp-Session-Id` where the server issues one.
    V2025,
    /// 2026-07-28: no handshake; `_meta` in every request, `Mcp-Method`/`Mcp-Name` headers.
    V2026,
}

impl Proto {
    pub fn parse(s: &str) -> Result<Self, String> {
        match s {
            "2025-11-25" => Ok(Self::V2025),
            "2026-07-28" => Ok(Self::V2026),
            _ => Err(format!("unknown revision {s:?}")),
        }
    }
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2025 => "2025-11-25",
            Self::V2026 => "2026-07-28",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Echo,
    Add,
    List,
    Ping,
}

impl Op {
    pub fn parse(s: &str) -> Result<Self, String> {
        match s {
            "echo" => Ok(Self::Echo),
            "add" => Ok(Self::Add),
            "list" => Ok(Self::List),
            "ping" => Ok(Self::Ping),
            _ => Err(format!("unknown op {s:?}")),
        }
    }
    pub fn method(self) -> &'static str {
        match self {
            Self::Echo | Self::Add => "tools/call",
            Self::List => "tools/list",
            Self::Ping => "ping",
        }
    }
    pub fn tool(self) -> Option<&'static str> {
        match self {
            Self::Echo => Some("echo"),
            Self::Add => Some("add"),
            Self::List | Self::Ping => None,
        }
    }
}

pub const META_2026: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":10000000,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"0"}}}"#;
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub fn discover() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":10000000,"method":"server/discover","params":{{"_meta":{META_2026}}}}}"#
    )
}

pub fn listen() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":10000000,"method":"subscriptions/listen","params":{{"_meta":{META_2026},"notifications":{{"toolsListChanged":true}}}}}}"#
    )
}

/// Readable text of exactly `n` bytes; a newline about every 80 bytes (so payloads above
/// 80 bytes hold JSON escapes, as real text does).
pub fn payload(n: usize) -> String {
    const WORDS: &str = "the quick brown fox jumps over the lazy dog and then reads a long protocol note; ";
    let mut s = String::with_capacity(n);
    let mut col = 0;
    for c in WORDS.chars().cycle() {
        if s.len() == n {
            break;
        }
        col += 1;
        if col == 80 {
            s.push('\n');
            col = 0;
        } else {
            s.push(c);
        }
    }
    s
}

pub struct Workload {
    pub op: Op,
    /// What a gateway puts before the names of tools.
    pub prefix: String,
    pub proto: Proto,
    pub text: String,
    pub tools_expected: usize,
}

/// A request whose eight id digits sit at `id_at`.
#[derive(Clone)]
pub struct Request {
    pub bytes: Vec<u8>,
    pub id_at: usize,
}

impl Request {
    pub fn set_id(&mut self, mut id: u64) {
        for i in (0..8).rev() {
            self.bytes[self.id_at + i] = b'0' + (id % 10) as u8;
            id /= 10;
        }
    }
}

impl Workload {
    pub fn body(&self) -> Request {
        let meta = |sep: &str| match self.proto {
            Proto::V2025 => String::new(),
            Proto::V2026 => format!(r#"{sep}"_meta":{META_2026}"#),
        };
        let prefix = &self.prefix;
        let params = match self.op {
            Op::Echo => format!(
                r#"{{"name":"{prefix}echo","arguments":{{"message":{}}}{}}}"#,
                serde_json::to_string(&self.text).unwrap(),
                meta(",")
            ),
            Op::Add => format!(r#"{{"name":"{prefix}add","arguments":{{"a":20,"b":22}}{}}}"#, meta(",")),
            Op::List | Op::Ping => format!("{{{}}}", meta("")),
        };
        let head = r#"{"jsonrpc":"2.0","id":"#;
        let bytes =
            format!(r#"{head}{FIRST_ID},"method":"{}","params":{params}}}"#, self.op.method()).into_bytes();
        Request { bytes, id_at: head.len() }
    }

    /// Headers of the revision, without `Content-Length` and `Host`.
    pub fn headers(&self, session: Option<&str>) -> String {
        let tool = self.op.tool().map(|tool| format!("{}{tool}", self.prefix));
        headers(self.proto, self.op.method(), tool.as_deref(), session)
    }
}

pub fn headers(proto: Proto, method: &str, name: Option<&str>, session: Option<&str>) -> String {
    let mut h =
        String::from("Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n");
    h += &format!("MCP-Protocol-Version: {}\r\n", proto.as_str());
    if proto == Proto::V2026 {
        h += &format!("Mcp-Method: {method}\r\n");
        if let Some(n) = name {
            h += &format!("Mcp-Name: {n}\r\n");
        }
    }
    if let Some(s) = session {
        h += &format!("Mcp-Session-Id: {s}\r\n");
    }
    h
}

/// Checks every reply. The first reply is parsed and checked in full; from it a template
/// (bytes before and after the id) is learnt, and later replies must equal it byte for byte
/// with their own id in the hole, or else pass the full check again. So nothing goes
/// unchecked, and the check stays cheap beside the server under test.
pub struct Verifier<'w> {
    work: &'w Workload,
    template: Option<(Vec<u8>, Vec<u8>)>,
    pub full_checks: u64,
}

impl<'w> Verifier<'w> {
    pub fn new(work: &'w Workload) -> Self {
        Self { work, template: None, full_checks: 0 }
    }

    pub fn check(&mut self, msg: &[u8], id: u64) -> Result<(), String> {
        let mut digits = [0u8; 8];
        put_id(&mut digits, id);
        if let Some((pre, post)) = &self.template
            && msg.len() == pre.len() + 8 + post.len()
            && msg[..pre.len()] == pre[..]
            && msg[pre.len()..pre.len() + 8] == digits
            && msg[pre.len() + 8..] == post[..]
        {
            return Ok(());
        }
        self.full_checks += 1;
        let v: Value =
            serde_json::from_slice(msg).map_err(|e| format!("reply is not JSON ({e}): {}", clip(msg)))?;
        check_reply(&v, id, self.work).map_err(|e| format!("{e}: {}", clip(msg)))?;
        let at = find_id(msg, &digits);
        self.template = at.map(|at| (msg[..at].to_vec(), msg[at + 8..].to_vec()));
        Ok(())
    }

    /// Id of a reply whose order is not known (stdio with a window above one).
    pub fn id_of(&self, msg: &[u8]) -> Option<u64> {
        if let Some((pre, post)) = &self.template
            && msg.len() == pre.len() + 8 + post.len()
            && let Ok(s) = std::str::from_utf8(&msg[pre.len()..pre.len() + 8])
            && let Ok(id) = s.parse()
        {
            return Some(id);
        }
        #[derive(serde::Deserialize)]
        struct OnlyId {
            id: Option<u64>,
        }
        serde_json::from_slice::<OnlyId>(msg).ok()?.id
    }
}

fn put_id(out: &mut [u8; 8], mut id: u64) {
    for b in out.iter_mut().rev() {
        *b = b'0' + (id % 10) as u8;
        id /= 10;
    }
}

fn find_id(msg: &[u8], digits: &[u8; 8]) -> Option<usize> {
    for key in [&b"\"id\":"[..], &b"\"id\": "[..]] {
        let mut needle = key.to_vec();
        needle.extend_from_slice(digits);
        if let Some(p) = memchr::memmem::find(msg, &needle) {
            return Some(p + key.len());
        }
    }
    None
}

pub fn clip(b: &[u8]) -> String {
    String::from_utf8_lossy(&b[..b.len().min(400)]).into_owned()
}

pub fn check_reply(v: &Value, id: u64, work: &Workload) -> Result<(), String> {
    if v["jsonrpc"] != "2.0" {
        return Err("jsonrpc is not 2.0".into());
    }
    if v["id"].as_u64() != Some(id) {
        return Err(format!("id is not {id}"));
    }
    if v.get("error").is_some() {
        return Err("error reply".into());
    }
    let r = v.get("result").ok_or("no result")?;
    if r["isError"] == true {
        return Err("tool error".into());
    }
    match work.op {
        Op::Echo => {
            let c = r["content"].as_array().ok_or("no content")?;
            if c.len() != 1 || c[0]["type"] != "text" || c[0]["text"] != work.text.as_str() {
                return Err("echo text differs".into());
            }
        }
        Op::Add => {
            if r["structuredContent"]["sum"].as_f64() != Some(42.0) {
                return Err("sum differs".into());
            }
        }
        Op::List => {
            let t = r["tools"].as_array().ok_or("no tools")?;
            if t.len() != work.tools_expected {
                return Err(format!("{} tools, not {}", t.len(), work.tools_expected));
            }
            for t in t {
                if t["inputSchema"]["type"] != "object" || !t["name"].is_string() {
                    return Err("a tool without name or object schema".into());
                }
            }
        }
        Op::Ping => {}
    }
    Ok(())
}

pub fn check_initialize(v: &Value) -> Result<(), String> {
    match v["result"]["protocolVersion"].as_str() {
        Some("2025-11-25") => Ok(()),
        other => Err(format!("initialize negotiated {other:?}: {v}")),
    }
}

pub fn check_discover(v: &Value) -> Result<(), String> {
    let ok = v["result"]["supportedVersions"].as_array().is_some_and(|a| a.iter().any(|x| x == "2026-07-28"));
    if ok { Ok(()) } else { Err(format!("server/discover does not offer 2026-07-28: {v}")) }
}
