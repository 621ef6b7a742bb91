//! Stores answers of the user: in memory until the program ends, or in a file.
//!
//! The file is read before each question, so changes by other processes and by the user take effect immediately.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::definition::Digest;
use super::gate::{Covers, Scope};
use super::rules::Action;
use super::store::{Document, Store, StoreError, VERSION, Writers};
use bowline_proto::caller::user_of;
use bowline_text::{parse_rfc3339, rfc3339};

/// How many answers of one authenticated user are stored, in memory and in the file each.
const MAX_PER_USER: usize = 1_000;
/// How many bytes of names and digests they take.
const MAX_BYTES_PER_USER: usize = 512 * 1024;

/// The subject of an answer. An answer applies to exactly this subject.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Topic {
    /// The action.
    pub action: Action,
    /// The server, by its configured name.
    pub server: String,
    /// The tool, the prompt or the URI; `None` for sampling and roots.
    pub name: Option<String>,
    /// The digest of the tool definition at the time of the answer.
    pub definition: Option<Digest>,
    /// The digest of the arguments, if a rule asks because of them.
    pub arguments: Option<Digest>,
    /// The user who answered, if users are distinguished.
    pub principal: Option<String>,
    /// How much of the server the answer covers.
    pub covers: Covers,
    /// The identity of the server, if the answer covers more than one tool.
    pub identity: Option<String>,
}

impl Topic {
    /// Returns the same topic for a larger part of the server, or for this tool with [`Covers::Tool`].
    pub(super) fn widened(&self, covers: Covers, identity: Option<&str>) -> Self {
        if covers == Covers::Tool {
            return self.clone();
        }
        let identity = identity.map(ToOwned::to_owned);
        Self { name: None, definition: None, arguments: None, covers, identity, ..self.clone() }
    }
}

/// The decision of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answered {
    /// Allowed.
    Allow,
    /// Denied.
    Deny,
}

/// A stored answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Remembered {
    /// The decision.
    pub answer: Answered,
    /// The action.
    pub action: Action,
    /// The server.
    pub server: String,
    /// The tool, the prompt or the URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The digest of the tool definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// The digest of the arguments, if a rule asked because of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The user who answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// How much of the server the answer covers.
    #[serde(default, skip_serializing_if = "is_tool")]
    pub covers: Covers,
    /// The identity of the server, if the answer covers more than one tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
    /// The project; `None` means all projects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// When the answer expires.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "time_text")]
    pub expires: Option<SystemTime>,
    /// Unknown members, kept unchanged.
    #[serde(flatten)]
    extra: BTreeMap<String, serde_json::Value>,
}

impl Remembered {
    /// Returns the expiry as text.
    pub fn expires_text(&self) -> Option<String> {
        self.expires.map(rfc3339)
    }

    /// Returns whether this answers a question about `topic`. Denying a tool denies all of its calls.
    fn answers(&self, topic: &Topic) -> bool {
        let broader = Topic { arguments: None, ..topic.clone() };
        self.is_about(topic) || (self.answer == Answered::Deny && self.is_about(&broader))
    }

    fn is_about(&self, topic: &Topic) -> bool {
        self.action == topic.action
            && self.server == topic.server
            && self.name == topic.name
            && self.definition.as_deref() == topic.definition.as_ref().map(Digest::as_str)
            && self.arguments.as_deref() == topic.arguments.as_ref().map(Digest::as_str)
            && self.principal == topic.principal
            && self.covers == topic.covers
            && self.identity == topic.identity
    }

    fn holds(&self, project: Option<&str>, now: SystemTime) -> bool {
        let here = self.project.as_deref().is_none_or(|project_of| Some(project_of) == project);
        here && self.expires.is_none_or(|end| now < end)
    }

    /// Returns the approximate size in bytes.
    fn weight(&self) -> usize {
        let texts = [&self.name, &self.definition, &self.arguments, &self.principal, &self.identity];
        self.server.len() + texts.into_iter().flatten().map(String::len).sum::<usize>()
    }

    fn order(&self) -> impl Ord + use<> {
        (
            self.server.clone(),
            self.action.as_str(),
            self.name.clone(),
            self.principal.clone(),
            self.project.clone(),
            self.definition.clone(),
            self.arguments.clone(),
            self.covers,
            self.identity.clone(),
        )
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_tool(covers: &Covers) -> bool {
    *covers == Covers::Tool
}

/// The stored answers.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    file: Option<Store>,
    run: Arc<Mutex<Vec<Remembered>>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct File {
    version: u32,
    answers: Vec<Remembered>,
    #[serde(flatten)]
    extra: BTreeMap<String, serde_json::Value>,
}

impl Default for File {
    fn default() -> Self {
        Self { version: VERSION, answers: Vec::new(), extra: BTreeMap::new() }
    }
}

impl Document for File {
    fn version(&self) -> u32 {
        self.version
    }
}

impl Answers {
    /// Creates a store in memory.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// Opens a store in a file, which may not exist yet. Fails if the file exists and is invalid.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let answers = Self { file: Some(Store::new(path, Writers::OwnerOnly)), run: Arc::default() };
        answers.kept()?;
        Ok(answers)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(Store::path)
    }

    /// Returns the answers in the file. Blocks.
    pub fn kept(&self) -> Result<Vec<Remembered>, StoreError> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        Ok(file.read::<File>()?.map(|(document, _)| document.answers).unwrap_or_default())
    }

    /// Returns the answers that are stored until the program ends.
    pub fn of_this_run(&self) -> Vec<Remembered> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the valid answer for a topic, if there is one. A denial takes precedence. Blocks.
    pub fn find(
        &self,
        topic: &Topic,
        project: Option<&str>,
        now: SystemTime,
    ) -> Result<Option<Answered>, StoreError> {
        let mut found: Vec<Remembered> = self.run.lock().unwrap_or_else(PoisonError::into_inner).clone();
        found.extend(self.kept()?);
        let holding = found.iter().filter(|kept| kept.answers(topic) && kept.holds(project, now));
        Ok(holding.map(|kept| kept.answer).max())
    }

    /// Stores an answer for its scope. If there is no file or no project, it is stored until the program ends. Blocks.
    pub fn remember(
        &self,
        topic: &Topic,
        answer: Answered,
        scope: Scope,
        project: Option<&str>,
        expires: Option<SystemTime>,
        now: SystemTime,
    ) -> Result<(), StoreError> {
        let project = match scope {
            Scope::Once => return Ok(()),
            Scope::Project => project,
            Scope::Run | Scope::Always => None,
        };
        let kept = Remembered {
            answer,
            action: topic.action,
            server: topic.server.clone(),
            name: topic.name.clone(),
            definition: topic.definition.as_ref().map(ToString::to_string),
            arguments: topic.arguments.as_ref().map(ToString::to_string),
            principal: topic.principal.clone(),
            covers: topic.covers,
            identity: topic.identity.clone(),
            project: project.map(ToOwned::to_owned),
            expires,
            extra: BTreeMap::new(),
        };
        let lasting = scope == Scope::Always || project.is_some();
        match &self.file {
            Some(file) if lasting => {
                let put = file.update(|document: &mut File| put(&mut document.answers, kept, topic, now))?;
                put.map_err(|reason| StoreError::damaged(file.path(), None, reason))
            }
            _ => {
                let put = put(&mut self.run.lock().unwrap_or_else(PoisonError::into_inner), kept, topic, now);
                put.map_err(|reason| StoreError::damaged(Path::new("answers of this run"), None, reason))
            }
        }
    }

    /// Removes answers from memory and from the file, and returns their number. Blocks.
    pub fn forget(&self, which: impl Fn(&Remembered) -> bool) -> Result<usize, StoreError> {
        let take = |answers: &mut Vec<Remembered>| {
            let before = answers.len();
            answers.retain(|kept| !which(kept));
            before - answers.len()
        };
        let forgotten = take(&mut self.run.lock().unwrap_or_else(PoisonError::into_inner));
        match &self.file {
            Some(file) if file.path().exists() => {
                Ok(forgotten + file.update(|document: &mut File| take(&mut document.answers))?)
            }
            _ => Ok(forgotten),
        }
    }
}

/// Adds an answer, unless its user has too many. Users of a shared gateway must not fill the file for everybody.
fn put(
    answers: &mut Vec<Remembered>,
    new: Remembered,
    topic: &Topic,
    now: SystemTime,
) -> Result<(), &'static str> {
    answers.retain(|kept| {
        let replaced = kept.is_about(topic) && kept.project == new.project;
        !replaced && kept.expires.is_none_or(|end| now < end)
    });
    if let Some(user) = new.principal.as_deref().map(|principal| user_of(&principal.into())) {
        let is_of_user = |kept: &&Remembered| {
            kept.principal.as_deref().is_some_and(|other| user_of(&other.into()) == user)
        };
        let (mut count, mut bytes) = (1, new.weight());
        for kept in answers.iter().filter(is_of_user) {
            count += 1;
            bytes += kept.weight();
        }
        if count > MAX_PER_USER || bytes > MAX_BYTES_PER_USER {
            return Err("this user has too many remembered answers; revoke some with `bowline answers`");
        }
    }
    answers.push(new);
    answers.sort_by_key(Remembered::order);
    Ok(())
}

/// Serializes a time as text.
mod time_text {
    use super::{Deserialize, Deserializer, Serializer, SystemTime, parse_rfc3339, rfc3339};

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(
        time: &Option<SystemTime>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.serialize_str(&rfc3339(*time)),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<SystemTime>, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_rfc3339(&text).map(Some).ok_or_else(|| {
            serde::de::Error::custom(format_args!(
                "expected a time such as 2026-07-28T12:00:00Z, got `{text}`"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::tests::Folder;
    use super::*;
    use bowline_types::RawJson;
    use expect_test::expect;
    use std::fs;
    use std::time::{Duration, UNIX_EPOCH};

    fn at(second: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_785_240_000 + second)
    }

    fn topic() -> Topic {
        Topic {
            action: Action::Call,
            server: "files".to_owned(),
            name: Some("write".to_owned()),
            definition: Some(Digest::of(&RawJson::empty_object())),
            arguments: None,
            principal: None,
            covers: Covers::Tool,
            identity: None,
        }
    }

    #[test]
    fn the_file_is_readable_and_unknown_members_stay() {
        let folder = Folder::new("answers-file");
        let path = folder.join("answers.json");
        let answers = Answers::open(&path).unwrap();
        let keep = |topic: &Topic, scope, expires| {
            answers.remember(topic, Answered::Allow, scope, Some("/srv/p"), expires, at(0)).unwrap();
        };
        keep(&topic(), Scope::Project, Some(at(60)));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(
            &path,
            text.replacen('{', "{\n  \"note\": [1.50],", 1)
                .replace("\"allow\",", "\"allow\", \"by\": \"me\","),
        )
        .unwrap();
        keep(&Topic { action: Action::Roots, name: None, definition: None, ..topic() }, Scope::Always, None);
        expect![[r#"
            {
              "answers": [
                {
                  "action": "call",
                  "answer": "allow",
                  "by": "me",
                  "definition": "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
                  "expires": "2026-07-28T12:01:00.000Z",
                  "name": "write",
                  "project": "/srv/p",
                  "server": "files"
                },
                {
                  "action": "roots",
                  "answer": "allow",
                  "server": "files"
                }
              ],
              "note": [
                1.5
              ],
              "version": 1
            }
        "#]]
        .assert_eq(&fs::read_to_string(&path).unwrap());
    }

    #[test]
    fn an_answer_applies_only_to_its_topic() {
        // V-101, V-102, V-111
        let folder = Folder::new("answers-topic");
        let answers = Answers::open(folder.join("answers.json")).unwrap();
        answers.remember(&topic(), Answered::Allow, Scope::Always, None, None, at(0)).unwrap();
        let find = |topic: &Topic| answers.find(topic, None, at(1)).unwrap();
        assert_eq!(find(&topic()), Some(Answered::Allow));
        let other = Digest::of(&RawJson::null());
        for topic in [
            Topic { action: Action::Prompt, ..topic() },
            Topic { server: "filesw".to_owned(), name: Some("rite".to_owned()), ..topic() },
            Topic { server: "Files".to_owned(), ..topic() },
            Topic { name: Some("write2".to_owned()), ..topic() },
            Topic { definition: Some(other), ..topic() },
            Topic { definition: None, ..topic() },
            Topic { principal: Some("ann".to_owned()), ..topic() },
        ] {
            assert_eq!(find(&topic), None, "{topic:?}");
        }
    }

    #[test]
    fn answers_end_with_their_scope_and_time() {
        let folder = Folder::new("answers-scope");
        let path = folder.join("answers.json");
        let answers = Answers::open(&path).unwrap();
        let with = |scope, expires| {
            answers.forget(|_| true).unwrap();
            answers.remember(&topic(), Answered::Allow, scope, Some("/p"), expires, at(0)).unwrap();
            let find =
                |answers: &Answers, project, now| answers.find(&topic(), project, now).unwrap().is_some();
            let again = Answers::open(&path).unwrap();
            (
                find(&answers, Some("/p"), at(9)),
                find(&answers, Some("/q"), at(9)),
                find(&answers, Some("/p"), at(10)),
                find(&again, Some("/p"), at(9)),
            )
        };
        assert_eq!(with(Scope::Once, None), (false, false, false, false));
        assert_eq!(with(Scope::Run, None), (true, true, true, false));
        assert_eq!(with(Scope::Run, Some(at(10))), (true, true, false, false));
        assert_eq!(with(Scope::Project, Some(at(10))), (true, false, false, true));
        assert_eq!(with(Scope::Always, None), (true, true, true, true));
    }

    #[test]
    fn the_last_answer_counts_and_deny_beats_allow() {
        let folder = Folder::new("answers-last");
        let answers = Answers::open(folder.join("answers.json")).unwrap();
        let give =
            |answer, scope| answers.remember(&topic(), answer, scope, Some("/p"), None, at(0)).unwrap();
        let find = || answers.find(&topic(), Some("/p"), at(1)).unwrap();
        give(Answered::Deny, Scope::Always);
        give(Answered::Allow, Scope::Always);
        assert_eq!(find(), Some(Answered::Allow));
        give(Answered::Deny, Scope::Project);
        assert_eq!(find(), Some(Answered::Deny));
        assert_eq!(answers.kept().unwrap().len(), 2);
        assert_eq!(answers.forget(|kept| kept.answer == Answered::Deny).unwrap(), 1);
        assert_eq!(find(), Some(Answered::Allow));
    }

    #[test]
    fn a_damaged_file_never_allows() {
        // V-101
        let folder = Folder::new("answers-damaged");
        let path = folder.join("answers.json");
        let answers = Answers::open(&path).unwrap();
        answers.remember(&topic(), Answered::Allow, Scope::Always, None, None, at(0)).unwrap();
        let good = fs::read_to_string(&path).unwrap();
        for (from, to, line, what) in [
            ("\"allow\"", "\"Allow\"", 5, "unknown variant `Allow`"),
            ("\"version\": 1", "\"version\": 2", 11, "expected version 1, got 2"),
            ("\"server\": \"files\"", "\"server\": 7", 8, "invalid type"),
            ("\"name\"", "\"expires\": \"soon\", \"name\"", 7, "expected a time such as"),
            ("\"version\"", "\"answers\": [], \"version\"", 11, "duplicate field `answers`"),
            ("}", "", 10, "expected `,` or `}`"),
        ] {
            fs::write(&path, good.replacen(from, to, 1)).unwrap();
            let error = answers.find(&topic(), None, at(1)).unwrap_err();
            assert_eq!(error.line(), Some(line), "{error}");
            assert!(error.to_string().contains(what), "{error}");
            assert!(Answers::open(&path).is_err());
        }
    }

    #[test]
    fn one_user_cannot_fill_the_store() {
        let folder = Folder::new("answers-full");
        let file = Answers::open(folder.join("answers.json")).unwrap();
        let mut long = topic();
        long.principal = Some(r#"["https://as.example","eve","app"]"#.to_owned());
        long.name = Some("n".repeat(300 * 1024));
        let remember = |answers: &Answers, topic: &Topic, scope: Scope| {
            answers.remember(topic, Answered::Allow, scope, None, None, at(0))
        };
        remember(&file, &long, Scope::Always).unwrap();
        // Another client of the same user, and another tool.
        long.principal = Some(r#"["https://as.example","eve","other"]"#.to_owned());
        long.name = Some("m".repeat(300 * 1024));
        let error = remember(&file, &long, Scope::Always).unwrap_err();
        assert!(error.to_string().contains("too many remembered answers"), "{error}");
        long.principal = Some(r#"["https://as.example","ada","app"]"#.to_owned());
        remember(&file, &long, Scope::Always).unwrap();
        assert_eq!(file.kept().unwrap().len(), 2);

        let memory = Answers::in_memory();
        let numbered = |number: usize| Topic {
            principal: Some("eve".to_owned()),
            name: Some(format!("tool-{number}")),
            ..topic()
        };
        for number in 0..MAX_PER_USER {
            remember(&memory, &numbered(number), Scope::Run).unwrap();
        }
        remember(&memory, &numbered(MAX_PER_USER), Scope::Run).unwrap_err();
        // An answer that replaces one needs no more space, and the only user of a machine has no limit.
        remember(&memory, &numbered(7), Scope::Run).unwrap();
        remember(&memory, &topic(), Scope::Run).unwrap();
    }
}
