//! Multi round-trip requests: a result that asks for input, and the answers in the repeated request.

use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use std::fmt;

use crate::adapt::{Adapt, adapt_message_meta};
use crate::elicit::ElicitParams;
use crate::meta::Meta;
use crate::method::Method;
use crate::record::{once, present, record};
use crate::result::{EmptyParams, ResultType};
use crate::revision::Revision;
use crate::sampling::CreateMessageParams;
use crate::{OrderedMap, RawMap};
use bowline_json::{
    RawJson,
    borrow::{RawText, Text},
};

/// A request for input inside a result. It has no id.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a question to the user is the common case")]
pub enum InputRequest {
    /// Elicitation: ask the user.
    Elicit(ElicitParams),
    /// Sampling: ask the model.
    CreateMessage(Box<CreateMessageParams>),
    /// List the roots of the client.
    ListRoots,
}

/// Input requests by key. The responses use the same keys.
pub type InputRequests = OrderedMap<InputRequest>;

/// Responses by key: each is an `ElicitResult`, `CreateMessageResult` or `ListRootsResult`.
pub type InputResponses = RawMap;

impl InputRequest {
    /// Returns the method of the request.
    pub fn method(&self) -> Method {
        match self {
            Self::Elicit(_) => Method::Elicit,
            Self::CreateMessage(_) => Method::CreateMessage,
            Self::ListRoots => Method::ListRoots,
        }
    }

    /// Returns the params of the request, for a legacy session that sends it as a request of its own.
    pub fn params(&self) -> Option<RawJson> {
        match self {
            Self::Elicit(params) => Some(crate::to_json(params)),
            Self::CreateMessage(params) => Some(crate::to_json(params)),
            Self::ListRoots => None,
        }
    }
}

impl From<ElicitParams> for InputRequest {
    fn from(params: ElicitParams) -> Self {
        Self::Elicit(params)
    }
}

impl From<CreateMessageParams> for InputRequest {
    fn from(params: CreateMessageParams) -> Self {
        Self::CreateMessage(Box::new(params))
    }
}

impl Serialize for InputRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("method", self.method().as_str())?;
        match self {
            Self::Elicit(params) => map.serialize_entry("params", params)?,
            Self::CreateMessage(params) => map.serialize_entry("params", params)?,
            Self::ListRoots => {}
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for InputRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RequestVisitor;

        impl<'de> Visitor<'de> for RequestVisitor {
            type Value = InputRequest;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an input request")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut method, mut params) = (None::<Text<'de>>, None::<RawText<'de>>);
                while let Some(Text(key)) = map.next_key()? {
                    match key.as_ref() {
                        "method" => {
                            once(method.as_ref(), "method")?;
                            method = Some(map.next_value()?);
                        }
                        "params" => {
                            once(params.as_ref(), "params")?;
                            params = Some(map.next_value()?);
                        }
                        // Published examples show an `id` here, which has no meaning.
                        _ => {
                            map.next_value::<de::IgnoredAny>()?;
                        }
                    }
                }
                let Text(method) = present(method, "method")?;
                match Method::parse(&method) {
                    Some(Method::Elicit) => present(params, "params")?.decode().map(InputRequest::Elicit),
                    Some(Method::CreateMessage) => {
                        present(params, "params")?.decode().map(InputRequest::CreateMessage)
                    }
                    Some(Method::ListRoots) => {
                        if let Some(params) = params {
                            params.decode::<EmptyParams, _>()?;
                        }
                        Ok(InputRequest::ListRoots)
                    }
                    _ => Err(de::Error::unknown_variant(
                        &method,
                        &["elicitation/create", "sampling/createMessage", "roots/list"],
                    )),
                }
            }
        }

        deserializer.deserialize_map(RequestVisitor)
    }
}

record! {
    /// Result of a request that needs input from the client (from 2026-07-28).
    #[derive(Default)]
    pub struct InputRequiredResult {
        /// Type of the result; always `input_required` after [`Adapt::adapt`].
        optional result_type: ResultType = "resultType",
        /// The input requests.
        optional input_requests: InputRequests = "inputRequests",
        /// Opaque state that the client has to send back.
        optional request_state: String = "requestState",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

impl InputRequiredResult {
    /// Returns whether the result contains input requests or state, as the protocol requires.
    pub fn is_valid(&self) -> bool {
        self.input_requests.is_some() || self.request_state.is_some()
    }
}

impl Adapt for InputRequest {
    fn adapt(&mut self, to: Revision) {
        match self {
            Self::Elicit(params) => params.adapt(to),
            Self::CreateMessage(params) => params.adapt(to),
            Self::ListRoots => {}
        }
    }
}

impl Adapt for InputRequiredResult {
    fn adapt(&mut self, to: Revision) {
        adapt_message_meta(&mut self.meta, to);
        self.result_type = (to >= Revision::V2026_07_28).then_some(ResultType::InputRequired);
        if let Some(requests) = &mut self.input_requests {
            for (_, request) in requests.iter_mut() {
                request.adapt(to);
            }
        }
    }
}
