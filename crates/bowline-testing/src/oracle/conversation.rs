//! Follows a conversation: which revision each frame of the server has, and which request it answers.

use super::Oracle;
use bowline_types::{Direction, Revision, meta};
use serde_json::Value;
use std::collections::HashMap;

/// Follows a conversation and validates every frame of the server against the schema of its revision.
///
/// Without an oracle it validates nothing.
#[derive(Debug)]
pub struct Conversation<'a> {
    oracle: Option<&'a Oracle>,
    /// The revision that `initialize` negotiated.
    session: Option<Revision>,
    /// Whether the client sent a request with its own `_meta` description.
    modern: bool,
    asked: HashMap<String, Vec<Asked>>,
}

/// A request of the client.
#[derive(Clone, Debug)]
struct Asked {
    method: Option<String>,
    /// The revision, if the request names a known one.
    revision: Option<Revision>,
}

impl<'a> Conversation<'a> {
    /// Creates an empty conversation.
    pub fn new(oracle: Option<&'a Oracle>) -> Self {
        Self { oracle, session: None, modern: false, asked: HashMap::new() }
    }

    /// Records a frame of the client.
    pub fn sent(&mut self, frame: &Value) {
        if let Value::Array(frames) = frame {
            for frame in frames {
                self.sent(frame);
            }
            return;
        }
        let Some(id) = frame.get("id") else { return };
        let key = meta::key::PROTOCOL_VERSION;
        let named = frame.get("params").and_then(|params| params.get("_meta")?.get(key));
        self.modern |= named.is_some();
        let asked = Asked {
            method: frame.get("method").and_then(Value::as_str).map(str::to_owned),
            // A request for an unknown version is answered in the newest revision.
            revision: named.map(|named| named.as_str().and_then(Revision::parse).unwrap_or(Revision::LATEST)),
        };
        self.asked.entry(id.to_string()).or_default().push(asked);
    }

    /// Records a frame of the server. Fails if its revision does not allow the frame.
    pub fn received(&mut self, frame: &Value) -> Result<(), String> {
        if let Value::Array(frames) = frame
            && self.session == Some(Revision::V2025_03_26)
            && !frames.is_empty()
        {
            return frames.iter().try_for_each(|frame| self.received(frame));
        }
        let agreed =
            frame.pointer("/result/protocolVersion").and_then(Value::as_str).and_then(Revision::parse);
        if let (None, Some(agreed)) = (self.session, agreed) {
            self.session = Some(agreed);
        }
        let Some(oracle) = self.oracle else { return Ok(()) };
        let check = |revision, method: Option<&str>| {
            oracle.check_frame(revision, Direction::ServerToClient, frame, method)
        };
        let session = self.session.unwrap_or(Revision::LATEST);
        let id = frame.get("id").filter(|_| frame.get("method").is_none());
        let Some(id) = id else {
            // A frame that answers no request may belong to either era if the client uses both.
            let result = check(session, None);
            return if self.modern { result.or_else(|_| check(Revision::LATEST, None)) } else { result };
        };
        let Some(asked) = self.asked.get(&id.to_string()) else {
            return Err(format!("response to unknown request {id}"));
        };
        // Before the handshake a result is legacy, while an error may have a modern code.
        let opening = if frame.get("error").is_some() { Revision::LATEST } else { Revision::V2025_11_25 };
        let unnamed = self.session.unwrap_or(opening);
        // If an id was used twice, the response must match one of the two requests.
        let fits = |asked: &Asked| check(asked.revision.unwrap_or(unnamed), asked.method.as_deref());
        let mut result = Ok(());
        for asked in asked {
            result = fits(asked);
            if result.is_ok() {
                break;
            }
        }
        result
    }
}
