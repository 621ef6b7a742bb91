//! Progressive disclosure: lets a model find tools among thousands without listing them all.
//!
//! An [`Index`] ranks tools for a query. [`Disclosure`] decides for which clients that is worthwhile. Such a client is listed
//! the three [`MetaTool`]s in place of all tools; their results are made here. The crate does no IO: the owner of the tools
//! makes the calls.

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
