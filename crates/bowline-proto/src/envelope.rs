//! One frame in, one message out: the JSON-RPC envelope.
//!
//! A frame is parsed once into a flat struct; its kind follows from which members are present. `params` and `result`
//! stay slices of the frame.

use crate::lenient::{Text, present};
use bowline_types::{Id, Method, RawJson, RpcError};
use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::fmt;

/// How deep a frame may nest.
pub const MAX_DEPTH: usize = 128;
/// How many messages a batch may hold.
pub const MAX_BATCH: usize = 1000;

/// The method a message names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MethodName {
    /// A method of some revision.
    Known(Method),
    /// A method of no revision.
    Unknown(Box<str>),
}

impl MethodName {
    /// The name as it stands on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(method) => method.as_str(),
            Self::Unknown(name) => name,
        }
    }

    fn of(name: &str) -> Self {
        Method::parse(name).map_or_else(|| Self::Unknown(name.into()), Self::Known)
    }
}

/// One JSON-RPC message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Expects a response.
    Request {
        /// Names the request in its response.
        id: Id,
        /// What is asked for.
        method: MethodName,
        /// The arguments, absent when the member was.
        params: Option<RawJson>,
    },
    /// Expects nothing.
    Notification {
        /// What happened.
        method: MethodName,
        /// Details.
        params: Option<RawJson>,
    },
    /// A request succeeded.
    Response {
        /// The request it answers.
        id: Id,
        /// What it yields.
        result: RawJson,
    },
    /// A request failed.
    Failure {
        /// The request it answers; absent when the peer could not read the id.
        id: Option<Id>,
        /// Why.
        error: RpcError,
    },
}

/// A frame that is no message, with what to tell its sender.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejected {
    /// The id the frame carried, when it was readable.
    pub id: Option<Id>,
    /// Why it was rejected.
    pub error: RpcError,
    /// Whether an answer is due: a malformed notification or response gets none.
    pub answer: bool,
}

impl Rejected {
    /// The frame to send back, if one is due.
    pub fn reply(&self) -> Option<Bytes> {
        self.answer.then(|| crate::encode::failure(self.id.as_ref(), &self.error))
    }
}

/// What a frame holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Frame {
    /// One message.
    Single(Result<Message, Rejected>),
    /// An array of messages, as only 2025-03-26 knows it.
    Batch(Vec<Result<Message, Rejected>>),
}

/// Parses a frame. Never fails as a whole: what cannot be read is a [`Rejected`] with its answer.
pub fn parse(frame: &Bytes) -> Frame {
    let Ok(text) = std::str::from_utf8(frame) else {
        return Frame::Single(Err(unreadable("the frame is not UTF-8")));
    };
    if is_too_deep(frame) {
        return Frame::Single(Err(misshapen(text, format!("JSON nested deeper than {MAX_DEPTH} levels"))));
    }
    if text.trim_start().starts_with('[') {
        return match serde_json::from_str::<Items<'_>>(text) {
            Ok(Items(items)) => {
                Frame::Batch(items.into_iter().map(|item| message(frame, item.get())).collect())
            }
            Err(error) => Frame::Single(Err(malformed(text, &error))),
        };
    }
    Frame::Single(message(frame, text))
}

/// The messages of a batch. Counted while they are found, because each takes far more room than its text.
struct Items<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements;
        impl<'de> Visitor<'de> for Elements {
            type Value = Items<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a batch")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Items<'de>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = elements.next_element()? {
                    if items.len() == MAX_BATCH {
                        return Err(A::Error::custom(format!("a batch holds at most {MAX_BATCH} messages")));
                    }
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(Elements)
    }
}

#[derive(Deserialize)]
struct Flat<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

fn message(frame: &Bytes, text: &str) -> Result<Message, Rejected> {
    let flat: Flat<'_> = serde_json::from_str(text).map_err(|error| malformed(text, &error))?;
    let id = match flat.id {
        None => None,
        Some(raw) => match serde_json::from_str::<Id>(raw.get()) {
            Ok(id) => Some(id),
            Err(_) => {
                return Err(Rejected {
                    id: None,
                    error: RpcError::invalid_request("`id` must be a string or an integer"),
                    answer: flat.method.is_some(),
                });
            }
        },
    };
    let invalid = |id: Option<Id>, reason: &'static str, answer| {
        Err(Rejected { id, error: RpcError::invalid_request(reason), answer })
    };
    if flat.jsonrpc.is_none_or(|Text(version)| version != "2.0") {
        let is_response = flat.result.is_some() || flat.error.is_some();
        let answer = if flat.method.is_some() { id.is_some() } else { !is_response };
        return invalid(id, "`jsonrpc` must be \"2.0\"", answer);
    }
    let raw = |value: &RawValue| RawJson::slice_of(frame, value);
    match (flat.method, id, flat.result, flat.error) {
        (Some(method), id, None, None) => {
            let Text(method) = method;
            let method = MethodName::of(&method);
            let params = flat.params.map(raw);
            if params.as_ref().is_some_and(|params| !params.is_object()) {
                let answer = id.is_some();
                let error = RpcError::invalid_params("`params` must be an object");
                return Err(Rejected { id, error, answer });
            }
            Ok(match id {
                Some(id) => Message::Request { id, method, params },
                None => Message::Notification { method, params },
            })
        }
        (None, Some(id), Some(result), None) => Ok(Message::Response { id, result: raw(result) }),
        (None, id, None, Some(error)) => match serde_json::from_str::<RpcError>(error.get()) {
            Ok(error) => Ok(Message::Failure { id, error }),
            Err(_) => invalid(id, "`error` must hold an integer `code` and a `message`", false),
        },
        (Some(_), id, ..) => invalid(id, "a request holds neither `result` nor `error`", true),
        (None, id, Some(_), Some(_)) => invalid(id, "a response holds `result` or `error`, not both", false),
        (None, id, ..) => invalid(id, "expected a `method`, a `result` or an `error`", true),
    }
}

fn malformed(text: &str, error: &serde_json::Error) -> Rejected {
    if error.is_data() {
        return misshapen(text, error.to_string());
    }
    unreadable(error)
}

/// A frame that is JSON but no message. One that can only have been a notification or a response is not answered.
fn misshapen(text: &str, reason: String) -> Rejected {
    let salvaged = serde_json::from_str::<Salvaged>(text).unwrap_or_default();
    let answer = if salvaged.has_method { salvaged.has_id } else { !salvaged.has_outcome };
    Rejected { id: salvaged.id, error: RpcError::invalid_request(reason), answer }
}

fn unreadable(reason: impl std::fmt::Display) -> Rejected {
    Rejected { id: None, error: RpcError::parse_error(reason.to_string()), answer: true }
}

/// What can be made out of a frame whose members are of the wrong type or occur twice.
#[derive(Default)]
struct Salvaged {
    id: Option<Id>,
    has_id: bool,
    has_method: bool,
    has_outcome: bool,
}

impl<'de> Deserialize<'de> for Salvaged {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Salvaged;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Salvaged, A::Error> {
                let mut salvaged = Salvaged::default();
                while let Some(Text(name)) = members.next_key()? {
                    match &*name {
                        "id" => {
                            let raw: &RawValue = members.next_value()?;
                            // Two ids name no request.
                            salvaged.id =
                                if salvaged.has_id { None } else { serde_json::from_str(raw.get()).ok() };
                            salvaged.has_id = true;
                        }
                        "method" => {
                            salvaged.has_method = true;
                            members.next_value::<IgnoredAny>()?;
                        }
                        "result" | "error" => {
                            salvaged.has_outcome = true;
                            members.next_value::<IgnoredAny>()?;
                        }
                        _ => drop(members.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(salvaged)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// Skipping over a value does not recurse, so depth has to be looked for. Counting the opening brackets is enough for
/// almost every frame and runs at memory speed.
fn is_too_deep(frame: &[u8]) -> bool {
    if memchr::memchr2_iter(b'{', b'[', frame).take(MAX_DEPTH + 1).count() <= MAX_DEPTH {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in frame {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
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
            expect![[r#"Notification { method: Unknown("x/y"), params: Some({"a":1}) }"#]],
        );
        check(
            r#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
            expect![[r#"Response { id: String("1"), result: {} }"#]],
        );
        check(
            r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}"#,
            expect![[r#"Failure { id: None, error: RpcError { code: -1, message: "no", data: None } }"#]],
        );
        check("[]", expect!["batch of 0"]);
    }

    #[test]
    fn what_is_no_message_is_answered_once() {
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
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"invalid type: integer `7`, expected a string at line 1 column 34"}}"#
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
            expect![[
                r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"duplicate field `id` at line 1 column 28"}}"#
            ]],
        );
        check(
            r#"{"jsonrpc":"2.0","id":3,"method":"ping","method":"tools/list"}"#,
            expect![[
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"duplicate field `method` at line 1 column 48"}}"#
            ]],
        );
    }

    #[test]
    fn what_can_only_be_a_notification_is_not_answered() {
        // proves: BASE-14
        check(
            r#"{"jsonrpc":"2.0","method":"a","method":"b"}"#,
            expect!["dropped: duplicate field `method` at line 1 column 38 (-32600)"],
        );
        check(
            r#"{"jsonrpc":"2.0","method":7}"#,
            expect!["dropped: invalid type: integer `7`, expected a string at line 1 column 27 (-32600)"],
        );
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
