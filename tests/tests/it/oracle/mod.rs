//! Whatever is written for a revision is what the official schema of that revision allows, and nothing else.
//!
//! Values with the members of all revisions are read into the vocabulary, adapted to each revision, written, and held
//! against the schema twice: as published, and closed, so that a member of another revision cannot hide.

mod asking;
mod frames;
mod json;
mod values;

use bowline_testing::{
    Oracle,
    oracle::{error_definition, message_definition},
};
use bowline_types::{
    Adapt, CallToolResult, ClientCapabilities, CompleteResult, CreateMessageParams, CreateMessageResult,
    DiscoverResult, ElicitParams, ElicitResult, GetPromptResult, InitializeParams, InitializeResult,
    InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListRootsResult, ListToolsResult, LogMessageParams, Method, ProgressParams, Prompt, ReadResourceResult,
    Resource, ResourceTemplate, Revision, RpcError, ServerCapabilities, Tool,
};
use json::Values;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::sync::LazyLock;

static ORACLES: LazyLock<[Oracle; 2]> = LazyLock::new(|| {
    let open = crate::oracle();
    let closed = open.closed();
    [open, closed]
});

/// Reads, adapts, writes and validates. `definition` names what the adapted value has to be in a revision, and may put it
/// into a frame; `None` where the revision has no such thing.
fn check<T: DeserializeOwned + Serialize + Adapt>(
    values: &Values,
    definition: impl Fn(Revision, Value) -> Option<(&'static str, Value)>,
) {
    let oracles = &*ORACLES;
    // The same values each time, so that a change fails for what it changes; `PROPTEST_CASES` asks for more of them.
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    let config = Config { cases: asked.unwrap_or(64), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let outcome = runner.run(values, |value| {
        for revision in Revision::ALL {
            let fail = |reason: String| TestCaseError::fail(format!("{revision}: {reason}"));
            let mut adapted: T =
                serde_json::from_value(value.clone()).map_err(|error| fail(error.to_string()))?;
            adapted.adapt(revision);
            let written = serde_json::to_value(&adapted).map_err(|error| fail(error.to_string()))?;
            let Some((name, framed)) = definition(revision, written) else { continue };
            for oracle in oracles {
                oracle
                    .validate(revision, name, &framed)
                    .map_err(|reason| fail(format!("{reason}\nwritten: {framed}")))?;
            }
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// A definition that every revision has.
fn always(name: &'static str) -> impl Fn(Revision, Value) -> Option<(&'static str, Value)> {
    move |_, value| Some((name, value))
}

/// A definition that the revisions from `first` on have.
fn since(first: Revision, name: &'static str) -> impl Fn(Revision, Value) -> Option<(&'static str, Value)> {
    move |revision, value| (revision >= first).then_some((name, value))
}

/// The message of a method around its params, as the schema of each revision writes it.
fn message(method: Method) -> impl Fn(Revision, Value) -> Option<(&'static str, Value)> {
    move |revision, params| {
        let embedded = matches!(method, Method::Elicit | Method::CreateMessage) && revision.is_modern();
        let definition = match method {
            Method::Elicit if embedded => "ElicitRequest",
            Method::CreateMessage if embedded => "CreateMessageRequest",
            _ => message_definition(method, revision)?,
        };
        let mut frame = json!({ "method": method.as_str(), "params": params });
        // The schemas before 2025-11-25 describe messages without their envelope.
        if revision >= Revision::V2025_11_25 && !embedded {
            frame["jsonrpc"] = "2.0".into();
            if method.kind() == bowline_types::MethodKind::Request {
                frame["id"] = 1.into();
            }
        }
        Some((definition, frame))
    }
}

#[test]
fn tools() {
    check::<Tool>(&values::tool(), always("Tool"));
    check::<ListToolsResult>(&values::page("tools", values::tool()), always("ListToolsResult"));
}

#[test]
fn results_of_tools() {
    // proves: TOOL-19, TOOL-20, TOOL-21
    check::<CallToolResult>(&values::call_tool_result(), always("CallToolResult"));
}

#[test]
fn resources() {
    check::<Resource>(&values::resource(), always("Resource"));
    check::<ResourceTemplate>(&values::resource_template(), always("ResourceTemplate"));
    check::<ListResourcesResult>(
        &values::page("resources", values::resource()),
        always("ListResourcesResult"),
    );
    check::<ListResourceTemplatesResult>(
        &values::page("resourceTemplates", values::resource_template()),
        always("ListResourceTemplatesResult"),
    );
    check::<ReadResourceResult>(&values::read_resource_result(), always("ReadResourceResult"));
}

#[test]
fn prompts() {
    check::<Prompt>(&values::prompt(), always("Prompt"));
    check::<ListPromptsResult>(&values::page("prompts", values::prompt()), always("ListPromptsResult"));
    check::<GetPromptResult>(&values::get_prompt_result(), always("GetPromptResult"));
}

#[test]
fn completions() {
    check::<CompleteResult>(&values::complete_result(), always("CompleteResult"));
}

#[test]
fn capabilities() {
    check::<ClientCapabilities>(&values::client_capabilities(), always("ClientCapabilities"));
    check::<ServerCapabilities>(&values::server_capabilities(), always("ServerCapabilities"));
}

#[test]
fn openings() {
    let legacy = |revision: Revision, value| revision.is_legacy().then_some(("InitializeResult", value));
    check::<InitializeParams>(&values::initialize_params(), message(Method::Initialize));
    check::<InitializeResult>(&values::initialize_result(), legacy);
    check::<DiscoverResult>(&values::discover_result(), since(Revision::V2026_07_28, "DiscoverResult"));
}

#[test]
fn questions_to_models() {
    check::<CreateMessageParams>(&asking::create_message_params(), message(Method::CreateMessage));
    check::<CreateMessageResult>(&asking::create_message_result(), always("CreateMessageResult"));
}

#[test]
fn questions_to_users() {
    check::<ElicitParams>(&asking::form_params(), message(Method::Elicit));
    let url = message(Method::Elicit);
    check::<ElicitParams>(&asking::url_params(), |revision, params| {
        if revision < Revision::V2025_11_25 { None } else { url(revision, params) }
    });
    check::<ElicitResult>(&asking::elicit_result(), since(Revision::V2025_06_18, "ElicitResult"));
}

#[test]
fn questions_in_results() {
    // proves: MRTR-07
    let modern = since(Revision::V2026_07_28, "InputRequiredResult");
    check::<InputRequiredResult>(&asking::input_required_result(), modern);
}

#[test]
fn roots() {
    check::<ListRootsResult>(&asking::list_roots_result(), always("ListRootsResult"));
}

#[test]
fn notices() {
    // proves: PROG-03, PROG-08
    check::<ProgressParams>(&asking::progress_params(), message(Method::Progress));
    check::<LogMessageParams>(&asking::log_params(), message(Method::Message));
}

#[test]
fn errors() {
    // proves: BASE-10, BASE-11
    check::<RpcError>(&asking::error(), |revision, error| {
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let frame = json!({ "jsonrpc": "2.0", "id": 1, "error": error });
        Some((error_definition(code, revision), frame))
    });
}
