//! The metrics of one upstream.

use super::{
    counters::{Counter, Histogram},
    label::sanitize,
};
use bowline_types::Method;
use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

/// The label of names beyond the limit.
pub(super) const OTHER: &str = "_other";

/// Declares an enum whose variants have a label.
macro_rules! labels {
    ($(#[$attribute:meta])* $name:ident { $($(#[$variant_attribute:meta])* $variant:ident = $label:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_attribute])* $variant,)*
        }

        impl $name {
            pub(super) const LABELS: [&str; [$($label),*].len()] = [$($label),*];

            /// Returns the label.
            #[expect(clippy::indexing_slicing, reason = "there is a label for each")]
            pub fn as_str(self) -> &'static str {
                Self::LABELS[self as usize]
            }

            /// Returns the index among the labels.
            const fn place(self) -> usize {
                self as usize
            }
        }
    };
}

labels! {
    /// How a call ended.
    CallEnd {
        /// A result.
        Ok = "ok",
        /// A result with `isError`.
        ToolError = "tool_error",
        /// A JSON-RPC error.
        Error = "error",
        /// Denied by the policy or the user, before the upstream received it.
        Denied = "denied",
        /// Timed out.
        Timeout = "timeout",
        /// Cancelled by the caller.
        Cancelled = "cancelled",
    }
}

labels! {
    /// The state of an upstream.
    UpstreamState {
        /// It is not running, and not needed.
        Stopped = "stopped",
        /// It is being started, or connected to.
        Starting = "starting",
        /// It responds.
        Ready = "ready",
        /// It responds, but with errors.
        Degraded = "degraded",
        /// It is not available.
        Failed = "failed",
    }
}

labels! {
    /// Consent decisions.
    ConsentDecision {
        /// Allowed by the user or a rule.
        Allowed = "allowed",
        /// Denied by the user or a rule.
        Denied = "denied",
        /// Nobody answered in time.
        Expired = "expired",
    }
}

/// The metrics of one upstream, from [`Metrics::upstream`](super::Metrics::upstream).
///
/// Updates take no lock, except for tool names.
#[derive(Debug)]
pub struct UpstreamMetrics {
    /// Indexed by method; most are never called.
    methods: Vec<OnceLock<Box<MethodCounters>>>,
    tools: RwLock<HashMap<Box<str>, Arc<ToolCounters>>>,
    max_tools: usize,
    state: AtomicUsize,
    pub(super) restarts: Counter,
    pub(super) consent: [Counter; ConsentDecision::LABELS.len()],
    pub(super) input_tokens: Counter,
    pub(super) output_tokens: Counter,
    pub(super) sent: Counter,
    pub(super) received: Counter,
}

/// The metrics of one method.
#[derive(Debug, Default)]
pub(super) struct MethodCounters {
    pub(super) ends: [Counter; CallEnd::LABELS.len()],
    pub(super) duration: Histogram,
}

/// The metrics of one tool.
#[derive(Debug, Default)]
pub(super) struct ToolCounters {
    pub(super) ends: [Counter; CallEnd::LABELS.len()],
}

impl UpstreamMetrics {
    pub(super) fn new(max_tools: usize) -> Self {
        Self {
            methods: Method::ALL.iter().map(|_| OnceLock::new()).collect(),
            tools: RwLock::default(),
            max_tools,
            state: AtomicUsize::new(UpstreamState::Stopped.place()),
            restarts: Counter::default(),
            consent: Default::default(),
            input_tokens: Counter::default(),
            output_tokens: Counter::default(),
            sent: Counter::default(),
            received: Counter::default(),
        }
    }

    /// Counts a finished call.
    pub fn called(&self, method: Method, end: CallEnd, duration: Duration) {
        let Some(cells) = self.methods.get(method as usize) else { return };
        let cells = cells.get_or_init(Box::default);
        cells.duration.record(duration);
        if let Some(counter) = cells.ends.get(end.place()) {
            counter.add(1);
        }
    }

    /// Counts a finished tool call. Tools beyond the limit are counted together, so pass only names of listed tools,
    /// not arbitrary names of a caller.
    pub fn called_tool(&self, tool: &str, end: CallEnd) {
        if let Some(counter) = self.tool(tool).ends.get(end.place()) {
            counter.add(1);
        }
    }

    fn tool(&self, name: &str) -> Arc<ToolCounters> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(cells) = tools.get(name) {
            return Arc::clone(cells);
        }
        drop(tools);
        let label = sanitize(name);
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        let is_full = tools.len() >= self.max_tools;
        let name = if is_full && !tools.contains_key(label.as_str()) { OTHER } else { label.as_str() };
        if let Some(cells) = tools.get(name) {
            return Arc::clone(cells);
        }
        Arc::clone(tools.entry(name.into()).or_default())
    }

    /// Sets the state of the upstream.
    pub fn set_state(&self, state: UpstreamState) {
        self.state.store(state.place(), Ordering::Relaxed);
    }

    /// Counts a restart of the upstream.
    pub fn restarted(&self) {
        self.restarts.add(1);
    }

    /// Counts a consent decision.
    pub fn consent(&self, decision: ConsentDecision) {
        if let Some(counter) = self.consent.get(decision.place()) {
            counter.add(1);
        }
    }

    /// Counts tokens that were used for a sampling request of the upstream.
    pub fn sampled(&self, input_tokens: u64, output_tokens: u64) {
        self.input_tokens.add(input_tokens);
        self.output_tokens.add(output_tokens);
    }

    /// Counts bytes sent to the upstream.
    pub fn sent(&self, bytes: u64) {
        self.sent.add(bytes);
    }

    /// Counts bytes received from the upstream.
    pub fn received(&self, bytes: u64) {
        self.received.add(bytes);
    }

    pub(super) fn state(&self) -> usize {
        self.state.load(Ordering::Relaxed)
    }

    /// Returns the methods that were called, in order.
    pub(super) fn methods(&self) -> impl Iterator<Item = (Method, &MethodCounters)> {
        Method::ALL
            .iter()
            .zip(&self.methods)
            .filter_map(|(method, cells)| Some((*method, cells.get()?.as_ref())))
    }

    /// Returns the tools that were called, in order.
    pub(super) fn tools(&self) -> Vec<(Box<str>, Arc<ToolCounters>)> {
        let tools = self.tools.read().unwrap_or_else(PoisonError::into_inner);
        let mut tools: Vec<_> = tools.iter().map(|(name, cells)| (name.clone(), Arc::clone(cells))).collect();
        tools.sort_unstable_by(|(left, _), (right, _)| left.cmp(right));
        tools
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_its_own_place() {
        let metrics = UpstreamMetrics::new(0);
        for method in Method::ALL {
            metrics.called(*method, CallEnd::Ok, Duration::ZERO);
        }
        let counted: Vec<(Method, u64)> =
            metrics.methods().map(|(method, cells)| (method, cells.ends[0].value())).collect();
        assert_eq!(counted, Method::ALL.iter().map(|method| (*method, 1)).collect::<Vec<_>>());
    }

    #[test]
    fn unknown_tool_names_are_counted_together() {
        let metrics = UpstreamMetrics::new(2);
        for name in ["b", "a", "c", "d\n", "b", "_other"] {
            metrics.called_tool(name, CallEnd::Error);
        }
        let counted: Vec<(String, u64)> =
            metrics.tools().into_iter().map(|(name, cells)| (name.into(), cells.ends[2].value())).collect();
        assert_eq!(counted, [("_other".into(), 3), ("a".into(), 1), ("b".into(), 2)]);
    }
}
