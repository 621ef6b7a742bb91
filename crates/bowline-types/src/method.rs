//! The table of methods: revisions, direction and required capabilities of each.

use std::fmt;

use crate::capability::TASKS_EXTENSION;
use crate::revision::Revision;
use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

/// Whether a method is a request or a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// Answered by a result or an error.
    Request,
    /// Never answered.
    Notification,
}

/// Who may send a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The client only.
    ClientToServer,
    /// The server only.
    ServerToClient,
    /// Either side.
    Both,
}

impl Direction {
    /// Returns whether a client may send it.
    pub const fn from_client(self) -> bool {
        matches!(self, Self::ClientToServer | Self::Both)
    }

    /// Returns whether a server may send it.
    pub const fn from_server(self) -> bool {
        matches!(self, Self::ServerToClient | Self::Both)
    }
}

/// A capability that a method requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Server: `tools`.
    Tools,
    /// Server: `tools.listChanged`.
    ToolsListChanged,
    /// Server: `resources`.
    Resources,
    /// Server: `resources.listChanged`.
    ResourcesListChanged,
    /// Server: `resources.subscribe`.
    ResourcesSubscribe,
    /// Server: `prompts`.
    Prompts,
    /// Server: `prompts.listChanged`.
    PromptsListChanged,
    /// Server: `completions` (from 2025-03-26; not required before).
    Completions,
    /// Server: `logging`.
    Logging,
    /// Either side: `tasks` (2025-11-25 only).
    Tasks,
    /// Either side: `tasks.list` (2025-11-25 only).
    TasksList,
    /// Either side: `tasks.cancel` (2025-11-25 only).
    TasksCancel,
    /// Client: `roots`.
    Roots,
    /// Client: `roots.listChanged` (legacy).
    RootsListChanged,
    /// Client: `sampling`.
    Sampling,
    /// Client: `elicitation` (from 2025-06-18).
    Elicitation,
}

impl Capability {
    /// Returns whether the revision has the capability. If not, nothing has to be declared.
    pub fn exists_in(self, revision: Revision) -> bool {
        match self {
            Self::Completions => revision >= V2025_03_26,
            Self::Elicitation => revision >= V2025_06_18,
            Self::Tasks | Self::TasksList | Self::TasksCancel => revision == V2025_11_25,
            Self::RootsListChanged => revision <= V2025_11_25,
            Self::Tools
            | Self::ToolsListChanged
            | Self::Resources
            | Self::ResourcesListChanged
            | Self::ResourcesSubscribe
            | Self::Prompts
            | Self::PromptsListChanged
            | Self::Logging
            | Self::Roots
            | Self::Sampling => true,
        }
    }
}

macro_rules! maybe {
    (-) => {
        None
    };
    ($value:ident) => {
        Some(Capability::$value)
    };
    ($value:literal) => {
        Some($value)
    };
}

macro_rules! methods {
    ($(
        $(#[$attribute:meta])*
        $variant:ident = $wire:literal, $kind:ident, $direction:ident, $first:ident..=$last:ident,
        server $server:tt, client $client:tt, name $name:tt;
    )*) => {
        /// A method of any revision.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $(
                $(#[$attribute])*
                #[doc = concat!("\n\n`", $wire, "`")]
                $variant,
            )*
        }

        impl Method {
            /// All methods.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)* }
            }

            /// Returns the method of this name in any revision.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($wire => Some(Self::$variant),)* _ => None }
            }

            /// Returns whether the method is a request or a notification.
            pub const fn kind(self) -> MethodKind {
                match self { $(Self::$variant => MethodKind::$kind,)* }
            }

            /// Returns who may send the method in any revision; see [`direction_in`](Self::direction_in).
            pub const fn direction(self) -> Direction {
                match self { $(Self::$variant => Direction::$direction,)* }
            }

            /// Returns the first and the last revision that have the method.
            pub const fn revisions(self) -> std::ops::RangeInclusive<Revision> {
                match self { $(Self::$variant => $first..=$last,)* }
            }

            /// Returns the capability that the server has to declare; see [`Capability::exists_in`].
            pub const fn capability(self) -> Option<Capability> {
                match self { $(Self::$variant => maybe!($server),)* }
            }

            /// Returns the capability that the client has to declare; see [`Capability::exists_in`].
            pub const fn client_capability(self) -> Option<Capability> {
                match self { $(Self::$variant => maybe!($client),)* }
            }

            /// Returns the member of params that the `Mcp-Name` header repeats.
            pub const fn name_source(self) -> Option<&'static str> {
                match self { $(Self::$variant => maybe!($name),)* }
            }
        }
    };
}

methods! {
    /// Opens a legacy session.
    Initialize = "initialize", Request, ClientToServer, V2024_11_05..=V2025_11_25,
        server -, client -, name -;
    /// Checks that the peer responds.
    Ping = "ping", Request, Both, V2024_11_05..=V2025_11_25,
        server -, client -, name -;
    /// Describes a modern server.
    Discover = "server/discover", Request, ClientToServer, V2026_07_28..=V2026_07_28,
        server -, client -, name -;
    /// Lists tools.
    ListTools = "tools/list", Request, ClientToServer, V2024_11_05..=V2026_07_28,
        server Tools, client -, name -;
    /// Calls a tool.
    CallTool = "tools/call", Request, ClientToServer, V2024_11_05..=V2026_07_28,
        server Tools, client -, name "name";
    /// Lists resources.
    ListResources = "resources/list", Request, ClientToServer, V2024_11_05..=V2026_07_28,
        server Resources, client -, name -;
    /// Lists resource templates.
    ListResourceTemplates = "resources/templates/list", Request, ClientToServer, V2024_11_05..=V2026_07_28,
        server Resources, client -, name -;
    /// Reads a resource.
    ReadResource = "resources/read", Request, ClientToServer, V2024_11_05..=V2026_07_28,
        server Resources, client -, name "uri";
    /// Subscribes to changes of a resource.
    Subscribe = "resources/subscribe", Request, ClientToServer, V2024_11_05..=V2025_11_25,
        server ResourcesSubscribe, client -, name -;
    /// Unsubscribes from changes of a resource.
    Unsubscribe = "resources/unsubscribe", Request, ClientToServer, V2024_11_05..=V2025_11_25,
        server ResourcesSubscribe, client -, name -;
    /// Lists prompts.
    ListPrompts = "prompts/list", Request, ClientToServer, V2024_11_05..=V2026_07_28,
        server Prompts, client -, name -;
    /// Gets the messages of a prompt.
    GetPrompt = "prompts/get", Request, ClientToServer, V2024_11_05..=V2026_07_28,
        server Prompts, client -, name "name";
    /// Gets suggestions for an argument.
    Complete = "completion/complete", Request, ClientToServer, V2024_11_05..=V2026_07_28,
        server Completions, client -, name -;
    /// Sets the lowest level of log messages.
    SetLevel = "logging/setLevel", Request, ClientToServer, V2024_11_05..=V2025_11_25,
        server Logging, client -, name -;
    /// Subscribes to changes for as long as the request runs.
    Listen = "subscriptions/listen", Request, ClientToServer, V2026_07_28..=V2026_07_28,
        server -, client -, name -;
    /// Gets the state of a task.
    GetTask = "tasks/get", Request, Both, V2025_11_25..=V2026_07_28,
        server Tasks, client Tasks, name "taskId";
    /// Cancels a task.
    CancelTask = "tasks/cancel", Request, Both, V2025_11_25..=V2026_07_28,
        server TasksCancel, client TasksCancel, name "taskId";
    /// Waits for the result of a task.
    TaskResult = "tasks/result", Request, Both, V2025_11_25..=V2025_11_25,
        server Tasks, client Tasks, name -;
    /// Lists tasks.
    ListTasks = "tasks/list", Request, Both, V2025_11_25..=V2025_11_25,
        server TasksList, client TasksList, name -;
    /// Sends input that a task requested.
    UpdateTask = "tasks/update", Request, ClientToServer, V2026_07_28..=V2026_07_28,
        server -, client -, name "taskId";
    /// Lists the roots of the client; in the modern era only inside results.
    ListRoots = "roots/list", Request, ServerToClient, V2024_11_05..=V2025_11_25,
        server -, client Roots, name -;
    /// Asks the model; in the modern era only inside results.
    CreateMessage = "sampling/createMessage", Request, ServerToClient, V2024_11_05..=V2025_11_25,
        server -, client Sampling, name -;
    /// Asks the user; in the modern era only inside results.
    Elicit = "elicitation/create", Request, ServerToClient, V2025_06_18..=V2025_11_25,
        server -, client Elicitation, name -;
    /// Completes the handshake.
    Initialized = "notifications/initialized", Notification, ClientToServer, V2024_11_05..=V2025_11_25,
        server -, client -, name -;
    /// Cancels a request or ends a subscription.
    Cancelled = "notifications/cancelled", Notification, Both, V2024_11_05..=V2026_07_28,
        server -, client -, name -;
    /// Reports progress of a request.
    Progress = "notifications/progress", Notification, Both, V2024_11_05..=V2026_07_28,
        server -, client -, name -;
    /// The roots changed.
    RootsListChanged = "notifications/roots/list_changed", Notification, ClientToServer,
        V2024_11_05..=V2025_11_25,
        server -, client RootsListChanged, name -;
    /// A task changed (2025-11-25).
    TaskStatus = "notifications/tasks/status", Notification, Both, V2025_11_25..=V2025_11_25,
        server -, client -, name -;
    /// A log message.
    Message = "notifications/message", Notification, ServerToClient, V2024_11_05..=V2026_07_28,
        server Logging, client -, name -;
    /// The list of tools changed.
    ToolsListChanged = "notifications/tools/list_changed", Notification, ServerToClient,
        V2024_11_05..=V2026_07_28,
        server ToolsListChanged, client -, name -;
    /// The list of prompts changed.
    PromptsListChanged = "notifications/prompts/list_changed", Notification, ServerToClient,
        V2024_11_05..=V2026_07_28,
        server PromptsListChanged, client -, name -;
    /// The list of resources changed.
    ResourcesListChanged = "notifications/resources/list_changed", Notification, ServerToClient,
        V2024_11_05..=V2026_07_28,
        server ResourcesListChanged, client -, name -;
    /// A resource changed.
    ResourceUpdated = "notifications/resources/updated", Notification, ServerToClient,
        V2024_11_05..=V2026_07_28,
        server ResourcesSubscribe, client -, name -;
    /// Acknowledges a subscription; its first message.
    SubscriptionsAcknowledged = "notifications/subscriptions/acknowledged", Notification, ServerToClient,
        V2026_07_28..=V2026_07_28,
        server -, client -, name -;
    /// The user finished a URL elicitation.
    ElicitationComplete = "notifications/elicitation/complete", Notification, ServerToClient,
        V2025_11_25..=V2025_11_25,
        server -, client Elicitation, name -;
    /// A task changed (tasks extension).
    TaskChanged = "notifications/tasks", Notification, ServerToClient, V2026_07_28..=V2026_07_28,
        server -, client -, name -;
}

impl Method {
    /// Returns whether the revision has the method, in its core or in an [`extension`](Self::extension).
    pub fn exists_in(self, revision: Revision) -> bool {
        self.revisions().contains(&revision)
    }

    /// Returns who may send the method in a revision; `None` if the revision does not have it.
    pub fn direction_in(self, revision: Revision) -> Option<Direction> {
        if !self.exists_in(revision) {
            return None;
        }
        // In the modern era servers send no requests, and only they report progress.
        match (self, revision) {
            (Self::Progress, V2026_07_28) => Some(Direction::ServerToClient),
            (Self::GetTask | Self::CancelTask, V2026_07_28) => Some(Direction::ClientToServer),
            _ => Some(self.direction()),
        }
    }

    /// Returns the extension that the method belongs to in 2026-07-28. In 2025-11-25 tasks are part of the core.
    pub const fn extension(self) -> Option<&'static str> {
        match self {
            Self::GetTask | Self::CancelTask | Self::UpdateTask | Self::TaskChanged => Some(TASKS_EXTENSION),
            _ => None,
        }
    }

    /// Returns whether the method asks the client for input: a request in the legacy era, part of a result in the
    /// modern one.
    pub const fn is_ask(self) -> bool {
        matches!(self, Self::ListRoots | Self::CreateMessage | Self::Elicit)
    }

    /// Returns whether the method is a request.
    pub const fn is_request(self) -> bool {
        matches!(self.kind(), MethodKind::Request)
    }

    /// Returns whether the method is a notification.
    pub const fn is_notification(self) -> bool {
        matches!(self.kind(), MethodKind::Notification)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}
