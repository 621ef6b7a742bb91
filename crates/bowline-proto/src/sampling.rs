//! Checks sampling messages: tool calls and their results have to follow each other.

use bowline_types::{ContentBlock, CreateMessageParams, Role};
use std::collections::BTreeSet;

/// Checks a sampling request; for servers before it is sent, for clients before it is answered.
///
/// A message with tool results contains nothing else, and answers every tool use of the previous message.
pub fn check(params: &CreateMessageParams) -> Result<(), String> {
    if let Some(preferences) = &params.model_preferences {
        let priorities = [
            ("costPriority", preferences.cost_priority),
            ("speedPriority", preferences.speed_priority),
            ("intelligencePriority", preferences.intelligence_priority),
        ];
        for (name, priority) in priorities {
            if priority.is_some_and(|priority| !(0.0..=1.0).contains(&priority)) {
                return Err(format!("`{name}` must lie between 0 and 1"));
            }
        }
    }
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for message in &params.messages {
        if let Role::Other(role) = &message.role {
            return Err(format!("expected the role `user` or `assistant`, got `{role}`"));
        }
        let blocks = message.content.as_slice();
        let results: BTreeSet<&str> = blocks.iter().filter_map(tool_result).collect();
        if results.is_empty() {
            if let Some(id) = open.first() {
                return Err(format!("the tool use `{id}` is not followed by its result"));
            }
        } else {
            if message.role != Role::User {
                return Err("tool results are only allowed in user messages".into());
            }
            if blocks.iter().any(|block| tool_result(block).is_none()) {
                return Err("a message with tool results must not contain other content".into());
            }
            if let Some(id) = results.difference(&open).next() {
                return Err(format!("tool result `{id}` does not match a tool use in the previous message"));
            }
            if let Some(id) = open.difference(&results).next() {
                return Err(format!("the tool use `{id}` is not followed by its result"));
            }
        }
        open = blocks.iter().filter_map(tool_use).collect();
        if !open.is_empty() && message.role != Role::Assistant {
            return Err("tool uses are only allowed in assistant messages".into());
        }
    }
    match open.first() {
        Some(id) => Err(format!("the tool use `{id}` is not followed by its result")),
        None => Ok(()),
    }
}

fn tool_use(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::ToolUse(block) => Some(&block.id),
        _ => None,
    }
}

fn tool_result(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::ToolResult(block) => Some(&block.tool_use_id),
        _ => None,
    }
}
