//! Builds the tree of a call from heads.

use super::{
    recorder::{Recorder, is_of},
    ring::Ring,
};
use crate::{
    events::{Head, Kind},
    query::{CallNode, CallTree},
};
use std::collections::{HashMap, HashSet};

/// How many messages a tree has at most.
const MAX_TREE: usize = 5000;
/// How deep a tree is at most.
const MAX_DEPTH: usize = 32;

impl Recorder {
    /// Returns the tree that contains a call; `None` if its request is not in the buffer.
    pub(crate) fn tree(&self, call: u64) -> Option<CallTree> {
        self.with_ring(|ring| tree(ring, call))
    }

    /// Returns the head that ends a call.
    pub(crate) fn end_of(&self, call: u64) -> Option<Head> {
        self.with_ring(|ring| {
            let found = ring.after(call).find(|stored| is_of(stored, call) && stored.head.status.is_some());
            found.map(|stored| stored.head.clone())
        })
    }
}

fn tree(ring: &Ring, call: u64) -> Option<CallTree> {
    let mut root = ring.get(call)?.head.call.unwrap_or(call);
    let mut seen = HashSet::new();
    while let Some(parent) = ring.get(root).and_then(|stored| stored.head.parent)
        && ring.get(parent).is_some()
        && seen.insert(root)
    {
        root = parent;
    }
    let mut nodes: HashMap<u64, Vec<&Head>> = HashMap::new();
    let mut children: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut known = HashSet::from([root]);
    let mut count = 0;
    // What a call causes comes after it, except for a parent that became known later.
    let from = root.saturating_sub(1);
    for stored in ring.after(from) {
        let head = &stored.head;
        let Some(of) = head.call else { continue };
        let is_start = of == head.seq;
        if is_start && let Some(parent) = head.parent.filter(|parent| known.contains(parent)) {
            known.insert(of);
            children.entry(parent).or_default().push(of);
        }
        if known.contains(&of) {
            nodes.entry(of).or_default().push(head);
            count += 1;
        }
        if count >= MAX_TREE {
            break;
        }
    }
    Some(CallTree { root: node(root, &nodes, &children, MAX_DEPTH)? })
}

fn node(
    call: u64,
    nodes: &HashMap<u64, Vec<&Head>>,
    children: &HashMap<u64, Vec<u64>>,
    depth: usize,
) -> Option<CallNode> {
    let heads = nodes.get(&call)?;
    let (first, rest) = heads.split_first()?;
    let end = rest.iter().find(|head| head.status.is_some());
    let notices = rest.iter().filter(|head| head.kind == Kind::Notification && head.status.is_none());
    let below = depth.checked_sub(1)?;
    let caused = children.get(&call).into_iter().flatten();
    Some(CallNode {
        head: (*first).clone(),
        end: end.map(|head| (*head).clone()),
        notices: notices.map(|head| (*head).clone()).collect(),
        children: caused.filter_map(|child| node(*child, nodes, children, below)).collect(),
    })
}
