//! The engine on real files.

mod contract;
mod file;
mod kill;
