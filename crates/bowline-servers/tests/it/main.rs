//! The servers as their clients see them.

mod everything;
