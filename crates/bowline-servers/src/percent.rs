//! Percent-encoding of what is put into a URI.

/// Text as one part of a URI: everything but letters, digits and `-._~` is encoded, so that it cannot end the part.
pub(crate) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&escape(byte));
        }
    }
    encoded
}

/// One byte, encoded.
pub(crate) fn escape(byte: u8) -> String {
    format!("%{byte:02X}")
}
