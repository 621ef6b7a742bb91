//! Encodes the notifications of a running call for the revision of its caller.

use crate::{encode, service::CallNotification};
use bowline_types::{
    Adapt, ElicitationCompleteParams, Era, LogMessageParams, LoggingLevel, Method, ProgressParams,
    ProgressToken, Revision,
};
use bytes::Bytes;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, Ordering},
};

/// The lowest level of log messages that a caller receives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Threshold {
    /// Set by `logging/setLevel` for the session; also takes effect for running calls.
    Session(Arc<AtomicU8>),
    /// Set by the request. Without a level it receives no log messages.
    Request(Option<LoggingLevel>),
}

impl Threshold {
    /// Creates the threshold of a session that did not set a level: `info`.
    pub fn session() -> Self {
        Self::Session(Arc::new(AtomicU8::new(LoggingLevel::Info as u8)))
    }

    /// Creates the threshold of one request.
    pub fn request(level: Option<LoggingLevel>) -> Self {
        Self::Request(level)
    }

    pub(super) fn set(&self, level: LoggingLevel) {
        if let Self::Session(lowest) = self {
            lowest.store(level as u8, Ordering::Relaxed);
        }
    }

    /// Returns the current level; `None` if no log messages are sent.
    pub fn level(&self) -> Option<LoggingLevel> {
        match self {
            Self::Session(lowest) => {
                let lowest = lowest.load(Ordering::Relaxed);
                LoggingLevel::ALL.into_iter().find(|level| *level as u8 == lowest)
            }
            Self::Request(lowest) => *lowest,
        }
    }

    fn admits(&self, level: LoggingLevel) -> bool {
        match self {
            Self::Session(lowest) => level as u8 >= lowest.load(Ordering::Relaxed),
            Self::Request(lowest) => lowest.is_some_and(|lowest| level >= lowest),
        }
    }
}

/// Encodes the notifications of one call.
#[derive(Debug)]
pub struct NotificationEncoder {
    revision: Revision,
    token: Option<ProgressToken>,
    threshold: Threshold,
    furthest: Option<f64>,
    /// Whether notifications other than log messages may be sent; `None` if they always may.
    opened: Option<Arc<AtomicBool>>,
}

impl NotificationEncoder {
    /// Creates an encoder for a call of `revision` with a progress token.
    pub fn new(revision: Revision, token: Option<ProgressToken>, threshold: Threshold) -> Self {
        Self { revision, token, threshold, furthest: None, opened: None }
    }

    /// Sends only log messages until `opened` is true.
    pub(super) fn hold_back_until(&mut self, opened: Arc<AtomicBool>) {
        self.opened = Some(opened);
    }

    fn is_open(&self) -> bool {
        self.opened.as_ref().is_none_or(|opened| opened.load(Ordering::Acquire))
    }

    /// Encodes a notification; `None` if the caller does not receive it.
    ///
    /// Progress that does not increase is dropped, because the protocol requires that it increases.
    pub fn encode(&mut self, notice: CallNotification) -> Option<Bytes> {
        match notice {
            CallNotification::Progress { .. }
            | CallNotification::ElicitationComplete { .. }
            | CallNotification::Custom { .. }
                if !self.is_open() =>
            {
                None
            }
            CallNotification::Progress { progress, total, message } => {
                let progress_token = self.token.clone()?;
                let grows = progress.is_finite() && self.furthest.is_none_or(|furthest| progress > furthest);
                if !grows {
                    return None;
                }
                self.furthest = Some(progress);
                let mut params = ProgressParams::new(progress_token, progress);
                params.total = total.filter(|total| total.is_finite());
                params.message = message;
                params.adapt(self.revision);
                Some(encode::notify(Method::Progress, &params))
            }
            CallNotification::Log { level, logger, data } => {
                if !self.threshold.admits(level) {
                    return None;
                }
                let mut params = LogMessageParams::new(level, data);
                params.logger = logger;
                Some(encode::notify(Method::Message, &params))
            }
            // A matter of the transport.
            CallNotification::CloseStream => None,
            CallNotification::ElicitationComplete { elicitation_id } => {
                let known = self.revision.era() == Era::Legacy
                    && Method::ElicitationComplete.exists_in(self.revision);
                let params = ElicitationCompleteParams::new(elicitation_id);
                known.then(|| encode::notify(Method::ElicitationComplete, &params))
            }
            CallNotification::Custom { method, params } => {
                Some(encode::custom(None, &method, params.as_ref()))
            }
        }
    }
}
