//! Announces changes to clients: lists, resources, and instructions.

use super::tasks::Tasks;
use crate::upstream::Member;
use bowline_proto::subscribe::Change;
use bowline_server::Announcer;
use std::{
    fmt::Write as _,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};
use tokio::sync::Notify;

/// The shortest time between two announcements that the same list changed.
const LIST_CHANGE_INTERVAL: Duration = Duration::from_secs(1);
/// How much of a server's instructions is passed on, in characters.
const MAX_INSTRUCTIONS: usize = 16 * 1024;

/// Announces changes to the clients of a host. Does nothing until the host is opened.
pub(super) struct Announcements {
    announcer: OnceLock<Announcer>,
    list_changes: ListChanges,
    /// Instructions of the host itself, which precede those of servers.
    preface: Option<String>,
    /// Notified when a server was started or lost.
    pub(super) servers_changed: Arc<Notify>,
    tasks: Arc<Tasks>,
}

impl Announcements {
    pub(super) fn new(preface: Option<String>, tasks: Arc<Tasks>) -> Arc<Self> {
        let servers_changed = Arc::new(Notify::new());
        let (announcer, list_changes) = (OnceLock::new(), ListChanges::default());
        Arc::new(Self { announcer, list_changes, preface, servers_changed, tasks })
    }

    /// Sends announcements from now on. Returns false if that was requested before.
    pub(super) fn attach(&self, announcer: Announcer, members: &[Arc<Member>]) -> bool {
        if self.announcer.set(announcer).is_err() {
            return false;
        }
        if self.preface.is_some() {
            self.set_instructions(members);
        }
        true
    }

    /// Returns whether the host was opened.
    pub(super) fn is_open(&self) -> bool {
        self.announcer.get().is_some()
    }

    pub(super) fn publish(&self, change: &Change) {
        if let Some(announcer) = self.announcer.get() {
            announcer.publish(change);
        }
    }

    /// Announces that a list changed: immediately, then at most once per interval. The last change is always announced.
    pub(super) fn publish_list(self: &Arc<Self>, change: Change) {
        if !self.list_changes.begin(&change) {
            return;
        }
        self.publish(&change);
        if tokio::runtime::Handle::try_current().is_err() {
            self.list_changes.end(&change);
            return;
        }
        let weak = Arc::downgrade(self);
        self.tasks.spawn(async move {
            loop {
                tokio::time::sleep(LIST_CHANGE_INTERVAL).await;
                let Some(announcements) = weak.upgrade() else { return };
                if !announcements.list_changes.end(&change) {
                    return;
                }
                announcements.publish(&change);
            }
        });
    }

    pub(super) fn publish_lists(self: &Arc<Self>) {
        for change in [Change::Tools, Change::Prompts, Change::Resources] {
            self.publish_list(change);
        }
    }

    /// Sets the instructions for new clients: those of the host, then those of each shared server under its name.
    pub(super) fn set_instructions(&self, members: &[Arc<Member>]) {
        let Some(announcer) = self.announcer.get() else { return };
        let mut instructions = String::new();
        if let Some(preface) = &self.preface {
            let _ = writeln!(instructions, "{}\n", preface.trim());
        }
        for member in members.iter().filter(|member| !member.is_per_client()) {
            let running = member.all().into_iter().find_map(|instance| instance.running());
            if let Some(text) = running.and_then(|client| client.server().instructions.clone()) {
                // Indented, so that no server can begin a section in the name of another.
                let text: String = text.chars().take(MAX_INSTRUCTIONS).collect();
                let _ = writeln!(instructions, "# {}\n", member.name);
                for line in text.trim().lines() {
                    let _ = writeln!(instructions, "    {line}");
                }
                instructions.push('\n');
            }
        }
        let instructions = instructions.trim_end();
        announcer.set_instructions((!instructions.is_empty()).then(|| instructions.to_owned()));
    }
}

/// The lists that were announced within the last interval, each with whether it has changed since.
#[derive(Default)]
struct ListChanges(Mutex<[Option<bool>; 3]>);

impl ListChanges {
    fn with<T>(&self, change: &Change, look: impl FnOnce(&mut Option<bool>) -> T) -> Option<T> {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [tools, prompts, resources] = &mut *lists;
        Some(look(match change {
            Change::Tools => tools,
            Change::Prompts => prompts,
            Change::Resources => resources,
            Change::Resource(_) => return None,
        }))
    }

    /// Records a change. Returns whether to announce it immediately; otherwise it is announced when the interval ends.
    fn begin(&self, change: &Change) -> bool {
        let begin = |list: &mut Option<bool>| {
            let is_first = list.is_none();
            *list = Some(!is_first);
            is_first
        };
        self.with(change, begin).unwrap_or(true)
    }

    /// Ends the interval. Returns whether the list changed meanwhile: then it is announced and another interval begins.
    fn end(&self, change: &Change) -> bool {
        let end = |list: &mut Option<bool>| {
            let has_changed = *list == Some(true);
            *list = has_changed.then_some(false);
            has_changed
        };
        self.with(change, end).unwrap_or(false)
    }
}
