//! What the steps are given: messages as the load generator sends them.

use bytes::Bytes;

/// Readable text of so many bytes, with an escape in each line as real text has.
pub fn text(bytes: usize) -> String {
    let line = "the quick brown fox jumps over the lazy dog and then reads a long protocol\n";
    line.chars().cycle().take(bytes).collect()
}

/// The params of an `echo` of so many bytes, as a client of 2026-07-28 sends them.
pub fn params(bytes: usize) -> Bytes {
    let message = serde_json::to_string(&text(bytes)).expect("text serializes");
    let meta = concat!(
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
        r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"0"},"#,
        r#""io.modelcontextprotocol/clientCapabilities":{}}"#,
    );
    format!(r#"{{"name":"echo","arguments":{{"message":{message}}},"_meta":{meta}}}"#).into()
}

/// The same as a whole request.
pub fn request(bytes: usize) -> Bytes {
    let params = params(bytes);
    let params = std::str::from_utf8(&params).expect("it was text");
    format!(r#"{{"jsonrpc":"2.0","id":10000000,"method":"tools/call","params":{params}}}"#).into()
}
