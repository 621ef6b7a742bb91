//! Subscriptions of the modern era: one long request that says what to be told.

use crate::adapt::{Adapt, adapt_message_meta, adapt_only_meta, adapt_result_type};
use crate::meta::Meta;
use crate::record::record;
use crate::result::ResultType;
use crate::revision::Revision;

record! {
    /// What to be told, or what will be told.
    #[derive(Default)]
    pub struct SubscriptionFilter {
        /// Changes of the list of tools.
        optional tools_list_changed: bool = "toolsListChanged",
        /// Changes of the list of prompts.
        optional prompts_list_changed: bool = "promptsListChanged",
        /// Changes of the list of resources.
        optional resources_list_changed: bool = "resourcesListChanged",
        /// Changes of these resources.
        optional resource_subscriptions: Vec<String> = "resourceSubscriptions",
        /// Changes of these tasks (tasks extension).
        optional task_ids: Vec<String> = "taskIds",
    }
}

impl SubscriptionFilter {
    /// Whether the filter asks for nothing.
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
        /// What to be told.
        required notifications: SubscriptionFilter = "notifications",
        /// Metadata.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// The end of a subscription, in order.
    #[derive(Default)]
    pub struct SubscriptionsListenResult {
        /// What the result is.
        optional result_type: ResultType = "resultType",
        /// Metadata; names the subscription.
        optional meta: Meta = "_meta",
    }
}

record! {
    /// Params of `notifications/subscriptions/acknowledged`: what will be told.
    pub struct SubscriptionsAcknowledgedParams {
        /// The part of the filter that the server honors.
        required notifications: SubscriptionFilter = "notifications",
        /// Metadata; names the subscription.
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
