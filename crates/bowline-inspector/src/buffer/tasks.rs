//! Which call became which task, so that what is said about the task later belongs to the call.

use super::recorder::Recorder;
use crate::{
    events::{Head, Leg, TaskNote},
    query::CallNode,
};
use std::collections::{HashMap, VecDeque};

/// How many tasks are known at most. Beyond it the oldest are forgotten.
const MAX_TASKS: usize = 10_000;

/// The calls that became tasks. Ids belong to their server, or to the host for its clients.
#[derive(Default)]
pub(super) struct TaskCalls {
    calls: HashMap<(String, String), u64>,
    order: VecDeque<(String, String)>,
}

impl TaskCalls {
    pub(super) fn insert(&mut self, head: &Head, task: &TaskNote, call: u64) {
        let key = key(head, task);
        if self.calls.insert(key.clone(), call).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MAX_TASKS
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
    }

    /// Returns the call that became a task.
    pub(super) fn call(&self, head: &Head, task: &TaskNote) -> Option<u64> {
        self.calls.get(&key(head, task)).copied()
    }
}

fn key(head: &Head, task: &TaskNote) -> (String, String) {
    let owner = if head.leg == Leg::Server { head.peer.clone() } else { String::new() };
    (owner, task.id.clone())
}

impl Recorder {
    /// Returns what was said last about the task that a call became.
    pub(crate) fn task_of(&self, call: u64) -> Option<TaskNote> {
        let tree = self.tree(call)?;
        let mut latest = None;
        visit(&tree.root, &mut latest);
        latest.map(|(_, task)| task.clone())
    }
}

fn visit<'a>(node: &'a CallNode, latest: &mut Option<(u64, &'a TaskNote)>) {
    let heads = [Some(&node.head), node.end.as_ref()].into_iter().flatten().chain(&node.notices);
    for head in heads {
        if let Some(task) = head.task.as_ref().filter(|task| task.status.is_some())
            && latest.is_none_or(|(seq, _)| seq < head.seq)
        {
            *latest = Some((head.seq, task));
        }
    }
    for child in &node.children {
        visit(child, latest);
    }
}
