//! Which arguments of which tools travel in headers as well.

use bowline_client::{Error, Result};
use bowline_proto::header::ParamHeaders;
use bowline_types::{Method, RawJson, RawMap};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// How many tools are remembered.
const MAX_TOOLS: usize = 10_000;

/// The headers that the listed tools require.
#[derive(Debug, Default)]
pub(super) struct ToolHeaders {
    known: Mutex<HashMap<String, Arc<ParamHeaders>>>,
}

impl ToolHeaders {
    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<ParamHeaders>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the headers that repeat arguments of a call. A tool that was never listed has none.
    pub(super) fn headers(&self, tool: &str, params: &RawJson) -> Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        let Some(wanted) = self.known().get(tool).cloned() else { return Ok(headers) };
        let arguments = arguments(params);
        let unfit = |error: &dyn std::fmt::Display| Error::misuse(format!("tool `{tool}`: {error}"));
        for (name, value) in wanted.render(&arguments).map_err(|error| unfit(&error))? {
            let name = HeaderName::try_from(name).map_err(|error| unfit(&error))?;
            headers.insert(name, HeaderValue::try_from(value).map_err(|error| unfit(&error))?);
        }
        Ok(headers)
    }

    /// Takes note of the tools in an answer to `tools/list`, and gives it back without those that ask for what cannot
    /// be: one such tool must not hide the others.
    pub(super) fn screen(&self, frame: Bytes) -> Bytes {
        let Some((mut message, mut result, tools)) = listing(&frame) else { return frame };
        let all = tools.len();
        let kept: Vec<RawJson> = tools.into_iter().filter(|tool| self.note(tool)).collect();
        if kept.len() == all {
            return frame;
        }
        let rewritten = RawJson::of(&kept).and_then(|tools| {
            result.insert("tools", tools);
            message.insert("result", RawJson::of(&result)?);
            RawJson::of(&message)
        });
        rewritten.map_or(frame, |message| message.bytes().clone())
    }

    /// Remembers a tool. False when it is to be left out.
    fn note(&self, tool: &RawJson) -> bool {
        #[derive(Deserialize)]
        struct Listed {
            name: String,
            #[serde(rename = "inputSchema")]
            input_schema: Value,
        }
        // Entries that are not tools are left to the code that reads tools.
        let Ok(Listed { name, input_schema }) = tool.decode() else { return true };
        let headers = match ParamHeaders::from_schema(&input_schema) {
            Ok(headers) => headers,
            Err(error) => {
                tracing::warn!(tool = name, %error, "left out a tool whose `x-mcp-header` is invalid");
                self.known().remove(&name);
                return false;
            }
        };
        let mut known = self.known();
        if headers.is_empty() {
            known.remove(&name);
        } else if known.len() < MAX_TOOLS || known.contains_key(&name) {
            known.insert(name, Arc::new(headers));
        }
        true
    }
}

/// Returns the parts of a response to `tools/list`.
fn listing(frame: &Bytes) -> Option<(RawMap, RawMap, Vec<RawJson>)> {
    let message = RawJson::parse(frame.clone()).ok()?.members().ok()?;
    let result = message.get("result")?.members().ok()?;
    let tools = result.decode("tools").ok()??;
    Some((message, result, tools))
}

fn arguments(params: &RawJson) -> Value {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let arguments = params.decode::<Params<'_>>().ok().and_then(|params| params.arguments);
    arguments.and_then(|arguments| serde_json::from_str(arguments.get()).ok()).unwrap_or_default()
}

fn meta(params: &RawJson) -> Option<RawMap> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Option<RawMap>,
    }
    params.decode::<Params>().ok()?.meta
}

/// Returns a request for a page of tools that describes itself as the request with these parameters does.
pub(super) fn listing_request(params: &RawJson, id: &str, cursor: Option<&str>) -> Option<Bytes> {
    let mut meta = meta(params)?;
    // Progress is reported to the request that asked for it, and to no other.
    meta.remove(bowline_types::meta::key::PROGRESS_TOKEN);
    let mut params = RawMap::from([("_meta", RawJson::of(&meta).ok()?)]);
    if let Some(cursor) = cursor {
        params.insert("cursor", RawJson::of(cursor).ok()?);
    }
    let message = RawMap::from([
        ("jsonrpc", RawJson::of("2.0").ok()?),
        ("id", RawJson::of(id).ok()?),
        ("method", RawJson::of(Method::ListTools.as_str()).ok()?),
        ("params", RawJson::of(&params).ok()?),
    ]);
    RawJson::of(&message).ok().map(|message| message.bytes().clone())
}

/// Returns the cursor of the next page of tools. Fails if the response is not such a page.
pub(super) fn next_page(frame: &Bytes) -> Result<Option<String>> {
    let none = || Error::malformed("the reply", "it contains no list of tools");
    let (_, result, _) = listing(frame).ok_or_else(none)?;
    result.decode::<Option<String>>("nextCursor").map_err(|_| none()).map(Option::flatten)
}

/// Returns the revision that a request names.
pub(super) fn version_of(params: &RawJson) -> Option<String> {
    meta(params)?.decode(bowline_types::meta::key::PROTOCOL_VERSION).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn frame(value: &Value) -> Bytes {
        value.to_string().into()
    }

    fn listed(tools: &Value) -> Bytes {
        frame(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": tools, "ttlMs": 1.0 } }))
    }

    fn tool(name: &str, header: &str) -> Value {
        let region = json!({ "type": "string", "x-mcp-header": header });
        json!({ "name": name, "inputSchema": { "type": "object", "properties": { "region": region } } })
    }

    fn call(arguments: &Value) -> RawJson {
        json!({ "name": "a", "arguments": arguments }).into()
    }

    #[test]
    fn a_valid_list_is_forwarded_unchanged() {
        let tool_headers = ToolHeaders::default();
        let page = listed(&json!([tool("a", "Region"), { "name": "b", "inputSchema": {} }, 7]));
        assert_eq!(tool_headers.screen(page.clone()), page);
        let headers = tool_headers.headers("a", &call(&json!({ "region": "eu" }))).unwrap();
        assert_eq!(headers["mcp-param-region"], "eu");
        for arguments in [json!({}), json!({ "region": null })] {
            assert!(tool_headers.headers("a", &call(&arguments)).unwrap().is_empty());
        }
        assert!(tool_headers.headers("b", &call(&json!({ "region": "eu" }))).unwrap().is_empty());
        assert!(tool_headers.headers("never listed", &call(&json!({ "region": "eu" }))).unwrap().is_empty());
        assert!(tool_headers.headers("a", &call(&json!({ "region": [1] }))).is_err());
    }

    #[test]
    fn the_last_listing_is_used() {
        let tool_headers = ToolHeaders::default();
        tool_headers.screen(listed(&json!([tool("a", "Region")])));
        tool_headers.screen(listed(&json!([tool("a", "Zone")])));
        let headers = tool_headers.headers("a", &call(&json!({ "region": "eu" }))).unwrap();
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["mcp-param-zone"]);
        tool_headers.screen(listed(&json!([{ "name": "a", "inputSchema": {} }])));
        assert!(tool_headers.headers("a", &call(&json!({ "region": "eu" }))).unwrap().is_empty());
    }

    #[test]
    fn an_invalid_tool_is_left_out_and_nothing_else_changes() {
        let tool_headers = ToolHeaders::default();
        let page = tool_headers.screen(listed(&json!([
            tool("good", "A"),
            tool("bad", "no good"),
            tool("fine", "B")
        ])));
        let expected = listed(&json!([tool("good", "A"), tool("fine", "B")]));
        assert_eq!(page, expected);
    }
}
