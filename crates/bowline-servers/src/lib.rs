//! The servers that people install first, written with the crate `bowline` the way anyone would write one.
//!
//! - [`database`]: the tables of SQLite and PostgreSQL, to look at, to query, and to change once the user agrees.
//! - [`web`]: pages to fetch, and the operations of interfaces as tools.

pub mod database;
mod percent;
pub mod web;

pub use database::Database;
pub use web::Web;
