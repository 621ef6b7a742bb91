//! What every tool was when it was first seen, so that a change is noticed and shown.
//!
//! The file is a lock file: the same tools give the same bytes, so it can be kept under version control and checked.

use bowline_types::{OrderedMap, RawJson};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::definition::{Definition, Digest};
use super::diff::diff;
use super::store::{Document, Others, Store, StoreError, VERSION, line_of};
use super::tree::{Layout, Tree};

/// How a tool compares to its pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is what it was.
    Same,
    /// Nothing of its server is pinned.
    First,
    /// Other tools of its server are pinned, but not this one.
    New,
    /// It is not what it was.
    Changed {
        /// What is different, line by line.
        diff: String,
    },
}

/// What differs between the tools of a server and its pins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// In which way.
    pub kind: DifferenceKind,
}

/// In which way a tool differs from its pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DifferenceKind {
    /// It is not pinned.
    New,
    /// It is pinned, and not there any more.
    Removed,
    /// It is not what it was.
    Changed {
        /// What is different, line by line.
        diff: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (server, tool) = (super::visible(&self.server), super::visible(&self.tool));
        match &self.kind {
            DifferenceKind::New => write!(formatter, "{server}: `{tool}` is new"),
            DifferenceKind::Removed => write!(formatter, "{server}: `{tool}` is gone"),
            DifferenceKind::Changed { diff } => {
                write!(formatter, "{server}: `{tool}` has changed\n{}", diff.trim_end())
            }
        }
    }
}

/// The pins of all servers. Cloning shares.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    file: Option<Store>,
    known: Arc<Mutex<Known>>,
}

/// What becomes of a pin that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Present {
    IsReplaced,
    Stays,
}

/// By server and tool.
type Known = BTreeMap<String, BTreeMap<String, Pinned>>;

#[derive(Clone, Debug)]
struct Pinned {
    digest: Digest,
    definition: RawJson,
}

#[derive(Debug, Serialize, Deserialize)]
struct File {
    version: u32,
    servers: OrderedMap<ServerPins>,
    #[serde(flatten)]
    extra: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct ServerPins {
    tools: OrderedMap<Pin>,
    #[serde(flatten)]
    extra: BTreeMap<String, serde_json::Value>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Pin {
    digest: String,
    definition: RawJson,
    #[serde(flatten)]
    extra: BTreeMap<String, serde_json::Value>,
}

impl Default for File {
    fn default() -> Self {
        Self { version: VERSION, servers: OrderedMap::new(), extra: BTreeMap::new() }
    }
}

impl Document for File {
    fn version(&self) -> u32 {
        self.version
    }
}

impl Pins {
    /// Pins that are forgotten at the end of the run.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Pins in a file, which need not be there yet. Fails when it is there and cannot be understood, or when a
    /// definition in it is not the one that its digest names.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let pins = Self { file: Some(Store::new(path, Others::MayWrite)), known: Arc::default() };
        pins.refresh()?;
        Ok(pins)
    }

    /// The file.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(Store::path)
    }

    /// Reads the file again. Blocks.
    pub fn refresh(&self) -> Result<(), StoreError> {
        let Some(file) = &self.file else { return Ok(()) };
        let known = match file.read::<File>()? {
            Some((document, text)) => known(file.path(), document, &text)?,
            None => Known::new(),
        };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }

    /// How a tool compares to its pin, as far as the file was read.
    pub fn look(&self, server: &str, definition: &Definition) -> Standing {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tools) = known.get(server) else { return Standing::First };
        match tools.get(definition.name()) {
            None => Standing::New,
            Some(pinned) if pinned.digest == *definition.digest() => Standing::Same,
            Some(pinned) => Standing::Changed { diff: difference(&pinned.definition, definition) },
        }
    }

    /// What differs between all tools of a server and its pins: what a check before a release wants to be nothing.
    ///
    /// Two tools of one name differ from each other even where neither is pinned.
    pub fn survey(&self, server: &str, definitions: &[Definition]) -> Vec<Difference> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let nothing = BTreeMap::new();
        let tools = known.get(server).unwrap_or(&nothing);
        let mut seen: BTreeMap<&str, &Definition> = BTreeMap::new();
        let mut kinds = Vec::new();
        for definition in definitions {
            let kind = match (tools.get(definition.name()), seen.get(definition.name())) {
                (Some(pinned), _) if pinned.digest == *definition.digest() => None,
                (Some(pinned), _) => {
                    Some(DifferenceKind::Changed { diff: difference(&pinned.definition, definition) })
                }
                (None, None) => Some(DifferenceKind::New),
                (None, Some(first)) if first.digest() == definition.digest() => None,
                (None, Some(first)) => {
                    Some(DifferenceKind::Changed { diff: diff(first.pretty(), definition.pretty()) })
                }
            };
            kinds.extend(kind.map(|kind| (definition.name().to_owned(), kind)));
            seen.entry(definition.name()).or_insert(definition);
        }
        let gone = tools.keys().filter(|tool| !seen.contains_key(tool.as_str()));
        kinds.extend(gone.map(|tool| (tool.clone(), DifferenceKind::Removed)));
        let with_server = |(tool, kind)| Difference { server: server.to_owned(), tool, kind };
        kinds.into_iter().map(with_server).collect()
    }

    /// Whether anything of a server is pinned.
    pub fn knows(&self, server: &str) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).contains_key(server)
    }

    /// Pins tools as they are now, of two of one name the first. Others keep their pins, also those that are gone:
    /// a tool that comes back is compared to what it was. Blocks.
    pub fn accept(&self, server: &str, definitions: &[Definition]) -> Result<(), StoreError> {
        self.pin(server, definitions, Present::IsReplaced)
    }

    /// Pins tools that nobody was asked about. What is pinned already stays, whoever pinned it meanwhile. Blocks.
    pub(crate) fn add(&self, server: &str, definitions: &[Definition]) -> Result<(), StoreError> {
        self.pin(server, definitions, Present::Stays)
    }

    fn pin(&self, server: &str, definitions: &[Definition], present: Present) -> Result<(), StoreError> {
        let mut new: BTreeMap<&str, &Definition> = BTreeMap::new();
        for definition in definitions {
            new.entry(definition.name()).or_insert(definition);
        }
        if let Some(file) = &self.file {
            file.update(|document: &mut File| {
                if document.servers.get(server).is_none() {
                    document.servers.insert(server, ServerPins::default());
                }
                let Some(pins) = document.servers.get_mut(server) else { return };
                for (tool, definition) in &new {
                    let (digest, json) = (definition.digest().to_string(), definition.json().clone());
                    match pins.tools.get_mut(tool) {
                        Some(_) if present == Present::Stays => {}
                        Some(pin) => (pin.digest, pin.definition) = (digest, json),
                        None => {
                            pins.tools
                                .insert(*tool, Pin { digest, definition: json, extra: BTreeMap::new() });
                        }
                    }
                }
            })?;
            return self.refresh();
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let tools = known.entry(server.to_owned()).or_default();
        for (tool, definition) in new {
            if present == Present::Stays && tools.contains_key(tool) {
                continue;
            }
            let (digest, json) = (definition.digest().clone(), definition.json().clone());
            tools.insert(tool.to_owned(), Pinned { digest, definition: json });
        }
        Ok(())
    }

    /// Takes the pins of a server out, so that it is met for the first time again. Blocks.
    pub fn forget(&self, server: &str) -> Result<(), StoreError> {
        if let Some(file) = &self.file
            && file.path().exists()
        {
            file.update(|document: &mut File| {
                document.servers.remove(server);
            })?;
            return self.refresh();
        }
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(server);
        Ok(())
    }
}

fn difference(old: &RawJson, new: &Definition) -> String {
    diff(&Tree::of(old).to_text(Layout::Pretty), new.pretty())
}

fn known(path: &Path, document: File, text: &str) -> Result<Known, StoreError> {
    let mut known = Known::new();
    for (server, pins) in document.servers {
        let tools = known.entry(server).or_default();
        for (tool, pin) in pins.tools {
            let digest = Digest::of(&pin.definition);
            if digest.as_str() != pin.digest {
                let message = format!("damaged: the digest of `{tool}` is not that of its definition");
                return Err(StoreError::damaged(path, line_of(text, &pin.digest), message));
            }
            tools.insert(tool, Pinned { digest, definition: pin.definition.compact() });
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::super::store::tests::Folder;
    use super::*;
    use bowline_types::Tool;
    use expect_test::expect;
    use std::fs;

    fn tool(name: &str, description: &str) -> Definition {
        Definition::of(&Tool::new(name, RawJson::empty_object()).description(description))
    }

    #[test]
    fn the_lock_file_has_the_same_bytes_for_the_same_tools() {
        let folder = Folder::new("pins-file");
        let write = |name: &str, order: &[&Definition]| {
            let pins = Pins::open(folder.join(name)).unwrap();
            for definition in order {
                pins.accept("files", &[(*definition).clone()]).unwrap();
            }
            fs::read_to_string(folder.join(name)).unwrap()
        };
        let (read, hidden) = (tool("read", "Reads."), tool("a", "hi\u{200b}dden"));
        let text = write("one.lock", &[&read, &hidden]);
        assert_eq!(text, write("two.lock", &[&hidden, &read, &hidden]));
        expect![[r#"
            {
              "servers": {
                "files": {
                  "tools": {
                    "a": {
                      "definition": {
                        "description": "hi\u200bdden",
                        "inputSchema": {},
                        "name": "a"
                      },
                      "digest": "sha256:DIGEST"
                    },
                    "read": {
                      "definition": {
                        "description": "Reads.",
                        "inputSchema": {},
                        "name": "read"
                      },
                      "digest": "sha256:DIGEST"
                    }
                  }
                }
              },
              "version": 1
            }
        "#]]
        .assert_eq(
            &text
                .replace(read.digest().as_str(), "sha256:DIGEST")
                .replace(hidden.digest().as_str(), "sha256:DIGEST"),
        );
    }

    #[test]
    fn changes_are_noticed_and_shown() {
        // V-101
        let folder = Folder::new("pins-changes");
        let pins = Pins::open(folder.join("bowline.lock")).unwrap();
        let old = tool("read", "Reads a file.");
        assert_eq!(pins.look("files", &old), Standing::First);
        pins.accept("files", std::slice::from_ref(&old)).unwrap();
        assert_eq!(pins.look("files", &old), Standing::Same);
        assert_eq!(pins.look("mail", &old), Standing::First);
        assert_eq!(pins.look("files", &tool("Read", "Reads a file.")), Standing::New);
        let again = Pins::open(folder.join("bowline.lock")).unwrap();
        let Standing::Changed { diff } = again.look("files", &tool("read", "Reads, and mails it\u{202e}."))
        else {
            panic!("the change was not noticed")
        };
        expect![[r#"
              {
            -   "description": "Reads a file.",
            +   "description": "Reads, and mails it\u202e.",
                "inputSchema": {},
                "name": "read"
              }
        "#]]
        .assert_eq(&diff);
    }

    #[test]
    fn a_survey_tells_what_is_new_gone_and_changed() {
        // V-101
        let pins = Pins::in_memory();
        let list = [tool("a", "1"), tool("b", "1")];
        assert!(pins.survey("s", &list).iter().all(|difference| difference.kind == DifferenceKind::New));
        pins.accept("s", &list).unwrap();
        assert_eq!(pins.survey("s", &list), []);
        // A tool that changes its name is a new one.
        let now = [tool("a", "2"), tool("B", "1")];
        let told: Vec<String> = pins.survey("s", &now).iter().map(ToString::to_string).collect();
        expect![[r#"
            s: `a` has changed
              {
            -   "description": "1",
            +   "description": "2",
                "inputSchema": {},
                "name": "a"
              }
            s: `B` is new
            s: `b` is gone"#]]
        .assert_eq(&told.join("\n"));
        // Gone and back as something else.
        pins.accept("s", &[tool("B", "1")]).unwrap();
        assert!(matches!(pins.look("s", &tool("b", "evil")), Standing::Changed { .. }));
        // One list with two tools of one name.
        let twice = pins.survey("t", &[tool("a", "1"), tool("a", "2"), tool("a", "1")]);
        assert!(matches!(
            &twice[..],
            [
                Difference { kind: DifferenceKind::New, .. },
                Difference { kind: DifferenceKind::Changed { .. }, .. }
            ]
        ));
        pins.forget("s").unwrap();
        assert!(!pins.knows("s"));
    }

    #[test]
    fn a_damaged_lock_file_is_an_error_with_its_line() {
        // V-101
        let folder = Folder::new("pins-damaged");
        let path = folder.join("bowline.lock");
        let pins = Pins::open(&path).unwrap();
        pins.accept("files", &[tool("read", "Reads.")]).unwrap();
        let good = fs::read_to_string(&path).unwrap();
        for (from, to, line, what) in [
            ("Reads.", "Writes.", 11, "the digest of `read` is not that of its definition"),
            ("\"version\": 1", "\"version\": 9", 16, "expected version 1, got 9"),
            ("\"read\": {", "\"read\": {}, \"read\": {", 5, "missing field"),
            ("}", "", 8, "key must be a string"),
        ] {
            fs::write(&path, good.replacen(from, to, 1)).unwrap();
            let error = Pins::open(&path).unwrap_err();
            assert_eq!(error.line(), Some(line), "{error}");
            assert!(error.to_string().contains(what), "{error}");
            assert!(pins.refresh().is_err());
        }
        fs::write(&path, "").unwrap();
        assert!(Pins::open(&path).is_err());
    }
}
