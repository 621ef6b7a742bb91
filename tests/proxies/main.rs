//! `proxied [--idle SECONDS] NAME=ADDRESS…`: whether streams get through proxies at once, whole, and for as long as they last.
//!
//! Behind each address is a proxy, and behind that the program `served`.

mod caller;
mod idle;
mod latency;
mod raw;
mod replies;

use bowline::types::Revision;
use std::{error::Error, io::Write, process::ExitCode, time::Duration};
use tokio::task::JoinSet;

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// One revision with sessions, and the one without.
const REVISIONS: [Revision; 2] = [Revision::V2025_11_25, Revision::V2026_07_28];

/// A proxy, and the revision that is spoken through it.
#[derive(Clone)]
struct Way {
    proxy: String,
    address: String,
    revision: Revision,
}

impl Way {
    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// A resource that only one check has changed.
    fn watched(&self, by: &str) -> String {
        format!("watched://{}-{}-{by}", self.proxy, self.revision.as_str())
    }
}

/// What came of one check.
struct Finding {
    what: String,
    result: Result<String>,
}

impl Finding {
    fn of(way: &Way, what: &str, result: Result<String>) -> Self {
        Self { what: format!("{:8} {} {what}", way.proxy, way.revision.as_str()), result }
    }
}

fn ways(arguments: &[String]) -> Result<(Duration, Vec<Way>)> {
    let (seconds, proxies) = match arguments {
        [flag, seconds, proxies @ ..] if flag == "--idle" => (seconds.parse()?, proxies),
        proxies => (180, proxies),
    };
    let mut ways = Vec::new();
    for proxy in proxies {
        let (proxy, address) =
            proxy.split_once('=').ok_or("usage: proxied [--idle SECONDS] NAME=ADDRESS…")?;
        let way = |revision| Way { proxy: proxy.to_owned(), address: address.to_owned(), revision };
        ways.extend(REVISIONS.map(way));
    }
    Ok((Duration::from_secs(seconds), ways))
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (idle, ways) = ways(&arguments)?;
    let mut findings = Vec::new();
    let mut waiting = JoinSet::new();
    for way in &ways {
        idle::start(&mut waiting, way, idle);
    }
    // One after the other, so that none is slowed down by the next.
    for way in &ways {
        findings.extend(latency::check(way).await);
        findings.extend(replies::check(way).await);
    }
    while let Some(finding) = waiting.join_next().await {
        findings.push(finding?);
    }

    findings.sort_by(|one, other| one.what.cmp(&other.what));
    let mut out = std::io::stdout().lock();
    for Finding { what, result } in &findings {
        match result {
            Ok(seen) => writeln!(out, "ok   {what}: {seen}")?,
            Err(error) => writeln!(out, "FAIL {what}: {error}")?,
        }
    }
    let failed = findings.iter().filter(|finding| finding.result.is_err()).count();
    writeln!(out, "{} passed, {failed} failed", findings.len() - failed)?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
