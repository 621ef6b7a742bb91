//! Validates frames against the schemas of the specification.
//!
//! The schemas are not part of this crate. [`Oracle::load`] reads them from a directory that contains, per revision,
//! the file `schema/<date>/schema.json` of the specification, or `schema/<date>.json` with its structure only.

mod conversation;
mod frame;
mod names;
mod relax;

pub use conversation::Conversation;
pub use names::{error_definition, message_definition, result_definition};

use bowline_types::{Direction, Revision};
use jsonschema::Validator;
use serde_json::{Map, Value};
use std::{
    collections::{BTreeMap, HashMap},
    fmt, fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// The official schemas of all revisions, compiled for validation.
pub struct Oracle {
    documents: BTreeMap<Revision, Document>,
    compiled: Mutex<HashMap<(Revision, String), Arc<Validator>>>,
}

/// One schema file.
#[derive(Clone)]
struct Document {
    dialect: Value,
    /// The keyword that holds the definitions of the file: `$defs` or `definitions`.
    keyword: &'static str,
    definitions: Map<String, Value>,
}

impl Oracle {
    /// Reads the schemas below a directory. Returns `None` if one of them is missing.
    ///
    /// Corrects the places where the files are stricter than the specification: fractions in form answers, fractions
    /// and `null` in free-form JSON, and errors without an id.
    pub fn load(folder: impl AsRef<Path>) -> Option<Self> {
        let mut documents = BTreeMap::new();
        for revision in Revision::ALL {
            let schemas = folder.as_ref().join("schema");
            let official = fs::read(schemas.join(revision.as_str()).join("schema.json"));
            let text = official.or_else(|_| fs::read(schemas.join(format!("{revision}.json")))).ok()?;
            let mut schema: Value = serde_json::from_slice(&text).ok()?;
            let keyword = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
            let Some(Value::Object(mut definitions)) = schema.get_mut(keyword).map(Value::take) else {
                return None;
            };
            relax::relax(&mut definitions);
            let dialect = schema.get("$schema").cloned().unwrap_or_default();
            documents.insert(revision, Document { dialect, keyword, definitions });
        }
        Some(Self { documents, compiled: Mutex::default() })
    }

    /// Finds the schemas in the directory named by the environment variable `BOWLINE_SPEC`, or else in `spec` of the
    /// workspace.
    ///
    /// Returns `None` if they are not there.
    pub fn find(workspace: impl AsRef<Path>) -> Option<Self> {
        let folder = match std::env::var_os("BOWLINE_SPEC") {
            Some(folder) => PathBuf::from(folder),
            None => workspace.as_ref().join("spec"),
        };
        Self::load(folder)
    }

    /// Returns a strict copy: objects may have only the members that their definitions name.
    ///
    /// The specification lets peers add members, but a message that was adapted to a revision should have no members of
    /// another one.
    pub fn closed(&self) -> Self {
        let mut documents = self.documents.clone();
        for document in documents.values_mut() {
            relax::close(&mut document.definitions);
        }
        Self { documents, compiled: Mutex::default() }
    }

    /// Returns whether a revision has a definition with this name.
    pub fn defines(&self, revision: Revision, definition: &str) -> bool {
        self.documents.get(&revision).is_some_and(|document| document.definitions.contains_key(definition))
    }

    /// Validates a value against a definition of a revision. The error lists the paths that do not match, and why.
    pub fn validate(&self, revision: Revision, definition: &str, value: &Value) -> Result<(), String> {
        let validator = self.compile(revision, definition)?;
        let errors: Vec<String> = validator
            .iter_errors(value)
            .take(5)
            .map(|error| {
                let place = error.instance_path().to_string();
                format!("{}: {error}", if place.is_empty() { "/" } else { &place })
            })
            .collect();
        if errors.is_empty() {
            return Ok(());
        }
        Err(format!("not a {definition} of {revision}: {}", errors.join("; ")))
    }

    fn compile(&self, revision: Revision, definition: &str) -> Result<Arc<Validator>, String> {
        let key = (revision, definition.to_owned());
        let compiled = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled().get(&key) {
            return Ok(Arc::clone(known));
        }
        if !self.defines(revision, definition) {
            return Err(format!("{revision} has no definition `{definition}`"));
        }
        let document = self.documents.get(&revision).ok_or("the revision has no schema")?;
        let mut root = Map::new();
        root.insert("$schema".into(), document.dialect.clone());
        root.insert("$ref".into(), format!("#/{}/{definition}", document.keyword).into());
        root.insert(document.keyword.into(), Value::Object(document.definitions.clone()));
        let validator =
            jsonschema::options().should_validate_formats(true).build(&Value::Object(root)).map_err(
                |error| format!("the schema of `{definition}` of {revision} does not compile: {error}"),
            )?;
        let validator = Arc::new(validator);
        compiled().insert(key, Arc::clone(&validator));
        Ok(validator)
    }

    /// Holds a whole frame against the schema of its revision.
    ///
    /// `direction` says who sent it. For a response, `method` is that of the request it answers; without it only the
    /// envelope is checked. Fails with what is wrong, also when the sender must not send such a frame at all.
    pub fn check_frame(
        &self,
        revision: Revision,
        direction: Direction,
        frame: &Value,
        method: Option<&str>,
    ) -> Result<(), String> {
        frame::check(self, revision, direction, frame, method)
    }
}

impl fmt::Debug for Oracle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oracle").field("revisions", &self.documents.keys()).finish_non_exhaustive()
    }
}
