//! Reads `[gateway.auth]`: which access tokens a gateway accepts.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde_json::json;

use super::bowline_sections::Reader;
use super::fields::{Fields, Located, Unit};
use super::node::Node;
use super::sections::{ConnectConfig, DpopMode, GatewayAuthConfig, IntrospectionConfig, JwksSource};
use bowline_proto::scope::is_scope;

/// Reads the table. `None` if it has an error, which is reported.
pub(super) fn gateway_auth(reader: &Reader<'_>, node: &Node) -> Option<GatewayAuthConfig> {
    let report = reader.context.report;
    let mark = report.mark();
    let fields = Fields::new(node, reader.fields.at("auth"), report)?;
    let issuers = issuers(&fields);
    if !fields.has("issuer") {
        let help = format!("write {}", report.example("issuer", &json!("https://login.example.com")));
        report.error_with(&node.origin, &fields.path, "expected `issuer`, got none", help);
    }
    let resource = fields.get("resource").and_then(|node| {
        let url = node.as_str().filter(|url| is_url(url));
        if url.is_none() {
            let expected = "a URL without query and fragment";
            fields.report_invalid(node, "resource", expected, &json!("https://mcp.example.com/mcp"));
        }
        url.map(str::to_owned)
    });
    let audience = texts(&fields, "audience", "api://mcp", "an audience", |text| !text.is_empty());
    let scopes = texts(&fields, "scopes", "mcp", SCOPE, is_scope);
    let subject_claim = fields.string("subject_claim", "oid").map(|text| text.value);
    let scope_claim = fields.string("scope_claim", "roles").map(|text| text.value);
    let implies = implies(&fields);
    let file = reader.path(&fields, "jwks_file", "keys.json");
    let url = fields.get("jwks_url").and_then(|node| {
        let url = node.as_str().filter(|url| is_secure_url(url));
        if url.is_none() {
            fields.report_invalid(node, "jwks_url", SECURE_URL, &json!("https://login.example.com/keys"));
        }
        Some(Located { value: url?.to_owned(), origin: node.origin.clone() })
    });
    let jwks = match (file, url) {
        (Some(_), Some(url)) => {
            let message = "expected either `jwks_file` or `jwks_url`, got both";
            report.error_with(&url.origin, &fields.path, message, "remove one of them");
            None
        }
        (Some(file), None) => Some(Located { value: JwksSource::File(file.value), origin: file.origin }),
        (None, Some(url)) => Some(Located { value: JwksSource::Url(url.value), origin: url.origin }),
        (None, None) => None,
    };
    if let Some(jwks) = &jwks
        && issuers.len() > 1
    {
        // Keys belong to one issuer. The keys of several are found through their metadata.
        let message = "keys from a file or URL need exactly one issuer";
        let help = "remove it, or name one issuer";
        report.error_with(&jwks.origin, &fields.path, message, help);
    }
    let introspection = fields.get("introspection").map(|node| {
        let conflicts = [(jwks.is_some(), "keys from a file or URL"), (issuers.len() > 1, "several issuers")];
        for (_, with) in conflicts.iter().filter(|(conflicts, _)| *conflicts) {
            let message = format!("introspection conflicts with {with}");
            report.error_with(&node.origin, &fields.at("introspection"), message, "remove one of them");
        }
        introspection(&fields, node)
    });
    let dpop = fields.choice("dpop", &[("allowed", DpopMode::Allowed), ("required", DpopMode::Required)]);
    let dpop = dpop.map(|dpop| dpop.value);
    let nonces = fields.boolean("dpop_nonces");
    let connect = fields.get("connect").and_then(|node| {
        let connect = connect(&fields, node)?;
        if connect.client_id.is_some() && issuers.len() > 1 {
            // Users sign in at the issuer of their tokens, and a client is known to one issuer.
            let message = "`client_id` needs exactly one issuer";
            let help = "remove it, so that the gateway registers itself at each issuer, or name one issuer";
            report.error_with(&node.origin, &fields.at("connect"), message, help);
        }
        if dpop.as_ref().is_some_and(|mode| *mode == DpopMode::Required) {
            let message = "it conflicts with `dpop = \"required\"`: browsers sign in without a key";
            report.error_with(&node.origin, &fields.at("connect"), message, "set `dpop = \"allowed\"`");
        }
        Some(connect)
    });
    // A setting that is spelled wrong would accept more tokens than intended.
    fields.reject_unknown();
    if report.mark() > mark {
        return None;
    }
    Some(GatewayAuthConfig {
        issuers,
        resource,
        audience,
        scopes,
        subject_claim,
        scope_claim,
        implies,
        jwks: jwks.map(|jwks| jwks.value),
        introspection: introspection.flatten(),
        dpop,
        dpop_nonces: nonces.is_some_and(|nonces| nonces.value),
        connect,
    })
}

fn connect(auth: &Fields<'_>, node: &Node) -> Option<ConnectConfig> {
    let fields = Fields::new(node, auth.at("connect"), auth.report)?;
    let client_id = fields.string("client_id", "gateway").map(|id| id.value);
    let secret = fields.string("client_secret_env", "CONNECT_SECRET");
    fields.reject_unknown();
    Some(ConnectConfig { client_id, client_secret_env: secret.map(|variable| variable.value) })
}

/// How long a token is trusted without asking again, by default and at most.
const MAX_AGE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(300));

fn introspection(auth: &Fields<'_>, node: &Node) -> Option<IntrospectionConfig> {
    let report = auth.report;
    let fields = Fields::new(node, auth.at("introspection"), report)?;
    let missing = |name: &str, example: &str| {
        let help = format!("write {}", report.example(name, &json!(example)));
        report.error_with(&node.origin, &fields.path, format!("expected `{name}`, got none"), help);
    };
    let example = "https://login.example.com/introspect";
    if !fields.has("url") {
        missing("url", example);
    }
    let url = fields.get("url").and_then(|node| {
        let url = node.as_str().filter(|url| is_secure_url(url));
        if url.is_none() {
            fields.report_invalid(node, "url", SECURE_URL, &json!(example));
        }
        url.map(str::to_owned)
    });
    if !fields.has("client_id") {
        missing("client_id", "gateway");
    }
    let client_id = fields.string("client_id", "gateway").map(|id| id.value);
    if !fields.has("client_secret_env") {
        missing("client_secret_env", "INTROSPECTION_SECRET");
    }
    let client_secret_env =
        fields.string("client_secret_env", "INTROSPECTION_SECRET").map(|variable| variable.value);
    let (default, most) = MAX_AGE;
    let max_age = fields.duration("max_age", Unit::Seconds);
    if let Some(age) = max_age.as_ref().filter(|age| age.value > most) {
        let message = format!("expected at most 5m, got {} s", age.value.as_secs());
        let help = "a token that is revoked is accepted until then; choose a shorter time";
        report.error_with(&age.origin, &fields.at("max_age"), message, help);
    }
    let without_audience = fields.boolean("without_audience").is_some_and(|flag| flag.value);
    fields.reject_unknown();
    Some(IntrospectionConfig {
        url: url?,
        client_id: client_id?,
        client_secret_env: client_secret_env?,
        max_age: max_age.map_or(default, |age| age.value),
        without_audience,
    })
}

const SECURE_URL: &str = "an `https` URL, or an `http` URL of this machine";
const SCOPE: &str = "a scope: one word of visible ASCII characters without `\"` and `\\`";

/// One issuer as a string, or a list of them.
fn issuers(fields: &Fields<'_>) -> Vec<String> {
    let Some(node) = fields.get("issuer") else { return Vec::new() };
    let items = match node.as_array() {
        Some(items) => items.iter().collect(),
        None => vec![node],
    };
    let mut issuers = Vec::new();
    for item in &items {
        match item.as_str().filter(|text| is_secure_url(text)) {
            Some(issuer) => issuers.push(issuer.to_owned()),
            None => fields.report_invalid(item, "issuer", SECURE_URL, &json!("https://login.example.com")),
        }
    }
    if items.is_empty() {
        fields.report_invalid(node, "issuer", "at least one issuer", &json!(["https://login.example.com"]));
    }
    issuers
}

fn texts(
    fields: &Fields<'_>,
    name: &str,
    example: &str,
    expected: &str,
    is_valid: fn(&str) -> bool,
) -> Vec<String> {
    let texts = fields.strings(name, &json!([example])).unwrap_or_default();
    for text in texts.iter().filter(|text| !is_valid(&text.value)) {
        let message = format!("expected {expected}, got `{}`", text.value);
        fields.report.error_with(&text.origin, &fields.at(name), message, "correct it or remove it");
    }
    texts.into_iter().map(|text| text.value).collect()
}

fn implies(fields: &Fields<'_>) -> BTreeMap<String, Vec<String>> {
    let Some(node) = fields.get("implies") else { return BTreeMap::new() };
    let Some(members) = node.as_object() else {
        let expected = "a table with a list of scopes for each scope";
        fields.report_invalid(node, "implies", expected, &json!({ "admin": ["read", "write"] }));
        return BTreeMap::new();
    };
    let mut implies = BTreeMap::new();
    for member in members {
        let path = format!("implies.{}", member.name);
        let items = member.node.as_array().unwrap_or_default();
        let scopes: Vec<String> = items.iter().filter_map(Node::as_str).map(str::to_owned).collect();
        if scopes.is_empty() || scopes.len() < items.len() {
            let help = format!("write {}", fields.report.example(&member.name, &json!(["read", "write"])));
            fields.report_invalid_with(&member.node, &path, "a list of scopes", help);
        } else if let Some(invalid) = scopes.iter().chain([&member.name]).find(|scope| !is_scope(scope)) {
            let message = format!("expected {SCOPE}, got `{invalid}`");
            let help = "correct it or remove it";
            fields.report.error_with(&member.node.origin, &fields.at(&path), message, help);
        }
        implies.insert(member.name.clone(), scopes);
    }
    implies
}

/// Returns whether a text is a URL with a host and without query and fragment.
fn is_url(text: &str) -> bool {
    host(text).is_some() && !text.contains(['?', '#']) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns whether nobody on the network can change what is read from a URL.
fn is_secure_url(text: &str) -> bool {
    let is_loopback = |host: &str| {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        name.eq_ignore_ascii_case("localhost")
            || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    };
    is_url(text) && (text.starts_with("https://") || host(text).is_some_and(is_loopback))
}

/// Returns the host and port of a URL.
fn host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    Some(authority).filter(|authority| !authority.is_empty() && !authority.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_that_nobody_can_tamper_with_are_issuers() {
        for url in [
            "https://login.example.com",
            "https://login.example.com/tenant/",
            "http://localhost:9400",
            "http://127.0.0.1",
            "http://[::1]:80/x",
        ] {
            assert!(is_secure_url(url), "{url}");
        }
        for url in [
            "",
            "login.example.com",
            "https://",
            "http://login.example.com",
            "http://localhost.example.com",
            "http://localhost@evil.example",
            "https://a b",
            "https://a/?x",
            "https://a/#x",
            "ftp://a",
        ] {
            assert!(!is_secure_url(url), "{url}");
        }
    }
}
