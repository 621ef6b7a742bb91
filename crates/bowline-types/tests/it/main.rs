//! The vocabulary from the outside: what is read, what is written, and what a revision makes of it.

mod adapt_features;
mod adapt_peers;
mod examples;
mod methods;
mod records;
mod snapshot;
mod unions;
