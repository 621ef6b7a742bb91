//! Percent-encoding for URIs.

/// Encodes a text as one component of a URI: everything except letters, digits and `-._~`.
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

/// Encodes one byte.
pub(crate) fn escape(byte: u8) -> String {
    format!("%{byte:02X}")
}
