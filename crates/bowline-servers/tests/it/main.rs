//! Tests of the built-in servers through a client.

mod database;
mod everything;
mod files;
mod files_escape;
mod files_resources;
mod git;
mod git_hostile;
mod logs;
mod postgres;
mod support;
mod web;
