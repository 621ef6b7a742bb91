//! The published example messages of 2026-07-28, through the type that their folder names.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use bowline_types::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads a value as `T` and writes it again.
fn through<T: Serialize + DeserializeOwned>(value: &Value) -> Result<Value, serde_json::Error> {
    let direct: T = serde_json::from_str(&value.to_string())?;
    serde_json::to_value(&direct)
}

/// Reads the envelope of a message as this vocabulary does, and its payload as `T`.
fn message<T: Serialize + DeserializeOwned>(
    value: &Value,
    payload: &str,
) -> Result<Value, serde_json::Error> {
    let mut written = Map::new();
    for (key, member) in value.as_object().into_iter().flatten() {
        let member = match key.as_str() {
            "id" => through::<Id>(member)?,
            "method" => {
                let method = member.as_str().and_then(Method::parse);
                method.map_or(Value::Null, |method| Value::from(method.as_str()))
            }
            key if key == payload => through::<T>(member)?,
            _ => member.clone(),
        };
        written.insert(key.clone(), member);
    }
    Ok(Value::Object(written))
}

/// What the type named by a folder makes of an example; `None` when no type has that name.
fn interpret(folder: &str, value: &Value) -> Option<Result<Value, serde_json::Error>> {
    macro_rules! table {
        ($(plain $($plain:ident)*;)? $(renamed $($renamed:literal $type:ident)*;)?
         $(params $($request:literal $params:ident)*;)? $(result $($response:literal $result:ident)*;)?
         $(error $($failure:literal)*;)?) => {
            match folder {
                $($(stringify!($plain) => through::<$plain>(value),)*)?
                $($($renamed => through::<$type>(value),)*)?
                $($($request => message::<$params>(value, "params"),)*)?
                $($($response => message::<$result>(value, "result"),)*)?
                $($($failure => message::<RpcError>(value, "error"),)*)?
                _ => return None,
            }
        };
    }
    Some(table! {
        plain AudioContent BlobResourceContents BooleanSchema CallToolResult ClientCapabilities CompleteResult
            CreateMessageResult DiscoverResult ElicitResult EmbeddedResource GetPromptResult ImageContent
            InputRequests InputRequiredResult InputResponses ListPromptsResult ListResourceTemplatesResult
            ListResourcesResult ListRootsResult ListToolsResult ModelPreferences NumberSchema ReadResourceResult
            Resource ResourceLink Root SamplingMessage ServerCapabilities StringSchema SubscriptionsListenResult
            TextContent TextResourceContents Tool ToolResultContent ToolUseContent;
        renamed
            "CallToolRequestParams" CallToolParams
            "CancelledNotificationParams" CancelledParams
            "CompleteRequestParams" CompleteParams
            "CreateMessageRequest" InputRequest
            "CreateMessageRequestParams" CreateMessageParams
            "ElicitRequest" InputRequest
            "ElicitRequestFormParams" ElicitParams
            "ElicitRequestURLParams" ElicitParams
            "GetPromptRequestParams" GetPromptParams
            "InternalError" RpcError
            "InvalidParamsError" RpcError
            "LoggingMessageNotificationParams" LogMessageParams
            "MethodNotFoundError" RpcError
            "PaginatedRequestParams" PaginatedParams
            "ParseError" RpcError
            "ProgressNotificationParams" ProgressParams
            "ResourceUpdatedNotificationParams" ResourceUpdatedParams
            "TitledMultiSelectEnumSchema" PrimitiveSchema
            "TitledSingleSelectEnumSchema" PrimitiveSchema
            "UntitledMultiSelectEnumSchema" PrimitiveSchema
            "UntitledSingleSelectEnumSchema" PrimitiveSchema;
        params
            "CallToolRequest" CallToolParams
            "CancelledNotification" CancelledParams
            "CompleteRequest" CompleteParams
            "DiscoverRequest" EmptyParams
            "GetPromptRequest" GetPromptParams
            "ListPromptsRequest" PaginatedParams
            "ListResourceTemplatesRequest" PaginatedParams
            "ListResourcesRequest" PaginatedParams
            "ListRootsRequest" EmptyParams
            "ListToolsRequest" PaginatedParams
            "LoggingMessageNotification" LogMessageParams
            "ProgressNotification" ProgressParams
            "PromptListChangedNotification" EmptyParams
            "ReadResourceRequest" ReadResourceParams
            "ResourceListChangedNotification" EmptyParams
            "ResourceUpdatedNotification" ResourceUpdatedParams
            "SubscriptionsAcknowledgedNotification" SubscriptionsAcknowledgedParams
            "SubscriptionsListenRequest" SubscriptionsListenParams
            "ToolListChangedNotification" EmptyParams;
        result
            "CallToolResultResponse" CallToolResult
            "CompleteResultResponse" CompleteResult
            "DiscoverResultResponse" DiscoverResult
            "GetPromptResultResponse" GetPromptResult
            "ListPromptsResultResponse" ListPromptsResult
            "ListResourceTemplatesResultResponse" ListResourceTemplatesResult
            "ListResourcesResultResponse" ListResourcesResult
            "ListToolsResultResponse" ListToolsResult
            "ReadResourceResultResponse" ReadResourceResult
            "SubscriptionsListenResultResponse" SubscriptionsListenResult;
        error
            "HeaderMismatchError" "MissingRequiredClientCapabilityError" "UnsupportedProtocolVersionError";
    })
}

#[test]
fn published_examples_survive() {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec");
    let root =
        std::env::var_os("BOWLINE_SPEC").map_or_else(beside, PathBuf::from).join("examples/2026-07-28");
    let Ok(folders) = fs::read_dir(&root) else {
        // Not `eprintln!`: the harness hides that. `.ci/run` counts the lines that begin like this.
        let line = "\nskipped: published_examples_survive: set BOWLINE_SPEC to a folder with the official examples\n";
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return;
    };
    let mut seen = 0;
    for folder in folders {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        for file in fs::read_dir(folder.path()).unwrap() {
            let path = file.unwrap().path();
            let value: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let written = interpret(&name, &value)
                .unwrap_or_else(|| panic!("no type is named {name}"))
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(written, value, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 0, "the folder of examples is empty");
}
