//! `cargo xtask trace`: which requirement is proven by which test.

mod catalog;
mod open;
mod options;
mod proofs;
mod report;
mod run;
mod state;
mod waivers;

pub(crate) use run::run;
