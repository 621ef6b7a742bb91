//! Formats bytes as hexadecimal digits.

use std::fmt::Write;

/// Returns two lower-case digits for each byte.
///
/// ```
/// assert_eq!(bowline_text::hex(&[0, 0xaf]), "00af");
/// ```
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
