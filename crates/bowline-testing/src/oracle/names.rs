//! Maps methods to the definitions of their messages and results.

use bowline_types::{Method, Revision};

/// Returns the definition of a request or notification, or `None` if the schema of the revision has none.
pub fn message_definition(method: Method, revision: Revision) -> Option<&'static str> {
    if !method.exists_in(revision) || is_extension(method, revision) {
        return None;
    }
    Some(match method {
        Method::Initialize => "InitializeRequest",
        Method::Ping => "PingRequest",
        Method::Discover => "DiscoverRequest",
        Method::ListTools => "ListToolsRequest",
        Method::CallTool => "CallToolRequest",
        Method::ListResources => "ListResourcesRequest",
        Method::ListResourceTemplates => "ListResourceTemplatesRequest",
        Method::ReadResource => "ReadResourceRequest",
        Method::Subscribe => "SubscribeRequest",
        Method::Unsubscribe => "UnsubscribeRequest",
        Method::ListPrompts => "ListPromptsRequest",
        Method::GetPrompt => "GetPromptRequest",
        Method::Complete => "CompleteRequest",
        Method::SetLevel => "SetLevelRequest",
        Method::Listen => "SubscriptionsListenRequest",
        Method::GetTask => "GetTaskRequest",
        Method::CancelTask => "CancelTaskRequest",
        Method::TaskResult => "GetTaskPayloadRequest",
        Method::ListTasks => "ListTasksRequest",
        Method::ListRoots => "ListRootsRequest",
        Method::CreateMessage => "CreateMessageRequest",
        Method::Elicit => "ElicitRequest",
        Method::Initialized => "InitializedNotification",
        Method::Cancelled => "CancelledNotification",
        Method::Progress => "ProgressNotification",
        Method::RootsListChanged => "RootsListChangedNotification",
        Method::TaskStatus => "TaskStatusNotification",
        Method::Message => "LoggingMessageNotification",
        Method::ToolsListChanged => "ToolListChangedNotification",
        Method::PromptsListChanged => "PromptListChangedNotification",
        Method::ResourcesListChanged => "ResourceListChangedNotification",
        Method::ResourceUpdated => "ResourceUpdatedNotification",
        Method::SubscriptionsAcknowledged => "SubscriptionsAcknowledgedNotification",
        Method::ElicitationComplete => "ElicitationCompleteNotification",
        _ => return None,
    })
}

/// Returns the definition of the complete result of a request, or `None` if the schema of the revision has none.
pub fn result_definition(method: Method, revision: Revision) -> Option<&'static str> {
    if !method.exists_in(revision) || is_extension(method, revision) {
        return None;
    }
    Some(match method {
        Method::Initialize => "InitializeResult",
        Method::Ping | Method::Subscribe | Method::Unsubscribe | Method::SetLevel => "EmptyResult",
        Method::Discover => "DiscoverResult",
        Method::ListTools => "ListToolsResult",
        Method::CallTool => "CallToolResult",
        Method::ListResources => "ListResourcesResult",
        Method::ListResourceTemplates => "ListResourceTemplatesResult",
        Method::ReadResource => "ReadResourceResult",
        Method::ListPrompts => "ListPromptsResult",
        Method::GetPrompt => "GetPromptResult",
        Method::Complete => "CompleteResult",
        Method::Listen => "SubscriptionsListenResult",
        Method::GetTask => "GetTaskResult",
        Method::CancelTask => "CancelTaskResult",
        Method::TaskResult => "GetTaskPayloadResult",
        Method::ListTasks => "ListTasksResult",
        Method::ListRoots => "ListRootsResult",
        Method::CreateMessage => "CreateMessageResult",
        Method::Elicit => "ElicitResult",
        _ => return None,
    })
}

/// Returns the definition of an error response with this code.
pub fn error_definition(code: i64, revision: Revision) -> &'static str {
    match (code, revision) {
        (-32042, Revision::V2025_11_25) => "URLElicitationRequiredError",
        (-32020, Revision::V2026_07_28) => "HeaderMismatchError",
        (-32021, Revision::V2026_07_28) => "MissingRequiredClientCapabilityError",
        (-32022, Revision::V2026_07_28) => "UnsupportedProtocolVersionError",
        (_, revision) if revision <= Revision::V2025_06_18 => "JSONRPCError",
        _ => "JSONRPCErrorResponse",
    }
}

/// Returns the definition of the envelope of a result.
pub(super) fn response_definition(revision: Revision) -> &'static str {
    if revision <= Revision::V2025_06_18 { "JSONRPCResponse" } else { "JSONRPCResultResponse" }
}

/// Extensions have their own schemas.
fn is_extension(method: Method, revision: Revision) -> bool {
    revision == Revision::V2026_07_28
        && matches!(method, Method::GetTask | Method::CancelTask | Method::UpdateTask | Method::TaskChanged)
}
