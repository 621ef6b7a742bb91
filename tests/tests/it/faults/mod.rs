//! A connection cut at any byte, by either kind of end, in either direction: every call settles, none is carried out
//! twice, and nothing is left behind on either side.
//!
//! By default a part of the bytes is swept; `BOWLINE_SWEEP=full` takes every one. `BOWLINE_SWEEP_LINES` picks the lines
//! whose name has this text, such as `Progress in 2025-11-25`.

mod shape;
mod site;

use bowline_client::Change;
use bowline_server::Tool;
use bowline_testing::fault::Fault;
use bowline_types::{Revision, SubscriptionFilter};
use shape::Shape;
use site::{GUARD, Site};
use std::{
    env, fmt,
    future::Future,
    sync::{
        Mutex, Once,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};
use tokio::{runtime, time::timeout};

/// How many lines are swept at once. Some spend most of their time waiting to come back to an interrupted stream.
const LANES: usize = 12;
/// Of how many bytes one is cut at by default.
const STEP: u64 = 11;
/// A message is never shorter than this; a line that ends earlier has cut something else.
const SHORTEST: u64 = 50;
/// What the threads of the sweep are called, to know their panics from those of others.
const THREAD: &str = "fault sweep";

/// One line of the sweep: every byte of one direction of one message.
#[derive(Clone, Copy, Debug)]
struct Line {
    shape: Shape,
    revision: Revision,
    way: Way,
    end: End,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Request,
    Reply,
}

#[derive(Clone, Copy, Debug)]
enum End {
    Fin,
    Rst,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shape, revision, way, end } = self;
        write!(f, "{shape:?} in {revision}, {way:?} cut by {end:?}")
    }
}

impl Line {
    fn all() -> Vec<Self> {
        let mut lines = Vec::new();
        for shape in shape::ALL {
            for revision in [Revision::V2026_07_28, Revision::V2025_11_25] {
                for way in [Way::Reply, Way::Request] {
                    for end in [End::Fin, End::Rst] {
                        if shape.exists_in(revision) {
                            lines.push(Self { shape, revision, way, end });
                        }
                    }
                }
            }
        }
        lines
    }

    fn fault(self, at: u64) -> Fault {
        let fault = match self.way {
            Way::Request => Fault::request(at),
            Way::Reply => Fault::reply(at),
        };
        let fault = match self.end {
            End::Fin => fault.fin(),
            End::Rst => fault.rst(),
        };
        fault.containing(self.shape.text(self.revision))
    }
}

/// The outcomes of one line or of all of them.
#[derive(Clone, Debug, Default)]
struct Tally {
    cuts: u64,
    /// Calls that succeeded although their connection was cut.
    mended: u64,
    connections: u64,
    slowest: (Duration, String),
    leaks: u64,
    wrong: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.cuts += other.cuts;
        self.mended += other.mended;
        self.connections += other.connections;
        self.leaks += other.leaks;
        if other.slowest.0 > self.slowest.0 {
            self.slowest = other.slowest;
        }
        self.wrong.extend(other.wrong);
    }
}

async fn within<T>(limit: Duration, what: impl Future<Output = T>) -> Option<T> {
    timeout(limit, what).await.ok()
}

/// Sweeps one line, from its first byte until there is none left to cut at.
async fn sweep(line: Line, first: u64, step: u64) -> Tally {
    let Line { shape, revision, .. } = line;
    let site = Site::open().await;
    let start = site.held();
    let mut tally = Tally::default();
    // The cut is to hit the message, not what has to be there before it.
    let client = if shape.opens() { None } else { site.connect(revision).await.ok() };
    let mut at = first;
    loop {
        let triggered = site.proxy.triggered();
        site.proxy.set(line.fault(at));
        let (begun, number) = (Instant::now(), tally.cuts);
        let sending = async {
            if let Some(client) = &client {
                return shape.send(&site, client, number).await;
            }
            let fresh = site.connect(revision).await?;
            let sent = shape.send(&site, &fresh, number).await;
            fresh.close().await;
            sent
        };
        let sent = within(GUARD, sending).await;
        let took = begun.elapsed();
        if took > tally.slowest.0 {
            tally.slowest = (took, format!("{line} at byte {at}"));
        }
        // The last bytes of a reply may still be under way when its message is there.
        let cut = site.proxy.triggered() > triggered
            || within(Duration::from_millis(200), site.proxy.wait_until_triggered(triggered + 1))
                .await
                .is_some();
        let mut wrong = |what: String| tally.wrong.push(format!("{line} at byte {at}: {what}"));
        match &sent {
            None => wrong(format!("does not settle within {GUARD:?}")),
            Some(Err(error)) if error.is_timeout() => wrong(format!("only time ended it: {error}")),
            Some(Err(error)) if !cut => wrong(format!("fails although nothing is cut: {error}")),
            Some(Err(error)) if shape.must_succeed(revision) => wrong(format!("is not made up for: {error}")),
            Some(Ok(result)) if *result != shape.expected() => wrong(format!("returned `{result}`")),
            Some(_) => {}
        }
        let runs = site.ledger.runs(number);
        if runs > 1 {
            wrong(format!("is carried out {runs} times"));
        }
        if !cut || sent.is_none() {
            break;
        }
        tally.cuts += 1;
        tally.mended += u64::from(matches!(sent, Some(Ok(_))));
        at += step;
    }
    site.proxy.clear();
    if at < SHORTEST {
        tally.wrong.push(format!("{line}: there is nothing to cut at byte {at}"));
    }
    // What the client was told is lost, the server does not go on with either.
    if let Err(busy) = site.rest(&start).await {
        tally.leaks += 1;
        tally.wrong.push(format!("{line}: {busy}"));
    }
    // Both sides go on: the same client, if there is one, and another.
    let another = site.connect(revision).await.expect("an uncut opening succeeds");
    for client in client.iter().chain([&another]) {
        match within(GUARD, Shape::SmallCall.send(&site, client, u64::MAX)).await {
            Some(Ok(_)) => {}
            failed => tally.wrong.push(format!("{line}: does not go on: {failed:?}")),
        }
        client.close().await;
    }
    drop((client, another));
    if let Err(leak) = site.settle(&start).await {
        tally.leaks += 1;
        tally.wrong.push(format!("{line}: {leak}"));
    }
    tally.connections = site.proxy.traffic().connections;
    tally
}

/// Counts the panics on the threads of the sweep; the tasks that panic may be nobody's to await.
fn panics() -> &'static AtomicUsize {
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if thread::current().name() == Some(THREAD) {
                PANICS.fetch_add(1, Ordering::SeqCst);
            }
            previous(info);
        }));
    });
    &PANICS
}

#[test]
fn a_connection_cut_at_any_byte_harms_neither_side() {
    let step = if env::var("BOWLINE_SWEEP").is_ok_and(|sweep| sweep == "full") { 1 } else { STEP };
    let wanted = env::var("BOWLINE_SWEEP_LINES").unwrap_or_default();
    let lines: Vec<Line> =
        Line::all().into_iter().filter(|line| line.to_string().contains(&wanted)).collect();
    let (panics, next, total) = (panics(), AtomicUsize::new(0), Mutex::new(Tally::default()));
    let begun = Instant::now();
    let lane = || {
        loop {
            let index = next.fetch_add(1, Ordering::SeqCst);
            let Some(line) = lines.get(index) else { return };
            // A runtime of its own, whose tasks are those of the line.
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime can be built");
            let tally = runtime.block_on(sweep(*line, index as u64 % step, step));
            total.lock().expect("nothing panics with the lock").add(tally);
        }
    };
    thread::scope(|scope| {
        for _ in 0..LANES {
            thread::Builder::new().name(THREAD.into()).spawn_scoped(scope, lane).expect("a thread starts");
        }
    });
    let (total, panics) =
        (total.into_inner().expect("nothing panics with the lock"), panics.load(Ordering::SeqCst));
    let Tally { cuts, mended, connections, slowest: (slowest, place), leaks, wrong } = total;
    eprintln!(
        "fault sweep: {} shapes, {} lines, {cuts} cuts ({mended} made up for), {connections} connections in {:?}; \
         slowest to settle {slowest:?} ({place}); {leaks} leaks, {panics} panics, {} wrong",
        shape::ALL.len(),
        lines.len(),
        begun.elapsed(),
        wrong.len(),
    );
    assert_eq!(panics, 0, "something panicked");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cuts > 0, "there is no line like `{wanted}`");
}

#[tokio::test]
async fn a_change_lost_with_its_stream_is_reported_later() {
    let revision = Revision::V2025_11_25;
    let site = Site::open().await;
    // The standing stream is asked for late, so that there is a change to tell as soon as it opens, and cut before its
    // client has seen anything to come back to.
    let get_stream = |fault: Fault| fault.containing("GET /mcp");
    site.proxy.set(get_stream(Fault::request(0).delay(Duration::from_millis(100))));
    let client = site.connect(revision).await.expect("an uncut opening succeeds");
    let tools = client.tools().await.expect("an uncut call succeeds").len();
    let mut listen = client
        .listen(SubscriptionFilter::new().tools_list_changed(true))
        .await
        .expect("nothing is sent for it");
    site.proxy.wait_until_triggered(1).await;
    site.proxy.set(get_stream(Fault::reply(10)));
    site.registry.add_tool(Tool::new("new").handler(|| "new")).expect("the name is free");
    site.proxy.wait_until_triggered(2).await;
    let heard = within(GUARD, listen.next()).await.expect("the change is heard of");
    assert_eq!(heard, Some(Change::Tools));
    // Neither is the list answered from what was known before.
    assert_eq!(client.tools().await.expect("an uncut call succeeds").len(), tools + 1);
    client.close().await;
}
