//! A lean HTTP/1.1 keep-alive client on tokio. It is leaner than a general client on purpose:
//! the generator has to cost less per request than the fastest server it measures.
use crate::proto::{self, Proto, Request, Workload};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};

pub struct Url {
    pub addr: SocketAddr,
    pub host: String,
    pub path: String,
    /// `Authorization`, from the user name.
    authorization: String,
}

impl Url {
    pub fn parse(s: &str) -> Result<Self, String> {
        let s = s.strip_prefix("http://").ok_or("only http:// URLs")?;
        let (host, path) = match s.find('/') {
            Some(i) => (&s[..i], &s[i..]),
            None => (s, "/"),
        };
        let (token, host) = host.split_once('@').unwrap_or(("", host));
        let authorization =
            if token.is_empty() { String::new() } else { format!("Authorization: Bearer {token}\r\n") };
        Ok(Self {
            authorization,
            addr: host.parse().map_err(|e| format!("bad address {host}: {e}"))?,
            host: host.into(),
            path: path.into(),
        })
    }
}

#[derive(Default, Debug)]
pub struct Head {
    pub status: u16,
    pub sse: bool,
    pub session: Option<String>,
    close: bool,
    len: Option<usize>,
    chunked: bool,
}

pub struct Conn {
    stream: TcpStream,
    addr: SocketAddr,
    buf: Vec<u8>,
    pos: usize,
    /// When the last byte of body data came (a chunked body may end later).
    pub data_at: Instant,
    pub reconnects: u64,
}

pub type Res<T> = Result<T, String>;

impl Conn {
    pub async fn open(addr: SocketAddr) -> Res<Self> {
        let stream = connect(addr).await?;
        Ok(Self {
            stream,
            addr,
            buf: Vec::with_capacity(64 << 10),
            pos: 0,
            data_at: Instant::now(),
            reconnects: 0,
        })
    }

    async fn fill(&mut self) -> Res<usize> {
        if self.pos > 0 && self.pos == self.buf.len() {
            self.buf.clear();
            self.pos = 0;
        } else if self.pos > (256 << 10) {
            self.buf.drain(..self.pos);
            self.pos = 0;
        }
        self.buf.reserve(64 << 10);
        self.stream.read_buf(&mut self.buf).await.map_err(|e| format!("read: {e}"))
    }

    /// Reads up to and including the blank line after the headers.
    pub async fn head(&mut self) -> Res<Head> {
        loop {
            let rest = &self.buf[self.pos..];
            if let Some(end) = memchr::memmem::find(rest, b"\r\n\r\n") {
                let mut hs = [httparse::EMPTY_HEADER; 48];
                let mut r = httparse::Response::new(&mut hs);
                r.parse(&rest[..end + 4]).map_err(|e| format!("head: {e}"))?;
                let mut h = Head { status: r.code.unwrap_or(0), ..Head::default() };
                h.close = r.version == Some(0);
                for x in r.headers.iter() {
                    let val = || std::str::from_utf8(x.value).unwrap_or("").trim();
                    if x.name.eq_ignore_ascii_case("content-length") {
                        h.len = val().parse().ok();
                    } else if x.name.eq_ignore_ascii_case("transfer-encoding") {
                        h.chunked = val().eq_ignore_ascii_case("chunked");
                    } else if x.name.eq_ignore_ascii_case("content-type") {
                        h.sse = val().starts_with("text/event-stream");
                    } else if x.name.eq_ignore_ascii_case("mcp-session-id") {
                        h.session = Some(val().to_owned());
                    } else if x.name.eq_ignore_ascii_case("connection") {
                        h.close |= val().eq_ignore_ascii_case("close");
                    }
                }
                self.pos += end + 4;
                return Ok(h);
            }
            if self.fill().await? == 0 {
                return Err("connection closed before the reply".into());
            }
        }
    }

    async fn line(&mut self) -> Res<(usize, usize)> {
        loop {
            if let Some(n) = memchr::memchr(b'\n', &self.buf[self.pos..]) {
                let at = self.pos;
                self.pos += n + 1;
                let end = if n > 0 && self.buf[at + n - 1] == b'\r' { at + n - 1 } else { at + n };
                return Ok((at, end));
            }
            if self.fill().await? == 0 {
                return Err("connection closed inside a chunk".into());
            }
        }
    }

    async fn take(&mut self, mut n: usize, out: &mut Vec<u8>) -> Res<()> {
        while n > 0 {
            let have = (self.buf.len() - self.pos).min(n);
            out.extend_from_slice(&self.buf[self.pos..self.pos + have]);
            self.pos += have;
            n -= have;
            if n > 0 && self.fill().await? == 0 {
                return Err("connection closed inside the body".into());
            }
        }
        Ok(())
    }

    /// More of a stream appended to `out`, whether it comes in chunks or ends with its connection; false at the end.
    pub async fn part(&mut self, h: &Head, out: &mut Vec<u8>) -> Res<bool> {
        if h.chunked {
            return self.chunk(out).await;
        }
        if self.pos == self.buf.len() && self.fill().await? == 0 {
            return Ok(false);
        }
        out.extend_from_slice(&self.buf[self.pos..]);
        self.pos = self.buf.len();
        Ok(true)
    }

    /// One chunk of a chunked body appended to `out`; false at the last one.
    pub async fn chunk(&mut self, out: &mut Vec<u8>) -> Res<bool> {
        let (a, b) = self.line().await?;
        let size = std::str::from_utf8(&self.buf[a..b])
            .ok()
            .and_then(|s| usize::from_str_radix(s.split(';').next().unwrap_or("").trim(), 16).ok())
            .ok_or("bad chunk size")?;
        if size == 0 {
            loop {
                let (a, b) = self.line().await?;
                if a == b {
                    return Ok(false);
                }
            }
        }
        self.take(size, out).await?;
        self.line().await?;
        Ok(true)
    }

    pub async fn body(&mut self, h: &Head, out: &mut Vec<u8>) -> Res<()> {
        out.clear();
        if h.chunked {
            while self.chunk(out).await? {
                self.data_at = Instant::now();
            }
            return Ok(());
        }
        if let Some(n) = h.len {
            self.take(n, out).await?;
        } else if h.status != 204 && h.status != 304 {
            loop {
                out.extend_from_slice(&self.buf[self.pos..]);
                self.pos = self.buf.len();
                if self.fill().await? == 0 {
                    break;
                }
            }
        }
        self.data_at = Instant::now();
        Ok(())
    }

    pub async fn send(&mut self, req: &[u8]) -> Res<()> {
        self.stream.write_all(req).await.map_err(|e| format!("write: {e}"))
    }

    pub async fn roundtrip(&mut self, req: &[u8], out: &mut Vec<u8>) -> Res<Head> {
        self.send(req).await?;
        let h = self.head().await?;
        self.body(&h, out).await?;
        if h.close {
            self.stream = connect(self.addr).await?;
            self.buf.clear();
            self.pos = 0;
            self.reconnects += 1;
        }
        Ok(h)
    }
}

async fn connect(addr: SocketAddr) -> Res<TcpStream> {
    let s = TcpStream::connect(addr).await.map_err(|e| format!("connect: {e}"))?;
    s.set_nodelay(true).ok();
    Ok(s)
}

/// Calls `f` with the data of every event of an SSE body that has any.
pub fn sse_events(body: &[u8], mut f: impl FnMut(&[u8]) -> Res<()>) -> Res<()> {
    let mut one: Option<&[u8]> = None;
    let mut many: Vec<u8> = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (line, next) = match memchr::memchr(b'\n', rest) {
            Some(n) => (&rest[..n], &rest[n + 1..]),
            None => (rest, &rest[rest.len()..]),
        };
        rest = next;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            if !many.is_empty() {
                f(&many)?;
                many.clear();
            } else if let Some(d) = one.take()
                && !d.is_empty()
            {
                f(d)?;
            }
            one = None;
        } else if let Some(d) = line.strip_prefix(b"data:") {
            let d = d.strip_prefix(b" ").unwrap_or(d);
            match one {
                None => one = Some(d),
                Some(first) => {
                    if many.is_empty() {
                        many.extend_from_slice(first);
                    }
                    many.push(b'\n');
                    many.extend_from_slice(d);
                }
            }
        }
    }
    Ok(())
}

/// The JSON-RPC reply inside a body, whatever its framing.
pub fn reply_value(h: &Head, body: &[u8]) -> Res<Value> {
    if h.status != 200 {
        return Err(format!("HTTP {}: {}", h.status, proto::clip(body)));
    }
    let mut got = None;
    if h.sse {
        sse_events(body, |d| {
            let v: Value = serde_json::from_slice(d).map_err(|e| format!("event: {e}"))?;
            if v.get("id").is_some() && v.get("method").is_none() {
                got = Some(v);
            }
            Ok(())
        })?;
    } else {
        got = Some(serde_json::from_slice(body).map_err(|e| format!("body: {e}"))?);
    }
    got.ok_or_else(|| format!("no reply in {}", proto::clip(body)))
}

pub fn post(url: &Url, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut v = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\n{}{headers}Content-Length: {}\r\n\r\n",
        url.path,
        url.host,
        url.authorization,
        body.len()
    )
    .into_bytes();
    v.extend_from_slice(body);
    v
}

pub fn request(url: &Url, work: &Workload, session: Option<&str>) -> Request {
    let b = work.body();
    let bytes = post(url, &work.headers(session), &b.bytes);
    let id_at = bytes.len() - b.bytes.len() + b.id_at;
    Request { bytes, id_at }
}

/// `initialize` + `notifications/initialized`; the session id where the server issues one.
pub async fn handshake(c: &mut Conn, url: &Url) -> Res<Option<String>> {
    let mut body = Vec::new();
    let h0 = "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n";
    let h = c.roundtrip(&post(url, h0, proto::INITIALIZE.as_bytes()), &mut body).await?;
    proto::check_initialize(&reply_value(&h, &body)?)?;
    let hs = proto::headers(Proto::V2025, "", None, h.session.as_deref());
    let n = c.roundtrip(&post(url, &hs, proto::INITIALIZED.as_bytes()), &mut body).await?;
    if !(200..300).contains(&n.status) {
        return Err(format!("initialized: HTTP {}: {}", n.status, proto::clip(&body)));
    }
    Ok(h.session)
}

pub async fn probe_discover(c: &mut Conn, url: &Url) -> Res<()> {
    let mut body = Vec::new();
    let hs = proto::headers(Proto::V2026, "server/discover", None, None);
    let h = c.roundtrip(&post(url, &hs, proto::discover().as_bytes()), &mut body).await?;
    proto::check_discover(&reply_value(&h, &body)?)
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
