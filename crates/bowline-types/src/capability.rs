//! Capabilities: what each side says it can do.

use crate::RawMap;
use crate::adapt::Adapt;
use crate::method::Capability;
use crate::record::record;
use crate::revision::Revision;

/// The identifier of the tasks extension.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

record! {
    /// What a client can do.
    #[derive(Default)]
    pub struct ClientCapabilities {
        /// Things outside the protocol, by name.
        default experimental: RawMap = "experimental",
        /// It has roots.
        optional roots: RootsCapability = "roots",
        /// It can ask a model.
        optional sampling: SamplingCapability = "sampling",
        /// It can ask its user (from 2025-06-18).
        optional elicitation: ElicitationCapability = "elicitation",
        /// It can run what it is asked as a task (2025-11-25 only).
        optional tasks: ClientTasksCapability = "tasks",
        /// Extensions by identifier, each with its settings.
        default extensions: RawMap = "extensions",
    }
}

record! {
    /// What a server can do.
    #[derive(Default)]
    pub struct ServerCapabilities {
        /// Things outside the protocol, by name.
        default experimental: RawMap = "experimental",
        /// It sends log messages.
        optional logging: RawMap = "logging",
        /// It proposes completions (from 2025-03-26).
        optional completions: RawMap = "completions",
        /// It has prompts.
        optional prompts: PromptsCapability = "prompts",
        /// It has resources.
        optional resources: ResourcesCapability = "resources",
        /// It has tools.
        optional tools: ToolsCapability = "tools",
        /// It can run calls as tasks (2025-11-25 only).
        optional tasks: ServerTasksCapability = "tasks",
        /// Extensions by identifier, each with its settings.
        default extensions: RawMap = "extensions",
    }
}

record! {
    /// A client has roots.
    #[derive(Default)]
    pub struct RootsCapability {
        /// It tells when they change (legacy).
        optional list_changed: bool = "listChanged",
    }
}

record! {
    /// A client can ask a model.
    #[derive(Default)]
    pub struct SamplingCapability {
        /// It can include the context of servers (from 2025-11-25).
        optional context: RawMap = "context",
        /// It lets the model use tools (from 2025-11-25).
        optional tools: RawMap = "tools",
    }
}

record! {
    /// A client can ask its user. Without a mode this means forms.
    #[derive(Default)]
    pub struct ElicitationCapability {
        /// By a form (from 2025-11-25).
        optional form: RawMap = "form",
        /// By a page to visit (from 2025-11-25).
        optional url: RawMap = "url",
    }
}

record! {
    /// A client can run requests as tasks (2025-11-25 only).
    #[derive(Default)]
    pub struct ClientTasksCapability {
        /// It has `tasks/list`.
        optional list: RawMap = "list",
        /// It has `tasks/cancel`.
        optional cancel: RawMap = "cancel",
        /// Which requests.
        optional requests: ClientTaskRequests = "requests",
    }
}

record! {
    /// The requests a client can run as tasks.
    #[derive(Default)]
    pub struct ClientTaskRequests {
        /// Those of sampling.
        optional sampling: SamplingTaskRequests = "sampling",
        /// Those of elicitation.
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
    /// A server can run requests as tasks (2025-11-25 only).
    #[derive(Default)]
    pub struct ServerTasksCapability {
        /// It has `tasks/list`.
        optional list: RawMap = "list",
        /// It has `tasks/cancel`.
        optional cancel: RawMap = "cancel",
        /// Which requests.
        optional requests: ServerTaskRequests = "requests",
    }
}

record! {
    /// The requests a server can run as tasks.
    #[derive(Default)]
    pub struct ServerTaskRequests {
        /// Those of tools.
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
    /// A server has prompts.
    #[derive(Default)]
    pub struct PromptsCapability {
        /// It tells when the list changes.
        optional list_changed: bool = "listChanged",
    }
}

record! {
    /// A server has resources.
    #[derive(Default)]
    pub struct ResourcesCapability {
        /// It tells when a resource changes.
        optional subscribe: bool = "subscribe",
        /// It tells when the list changes.
        optional list_changed: bool = "listChanged",
    }
}

record! {
    /// A server has tools.
    #[derive(Default)]
    pub struct ToolsCapability {
        /// It tells when the list changes.
        optional list_changed: bool = "listChanged",
    }
}

impl ElicitationCapability {
    /// Whether forms are understood: when said so, or when no mode is named at all.
    pub fn has_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }

    /// Whether URLs are understood.
    pub fn has_url(&self) -> bool {
        self.url.is_some()
    }
}

impl ClientCapabilities {
    /// Whether the client has a capability. Those of servers are never had.
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

    /// Whether the client has declared an extension.
    pub fn has_extension(&self, identifier: &str) -> bool {
        self.extensions.contains_key(identifier)
    }

    /// Whether the client can show forms to its user.
    pub fn has_form_elicitation(&self) -> bool {
        self.elicitation.as_ref().is_some_and(ElicitationCapability::has_form)
    }

    /// Whether the client can send its user to a URL.
    pub fn has_url_elicitation(&self) -> bool {
        self.elicitation.as_ref().is_some_and(ElicitationCapability::has_url)
    }

    /// Whether the client lets the model use tools.
    pub fn has_sampling_tools(&self) -> bool {
        self.sampling.as_ref().is_some_and(|sampling| sampling.tools.is_some())
    }

    /// Whether the client can include the context of servers in sampling.
    pub fn has_sampling_context(&self) -> bool {
        self.sampling.as_ref().is_some_and(|sampling| sampling.context.is_some())
    }
}

impl ServerCapabilities {
    /// Whether the server has a capability. Those of clients are never had.
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

    /// Whether the server has declared an extension.
    pub fn has_extension(&self, identifier: &str) -> bool {
        self.extensions.contains_key(identifier)
    }
}

/// Extensions are of 2026-07-28. The capability set of 2025-11-25 is open and its peers do use the member,
/// except for tasks, which that revision has in its core.
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
