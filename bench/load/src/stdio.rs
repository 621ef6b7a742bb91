//! Drives a child process over its stdin and stdout with up to `window` requests in flight.
//! One thread and `poll(2)`, so the generator costs little and can never deadlock on full pipes.
use crate::{
    args::Args,
    os,
    proto::{self, FIRST_ID, Proto, Verifier, Workload},
    stats,
};
use serde_json::{Map, Value, json};
use std::{
    io,
    os::fd::{AsRawFd, RawFd},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

type Res<T> = Result<T, String>;

struct Pipe {
    child: Child,
    rfd: RawFd,
    wfd: RawFd,
    out: Vec<u8>,
    out_pos: usize,
    buf: Vec<u8>,
    pos: usize,
    scanned: usize,
}

fn spawn(a: &Args) -> Res<Pipe> {
    let (cmd, args) = a.rest.split_first().ok_or("no command after --")?;
    let cpu: Option<usize> = a.get("server-cpu").map(|c| c.parse().map_err(|_| "bad cpu")).transpose()?;
    let mut c = Command::new(cmd);
    c.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    c.stderr(if a.flag("stderr") { Stdio::inherit() } else { Stdio::null() });
    if let Some(cpu) = cpu {
        unsafe {
            c.pre_exec(move || {
                os::pin(cpu);
                Ok(())
            });
        }
    } else {
        // the generator may be pinned; its child is not
        unsafe {
            c.pre_exec(|| {
                os::unpin();
                Ok(())
            });
        }
    }
    let child = c.spawn().map_err(|e| format!("spawn {cmd}: {e}"))?;
    let rfd = child.stdout.as_ref().unwrap().as_raw_fd();
    let wfd = child.stdin.as_ref().unwrap().as_raw_fd();
    for fd in [rfd, wfd] {
        unsafe {
            let f = libc::fcntl(fd, libc::F_GETFL);
            libc::fcntl(fd, libc::F_SETFL, f | libc::O_NONBLOCK);
        }
    }
    Ok(Pipe { child, rfd, wfd, out: Vec::new(), out_pos: 0, buf: Vec::new(), pos: 0, scanned: 0 })
}

impl Pipe {
    fn queue(&mut self, line: &[u8]) {
        self.out.extend_from_slice(line);
        self.out.push(b'\n');
    }

    fn write_some(&mut self) -> Res<()> {
        while self.out_pos < self.out.len() {
            let s = &self.out[self.out_pos..];
            let n = unsafe { libc::write(self.wfd, s.as_ptr().cast(), s.len()) };
            if n < 0 {
                let e = io::Error::last_os_error();
                if e.kind() == io::ErrorKind::WouldBlock {
                    break;
                }
                return Err(format!("write: {e}"));
            }
            self.out_pos += n as usize;
        }
        if self.out_pos == self.out.len() {
            self.out.clear();
            self.out_pos = 0;
        } else if self.out_pos > (1 << 20) {
            self.out.drain(..self.out_pos);
            self.out_pos = 0;
        }
        Ok(())
    }

    /// Waits for progress; reads what is there.
    fn pump(&mut self, timeout_ms: i32) -> Res<()> {
        self.write_some()?;
        let mut fds = [
            libc::pollfd { fd: self.rfd, events: libc::POLLIN, revents: 0 },
            libc::pollfd { fd: self.wfd, events: libc::POLLOUT, revents: 0 },
        ];
        let nfds = if self.out.is_empty() { 1 } else { 2 };
        let n = unsafe { libc::poll(fds.as_mut_ptr(), nfds, timeout_ms) };
        if n == 0 {
            return Err("the child gave no answer in time".into());
        }
        if fds[0].revents != 0 {
            if self.pos == self.buf.len() {
                self.buf.clear();
                self.pos = 0;
                self.scanned = 0;
            } else if self.pos > (1 << 20) {
                self.buf.drain(..self.pos);
                self.scanned -= self.pos;
                self.pos = 0;
            }
            self.buf.reserve(256 << 10);
            let at = self.buf.len();
            let n = unsafe {
                libc::read(self.rfd, self.buf.as_mut_ptr().add(at).cast(), self.buf.capacity() - at)
            };
            if n == 0 {
                return Err("the child closed its stdout".into());
            }
            if n > 0 {
                unsafe { self.buf.set_len(at + n as usize) };
            }
        }
        if nfds == 2 && fds[1].revents != 0 {
            self.write_some()?;
        }
        Ok(())
    }

    /// Range of the next whole line in `buf`, if there is one.
    fn line(&mut self) -> Option<(usize, usize)> {
        match memchr::memchr(b'\n', &self.buf[self.scanned..]) {
            Some(n) => {
                let r = (self.pos, self.scanned + n);
                self.pos = self.scanned + n + 1;
                self.scanned = self.pos;
                Some(r)
            }
            None => {
                self.scanned = self.buf.len();
                None
            }
        }
    }

    fn await_reply(&mut self, id: u64, timeout_ms: i32) -> Res<Value> {
        loop {
            while let Some((a, b)) = self.line() {
                if a == b {
                    continue;
                }
                let v: Value = serde_json::from_slice(&self.buf[a..b])
                    .map_err(|e| format!("not JSON ({e}): {}", proto::clip(&self.buf[a..b])))?;
                if v["id"].as_u64() == Some(id) && v.get("method").is_none() {
                    return Ok(v);
                }
            }
            self.pump(timeout_ms)?;
        }
    }

    fn handshake(&mut self, p: Proto, probe: bool) -> Res<()> {
        match p {
            Proto::V2025 => {
                self.queue(proto::INITIALIZE.as_bytes());
                proto::check_initialize(&self.await_reply(FIRST_ID, 30_000)?)?;
                self.queue(proto::INITIALIZED.as_bytes());
            }
            Proto::V2026 if probe => {
                self.queue(proto::discover().as_bytes());
                proto::check_discover(&self.await_reply(FIRST_ID, 30_000)?)?;
            }
            Proto::V2026 => {}
        }
        Ok(())
    }

    /// Closes stdin and waits; kills the child if it does not leave. Seconds it took, killed?
    fn finish(mut self) -> (f64, bool) {
        let t = Instant::now();
        drop(self.child.stdin.take());
        drop(self.child.stdout.take());
        loop {
            match self.child.try_wait() {
                Ok(Some(_)) => return (t.elapsed().as_secs_f64(), false),
                _ if t.elapsed() > Duration::from_secs(3) => {
                    self.child.kill().ok();
                    self.child.wait().ok();
                    return (t.elapsed().as_secs_f64(), true);
                }
                _ => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }
}

pub fn load(a: &Args) -> Res<Value> {
    let work = crate::workload(a)?;
    let window: usize = a.num("window", 1)?;
    let dur: f64 = a.num("duration", 2.0)?;
    let warm: f64 = a.num("warmup", 0.5)?;
    let requests: u64 = a.num("requests", 0)?;
    let timeout: i32 = a.num("timeout-ms", 30_000)?;
    let mut p = spawn(a)?;
    let r = drive(&mut p, &work, window, dur, warm, requests, timeout, !a.flag("no-probe"));
    p.finish();
    r
}

#[allow(clippy::too_many_arguments)]
fn drive(
    p: &mut Pipe,
    work: &Workload,
    window: usize,
    dur: f64,
    warm: f64,
    requests: u64,
    timeout: i32,
    probe: bool,
) -> Res<Value> {
    p.handshake(work.proto, probe)?;
    let pid = p.child.id();
    let mut req = work.body();
    let mut verify = Verifier::new(work);
    let mut started: Vec<Instant> = Vec::with_capacity(1 << 20);
    let mut seen: Vec<bool> = Vec::with_capacity(1 << 20);
    let mut lat: Vec<u64> = Vec::with_capacity(1 << 20);
    let first = FIRST_ID + 1;
    let t = Instant::now();
    let start = t + Duration::from_secs_f64(if requests > 0 { 0.0 } else { warm });
    let end = start + Duration::from_secs_f64(dur);
    let mut s0 = None;
    let mut s1 = None;
    let mut inflight = 0usize;
    let sample = || {
        (os::cpu_split(pid), os::ctx_switches(pid), os::own_cpu_seconds(), Instant::now(), os::machine_busy())
    };
    loop {
        let now = Instant::now();
        if s0.is_none() && now >= start {
            s0 = Some(sample());
        }
        let stop = if requests > 0 { started.len() as u64 >= requests } else { now >= end };
        if stop && requests == 0 && s1.is_none() {
            s1 = Some(sample());
        }
        if stop && inflight == 0 {
            break;
        }
        while inflight < window
            && !(requests > 0 && started.len() as u64 >= requests)
            && !(requests == 0 && stop)
        {
            req.set_id(first + started.len() as u64);
            p.queue(&req.bytes);
            started.push(Instant::now());
            seen.push(false);
            inflight += 1;
        }
        p.pump(timeout)?;
        while let Some((a, b)) = p.line() {
            let msg = &p.buf[a..b];
            if msg.is_empty() {
                continue;
            }
            let Some(id) = verify.id_of(msg) else {
                continue; // a notification
            };
            let i = id.wrapping_sub(first) as usize;
            if i >= started.len() || seen[i] {
                return Err(format!("reply to an id that is not open: {}", proto::clip(msg)));
            }
            verify.check(msg, id)?;
            seen[i] = true;
            inflight -= 1;
            let t1 = Instant::now();
            if requests > 0 || (started[i] >= start && t1 <= end) {
                lat.push((t1 - started[i]).as_nanos() as u64);
            }
        }
    }
    let s0 = s0.unwrap();
    let s1 = s1.unwrap_or_else(sample);
    let wall = (s1.3 - s0.3).as_secs_f64();
    let n = lat.len() as f64;
    let mut m = Map::new();
    m.insert("rps".into(), json!((n / wall * 10.0).round() / 10.0));
    stats::latency("", lat, &mut m);
    if let (Some(a), Some(b)) = (s0.0, s1.0) {
        m.insert("srv_cpu_us".into(), json!((((b.0 + b.1) - (a.0 + a.1)) / n * 1e8).round() / 100.0));
        m.insert("srv_user_us".into(), json!(((b.0 - a.0) / n * 1e8).round() / 100.0));
        m.insert("srv_busy".into(), json!((((b.0 + b.1) - (a.0 + a.1)) / wall * 1000.0).round() / 1000.0));
    }
    m.insert("srv_csw".into(), json!((s1.1.saturating_sub(s0.1) as f64 / n * 100.0).round() / 100.0));
    m.insert("cli_busy".into(), json!(((s1.2 - s0.2) / wall * 1000.0).round() / 1000.0));
    let ours = s0.0.zip(s1.0).map_or(0.0, |(a, b)| (b.0 + b.1) - (a.0 + a.1)) + (s1.2 - s0.2);
    m.insert("foreign_busy".into(), json!((((s1.4.0 - s0.4.0) - ours) / wall * 1000.0).round() / 1000.0));
    m.insert("steal".into(), json!(((s1.4.1 - s0.4.1) / wall * 1000.0).round() / 1000.0));
    m.insert("wall_s".into(), json!(wall));
    m.insert("full_checks".into(), json!(verify.full_checks));
    let (now, peak) = os::rss_kib(pid);
    m.insert("rss_kib".into(), json!(now));
    m.insert("hwm_kib".into(), json!(peak));
    Ok(Value::Object(m))
}

/// Time from spawn to the first right `tools/call` answer, and RSS right after it.
pub fn coldstart(a: &Args) -> Res<Value> {
    let work = crate::workload(a)?;
    let mut ms = Vec::new();
    let mut rss = Vec::new();
    let mut exit_ms = Vec::new();
    let mut killed = 0;
    for _ in 0..a.num("iters", 1)? {
        let t = Instant::now();
        let mut p = spawn(a)?;
        let r: Res<()> = (|| {
            p.handshake(work.proto, !a.flag("no-probe"))?;
            let mut req = work.body();
            req.set_id(FIRST_ID + 1);
            p.queue(&req.bytes);
            let v = p.await_reply(FIRST_ID + 1, 30_000)?;
            proto::check_reply(&v, FIRST_ID + 1, &work).map_err(|e| format!("{e}: {v}"))
        })();
        ms.push(t.elapsed().as_secs_f64() * 1e3);
        rss.push(os::rss_kib(p.child.id()).0);
        let (s, k) = p.finish();
        exit_ms.push(s * 1e3);
        killed += k as u32;
        r?;
    }
    let med = |v: &mut Vec<f64>| {
        v.sort_by(f64::total_cmp);
        v[v.len() / 2]
    };
    rss.sort();
    Ok(json!({
        "iters": ms.len(), "min_ms": ms.iter().copied().fold(f64::MAX, f64::min),
        "cold_ms": med(&mut ms), "rss_kib": rss[rss.len() / 2],
        "exit_ms": med(&mut exit_ms), "killed": killed,
    }))
}
