//! What the client remembers of listed tools: output schemas, and whether they run as tasks.

use crate::{Error, Result, shared::lock};
use bowline_types::{CallToolResult, RawJson, TaskSupport, Tool};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

/// The maximum number of tools, and the maximum total size of their schemas.
const MAX_TOOLS: usize = 10_000;
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The output schemas of listed tools, compiled on first use.
#[derive(Debug, Default)]
pub(crate) struct KnownTools {
    schemas: Mutex<Schemas>,
}

#[derive(Debug, Default)]
struct Schemas {
    of_tools: HashMap<String, Known>,
    /// Whether listed tools run as tasks (2025-11-25).
    task_support: HashMap<String, TaskSupport>,
    /// The total size of names and schemas.
    bytes: usize,
}

#[derive(Clone, Debug)]
struct Known {
    bytes: usize,
    schema: Schema,
}

#[derive(Clone, Debug)]
enum Schema {
    Listed(RawJson),
    Compiled(Arc<Compiled>),
}

impl Schemas {
    fn remove(&mut self, tool: &str) {
        if let Some(known) = self.of_tools.remove(tool) {
            self.bytes -= known.bytes;
        }
        if self.task_support.remove(tool).is_some() {
            self.bytes -= tool.len();
        }
    }

    fn note_task_support(&mut self, tool: &Tool) {
        if self.task_support.len() >= MAX_TOOLS || self.bytes + tool.name.len() > MAX_BYTES {
            return;
        }
        let support = tool.execution.as_ref().and_then(|execution| execution.task_support.clone());
        self.bytes += tool.name.len();
        self.task_support.insert(tool.name.clone(), support.unwrap_or(TaskSupport::Forbidden));
    }
}

type Compiled = Result<schema::Validator, String>;

impl KnownTools {
    /// Stores the schema of a listed tool.
    pub(crate) fn note(&self, tool: &Tool) {
        let mut schemas = lock(&self.schemas);
        schemas.remove(&tool.name);
        schemas.note_task_support(tool);
        let Some(schema) = &tool.output_schema else { return };
        let bytes = tool.name.len() + schema.as_bytes().len();
        if schemas.of_tools.len() >= MAX_TOOLS || schemas.bytes + bytes > MAX_BYTES {
            return;
        }
        schemas.bytes += bytes;
        // Copied, because the page that contains it may be far larger.
        let known = Known { bytes, schema: Schema::Listed(schema.compact()) };
        schemas.of_tools.insert(tool.name.clone(), known);
    }

    /// Returns whether a tool runs as a task, if it was listed.
    pub(crate) fn task_support(&self, tool: &str) -> Option<TaskSupport> {
        lock(&self.schemas).task_support.get(tool).cloned()
    }

    pub(crate) fn forget(&self) {
        *lock(&self.schemas) = Schemas::default();
    }

    /// Validates a result against the schema of its tool, if it is known. Failed results are not checked.
    pub(crate) fn check(&self, tool: &str, result: &CallToolResult) -> Result<()> {
        if result.failed() {
            return Ok(());
        }
        let Some(compiled) = self.compiled(tool) else { return Ok(()) };
        let what = || format!("the result of tool `{tool}`");
        let Some(content) = &result.structured_content else {
            return Err(Error::malformed(
                what(),
                "`structuredContent` is missing although the tool has an output schema",
            ));
        };
        match &*compiled {
            Ok(validator) => validator.check(content).map_err(|reason| Error::malformed(what(), reason)),
            Err(reason) => Err(Error::malformed(format!("the output schema of tool `{tool}`"), reason)),
        }
    }

    fn compiled(&self, tool: &str) -> Option<Arc<Compiled>> {
        let schema = match &lock(&self.schemas).of_tools.get(tool)?.schema {
            Schema::Compiled(compiled) => return Some(Arc::clone(compiled)),
            Schema::Listed(schema) => schema.clone(),
        };
        // Compiled outside of the lock, because it may take a while.
        let compiled = Arc::new(schema::Validator::new(&schema));
        if let Some(known) = lock(&self.schemas).of_tools.get_mut(tool) {
            known.schema = Schema::Compiled(Arc::clone(&compiled));
        }
        Some(compiled)
    }
}

/// Returns whether `text` matches a regular expression of a JSON Schema. An unsupported expression matches everything.
pub(crate) fn matches_pattern(pattern: &str, text: &str) -> bool {
    let schema = serde_json::json!({ "type": "string", "pattern": pattern });
    match schema::Validator::new(&schema.into()) {
        Ok(validator) => RawJson::of(&text).is_ok_and(|text| validator.check(&text).is_ok()),
        Err(error) => {
            tracing::warn!(pattern, error, "the pattern of a form cannot be enforced");
            true
        }
    }
}

#[cfg(feature = "validate")]
mod schema;
#[cfg(feature = "validate")]
pub use schema::Validator as SchemaValidator;

/// Without the feature, structured results are not validated.
#[cfg(not(feature = "validate"))]
mod schema {
    use bowline_types::RawJson;

    #[derive(Debug)]
    pub(super) struct Validator;

    impl Validator {
        #[expect(clippy::unnecessary_wraps, reason = "the signature of the validator")]
        pub(super) fn new(_: &RawJson) -> Result<Self, String> {
            Ok(Self)
        }

        #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the signature of the validator")]
        pub(super) fn check(&self, _: &RawJson) -> Result<(), String> {
            Ok(())
        }
    }
}
