//! Text functions that several crates share: printable text, hexadecimal digits, timestamps, name suggestions and names of
//! secrets.

mod hex;
mod printable;
mod rfc3339;
mod secret_name;
mod suggest;

pub use hex::hex;
pub use printable::{hidden_characters, is_hidden, visible, visible_lines};
pub use rfc3339::{parse_rfc3339, rfc3339};
pub use secret_name::{MemberKind, asks_for_secret, is_secret_name};
pub use suggest::{nearest, nearest_few};
