//! Progressive disclosure: how a model finds the right tool among thousands without being shown them all.
//!
//! An [`Index`] ranks tools for a question. [`Disclosure`] decides for which clients that is worth a detour at all.
//! Where it is, a client is listed the three [`MetaTool`]s in place of everything else, and what they answer is made
//! here. All of it is pure: whoever owns the tools makes the calls.

mod counts;
mod disclosure;
mod index;
mod meta;
mod normalize;
mod query;
mod results;
mod schema;
mod stem;
mod synonyms;
mod tokens;
mod words;

pub use disclosure::{Decision, Disclosure, DisclosureMode, Listing, Reason};
pub use index::{Entry, Hit, Index};
pub use meta::{MetaCall, MetaCallError, MetaTool, Source};
pub use results::{describe_tool, no_such_tool, search_result};
pub use tokens::estimate_tokens;
