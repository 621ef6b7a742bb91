//! Text functions that several crates share: printable text, name suggestions and names of secrets.

mod printable;
mod secret_name;
mod suggest;

pub use printable::{hidden_characters, is_hidden, visible, visible_lines};
pub use secret_name::{asks_for_secret, is_secret_name};
pub use suggest::{nearest, nearest_few};
