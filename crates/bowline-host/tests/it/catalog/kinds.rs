//! The kinds of services, and the objects that each deals with.

mod data;
mod office;
mod operations;
mod sales;
mod teams;
mod trade;

use super::Kind;

/// All kinds, always in the same order.
pub(super) fn kinds() -> impl Iterator<Item = &'static Kind> {
    teams::KINDS
        .iter()
        .chain(&data::KINDS)
        .chain(&office::KINDS)
        .chain(&sales::KINDS)
        .chain(&operations::KINDS)
        .chain(&trade::KINDS)
}
