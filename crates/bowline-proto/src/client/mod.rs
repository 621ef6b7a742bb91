//! The client's side of a connection: how it opens, what it sends, how it reads results.

mod opening;
mod request;
mod result;

pub use opening::{Negotiated, OpenError, Opening, Reaction, Step};
pub use request::{ClientProfile, RequestOptions};
pub use result::{Fulfilled, ResultError, classify};

use crate::{
    envelope::{self, Frame, Message, MethodName, Rejected},
    params::Params,
};
use bowline_types::{Id, RawJson, RpcError};
use bytes::Bytes;

/// What a frame from the server is.
#[derive(Debug)]
pub enum Inbound {
    /// The answer to a request of ours.
    Response {
        /// Its id.
        id: Id,
        /// The result.
        result: Result<RawJson, RpcError>,
    },
    /// The server asks: legacy eras only.
    Request {
        /// Names the request in its answer.
        id: Id,
        /// What is asked.
        method: MethodName,
        /// The params.
        params: Option<RawJson>,
    },
    /// A notification of the server.
    Notification {
        /// The method.
        method: MethodName,
        /// The params, if present.
        params: Option<RawJson>,
    },
    /// An error about a message of ours that the server could not read.
    Complaint(RpcError),
    /// No message: noise on the line, or a message of the wrong shape, with the answer that is due, if one is.
    Noise(Box<Rejected>),
}

/// Reads one frame from the server. A batch yields its messages in order.
pub fn accept(frame: &Bytes) -> Vec<Inbound> {
    match envelope::parse(frame) {
        Frame::Single(message) => vec![inbound(message)],
        Frame::Batch(items) => items.into_iter().map(inbound).collect(),
    }
}

fn inbound(message: Result<Message, Rejected>) -> Inbound {
    match message {
        Ok(Message::Request { id, method, params }) => {
            Inbound::Request { id, method, params: params.map(Params::into_raw) }
        }
        Ok(Message::Notification { method, params }) => {
            Inbound::Notification { method, params: params.map(Params::into_raw) }
        }
        Ok(Message::Response { id, result }) => Inbound::Response { id, result: Ok(result) },
        Ok(Message::Failure { id: Some(id), error }) => Inbound::Response { id, result: Err(error) },
        Ok(Message::Failure { id: None, error }) => Inbound::Complaint(error),
        Err(rejected) => Inbound::Noise(Box::new(rejected)),
    }
}
