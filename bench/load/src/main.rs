//! bench-load: load generator and checker for MCP servers. See ../README.md.
mod args;
mod http;
mod http_hold;
mod http_load;
mod os;
mod proto;
mod stats;
mod stdio;

use args::Args;

fn workload(a: &Args) -> Result<proto::Workload, String> {
    Ok(proto::Workload {
        op: proto::Op::parse(a.get("op").unwrap_or("echo"))?,
        prefix: a.get("prefix").unwrap_or_default().to_owned(),
        proto: proto::Proto::parse(a.req("proto")?)?,
        text: proto::payload(a.num("payload", 100)?),
        tools_expected: a.num("tools", 102)?,
    })
}

const USAGE: &str =
    "usage: bench-load http|stdio|coldstart|sessions|streams|wait --proto 2025-11-25|2026-07-28 \
[--op echo|add|list|ping] [--payload BYTES] [--tools N] [--prefix TEXT] [--cpu N]
  http      --url U [--conns N] [--duration S] [--warmup S] [--requests N] [--pid SERVER]
  stdio     [--window N] [--duration S] [--warmup S] [--requests N] [--server-cpu N] -- CMD...
  coldstart [--iters N] [--server-cpu N] -- CMD...
  sessions  --url U --pid SERVER [--count N]
  streams   --url U --pid SERVER [--count N]
  wait      --url U [--timeout S]
Prints one JSON object; any wrong answer ends it with status 1 and the reason.";

fn main() {
    let mut argv = std::env::args().skip(1);
    let cmd = argv.next().unwrap_or_default();
    let run = || {
        let a = Args::parse(argv)?;
        if let Some(c) = a.get("cpu") {
            os::pin(c.parse().map_err(|_| "bad --cpu")?);
        }
        match cmd.as_str() {
            "http" => http_load::load(&a),
            "stdio" => stdio::load(&a),
            "coldstart" => stdio::coldstart(&a),
            "sessions" => http_hold::sessions(&a),
            "streams" => http_hold::streams(&a),
            "wait" => http_hold::wait_ready(&a),
            _ => Err(USAGE.into()),
        }
    };
    match run() {
        Ok(v) => println!("{v}"),
        Err(e) => {
            eprintln!("{e}");
            std::process::exit(1);
        }
    }
}
