//! `cargo xtask tidy`: the rules of the repository that the compiler does not know.

mod book;
mod direction;
mod length;
mod manifests;
mod run;
mod security;
mod sources;
mod web;

pub(crate) use run::run;
