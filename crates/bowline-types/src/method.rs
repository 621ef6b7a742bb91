//! Which methods there are: one row each, with the revisions that have it and what it needs.

use std::fmt;

use crate::capability::TASKS_EXTENSION;
use crate::revision::Revision;
use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

/// Whether a method is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// It is answered by a result or an error.
    Request,
    /// It is never answered.
    Notification,
}

/// Who may send a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The client.
    ClientToServer,
    /// The server.
    ServerToClient,
    /// Either side.
    Both,
}

impl Direction {
    /// Whether a client may send it.
    pub const fn from_client(self) -> bool {
        matches!(self, Self::ClientToServer | Self::Both)
    }

    /// Whether a server may send it.
    pub const fn from_server(self) -> bool {
        matches!(self, Self::ServerToClient | Self::Both)
    }
}

/// What one side has to declare before a method may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// Server: `completions` (from 2025-03-26; before, nothing had to be declared).
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
    /// Whether the revision has the capability at all; if not, nothing has to be declared.
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

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $wire,)* }
            }

            /// The method of that name in any revision.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($wire => Some(Self::$variant),)* _ => None }
            }

            /// Whether the method is answered.
            pub const fn kind(self) -> MethodKind {
                match self { $(Self::$variant => MethodKind::$kind,)* }
            }

            /// Who may send the method in some revision; see [`direction_in`](Self::direction_in).
            pub const fn direction(self) -> Direction {
                match self { $(Self::$variant => Direction::$direction,)* }
            }

            /// The first and the last revision that have the method.
            pub const fn revisions(self) -> std::ops::RangeInclusive<Revision> {
                match self { $(Self::$variant => $first..=$last,)* }
            }

            /// What the server has to declare for the method to be used; see [`Capability::exists_in`].
            pub const fn capability(self) -> Option<Capability> {
                match self { $(Self::$variant => maybe!($server),)* }
            }

            /// What the client has to declare for the method to be used; see [`Capability::exists_in`].
            pub const fn client_capability(self) -> Option<Capability> {
                match self { $(Self::$variant => maybe!($client),)* }
            }

            /// The member of params that the `Mcp-Name` header repeats.
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
    /// Asks whether the peer is alive.
    Ping = "ping", Request, Both, V2024_11_05..=V2025_11_25,
        server -, client -, name -;
    /// Asks what a modern server is.
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
    /// Asks to be told when a resource changes.
    Subscribe = "resources/subscribe", Request, ClientToServer, V2024_11_05..=V2025_11_25,
        server ResourcesSubscribe, client -, name -;
    /// Takes that back.
    Unsubscribe = "resources/unsubscribe", Request, ClientToServer, V2024_11_05..=V2025_11_25,
        server ResourcesSubscribe, client -, name -;
    /// Lists prompts.
    ListPrompts = "prompts/list", Request, ClientToServer, V2024_11_05..=V2026_07_28,
        server Prompts, client -, name -;
    /// Fills in a prompt.
    GetPrompt = "prompts/get", Request, ClientToServer, V2024_11_05..=V2026_07_28,
        server Prompts, client -, name "name";
    /// Asks for proposals for an argument.
    Complete = "completion/complete", Request, ClientToServer, V2024_11_05..=V2026_07_28,
        server Completions, client -, name -;
    /// Sets the least level of log messages.
    SetLevel = "logging/setLevel", Request, ClientToServer, V2024_11_05..=V2025_11_25,
        server Logging, client -, name -;
    /// Asks to be told of changes, as long as the request lasts.
    Listen = "subscriptions/listen", Request, ClientToServer, V2026_07_28..=V2026_07_28,
        server -, client -, name -;
    /// Asks how a task is doing.
    GetTask = "tasks/get", Request, Both, V2025_11_25..=V2026_07_28,
        server Tasks, client Tasks, name "taskId";
    /// Gives a task up.
    CancelTask = "tasks/cancel", Request, Both, V2025_11_25..=V2026_07_28,
        server TasksCancel, client TasksCancel, name "taskId";
    /// Waits for what a task gives.
    TaskResult = "tasks/result", Request, Both, V2025_11_25..=V2025_11_25,
        server Tasks, client Tasks, name -;
    /// Lists tasks.
    ListTasks = "tasks/list", Request, Both, V2025_11_25..=V2025_11_25,
        server TasksList, client TasksList, name -;
    /// Answers the questions of a task.
    UpdateTask = "tasks/update", Request, ClientToServer, V2026_07_28..=V2026_07_28,
        server -, client -, name "taskId";
    /// Asks for the roots; in the modern era only inside of results.
    ListRoots = "roots/list", Request, ServerToClient, V2024_11_05..=V2025_11_25,
        server -, client Roots, name -;
    /// Asks the model; in the modern era only inside of results.
    CreateMessage = "sampling/createMessage", Request, ServerToClient, V2024_11_05..=V2025_11_25,
        server -, client Sampling, name -;
    /// Asks the user; in the modern era only inside of results.
    Elicit = "elicitation/create", Request, ServerToClient, V2025_06_18..=V2025_11_25,
        server -, client Elicitation, name -;
    /// Ends the handshake.
    Initialized = "notifications/initialized", Notification, ClientToServer, V2024_11_05..=V2025_11_25,
        server -, client -, name -;
    /// Gives a request up, or ends a subscription.
    Cancelled = "notifications/cancelled", Notification, Both, V2024_11_05..=V2026_07_28,
        server -, client -, name -;
    /// Says how far a request is.
    Progress = "notifications/progress", Notification, Both, V2024_11_05..=V2026_07_28,
        server -, client -, name -;
    /// The roots have changed.
    RootsListChanged = "notifications/roots/list_changed", Notification, ClientToServer,
        V2024_11_05..=V2025_11_25,
        server -, client RootsListChanged, name -;
    /// A task has changed (2025-11-25).
    TaskStatus = "notifications/tasks/status", Notification, Both, V2025_11_25..=V2025_11_25,
        server -, client -, name -;
    /// A message for the log.
    Message = "notifications/message", Notification, ServerToClient, V2024_11_05..=V2026_07_28,
        server Logging, client -, name -;
    /// The list of tools has changed.
    ToolsListChanged = "notifications/tools/list_changed", Notification, ServerToClient,
        V2024_11_05..=V2026_07_28,
        server ToolsListChanged, client -, name -;
    /// The list of prompts has changed.
    PromptsListChanged = "notifications/prompts/list_changed", Notification, ServerToClient,
        V2024_11_05..=V2026_07_28,
        server PromptsListChanged, client -, name -;
    /// The list of resources has changed.
    ResourcesListChanged = "notifications/resources/list_changed", Notification, ServerToClient,
        V2024_11_05..=V2026_07_28,
        server ResourcesListChanged, client -, name -;
    /// A resource has changed.
    ResourceUpdated = "notifications/resources/updated", Notification, ServerToClient,
        V2024_11_05..=V2026_07_28,
        server ResourcesSubscribe, client -, name -;
    /// Says which part of a subscription is honored; the first message of each.
    SubscriptionsAcknowledged = "notifications/subscriptions/acknowledged", Notification, ServerToClient,
        V2026_07_28..=V2026_07_28,
        server -, client -, name -;
    /// The user has finished with a page.
    ElicitationComplete = "notifications/elicitation/complete", Notification, ServerToClient,
        V2025_11_25..=V2025_11_25,
        server -, client Elicitation, name -;
    /// A task has changed (tasks extension).
    TaskChanged = "notifications/tasks", Notification, ServerToClient, V2026_07_28..=V2026_07_28,
        server -, client -, name -;
}

impl Method {
    /// Whether the revision has the method, as part of its core or of an [`extension`](Self::extension).
    pub fn exists_in(self, revision: Revision) -> bool {
        self.revisions().contains(&revision)
    }

    /// Who may send the method in a revision; `None` when the revision has it not.
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

    /// The extension that the method belongs to in 2026-07-28. In 2025-11-25 tasks are part of the core.
    pub const fn extension(self) -> Option<&'static str> {
        match self {
            Self::GetTask | Self::CancelTask | Self::UpdateTask | Self::TaskChanged => Some(TASKS_EXTENSION),
            _ => None,
        }
    }

    /// Whether the method asks the client for input: a request in the legacy era, part of a result in the
    /// modern one.
    pub const fn is_ask(self) -> bool {
        matches!(self, Self::ListRoots | Self::CreateMessage | Self::Elicit)
    }

    /// Whether the method is a request.
    pub const fn is_request(self) -> bool {
        matches!(self.kind(), MethodKind::Request)
    }

    /// Whether the method is a notification.
    pub const fn is_notification(self) -> bool {
        matches!(self.kind(), MethodKind::Notification)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}
