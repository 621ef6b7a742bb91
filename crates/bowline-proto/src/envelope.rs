//! Parses JSON-RPC messages.
//!
//! A frame is scanned once; the members that are present determine the kind of message. `params` and `result`
//! stay slices of the frame.

use crate::params::{Params, ParamsScan};
use bowline_json::{
    borrow::Text,
    scan::{MAX_DEPTH, ScanError, Scanner, Span},
};
use bowline_types::{Id, Method, RawJson, RpcError};
use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::fmt;

/// Maximum number of messages in a batch.
pub const MAX_BATCH: usize = 1000;

/// The method of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MethodName {
    /// A method of some revision.
    Known(Method),
    /// A method of no revision.
    Custom(Box<str>),
}

impl MethodName {
    /// Returns the name on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(method) => method.as_str(),
            Self::Custom(name) => name,
        }
    }

    /// Returns the protocol method, if it is one.
    pub fn known(&self) -> Option<Method> {
        match self {
            Self::Known(method) => Some(*method),
            Self::Custom(_) => None,
        }
    }

    fn of(name: &str) -> Self {
        Method::parse(name).map_or_else(|| Self::Custom(name.into()), Self::Known)
    }
}

impl PartialEq<Method> for MethodName {
    fn eq(&self, other: &Method) -> bool {
        self.known() == Some(*other)
    }
}

impl From<Method> for MethodName {
    fn from(method: Method) -> Self {
        Self::Known(method)
    }
}

impl fmt::Display for MethodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One JSON-RPC message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Expects a response.
    Request {
        /// Id of the request.
        id: Id,
        /// The method.
        method: MethodName,
        /// The params, if present.
        params: Option<Params>,
    },
    /// Expects no response.
    Notification {
        /// The method.
        method: MethodName,
        /// The params, if present.
        params: Option<Params>,
    },
    /// A request succeeded.
    Response {
        /// Id of the request.
        id: Id,
        /// The result.
        result: RawJson,
    },
    /// A request failed.
    Failure {
        /// Id of the request; absent if the peer could not read it.
        id: Option<Id>,
        /// Why.
        error: RpcError,
    },
}

/// A frame that is not a valid message, with the error for its sender.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Rejected {
    /// Id of the request, if it could be read.
    pub id: Option<Id>,
    /// The error.
    pub error: RpcError,
    /// Whether to send the error. Malformed notifications and responses are not answered.
    pub answer: bool,
}

impl Rejected {
    /// Returns the frame to send back, if any.
    pub fn reply(&self) -> Option<Bytes> {
        self.answer.then(|| crate::encode::failure(self.id.as_ref(), &self.error))
    }
}

/// The content of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// One message.
    Single(Result<Message, Rejected>),
    /// A batch of messages; only in 2025-03-26.
    Batch(Vec<Result<Message, Rejected>>),
}

/// Parses a frame. An invalid one is returned as [`Rejected`] with its error.
pub fn parse(frame: &Bytes) -> Frame {
    let Ok(mut scanner) = Scanner::from_bytes(frame) else {
        return Frame::Single(Err(unreadable("the frame is not UTF-8")));
    };
    if scanner.peek() == b'[' {
        return batch(frame, scanner);
    }
    let read = MessageScan::scan(&mut scanner).and_then(|flat| scanner.end().map(|()| flat));
    Frame::Single(read.map_err(|error| refused(frame, error)).and_then(|flat| flat.message(frame)))
}

fn batch(frame: &Bytes, mut scanner: Scanner<'_>) -> Frame {
    let mut items = Vec::new();
    // Counted while they are found, because each takes far more room than its text.
    let mut too_many = false;
    let read = scanner.elements(|scanner| {
        too_many = items.len() == MAX_BATCH;
        if too_many {
            return Err(ScanError::Syntax);
        }
        items.push(if scanner.peek() == b'{' {
            Ok(MessageScan::scan(scanner)?)
        } else {
            scanner.value()?;
            Err(Rejected {
                id: None,
                error: RpcError::invalid_request("a message must be an object"),
                answer: true,
            })
        });
        Ok(())
    });
    match read.and_then(|()| scanner.end()) {
        Ok(()) => Frame::Batch(items.into_iter().map(|item| item?.message(frame)).collect()),
        Err(_) if too_many => {
            let reason = format!("a batch must not have more than {MAX_BATCH} messages");
            Frame::Single(Err(Rejected { id: None, error: RpcError::invalid_request(reason), answer: true }))
        }
        Err(error) => Frame::Single(Err(refused(frame, error))),
    }
}

/// The positions of the members of a message in its frame.
#[derive(Default)]
struct MessageScan {
    jsonrpc: Span,
    id: Span,
    method: Span,
    params: ParamsScan,
    result: Span,
    error: Span,
    /// The first member that occurs twice.
    twice: Option<&'static str>,
}

impl MessageScan {
    fn scan(scanner: &mut Scanner<'_>) -> Result<Self, ScanError> {
        let mut flat = Self::default();
        scanner.members(|name, scanner| {
            let (name, span) = match name {
                b"jsonrpc" => ("jsonrpc", &mut flat.jsonrpc),
                b"id" => ("id", &mut flat.id),
                b"method" => ("method", &mut flat.method),
                b"result" => ("result", &mut flat.result),
                b"error" => ("error", &mut flat.error),
                b"params" if flat.params.is_absent() => return flat.params.scan(scanner),
                b"params" => {
                    flat.twice = flat.twice.or(Some("params"));
                    return scanner.value().map(drop);
                }
                _ => return scanner.value().map(drop),
            };
            let value = scanner.value()?;
            if span.is_absent() {
                *span = value;
            } else {
                flat.twice = flat.twice.or(Some(name));
            }
            Ok(())
        })?;
        Ok(flat)
    }

    fn message(self, frame: &Bytes) -> Result<Message, Rejected> {
        let has_method = !self.method.is_absent();
        let has_outcome = !(self.result.is_absent() && self.error.is_absent());
        let expects_answer = expects_answer(has_method, !self.id.is_absent(), has_outcome);
        let reject = |id: Option<Id>, error: RpcError, answer: bool| Err(Rejected { id, error, answer });
        let invalid = |id: Option<Id>, reason: &'static str, answer: bool| {
            reject(id, RpcError::invalid_request(reason), answer)
        };
        // JSON-RPC uses `null` if the id of the request could not be read.
        let unknown = !has_method && !self.error.is_absent() && self.id.bytes(frame) == b"null";
        let id = if unknown { Ok(None) } else { read_id(self.id, frame) };
        if let Some(name) = self.twice {
            // Two ids name no request.
            let id = id.ok().flatten().filter(|_| name != "id");
            return reject(id, RpcError::invalid_request(format!("`{name}` is given twice")), expects_answer);
        }
        let Ok(id) = id else {
            return invalid(None, "`id` must be a string or an integer", has_method);
        };
        if !self.jsonrpc.is_text(frame, "2.0") {
            return invalid(id, "`jsonrpc` must be \"2.0\"", expects_answer);
        }
        if has_method && has_outcome {
            return invalid(id, "a request must not have `result` or `error`", true);
        }
        if has_method {
            let Some(method) = self.method.text(frame) else {
                return invalid(id, "`method` must be a string", expects_answer);
            };
            let method = MethodName::of(&method);
            return match (self.params.read(frame), id) {
                (Ok(params), Some(id)) => Ok(Message::Request { id, method, params }),
                (Ok(params), None) => Ok(Message::Notification { method, params }),
                (Err(error), id) => reject(id, error, expects_answer),
            };
        }
        match (id, self.result.raw(frame), self.error.raw(frame)) {
            (Some(id), Some(result), None) => Ok(Message::Response { id, result }),
            (id, None, Some(error)) => match error.decode::<RpcError>() {
                Ok(error) => Ok(Message::Failure { id, error }),
                Err(_) => invalid(id, "`error` must have an integer `code` and a string `message`", false),
            },
            (id, Some(_), Some(_)) => {
                invalid(id, "a response must not have both `result` and `error`", false)
            }
            (id, ..) => invalid(id, "expected a `method`, a `result` or an `error`", true),
        }
    }
}

/// Returns whether an invalid message is answered. One that can only be a notification or response is not.
fn expects_answer(has_method: bool, has_id: bool, has_outcome: bool) -> bool {
    if has_method { has_id } else { !has_outcome }
}

/// Reads the id of a message, if it has one. Most are small numbers.
fn read_id(span: Span, frame: &[u8]) -> Result<Option<Id>, ()> {
    if span.is_absent() {
        return Ok(None);
    }
    let text = span.bytes(frame);
    if text.len() <= 18 && text.iter().all(u8::is_ascii_digit) {
        let number = text.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        return Ok(Some(Id::Number(number)));
    }
    serde_json::from_slice(text).map(Some).map_err(drop)
}

/// Builds the error for an invalid frame. One that only nests too deep is answered with its id.
fn refused(frame: &[u8], error: ScanError) -> Rejected {
    if error == ScanError::Depth {
        let partial = serde_json::from_slice::<PartialMessage>(frame).unwrap_or_default();
        let answer = expects_answer(partial.has_method, partial.has_id, partial.has_outcome);
        let reason = format!("JSON nested deeper than {MAX_DEPTH} levels");
        return Rejected { id: partial.id, error: RpcError::invalid_request(reason), answer };
    }
    match serde_json::from_slice::<PartialMessage>(frame) {
        // Only where a syntax error is, not what the members are.
        Err(error) if !error.is_data() => unreadable(error),
        _ if matches!(frame.trim_ascii_start().first(), Some(b'{' | b'[')) => {
            unreadable("the frame is not JSON")
        }
        _ => Rejected {
            id: None,
            error: RpcError::invalid_request("a message must be an object"),
            answer: true,
        },
    }
}

fn unreadable(reason: impl std::fmt::Display) -> Rejected {
    Rejected { id: None, error: RpcError::parse_error(reason.to_string()), answer: true }
}

/// What can be read of a frame whose members have the wrong type or occur twice.
#[derive(Default)]
struct PartialMessage {
    id: Option<Id>,
    has_id: bool,
    has_method: bool,
    has_outcome: bool,
}

impl<'de> Deserialize<'de> for PartialMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = PartialMessage;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<PartialMessage, A::Error> {
                let mut partial = PartialMessage::default();
                while let Some(Text(name)) = members.next_key()? {
                    match &*name {
                        "id" => {
                            let raw: &RawValue = members.next_value()?;
                            // Two ids name no request.
                            partial.id =
                                if partial.has_id { None } else { serde_json::from_str(raw.get()).ok() };
                            partial.has_id = true;
                        }
                        "method" => {
                            partial.has_method = true;
                            members.next_value::<IgnoredAny>()?;
                        }
                        "result" | "error" => {
                            partial.has_outcome = true;
                            members.next_value::<IgnoredAny>()?;
                        }
                        _ => drop(members.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(partial)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
    fn check(frame: &str, expected: Expect) {
        let actual = match parse(&Bytes::copy_from_slice(frame.as_bytes())) {
            Frame::Single(Ok(message)) => format!("{message:?}"),
            Frame::Single(Err(rejected)) => match rejected.reply() {
                Some(reply) => String::from_utf8_lossy(&reply).into_owned(),
                None => format!("dropped: {}", rejected.error),
            },
            Frame::Batch(items) => format!("batch of {}", items.len()),
        };
        expected.assert_eq(&actual);
    }

    #[test]
    fn kinds_follow_from_the_members() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            expect!["Request { id: Number(1), method: Known(Ping), params: None }"],
        );
        check(
            r#"{"jsonrpc":"2.0","method":"x/y","params":{"a":1}}"#,
            expect![[r#"Notification { method: Custom("x/y"), params: Some({"a":1}) }"#]],
        );
        check(
            r#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
            expect![[r#"Response { id: String("1"), result: {} }"#]],
        );
        check(
            r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#,
            expect![[r#"Failure { id: None, error: RpcError { code: -1, message: "no", data: None } }"#]],
        );
        check(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}"#,
            expect![[r#"Failure { id: None, error: RpcError { code: -1, message: "no", data: None } }"#]],
        );
        check("[]", expect!["batch of 0"]);
    }

    #[test]
    fn an_invalid_message_is_answered_once() {
        // proves: BASE-01, BASE-04, BASE-05, BASE-15, BASE-16
        check(
            r#"{"jsonrpc":"2.0","id":1,"#,
            expect![[
                r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"EOF while parsing a value at line 1 column 24"}}"#
            ]],
        );
        check(
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            expect![[
                r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"`id` must be a string or an integer"}}"#
            ]],
        );
        check(
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            expect![[
                r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"`id` must be a string or an integer"}}"#
            ]],
        );
        check(
            r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#,
            expect![[
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"`jsonrpc` must be \"2.0\""}}"#
            ]],
        );
        check(
            r#"{"jsonrpc":"2.0","id":3,"method":7}"#,
            expect![[
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"`method` must be a string"}}"#
            ]],
        );
        check(
            r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":[1]}"#,
            expect![[
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"`params` must be an object"}}"#
            ]],
        );
    }

    #[test]
    fn duplicate_members_are_refused() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
            expect![[r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"`id` is given twice"}}"#]],
        );
        check(
            r#"{"jsonrpc":"2.0","id":3,"method":"ping","method":"tools/list"}"#,
            expect![[
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"`method` is given twice"}}"#
            ]],
        );
    }

    #[test]
    fn frames_that_can_only_be_notifications_are_not_answered() {
        // proves: BASE-14
        check(
            r#"{"jsonrpc":"2.0","method":"a","method":"b"}"#,
            expect!["dropped: `method` is given twice (-32600)"],
        );
        check(r#"{"jsonrpc":"2.0","method":7}"#, expect!["dropped: `method` must be a string (-32600)"]);
        check(
            r#"{"jsonrpc":"2.0","method":"a","params":7}"#,
            expect!["dropped: `params` must be an object (-32602)"],
        );
    }

    #[test]
    fn a_malformed_response_is_not_answered() {
        // An error under its id would look like the answer to a request of the peer's own.
        for frame in [
            r#"{"id":5,"result":{}}"#,
            r#"{"jsonrpc":"1.0","id":5,"error":{"code":1,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","id":5,"result":{},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1,"message":"no"}}"#,
        ] {
            let Frame::Single(Err(rejected)) = parse(&Bytes::from_static(frame.as_bytes())) else {
                panic!("expected a rejection")
            };
            assert_eq!(rejected.reply(), None, "{frame}");
        }
    }

    #[test]
    fn a_batch_is_bounded_before_its_messages_are_read() {
        let batch = |items: usize| parse(&Bytes::from(format!("[{}1]", "1,".repeat(items - 1))));
        assert!(matches!(batch(MAX_BATCH), Frame::Batch(items) if items.len() == MAX_BATCH));
        let Frame::Single(Err(rejected)) = batch(MAX_BATCH + 1) else { panic!("expected a rejection") };
        assert_eq!(rejected.error.code, bowline_types::error_code::INVALID_REQUEST);
    }

    #[test]
    fn depth_is_bounded_whatever_the_strings_hold() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":9,"method":"ping","params":{}{}}}"#,
            r#"{"a":"#.repeat(100_000),
            "}".repeat(100_000)
        );
        let Frame::Single(Err(rejected)) = parse(&Bytes::from(deep)) else { panic!("expected a rejection") };
        assert!(rejected.error.message.contains("deeper than 128"), "{}", rejected.error);
        let flat =
            format!(r#"{{"jsonrpc":"2.0","id":9,"method":"ping","params":{{"a":"{}"}}}}"#, "[".repeat(1000));
        assert!(matches!(parse(&Bytes::from(flat)), Frame::Single(Ok(_))));
    }

    #[test]
    fn a_frame_that_is_not_utf8_is_a_parse_error() {
        // proves: BASE-19
        let Frame::Single(Err(rejected)) = parse(&Bytes::from_static(b"{\"a\":\"\xff\"}")) else {
            panic!("expected a rejection")
        };
        assert_eq!(rejected.error.code, bowline_types::error_code::PARSE_ERROR);
    }
}
