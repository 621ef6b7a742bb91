//! Progressive disclosure: how a model finds the right tool among thousands without being shown them all.
//!
//! An [`Index`] ranks tools for a question. [`Disclosure`] decides for which clients that is worth a detour at all.
//! Where it is, a client is listed the three [`MetaTool`]s in place of everything else, and what they answer is made
//! here. All of it is pure: whoever owns the tools makes the calls.

mod answer;
mod asking;
mod counts;
mod disclosure;
mod index;
mod kindred;
mod meta;
mod plain;
mod schema;
mod stem;
mod tokens;
mod words;

pub use answer::{describe_tool, no_such_tool, search_result};
pub use disclosure::{Decision, Disclosure, DisclosureMode, Listing, Reason};
pub use index::{Entry, Hit, Index};
pub use meta::{MetaCall, MetaCallError, MetaTool, Source};
pub use tokens::estimate_tokens;
