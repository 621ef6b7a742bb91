//! A conversation seen from outside: which revision each frame of the server belongs to, and what it answers.

use super::Oracle;
use bowline_types::{Direction, Revision, meta};
use serde_json::Value;
use std::collections::HashMap;

/// Follows a conversation and holds every frame of the server against the schema of its revision.
///
/// Without an oracle it only follows.
#[derive(Debug)]
pub struct Conversation<'a> {
    oracle: Option<&'a Oracle>,
    /// The revision that `initialize` agreed on.
    session: Option<Revision>,
    /// Whether the client sent a request that describes itself.
    modern: bool,
    asked: HashMap<String, Vec<Asked>>,
}

/// A request of the client.
#[derive(Clone, Debug)]
struct Asked {
    method: Option<String>,
    /// The revision, if the request names one that exists.
    revision: Option<Revision>,
}

impl<'a> Conversation<'a> {
    /// A conversation in which nothing was said yet.
    pub fn new(oracle: Option<&'a Oracle>) -> Self {
        Self { oracle, session: None, modern: false, asked: HashMap::new() }
    }

    /// Takes note of a frame of the client.
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
            // A version nobody speaks is answered as the newest would.
            revision: named.map(|named| named.as_str().and_then(Revision::parse).unwrap_or(Revision::LATEST)),
        };
        self.asked.entry(id.to_string()).or_default().push(asked);
    }

    /// Takes note of a frame of the server. Fails when the frame is not what its revision allows.
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
            // What answers no request may belong to either era when both are spoken.
            let told = check(session, None);
            return if self.modern { told.or_else(|_| check(Revision::LATEST, None)) } else { told };
        };
        let Some(asked) = self.asked.get(&id.to_string()) else {
            return Err(format!("response to unknown request {id}"));
        };
        // Before the handshake a result is of the legacy era, while a refusal may name what the modern one has.
        let opening = if frame.get("error").is_some() { Revision::LATEST } else { Revision::V2025_11_25 };
        let unnamed = self.session.unwrap_or(opening);
        // An id may have been used twice; the response has to fit one of the two.
        let fits = |asked: &Asked| check(asked.revision.unwrap_or(unnamed), asked.method.as_deref());
        let mut told = Ok(());
        for asked in asked {
            told = fits(asked);
            if told.is_ok() {
                break;
            }
        }
        told
    }
}
