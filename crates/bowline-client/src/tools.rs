//! What is known of the server's tools: the schemas that their structured results have to fit.

use crate::{Error, Result, shared::lock};
use bowline_types::{CallToolResult, RawJson, Tool};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

/// How many tools are remembered.
const MAX_TOOLS: usize = 10_000;

/// The output schemas of the tools that were listed, compiled when first needed.
#[derive(Debug, Default)]
pub(crate) struct KnownTools {
    schemas: Mutex<HashMap<String, Known>>,
}

#[derive(Clone, Debug)]
enum Known {
    Listed(RawJson),
    Compiled(Arc<Compiled>),
}

type Compiled = Result<schema::Validator, String>;

impl KnownTools {
    /// Remembers a tool as it was listed last.
    pub(crate) fn note(&self, tool: &Tool) {
        let mut schemas = lock(&self.schemas);
        match &tool.output_schema {
            Some(schema) if schemas.len() < MAX_TOOLS => {
                schemas.insert(tool.name.clone(), Known::Listed(schema.clone()));
            }
            _ => {
                schemas.remove(&tool.name);
            }
        }
    }

    pub(crate) fn forget(&self) {
        lock(&self.schemas).clear();
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
        let schema = match lock(&self.schemas).get(tool)? {
            Known::Compiled(compiled) => return Some(Arc::clone(compiled)),
            Known::Listed(schema) => schema.clone(),
        };
        // Compiled outside of the lock, for it may take a moment.
        let compiled = Arc::new(schema::Validator::new(&schema));
        lock(&self.schemas).insert(tool.to_owned(), Known::Compiled(Arc::clone(&compiled)));
        Some(compiled)
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
