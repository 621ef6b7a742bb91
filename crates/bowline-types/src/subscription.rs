//! Subscriptions of the modern era: a long-running request for notifications.

use crate::adapt::{Adapt, adapt_message_meta, adapt_only_meta, adapt_result_type};
use crate::meta::Meta;
use crate::record::record;
use crate::result::ResultType;
use crate::revision::Revision;

record! {
    /// Changes to notify of.
    #[derive(Default)]
    pub struct SubscriptionFilter {
        /// Changes to the list of tools.
        optional tools_list_changed: bool = "toolsListChanged",
        /// Changes to the list of prompts.
        optional prompts_list_changed: bool = "promptsListChanged",
        /// Changes to the list of resources.
        optional resources_list_changed: bool = "resourcesListChanged",
        /// Changes to these resources.
        optional resource_subscriptions: Vec<String> = "resourceSubscriptions",
        /// Changes to these tasks (tasks extension).
        optional task_ids: Vec<String> = "taskIds",
    }
}

impl SubscriptionFilter {
    /// Returns whether the filter is empty.
    pub fn is_empty(&self) -> bool {
        let none = |list: &Option<Vec<String>>| list.as_ref().is_none_or(Vec::is_empty);
        self.tools_list_changed != Some(true)
            && self.prompts_list_changed != Some(true)
            && self.resources_list_changed != Some(true)
            && none(&self.resource_subscriptions)
            && none(&self.task_ids)
    }
}

record! {
    /// Params of `subscriptions/listen`.
    pub struct SubscriptionsListenParams {
        /// Changes to notify of.
        required notifications: SubscriptionFilter = "notifications",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Result of `subscriptions/listen`, sent when the subscription ends.
    #[derive(Default)]
    pub struct SubscriptionsListenResult {
        /// Type of the result.
        optional result_type: ResultType = "resultType",
        /// Metadata; contains the id of the subscription.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params of `notifications/subscriptions/acknowledged`.
    pub struct SubscriptionsAcknowledgedParams {
        /// The part of the filter that the server accepted.
        required notifications: SubscriptionFilter = "notifications",
        /// Metadata; contains the id of the subscription.
        optional meta: Meta = "_meta",
    }
}

impl Adapt for SubscriptionsListenResult {
    fn adapt(&mut self, to: Revision) {
        adapt_result_type(&mut self.result_type, to);
        adapt_message_meta(&mut self.meta, to);
    }
}

adapt_only_meta! { SubscriptionsListenParams, SubscriptionsAcknowledgedParams }
