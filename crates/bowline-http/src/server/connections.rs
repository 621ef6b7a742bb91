//! The open connections of a server: how many there may be, and when one is closed.

use super::{Body, serve::HEAD_TIME};
use http_body::{Frame, SizeHint};
use hyper::rt::{Read, ReadBufCursor, Write};
use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{task::AbortHandle, time::Instant};

/// The open connections of one server.
#[derive(Debug)]
pub(super) struct Connections {
    start: Instant,
    max: usize,
    idle_time: Duration,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    by_number: HashMap<u64, (Arc<Activity>, Option<AbortHandle>)>,
    next: u64,
}

impl Open {
    fn remove(&mut self, number: u64) -> Option<(Arc<Activity>, Option<AbortHandle>)> {
        let removed = self.by_number.remove(&number);
        // Returns memory after many connections were closed.
        let needed = self.by_number.len().max(32);
        if self.by_number.capacity() > needed * 4 {
            self.by_number.shrink_to(needed * 2);
        }
        removed
    }
}

impl Connections {
    pub(super) fn new(max: usize, idle_time: Duration) -> Arc<Self> {
        Arc::new(Self { start: Instant::now(), max, idle_time, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a new connection. Returns `None` if there are too many and none is idle.
    pub(super) fn join(self: &Arc<Self>) -> Option<Member> {
        let is_full = self.open().by_number.len() >= self.max;
        if is_full && !self.close_oldest_idle() {
            return None;
        }
        let activity = Arc::new(Activity::new(self.start, self.idle_time));
        let mut open = self.open();
        let number = open.next;
        open.next += 1;
        open.by_number.insert(number, (Arc::clone(&activity), None));
        drop(open);
        Some(Member { connections: Arc::clone(self), number, activity })
    }

    /// Notes the task that serves a connection, so that it can be ended.
    pub(super) fn set_task(&self, number: u64, task: AbortHandle) {
        if let Some((_, known)) = self.open().by_number.get_mut(&number) {
            *known = Some(task);
        }
    }

    /// Closes the connection that has been idle longest. Returns `false` if none is idle.
    pub(super) fn close_oldest_idle(&self) -> bool {
        let mut open = self.open();
        let idle = open.by_number.iter().filter_map(|(number, (activity, task))| {
            task.as_ref().and_then(|_| Some((activity.idle_since()?, *number)))
        });
        let Some((_, oldest)) = idle.min() else { return false };
        let task = open.remove(oldest).and_then(|(_, task)| task);
        drop(open);
        if let Some(task) = task {
            task.abort();
        }
        true
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }
}

/// One connection, registered until this is dropped.
#[derive(Debug)]
pub(super) struct Member {
    connections: Arc<Connections>,
    pub(super) number: u64,
    pub(super) activity: Arc<Activity>,
}

impl Drop for Member {
    fn drop(&mut self) {
        self.connections.open().remove(self.number);
    }
}

/// No time.
const NEVER: u64 = u64::MAX;

/// The activity of a connection. Times are in milliseconds since the server started.
#[derive(Debug)]
pub(super) struct Activity {
    start: Instant,
    idle_time: Duration,
    /// Requests whose reply has not ended.
    running: AtomicUsize,
    /// When the last reply ended.
    idle_since: AtomicU64,
    /// When the first byte of an incomplete request head arrived.
    head_since: AtomicU64,
    /// Since when the client has not read any data.
    stalled_since: AtomicU64,
}

impl Activity {
    fn new(start: Instant, idle_time: Duration) -> Self {
        let activity = Self {
            start,
            idle_time,
            running: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            head_since: AtomicU64::new(NEVER),
            stalled_since: AtomicU64::new(NEVER),
        };
        activity.idle_since.store(activity.now(), Ordering::Relaxed);
        activity
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(NEVER - 1)
    }

    /// Returns since when the connection is idle, or `None` if it is not.
    fn idle_since(&self) -> Option<u64> {
        // A response is complete for us when its last part is handed over, which may be long before the client has
        // received it.
        let is_idle = self.running.load(Ordering::Acquire) == 0
            && self.head_since.load(Ordering::Relaxed) == NEVER
            && self.stalled_since.load(Ordering::Relaxed) == NEVER;
        is_idle.then(|| self.idle_since.load(Ordering::Relaxed))
    }

    /// Returns when and how the connection is closed if nothing happens.
    pub(super) fn deadline(&self) -> Option<(Instant, Close)> {
        let at = |since: u64, time: Duration| self.start + Duration::from_millis(since) + time;
        let stalled = self.stalled_since.load(Ordering::Relaxed);
        if stalled != NEVER {
            return Some((at(stalled, self.idle_time), Close::AtOnce));
        }
        let head = self.head_since.load(Ordering::Relaxed);
        if head != NEVER {
            return Some((at(head, HEAD_TIME), Close::AtOnce));
        }
        self.idle_since().map(|since| (at(since, self.idle_time), Close::Gracefully))
    }

    /// Returns when to check the deadline again if there is none now.
    pub(super) fn next_look(&self) -> Instant {
        Instant::now() + self.idle_time
    }

    /// Counts a request until the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Running {
        self.running.fetch_add(1, Ordering::AcqRel);
        self.head_since.store(NEVER, Ordering::Relaxed);
        Running(Arc::clone(self))
    }

    fn has_read(&self) {
        if self.running.load(Ordering::Acquire) == 0 && self.head_since.load(Ordering::Relaxed) == NEVER {
            self.head_since.store(self.now(), Ordering::Relaxed);
        }
    }

    fn has_written<T>(&self, written: &Poll<T>) {
        let stalled = self.stalled_since.load(Ordering::Relaxed);
        match written {
            Poll::Pending if stalled == NEVER => self.stalled_since.store(self.now(), Ordering::Relaxed),
            Poll::Ready(_) if stalled != NEVER => {
                self.idle_since.store(self.now(), Ordering::Relaxed);
                self.stalled_since.store(NEVER, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

/// How a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Close {
    Gracefully,
    AtOnce,
}

/// A running request.
#[derive(Debug)]
pub(super) struct Running(Arc<Activity>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.now(), Ordering::Relaxed);
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The body of a response, which counts as running until it is dropped.
#[derive(Debug)]
pub(super) struct RunningBody {
    body: Body,
    _running: Running,
}

impl RunningBody {
    pub(super) fn new(body: Body, running: Running) -> Self {
        Self { body, _running: running }
    }
}

impl http_body::Body for RunningBody {
    type Data = bytes::Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<bytes::Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The HTTP version of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    Http1,
    Http2,
}

/// A socket that records its activity.
#[derive(Debug)]
pub(super) struct Watched<T> {
    pub(super) io: T,
    pub(super) activity: Arc<Activity>,
    pub(super) version: Version,
}

impl<T: Read + Unpin> Read for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.io).poll_read(context, buffer);
        // In HTTP/2 any frame may arrive; a connection without requests is idle there.
        if self.version == Version::Http1 && matches!(read, Poll::Ready(Ok(()))) {
            self.activity.has_read();
        }
        read
    }
}

impl<T: Write + Unpin> Write for Watched<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(context, bytes);
        self.activity.has_written(&written);
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(context, buffers);
        self.activity.has_written(&written);
        written
    }
}
