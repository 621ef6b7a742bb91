//! What a running call may tell its caller, in the caller's revision.

use crate::{encode, service::Notice};
use bowline_types::{
    Adapt, ElicitationCompleteParams, Era, LogMessageParams, LoggingLevel, Method, ProgressParams,
    ProgressToken, Revision,
};
use bytes::Bytes;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, Ordering},
};

/// The lowest level of log messages a caller wants.
#[derive(Clone, Debug)]
pub enum Threshold {
    /// Set by `logging/setLevel` for the whole session, while calls run as well.
    Session(Arc<AtomicU8>),
    /// Set by the request; without one it gets no log messages.
    Request(Option<LoggingLevel>),
}

impl Threshold {
    /// The threshold of a session that set none: everything from `info` on.
    pub fn session() -> Self {
        Self::Session(Arc::new(AtomicU8::new(LoggingLevel::Info as u8)))
    }

    /// The threshold of one request.
    pub fn request(level: Option<LoggingLevel>) -> Self {
        Self::Request(level)
    }

    pub(super) fn set(&self, level: LoggingLevel) {
        if let Self::Session(lowest) = self {
            lowest.store(level as u8, Ordering::Relaxed);
        }
    }

    /// The lowest level that is wanted now; `None` when no messages are.
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

/// Turns the notices of one call into frames.
#[derive(Debug)]
pub struct Notices {
    revision: Revision,
    token: Option<ProgressToken>,
    threshold: Threshold,
    furthest: Option<f64>,
    /// Whether anything but log messages may be sent; `None` when it always may.
    opened: Option<Arc<AtomicBool>>,
}

impl Notices {
    /// For a call of `revision` that wants progress under `token`.
    pub fn new(revision: Revision, token: Option<ProgressToken>, threshold: Threshold) -> Self {
        Self { revision, token, threshold, furthest: None, opened: None }
    }

    /// Sends nothing but log messages until `opened` says so.
    pub(super) fn hold_back_until(&mut self, opened: Arc<AtomicBool>) {
        self.opened = Some(opened);
    }

    fn is_open(&self) -> bool {
        self.opened.as_ref().is_none_or(|opened| opened.load(Ordering::Acquire))
    }

    /// The frame for a notice, unless the caller does not want it.
    ///
    /// Progress that does not grow is dropped, because the protocol promises growth.
    pub fn encode(&mut self, notice: Notice) -> Option<Bytes> {
        match notice {
            Notice::Progress { .. } | Notice::ElicitationComplete { .. } | Notice::Custom { .. }
                if !self.is_open() =>
            {
                None
            }
            Notice::Progress { progress, total, message } => {
                let progress_token = self.token.clone()?;
                let grows = progress.is_finite() && self.furthest.is_none_or(|furthest| progress > furthest);
                if !grows {
                    return None;
                }
                self.furthest = Some(progress);
                let total = total.filter(|total| total.is_finite());
                let mut params =
                    ProgressParams { total, message, ..ProgressParams::new(progress_token, progress) };
                params.adapt(self.revision);
                Some(encode::notify(Method::Progress, &params))
            }
            Notice::Log { level, logger, data } => {
                if !self.threshold.admits(level) {
                    return None;
                }
                let params = LogMessageParams { logger, ..LogMessageParams::new(level, data) };
                Some(encode::notify(Method::Message, &params))
            }
            // A matter of the transport.
            Notice::HangUp => None,
            Notice::ElicitationComplete { elicitation_id } => {
                let known = self.revision.era() == Era::Legacy
                    && Method::ElicitationComplete.exists_in(self.revision);
                let params = ElicitationCompleteParams::new(elicitation_id);
                known.then(|| encode::notify(Method::ElicitationComplete, &params))
            }
            Notice::Custom { method, params } => Some(encode::custom(None, &method, params.as_ref())),
        }
    }
}
