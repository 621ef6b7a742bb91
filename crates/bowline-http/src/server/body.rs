//! The body of a reply: one JSON message, or a stream of events.

use super::{legacy::Reader, listen::ListenStream, modern::CallStream};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::{
    convert::Infallible,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

/// The body of a reply.
pub struct Body(Kind);

enum Kind {
    Whole(Option<Bytes>),
    Call(Box<CallStream>),
    Listen(Box<ListenStream>),
    Session(Box<Reader>),
}

impl Body {
    pub(super) fn whole(bytes: Bytes) -> Self {
        Self(Kind::Whole((!bytes.is_empty()).then_some(bytes)))
    }

    pub(super) fn call(stream: CallStream) -> Self {
        Self(Kind::Call(Box::new(stream)))
    }

    pub(super) fn session(reader: Reader) -> Self {
        Self(Kind::Session(Box::new(reader)))
    }

    pub(super) fn listen(stream: ListenStream) -> Self {
        Self(Kind::Listen(Box::new(stream)))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.get_mut().0 {
            Kind::Whole(bytes) => Poll::Ready(bytes.take()),
            Kind::Call(stream) => stream.poll_next(context),
            Kind::Listen(stream) => stream.poll_next(context),
            Kind::Session(reader) => reader.poll_next(context),
        };
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Call(_) | Kind::Listen(_) | Kind::Session(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Whole(_) => "Body::Whole",
            Kind::Call(_) => "Body::Call",
            Kind::Listen(_) => "Body::Listen",
            Kind::Session(_) => "Body::Session",
        })
    }
}
