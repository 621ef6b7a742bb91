//! The body of a reply: one JSON message, or a stream of events.

use super::{legacy::Reader, listen::ListenStream, modern::CallStream};
use bowline_proto::encode;
use bowline_types::Id;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

/// The body of a reply.
pub struct Body {
    kind: Kind,
    /// Counts it as open, if it is a stream of events.
    counted: Option<OpenStream>,
}

/// A stream that is counted until it is dropped.
struct OpenStream(Arc<AtomicUsize>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

enum Kind {
    Whole(Option<Bytes>),
    /// A response in three parts, of which the middle one is shared. The index is that of the first remaining part.
    Response(usize, [Bytes; 3]),
    Call(Box<CallStream>),
    Listen(Box<ListenStream>),
    Session(Box<Reader>),
    /// Pieces that a function returns.
    Stream(Pieces),
}

/// Returns the next piece of a body.
type Pieces = Box<dyn FnMut(&mut Context<'_>) -> Poll<Option<Bytes>> + Send>;

impl Body {
    fn of(kind: Kind) -> Self {
        Self { kind, counted: None }
    }

    /// Counts the body in `open` until it is dropped, if it is a stream of events.
    pub(super) fn count_in(&mut self, open: &Arc<AtomicUsize>) {
        if matches!(self.kind, Kind::Call(_) | Kind::Listen(_) | Kind::Session(_)) && self.counted.is_none() {
            open.fetch_add(1, Ordering::Relaxed);
            self.counted = Some(OpenStream(Arc::clone(open)));
        }
    }

    pub(super) fn whole(bytes: Bytes) -> Self {
        Self::of(Kind::Whole((!bytes.is_empty()).then_some(bytes)))
    }

    /// Creates a response with an encoded result, which is not copied.
    pub(super) fn response(id: &Id, result: Bytes) -> Self {
        let mut head = Vec::with_capacity(64);
        encode::start_response(&mut head, id);
        Self::of(Kind::Response(0, [head.into(), result, Bytes::from_static(b"}")]))
    }

    /// Returns the message if it is the whole body and was not read yet.
    pub(super) fn as_whole(&self) -> Option<&Bytes> {
        match &self.kind {
            Kind::Whole(bytes) => bytes.as_ref(),
            Kind::Response(..) | Kind::Call(_) | Kind::Listen(_) | Kind::Session(_) | Kind::Stream(_) => None,
        }
    }

    /// Creates a body of pieces, whose end is `None`. `poll` is called whenever the connection can send more, as
    /// `Stream::poll_next` would be.
    pub fn stream(poll: impl FnMut(&mut Context<'_>) -> Poll<Option<Bytes>> + Send + 'static) -> Self {
        Self::of(Kind::Stream(Box::new(poll)))
    }

    pub(super) fn call(stream: CallStream) -> Self {
        Self::of(Kind::Call(Box::new(stream)))
    }

    pub(super) fn session(reader: Reader) -> Self {
        Self::of(Kind::Session(Box::new(reader)))
    }

    pub(super) fn listen(stream: ListenStream) -> Self {
        Self::of(Kind::Listen(Box::new(stream)))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::whole(bytes)
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        Self::whole(text.into())
    }
}

impl From<&'static str> for Body {
    fn from(text: &'static str) -> Self {
        Self::whole(Bytes::from_static(text.as_bytes()))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.get_mut().kind {
            Kind::Whole(bytes) => Poll::Ready(bytes.take()),
            Kind::Response(next, pieces) => {
                let piece = pieces.get_mut(*next).map(std::mem::take);
                *next += 1;
                Poll::Ready(piece)
            }
            Kind::Call(stream) => stream.poll_next(context),
            Kind::Listen(stream) => stream.poll_next(context),
            Kind::Session(reader) => reader.poll_next(context),
            Kind::Stream(poll) => poll(context),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Whole(None) | Kind::Response(3.., _))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            // Parts that were sent are empty.
            Kind::Response(_, pieces) => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            Kind::Call(_) | Kind::Listen(_) | Kind::Session(_) | Kind::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Whole(_) => "Body::Whole",
            Kind::Response(..) => "Body::Response",
            Kind::Call(_) => "Body::Call",
            Kind::Listen(_) => "Body::Listen",
            Kind::Session(_) => "Body::Session",
            Kind::Stream(_) => "Body::Stream",
        })
    }
}
