//! Capabilities that clients and servers declare.

use crate::RawMap;
use crate::adapt::Adapt;
use crate::method::Capability;
use crate::record::record;
use crate::revision::Revision;

/// Identifier of the tasks extension.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

record! {
    /// Capabilities of a client.
    #[derive(Default)]
    pub struct ClientCapabilities {
        /// Non-standard capabilities by name.
        default experimental: RawMap = "experimental",
        /// Roots.
        optional roots: RootsCapability = "roots",
        /// Sampling.
        optional sampling: SamplingCapability = "sampling",
        /// Elicitation (from 2025-06-18).
        optional elicitation: ElicitationCapability = "elicitation",
        /// Tasks (2025-11-25 only).
        optional tasks: ClientTasksCapability = "tasks",
        /// Extensions by identifier, with their settings.
        default extensions: RawMap = "extensions",
    }
}

record! {
    /// Capabilities of a server.
    #[derive(Default)]
    pub struct ServerCapabilities {
        /// Non-standard capabilities by name.
        default experimental: RawMap = "experimental",
        /// Log messages.
        optional logging: RawMap = "logging",
        /// Completion (from 2025-03-26).
        optional completions: RawMap = "completions",
        /// Prompts.
        optional prompts: PromptsCapability = "prompts",
        /// Resources.
        optional resources: ResourcesCapability = "resources",
        /// Tools.
        optional tools: ToolsCapability = "tools",
        /// Tasks (2025-11-25 only).
        optional tasks: ServerTasksCapability = "tasks",
        /// Extensions by identifier, with their settings.
        default extensions: RawMap = "extensions",
    }
}

record! {
    /// Capability `roots` of a client.
    #[derive(Default)]
    pub struct RootsCapability {
        /// Whether it sends a notification when they change (legacy).
        optional list_changed: bool = "listChanged",
    }
}

record! {
    /// Capability `sampling` of a client.
    #[derive(Default)]
    pub struct SamplingCapability {
        /// Whether it can include the context of servers (from 2025-11-25).
        optional context: RawMap = "context",
        /// Whether the model can use tools (from 2025-11-25).
        optional tools: RawMap = "tools",
    }
}

record! {
    /// Capability `elicitation` of a client. Without a mode it means forms.
    #[derive(Default)]
    pub struct ElicitationCapability {
        /// Form mode (from 2025-11-25).
        optional form: RawMap = "form",
        /// URL mode (from 2025-11-25).
        optional url: RawMap = "url",
    }
}

record! {
    /// Capability `tasks` of a client (2025-11-25 only).
    #[derive(Default)]
    pub struct ClientTasksCapability {
        /// Whether it supports `tasks/list`.
        optional list: RawMap = "list",
        /// Whether it supports `tasks/cancel`.
        optional cancel: RawMap = "cancel",
        /// Requests that can run as tasks.
        optional requests: ClientTaskRequests = "requests",
    }
}

record! {
    /// Requests that a client can run as tasks.
    #[derive(Default)]
    pub struct ClientTaskRequests {
        /// Sampling requests.
        optional sampling: SamplingTaskRequests = "sampling",
        /// Elicitation requests.
        optional elicitation: ElicitationTaskRequests = "elicitation",
    }
}

record! {
    /// The sampling requests that can run as tasks.
    #[derive(Default)]
    pub struct SamplingTaskRequests {
        /// `sampling/createMessage`.
        optional create_message: RawMap = "createMessage",
    }
}

record! {
    /// The elicitation requests that can run as tasks.
    #[derive(Default)]
    pub struct ElicitationTaskRequests {
        /// `elicitation/create`.
        optional create: RawMap = "create",
    }
}

record! {
    /// Capability `tasks` of a server (2025-11-25 only).
    #[derive(Default)]
    pub struct ServerTasksCapability {
        /// Whether it supports `tasks/list`.
        optional list: RawMap = "list",
        /// Whether it supports `tasks/cancel`.
        optional cancel: RawMap = "cancel",
        /// Requests that can run as tasks.
        optional requests: ServerTaskRequests = "requests",
    }
}

record! {
    /// Requests that a server can run as tasks.
    #[derive(Default)]
    pub struct ServerTaskRequests {
        /// Tool requests.
        optional tools: ToolTaskRequests = "tools",
    }
}

record! {
    /// The tool requests that can run as tasks.
    #[derive(Default)]
    pub struct ToolTaskRequests {
        /// `tools/call`.
        optional call: RawMap = "call",
    }
}

record! {
    /// Capability `prompts` of a server.
    #[derive(Default)]
    pub struct PromptsCapability {
        /// Whether it sends a notification when the list changes.
        optional list_changed: bool = "listChanged",
    }
}

record! {
    /// Capability `resources` of a server.
    #[derive(Default)]
    pub struct ResourcesCapability {
        /// Whether clients can subscribe to resources.
        optional subscribe: bool = "subscribe",
        /// Whether it sends a notification when the list changes.
        optional list_changed: bool = "listChanged",
    }
}

record! {
    /// Capability `tools` of a server.
    #[derive(Default)]
    pub struct ToolsCapability {
        /// Whether it sends a notification when the list changes.
        optional list_changed: bool = "listChanged",
    }
}

impl ElicitationCapability {
    /// Returns whether forms are supported: if declared, or if no mode is declared.
    pub fn has_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }

    /// Returns whether URL mode is supported.
    pub fn has_url(&self) -> bool {
        self.url.is_some()
    }
}

impl ClientCapabilities {
    /// Returns whether the client has a capability; false for capabilities of servers.
    pub fn has(&self, capability: Capability) -> bool {
        match capability {
            Capability::Roots => self.roots.is_some(),
            Capability::RootsListChanged => {
                self.roots.as_ref().is_some_and(|roots| roots.list_changed == Some(true))
            }
            Capability::Sampling => self.sampling.is_some(),
            Capability::Elicitation => self.elicitation.is_some(),
            Capability::Tasks => self.tasks.is_some(),
            Capability::TasksList => self.tasks.as_ref().is_some_and(|tasks| tasks.list.is_some()),
            Capability::TasksCancel => self.tasks.as_ref().is_some_and(|tasks| tasks.cancel.is_some()),
            Capability::Tools
            | Capability::ToolsListChanged
            | Capability::Resources
            | Capability::ResourcesListChanged
            | Capability::ResourcesSubscribe
            | Capability::Prompts
            | Capability::PromptsListChanged
            | Capability::Completions
            | Capability::Logging => false,
        }
    }

    /// Returns whether the client declares an extension.
    pub fn has_extension(&self, identifier: &str) -> bool {
        self.extensions.contains_key(identifier)
    }

    /// Returns whether the client can show forms to its user.
    pub fn has_form_elicitation(&self) -> bool {
        self.elicitation.as_ref().is_some_and(ElicitationCapability::has_form)
    }

    /// Returns whether the client can send its user to a URL.
    pub fn has_url_elicitation(&self) -> bool {
        self.elicitation.as_ref().is_some_and(ElicitationCapability::has_url)
    }

    /// Returns whether the client lets the model use tools.
    pub fn has_sampling_tools(&self) -> bool {
        self.sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some())
    }

    /// Returns whether the client can include the context of servers in sampling.
    pub fn has_sampling_context(&self) -> bool {
        self.sampling.as_ref().is_some_and(|sampling| sampling.context.is_some())
    }
}

impl ServerCapabilities {
    /// Returns whether the server has a capability; false for capabilities of clients.
    pub fn has(&self, capability: Capability) -> bool {
        let changes = |flag: Option<bool>| flag == Some(true);
        match capability {
            Capability::Tools => self.tools.is_some(),
            Capability::ToolsListChanged => self.tools.as_ref().is_some_and(|it| changes(it.list_changed)),
            Capability::Resources => self.resources.is_some(),
            Capability::ResourcesListChanged => {
                self.resources.as_ref().is_some_and(|it| changes(it.list_changed))
            }
            Capability::ResourcesSubscribe => self.resources.as_ref().is_some_and(|it| changes(it.subscribe)),
            Capability::Prompts => self.prompts.is_some(),
            Capability::PromptsListChanged => {
                self.prompts.as_ref().is_some_and(|it| changes(it.list_changed))
            }
            Capability::Completions => self.completions.is_some(),
            Capability::Logging => self.logging.is_some(),
            Capability::Tasks => self.tasks.is_some(),
            Capability::TasksList => self.tasks.as_ref().is_some_and(|tasks| tasks.list.is_some()),
            Capability::TasksCancel => self.tasks.as_ref().is_some_and(|tasks| tasks.cancel.is_some()),
            Capability::Roots
            | Capability::RootsListChanged
            | Capability::Sampling
            | Capability::Elicitation => false,
        }
    }

    /// Returns whether the server declares an extension.
    pub fn has_extension(&self, identifier: &str) -> bool {
        self.extensions.contains_key(identifier)
    }
}

/// Extensions were added in 2026-07-28. The capabilities of 2025-11-25 are open and its peers use the member too,
/// except for tasks, which are part of that revision.
fn adapt_extensions(extensions: &mut RawMap, to: Revision) {
    if to < Revision::V2025_11_25 {
        *extensions = RawMap::new();
    } else if to < Revision::V2026_07_28 {
        extensions.remove(TASKS_EXTENSION);
    }
}

impl Adapt for ClientCapabilities {
    fn adapt(&mut self, to: Revision) {
        if to >= Revision::V2026_07_28
            && let Some(roots) = &mut self.roots
        {
            roots.list_changed = None;
        }
        if to < Revision::V2025_11_25 {
            if let Some(sampling) = &mut self.sampling {
                sampling.context = None;
                sampling.tools = None;
            }
            // Before there were modes, elicitation meant forms.
            if !self.has_form_elicitation() || to < Revision::V2025_06_18 {
                self.elicitation = None;
            }
            if let Some(elicitation) = &mut self.elicitation {
                elicitation.form = None;
                elicitation.url = None;
            }
        }
        if to != Revision::V2025_11_25 {
            self.tasks = None;
        }
        adapt_extensions(&mut self.extensions, to);
    }
}

impl Adapt for ServerCapabilities {
    fn adapt(&mut self, to: Revision) {
        if to < Revision::V2025_03_26 {
            self.completions = None;
        }
        if to != Revision::V2025_11_25 {
            self.tasks = None;
        }
        adapt_extensions(&mut self.extensions, to);
    }
}
