//! Policy and consent: decides what servers may do, asks the user, and remembers the answers.
//!
//! [`Guard`] is the entry point. It checks a call against the pinned definition of its tool, the rules of the [`Policy`], the
//! remembered [`Answers`] and the limit on questions, and asks the user through a [`Gate`] if none of them decides. Requests
//! of servers (sampling, elicitation, roots) are checked the same way. Every decision is written to the [audit log](audit).

mod answers;
pub mod audit;
mod consent;
mod definition;
mod diff;
mod gate;
mod guard;
mod headless;
mod limit;
mod pattern;
mod pins;
mod rule;
mod rules;
mod scripted;
mod spelling;
mod store;
mod terminal;
mod token;
mod tree;

pub use answers::{Answered, Answers, Remembered, Topic};
pub use bowline_client::{Opener, ShownUrl, SystemOpener, UrlError, UrlWarning};
pub use consent::{Audience, Consent, default_consent};
pub use definition::{Definition, Digest};
pub use gate::{Covers, Edit, Gate, Granted, Question, Scope, Verdict};
pub use guard::{
    CallFacts, Clock, Ended, Facts, Guard, GuardBuilder, NewTools, Permit, Preview, Refusal, RefusalKind,
    Sampling, TaskFacts,
};
pub use headless::Headless;
pub use limit::QuestionLimit;
pub use pattern::Pattern;
pub use pins::{Difference, DifferenceKind, PinKey, PinStatus, PinnedServer, Pins};
pub use rule::{ArgumentTest, Effect, Rule};
pub use rules::{Action, Caller, DecidedBy, Decision, Policy, Request, Trust};
pub use scripted::Scripted;
pub use spelling::ambiguity;
#[cfg(test)]
pub(crate) use store::tests::Folder;
pub use store::{Document, Store, StoreError, VERSION, Writers};
pub use terminal::{Terminal, describe_question, hints};
pub use token::Token;
pub use tree::Readings;
