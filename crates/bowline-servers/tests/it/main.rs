//! The servers, spoken to frame by frame.

mod database;
mod postgres;
mod web;
