//! Methods and notifications that are not part of the protocol: how they may be named, and which ones a server has.

use crate::service::ClientView;
use bowline_types::{ClientCapabilities, Era, Method, RawJson, RpcError};
use std::collections::{BTreeMap, BTreeSet};

/// The longest name of a custom method, in bytes.
pub const MAX_CUSTOM_NAME: usize = 128;

/// Checks the name of a custom method or notification, such as `example.com/thing`.
///
/// A name has a prefix of its own, so it cannot clash with a method of a later revision. Fails with the reason for a
/// method of the protocol, a prefix that the protocol uses (`tools/`, `notifications/`, ...) and JSON-RPC's `rpc.`.
pub fn check_custom_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.len() > MAX_CUSTOM_NAME {
        return Err(format!("expected a name of 1 to {MAX_CUSTOM_NAME} characters"));
    }
    // The name is also the value of a header.
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    if !name.bytes().all(is_allowed) {
        return Err("expected printable ASCII characters without spaces, quotes and backslashes".into());
    }
    if Method::parse(name).is_some() {
        return Err("it is a method of the protocol".into());
    }
    if name.starts_with("rpc.") {
        return Err("names that start with `rpc.` are reserved by JSON-RPC".into());
    }
    let Some((prefix, rest)) = name.split_once('/') else {
        return Err("expected a prefix of your own, such as `example.com/thing`".into());
    };
    if prefix.is_empty() || rest.is_empty() {
        return Err("expected a name on both sides of the `/`".into());
    }
    let is_prefix_of =
        |method: &Method| method.as_str().split_once('/').is_some_and(|(own, _)| own == prefix);
    if Method::ALL.iter().any(is_prefix_of) {
        return Err(format!("names that start with `{prefix}/` are reserved by the protocol"));
    }
    Ok(())
}

/// Which custom methods and notifications a server answers.
#[derive(Clone, Debug, Default)]
pub struct CustomMethods {
    /// Each with the extension that a client has to declare for it.
    requests: BTreeMap<Box<str>, Option<Box<str>>>,
    notifications: BTreeSet<Box<str>>,
    any: bool,
}

impl CustomMethods {
    /// Adds a method. A client that does not declare `extension` is refused. False when the method is already there.
    pub fn add_request(&mut self, name: &str, extension: Option<&str>) -> bool {
        self.requests.insert(name.into(), extension.map(Into::into)).is_none()
    }

    /// Adds a notification. False when it is already there.
    pub fn add_notification(&mut self, name: &str) -> bool {
        self.notifications.insert(name.into())
    }

    /// Passes every custom method and notification on: for a service that finds out when it is called.
    pub fn accept_any(&mut self) {
        self.any = true;
    }

    /// Returns whether the server handles this notification.
    pub fn has_notification(&self, name: &str) -> bool {
        self.notifications.contains(name) || (self.any && check_custom_name(name).is_ok())
    }

    /// Checks that `client` may call a method; -32601 when the server does not have it.
    pub fn check_request(&self, name: &str, client: &ClientView) -> Result<(), RpcError> {
        let unknown = || RpcError::method_not_found(name);
        let Some(extension) = self.requests.get(name) else {
            return if self.any && check_custom_name(name).is_ok() { Ok(()) } else { Err(unknown()) };
        };
        let Some(extension) = extension.as_deref().filter(|id| !client.capabilities().has_extension(id))
        else {
            return Ok(());
        };
        // Only 2026-07-28 has a code for it.
        if client.revision.era() == Era::Legacy {
            return Err(unknown());
        }
        let mut needed = ClientCapabilities::default();
        needed.extensions.insert(extension, RawJson::empty_object());
        Err(RpcError::missing_capability(&needed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_are_refused_with_the_reason() {
        for name in ["example.com/thing", "acme/jobs/start", "com.example/a.b-c_d:e"] {
            assert_eq!(check_custom_name(name), Ok(()), "{name}");
        }
        let long = "a/".repeat(65);
        for (name, reason) in [
            ("tools/call", "it is a method of the protocol"),
            ("ping", "it is a method of the protocol"),
            ("tools/frobnicate", "reserved by the protocol"),
            ("notifications/thing", "reserved by the protocol"),
            ("rpc.discover", "reserved by JSON-RPC"),
            ("rpc.x/y", "reserved by JSON-RPC"),
            ("thing", "expected a prefix"),
            ("/thing", "both sides"),
            ("acme/", "both sides"),
            ("acme/a b", "printable ASCII"),
            ("acme/a\"b", "printable ASCII"),
            ("acme/größe", "printable ASCII"),
            ("", "1 to 128"),
            (long.as_str(), "1 to 128"),
        ] {
            let refused = check_custom_name(name).unwrap_err();
            assert!(refused.contains(reason), "{name}: {refused}");
        }
    }
}
