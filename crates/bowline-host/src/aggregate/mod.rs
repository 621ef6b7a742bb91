//! The offers of many servers as one.

mod catalog;
mod names;
mod shelf;
mod uris;

pub(crate) use catalog::{Catalog, Offer};
pub use names::{MAX_NAME, exposed_name};
pub(crate) use names::{may_be_of, name_within};
pub(crate) use shelf::Shelf;
pub(crate) use uris::without_prefix;
