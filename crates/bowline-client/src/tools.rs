//! What is known of the server's tools: the schemas that their structured results have to fit.

use crate::{Error, Result, shared::lock};
use bowline_types::{CallToolResult, RawJson, Tool};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

/// How many tools are remembered, and how many bytes their schemas may have together.
const MAX_TOOLS: usize = 10_000;
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The output schemas of the tools that were listed, compiled when first needed.
#[derive(Debug, Default)]
pub(crate) struct KnownTools {
    schemas: Mutex<Schemas>,
}

#[derive(Debug, Default)]
struct Schemas {
    of_tools: HashMap<String, Known>,
    /// How many bytes the names and schemas have.
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
    }
}

type Compiled = Result<schema::Validator, String>;

impl KnownTools {
    /// Remembers a tool as it was listed last.
    pub(crate) fn note(&self, tool: &Tool) {
        let mut schemas = lock(&self.schemas);
        schemas.remove(&tool.name);
        let Some(schema) = &tool.output_schema else { return };
        let bytes = tool.name.len() + schema.as_bytes().len();
        if schemas.of_tools.len() >= MAX_TOOLS || schemas.bytes + bytes > MAX_BYTES {
            return;
        }
        schemas.bytes += bytes;
        // Without the page it came in, which may be far longer.
        let known = Known { bytes, schema: Schema::Listed(schema.compact()) };
        schemas.of_tools.insert(tool.name.clone(), known);
    }

    pub(crate) fn forget(&self) {
        *lock(&self.schemas) = Schemas::default();
    }

    /// Holds a result against the schema of its tool, when that is known. Failures have nothing to fit.
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
        // Compiled outside of the lock, for it may take a moment.
        let compiled = Arc::new(schema::Validator::new(&schema));
        if let Some(known) = lock(&self.schemas).of_tools.get_mut(tool) {
            known.schema = Schema::Compiled(Arc::clone(&compiled));
        }
        Some(compiled)
    }
}

/// Whether `text` matches a regular expression of a JSON Schema. One that cannot be read matches everything.
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

/// Without the validator, structured results are not held against their schemas.
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
