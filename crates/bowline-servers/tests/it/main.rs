//! The servers as their clients see them.

mod database;
mod everything;
mod files;
mod files_escape;
mod files_resources;
mod git;
mod git_hostile;
mod postgres;
mod web;
mod support;
