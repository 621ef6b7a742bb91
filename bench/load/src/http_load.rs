//! Requests over HTTP in a closed loop: so many connections, one request in flight on each.
use crate::{
    args::Args,
    http::{Conn, Res, Url, handshake, probe_discover, request, runtime, sse_events},
    os,
    proto::{self, FIRST_ID, Proto, Verifier, Workload},
    stats,
};
use serde_json::{Map, Value, json};
use std::{cell::Cell, rc::Rc, time::Duration};
use tokio::{task::LocalSet, time::Instant};

struct Shared {
    start: Cell<Instant>,
    end: Cell<Instant>,
    failed: Cell<bool>,
}

struct Done {
    /// To the end of the reply body, when the connection can be used again.
    lat: Vec<u64>,
    /// To the last byte of the message itself.
    msg: Vec<u64>,
    full_checks: u64,
    reconnects: u64,
    sse: bool,
    reply_bytes: usize,
}

async fn worker(
    url: Rc<Url>,
    work: Rc<Workload>,
    sh: Rc<Shared>,
    limit: Option<u64>,
    ready: tokio::sync::mpsc::Sender<()>,
    go: tokio::sync::watch::Receiver<bool>,
) -> Res<Done> {
    let mut c = Conn::open(url.addr).await?;
    let session = match work.proto {
        Proto::V2025 => handshake(&mut c, &url).await?,
        Proto::V2026 => None,
    };
    let mut req = request(&url, &work, session.as_deref());
    let mut verify = Verifier::new(&work);
    let mut body = Vec::with_capacity(128 << 10);
    let mut lat = Vec::with_capacity(1 << 16);
    let mut msg = Vec::with_capacity(1 << 16);
    let mut id = FIRST_ID;
    let mut sse = false;
    ready.send(()).await.ok();
    drop(ready);
    let mut go = go;
    go.wait_for(|g| *g).await.ok();
    let mut done = 0u64;
    loop {
        if sh.failed.get() {
            break;
        }
        match limit {
            Some(l) if done >= l => break,
            None if Instant::now() >= sh.end.get() => break,
            _ => {}
        }
        id += 1;
        req.set_id(id);
        let t0 = Instant::now();
        let h = c.roundtrip(&req.bytes, &mut body).await?;
        let t1 = Instant::now();
        if h.status != 200 {
            return Err(format!("HTTP {}: {}", h.status, proto::clip(&body)));
        }
        let mut hits = 0;
        if h.sse {
            sse = true;
            sse_events(&body, |d| {
                hits += 1;
                verify.check(d, id)
            })?;
        } else {
            hits = 1;
            verify.check(&body, id)?;
        }
        if hits != 1 {
            return Err(format!("{hits} messages in one reply: {}", proto::clip(&body)));
        }
        done += 1;
        if limit.is_some() || (t0 >= sh.start.get() && t1 <= sh.end.get()) {
            lat.push((t1 - t0).as_nanos() as u64);
            msg.push((c.data_at - t0).as_nanos() as u64);
        }
    }
    Ok(Done {
        lat,
        msg,
        full_checks: verify.full_checks,
        reconnects: c.reconnects,
        sse,
        reply_bytes: body.len(),
    })
}

/// Closed loop: `conns` connections, one request in flight on each.
pub fn load(a: &Args) -> Res<Value> {
    let url = Rc::new(Url::parse(a.req("url")?)?);
    let work = Rc::new(crate::workload(a)?);
    let conns: usize = a.num("conns", 1)?;
    let dur: f64 = a.num("duration", 3.0)?;
    let warm: f64 = a.num("warmup", 1.0)?;
    let requests: u64 = a.num("requests", 0)?;
    let pid: Option<u32> = a.get("pid").map(|p| p.parse().map_err(|_| "bad pid")).transpose()?;
    runtime().block_on(LocalSet::new().run_until(async move {
        if work.proto == Proto::V2026 && !a.flag("no-probe") {
            let mut c = Conn::open(url.addr).await?;
            probe_discover(&mut c, &url).await?;
        }
        let now = Instant::now();
        let sh = Rc::new(Shared { start: Cell::new(now), end: Cell::new(now), failed: Cell::new(false) });
        let (ready_tx, mut ready_rx) = tokio::sync::mpsc::channel(conns.max(1));
        let (go_tx, go_rx) = tokio::sync::watch::channel(false);
        let limit = (requests > 0).then(|| requests.div_ceil(conns as u64));
        let mut tasks = Vec::new();
        for _ in 0..conns {
            let (url, work, sh2) = (url.clone(), work.clone(), sh.clone());
            let fut = worker(url, work, sh2, limit, ready_tx.clone(), go_rx.clone());
            let sh2 = sh.clone();
            tasks.push(tokio::task::spawn_local(async move {
                let r = fut.await;
                if r.is_err() {
                    sh2.failed.set(true);
                }
                r
            }));
        }
        drop(ready_tx);
        let mut n_ready = 0;
        while ready_rx.recv().await.is_some() {
            n_ready += 1;
        }
        if n_ready != conns {
            sh.failed.set(true);
        }
        let t = Instant::now();
        sh.start.set(t + Duration::from_secs_f64(warm));
        sh.end.set(t + Duration::from_secs_f64(warm + dur));
        go_tx.send(true).ok();
        let sample = || {
            (
                pid.and_then(os::cpu_split),
                pid.map(os::ctx_switches),
                os::own_cpu_seconds(),
                Instant::now(),
                os::machine_busy(),
            )
        };
        if limit.is_none() {
            tokio::time::sleep_until(sh.start.get()).await;
        }
        let s0 = sample();
        let mut s1 = None;
        if limit.is_none() {
            tokio::time::sleep_until(sh.end.get()).await;
            s1 = Some(sample());
        }
        let (mut lat, mut msg, mut full, mut rec, mut sse, mut bytes) =
            (Vec::new(), Vec::new(), 0, 0, false, 0);
        for t in tasks {
            let d = t.await.map_err(|e| e.to_string())??;
            lat.extend(d.lat);
            msg.extend(d.msg);
            full += d.full_checks;
            rec += d.reconnects;
            sse |= d.sse;
            bytes = d.reply_bytes;
        }
        let s1 = s1.unwrap_or_else(sample);
        let wall = (s1.3 - s0.3).as_secs_f64();
        let n = lat.len() as f64;
        let mut m = Map::new();
        m.insert("rps".into(), json!((n / wall * 10.0).round() / 10.0));
        stats::latency("", lat, &mut m);
        stats::latency("msg_", msg, &mut m);
        if let (Some(a), Some(b)) = (s0.0, s1.0) {
            m.insert("srv_cpu_us".into(), json!((((b.0 + b.1) - (a.0 + a.1)) / n * 1e8).round() / 100.0));
            m.insert("srv_user_us".into(), json!(((b.0 - a.0) / n * 1e8).round() / 100.0));
            m.insert(
                "srv_busy".into(),
                json!((((b.0 + b.1) - (a.0 + a.1)) / wall * 1000.0).round() / 1000.0),
            );
        }
        if let (Some(a), Some(b)) = (s0.1, s1.1) {
            m.insert("srv_csw".into(), json!((b.saturating_sub(a) as f64 / n * 100.0).round() / 100.0));
        }
        m.insert("cli_busy".into(), json!(((s1.2 - s0.2) / wall * 1000.0).round() / 1000.0));
        let ours = s0.0.zip(s1.0).map_or(0.0, |(a, b)| (b.0 + b.1) - (a.0 + a.1)) + (s1.2 - s0.2);
        m.insert("foreign_busy".into(), json!((((s1.4.0 - s0.4.0) - ours) / wall * 1000.0).round() / 1000.0));
        m.insert("steal".into(), json!(((s1.4.1 - s0.4.1) / wall * 1000.0).round() / 1000.0));
        m.insert("wall_s".into(), json!(wall));
        m.insert("full_checks".into(), json!(full));
        m.insert("reconnects".into(), json!(rec));
        m.insert("sse".into(), json!(sse));
        m.insert("reply_bytes".into(), json!(bytes));
        if let Some(p) = pid {
            let (now, peak) = os::rss_kib(p);
            m.insert("rss_kib".into(), json!(now));
            m.insert("hwm_kib".into(), json!(peak));
        }
        Ok(Value::Object(m))
    }))
}
