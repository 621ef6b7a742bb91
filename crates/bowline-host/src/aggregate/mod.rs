//! Combines the lists of many servers into one catalog.

mod catalog;
mod names;
mod uris;

pub(crate) use catalog::{Catalog, ServerLists, ToolTasks};
pub use names::{MAX_NAME, exposed_name};
pub(crate) use names::{may_be_of, name_within};
pub(crate) use uris::without_prefix;
