//! What is opened over HTTP and held: sessions, streams; and the wait for a server to be ready.
use crate::{
    args::Args,
    http::{Conn, Res, Url, handshake, post, reply_value, request, runtime, sse_events},
    os,
    proto::{self, FIRST_ID, Proto, Verifier},
};
use serde_json::{Value, json};
use std::{cell::Cell, rc::Rc, time::Duration};
use tokio::{task::LocalSet, time::Instant};

/// Opens `count` sessions (2025-11-25) and leaves them idle; RSS before and after.
pub fn sessions(a: &Args) -> Res<Value> {
    let url = Rc::new(Url::parse(a.req("url")?)?);
    let work = Rc::new(crate::workload(a)?);
    let count: usize = a.num("count", 10_000)?;
    let conns: usize = a.num("conns", 8)?;
    let pid: u32 = a.req("pid")?.parse().map_err(|_| "bad pid")?;
    let settle: f64 = a.num("settle", 1.0)?;
    runtime().block_on(LocalSet::new().run_until(async move {
        let before = os::rss_kib(pid);
        let cpu0 = os::cpu_seconds(pid).unwrap_or(0.0);
        let t = Instant::now();
        let next = Rc::new(Cell::new(0usize));
        let mut tasks = Vec::new();
        for _ in 0..conns {
            let (url, next) = (url.clone(), next.clone());
            tasks.push(tokio::task::spawn_local(async move {
                let mut c = Conn::open(url.addr).await?;
                let mut ids = Vec::new();
                while next.get() < count {
                    next.set(next.get() + 1);
                    let s = handshake(&mut c, &url).await?.ok_or("server issued no session id")?;
                    ids.push(s);
                }
                Ok::<_, String>(ids)
            }));
        }
        let mut ids = Vec::new();
        for t in tasks {
            ids.extend(t.await.map_err(|e| e.to_string())??);
        }
        let open_s = t.elapsed().as_secs_f64();
        let cpu1 = os::cpu_seconds(pid).unwrap_or(0.0);
        tokio::time::sleep(Duration::from_secs_f64(settle)).await;
        let after = os::rss_kib(pid);
        // the first, a middle and the last session still answer
        let mut c = Conn::open(url.addr).await?;
        let mut verify = Verifier::new(&work);
        for s in [&ids[0], &ids[count / 2], &ids[count - 1]] {
            let mut req = request(&url, &work, Some(s));
            req.set_id(FIRST_ID + 1);
            let mut body = Vec::new();
            let h = c.roundtrip(&req.bytes, &mut body).await?;
            if h.status != 200 {
                return Err(format!("idle session: HTTP {}: {}", h.status, proto::clip(&body)));
            }
            if h.sse {
                sse_events(&body, |d| verify.check(d, FIRST_ID + 1))?;
            } else {
                verify.check(&body, FIRST_ID + 1)?;
            }
        }
        Ok(json!({
            "sessions": ids.len(), "rss_before_kib": before.0, "rss_after_kib": after.0,
            "hwm_kib": after.1,
            "kib_per_session": (after.0.saturating_sub(before.0)) as f64 / ids.len() as f64,
            "open_per_s": ids.len() as f64 / open_s,
            "srv_cpu_us_per_open": (cpu1 - cpu0) / ids.len() as f64 * 1e6,
        }))
    }))
}

/// Opens `count` long-lived SSE streams: GET on a session of its own (2025-11-25) or a
/// `subscriptions/listen` POST (2026-07-28), and holds them; RSS before and after.
pub fn streams(a: &Args) -> Res<Value> {
    let url = Rc::new(Url::parse(a.req("url")?)?);
    let work = Rc::new(crate::workload(a)?);
    let count: usize = a.num("count", 5_000)?;
    let pid: u32 = a.req("pid")?.parse().map_err(|_| "bad pid")?;
    let settle: f64 = a.num("settle", 1.0)?;
    let width: usize = a.num("conns", 16)?;
    runtime().block_on(LocalSet::new().run_until(async move {
        let before = os::rss_kib(pid);
        let cpu0 = os::cpu_seconds(pid).unwrap_or(0.0);
        let t = Instant::now();
        let next = Rc::new(Cell::new(0usize));
        let mut tasks = Vec::new();
        for _ in 0..width {
            let (url, work, next) = (url.clone(), work.clone(), next.clone());
            tasks.push(tokio::task::spawn_local(async move {
                let mut held = Vec::new();
                let mut ctl = Conn::open(url.addr).await?;
                while next.get() < count {
                    next.set(next.get() + 1);
                    let mut c = Conn::open(url.addr).await?;
                    match work.proto {
                        Proto::V2025 => {
                            let s = handshake(&mut ctl, &url).await?;
                            let sid = s.map(|s| format!("Mcp-Session-Id: {s}\r\n")).unwrap_or_default();
                            let get = format!(
                                "GET {} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nMCP-Protocol-Version: 2025-11-25\r\n{sid}\r\n",
                                url.path, url.host
                            );
                            c.send(get.as_bytes()).await?;
                            let h = c.head().await?;
                            if h.status != 200 || !h.sse {
                                return Err(format!("GET stream: {h:?}"));
                            }
                        }
                        Proto::V2026 => {
                            let hs = proto::headers(Proto::V2026, "subscriptions/listen", None, None);
                            c.send(&post(&url, &hs, proto::listen().as_bytes())).await?;
                            let h = c.head().await?;
                            let mut body = Vec::new();
                            if h.status != 200 || !h.sse {
                                c.body(&h, &mut body).await.ok();
                                return Err(format!("listen: {h:?} {}", proto::clip(&body)));
                            }
                            let mut acked = false;
                            while !acked {
                                if !c.part(&h, &mut body).await? {
                                    return Err(format!("listen stream ended: {}", proto::clip(&body)));
                                }
                                sse_events(&body, |d| {
                                    acked |= memchr::memmem::find(d, b"notifications/subscriptions/acknowledged").is_some();
                                    Ok(())
                                })?;
                            }
                        }
                    }
                    held.push(c);
                }
                Ok::<_, String>(held)
            }));
        }
        let mut held = Vec::new();
        for t in tasks {
            held.extend(t.await.map_err(|e| e.to_string())??);
        }
        let open_s = t.elapsed().as_secs_f64();
        let cpu1 = os::cpu_seconds(pid).unwrap_or(0.0);
        tokio::time::sleep(Duration::from_secs_f64(settle)).await;
        let after = os::rss_kib(pid);
        Ok(json!({
            "streams": held.len(), "rss_before_kib": before.0, "rss_after_kib": after.0,
            "hwm_kib": after.1,
            "kib_per_stream": (after.0.saturating_sub(before.0)) as f64 / held.len() as f64,
            "open_per_s": held.len() as f64 / open_s,
            "srv_cpu_us_per_open": (cpu1 - cpu0) / held.len() as f64 * 1e6,
        }))
    }))
}

/// Waits until the endpoint answers one right `tools/call`; milliseconds since the call began.
pub fn wait_ready(a: &Args) -> Res<Value> {
    let url = Url::parse(a.req("url")?)?;
    let work = crate::workload(a)?;
    let limit: f64 = a.num("timeout", 30.0)?;
    runtime().block_on(async move {
        let t = Instant::now();
        loop {
            let r: Res<()> = async {
                let mut c = Conn::open(url.addr).await?;
                let session = match work.proto {
                    Proto::V2025 => handshake(&mut c, &url).await?,
                    Proto::V2026 => None,
                };
                let mut req = request(&url, &work, session.as_deref());
                req.set_id(FIRST_ID + 1);
                let mut body = Vec::new();
                let h = c.roundtrip(&req.bytes, &mut body).await?;
                proto::check_reply(&reply_value(&h, &body)?, FIRST_ID + 1, &work)
                    .map_err(|e| format!("{e}: {}", proto::clip(&body)))
            }
            .await;
            match r {
                Ok(()) => {
                    return Ok(
                        json!({"ready_ms": t.elapsed().as_secs_f64() * 1e3, "op": format!("{:?}", work.op)}),
                    );
                }
                Err(e) if t.elapsed().as_secs_f64() > limit => return Err(e),
                Err(e)
                    if !(e.starts_with("connect")
                        || e.starts_with("read")
                        || e.starts_with("connection closed")) =>
                {
                    return Err(e);
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    })
}
