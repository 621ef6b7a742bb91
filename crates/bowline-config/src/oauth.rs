//! Reads the settings of logins, which all dialects have in common under different names.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::entry::EntryBuilder;
use super::expand::Class;
use super::fields::{Fields, Located, Null};
use super::mcp_servers::{port, scopes};
use super::model::{AuthMode, CallbackHost, OauthConfig, OauthGrant};
use super::node::{Node, Value};
use super::text::Text;

/// The names of exceptions from the rules of a login, for `oauth.allow`.
pub const OAUTH_EXCEPTIONS: [&str; 6] = [
    "missing-issuer",
    "issuer-slash",
    "unannounced-pkce",
    "no-resource-parameter",
    "foreign-resource",
    "http",
];

/// What a dialect calls the settings of a login. The first name is proposed in messages; empty if the dialect has no name.
pub(crate) struct Names {
    client_id: &'static [&'static str],
    client_secret: &'static [&'static str],
    callback_port: &'static str,
    metadata_url: &'static str,
    authorization_url: &'static str,
    token_url: &'static str,
    authorization_params: &'static str,
    /// Whether the table has the settings that only `bowline.toml` has.
    has_own_keys: bool,
    /// Members that have no effect here.
    kept: &'static [&'static str],
}

/// The names in `bowline.toml`.
pub(crate) const OWN: Names = Names {
    client_id: &["client_id"],
    client_secret: &["client_secret"],
    callback_port: "callback_port",
    metadata_url: "metadata_url",
    authorization_url: "authorization_url",
    token_url: "token_url",
    authorization_params: "authorization_params",
    has_own_keys: true,
    kept: &[],
};

/// The names in files with `mcpServers`, and in those of VS Code.
pub(crate) const MCP_SERVERS: Names = Names {
    client_id: &["clientId", "client_id"],
    client_secret: &["clientSecret", "client_secret"],
    callback_port: "callbackPort",
    metadata_url: "authServerMetadataUrl",
    authorization_url: "authorizationUrl",
    token_url: "tokenUrl",
    authorization_params: "authorizationParams",
    has_own_keys: false,
    kept: &["enterpriseManaged", "onInsufficientScope", "revokeOnClear"],
};

/// The names in the settings of Zed.
pub(crate) const ZED: Names = Names {
    client_id: &["client_id"],
    client_secret: &["client_secret"],
    callback_port: "",
    metadata_url: "",
    authorization_url: "",
    token_url: "",
    authorization_params: "",
    has_own_keys: false,
    kept: &[],
};

/// Reads `oauth`: a table, or `false` for a server that is used without a login.
pub(crate) fn read(builder: &mut EntryBuilder<'_>, names: &Names) -> Option<OauthConfig> {
    let node = builder.fields.get("oauth")?;
    match node.value {
        Value::Bool(false) => {
            without_login(builder, node);
            return None;
        }
        Value::Bool(true) if !names.has_own_keys => {
            builder.unknown.insert("oauth".to_owned(), node.to_json());
            return None;
        }
        _ => {}
    }
    let fields = Fields::new(node, builder.fields.at("oauth"), builder.report())?;
    let oauth = read_table(builder, &fields, names);
    let is_disabled = !names.has_own_keys && fields.boolean("enabled").is_some_and(|enabled| !enabled.value);
    let kept = fields.raw(names.kept);
    let rest: Map<String, Json> = kept.into_iter().chain(fields.finish()).collect();
    if !rest.is_empty() && !names.has_own_keys {
        builder.unknown.insert("oauth".to_owned(), rest.into());
    }
    if is_disabled {
        without_login(builder, node);
        return None;
    }
    Some(oauth)
}

fn without_login(builder: &mut EntryBuilder<'_>, node: &Node) {
    let mode = Located { value: AuthMode::None, origin: node.origin.clone() };
    builder.set("auth", Some(mode), |settings, value| settings.auth = Some(value));
}

fn read_table(builder: &EntryBuilder<'_>, fields: &Fields<'_>, names: &Names) -> OauthConfig {
    let text = |name: &str, class| {
        if name.is_empty() {
            return None;
        }
        let located = fields.string(name, "…")?;
        builder.expander.text(&located.value, &located.origin, &fields.at(name), class)
    };
    let first = |names: &[&str], class| names.iter().find_map(|name| text(name, class));
    let mut oauth = OauthConfig {
        client_id: first(names.client_id, Class::Open),
        client_secret: first(names.client_secret, Class::Private),
        metadata_url: text(names.metadata_url, Class::Url),
        authorization_url: text(names.authorization_url, Class::Url),
        token_url: text(names.token_url, Class::Url),
        ..OauthConfig::default()
    };
    if !names.callback_port.is_empty() {
        oauth.scopes = scopes(fields, "scopes");
        oauth.callback_port = port(fields, names.callback_port);
        oauth.authorization_params = parameters(builder, fields, names.authorization_params);
    }
    if names.has_own_keys {
        read_own_keys(builder, fields, &mut oauth);
    }
    oauth
}

/// Extra parameters of the authorization request. Their values may be secrets, such as a hint at who logs in.
fn parameters(builder: &EntryBuilder<'_>, fields: &Fields<'_>, name: &str) -> BTreeMap<String, Text> {
    let written = fields.map(name, Null::IsWrong).unwrap_or_default();
    let value = |(parameter, value): (String, Located<Option<String>>)| {
        let path = fields.at(&format!("{name}.{parameter}"));
        let text = builder.expander.text(&value.value?, &value.origin, &path, Class::Open)?;
        Some((parameter, text))
    };
    written.into_iter().filter_map(value).collect()
}

/// The settings that only `bowline.toml` has.
fn read_own_keys(builder: &EntryBuilder<'_>, fields: &Fields<'_>, oauth: &mut OauthConfig) {
    let text = |name: &str, class| {
        let located = fields.string(name, "…")?;
        builder.expander.text(&located.value, &located.origin, &fields.at(name), class)
    };
    let path = |name: &str| {
        let located = fields.string(name, "…")?;
        builder.expander.path(&located.value, &located.origin, &fields.at(name), &builder.context.base())
    };
    oauth.issuer = text("issuer", Class::Url);
    oauth.resource = text("resource", Class::Url);
    oauth.client_metadata_url = text("client_metadata_url", Class::Url);
    oauth.private_key = path("private_key");
    oauth.assertion_file = path("assertion_file");
    let grants = [
        ("authorization_code", OauthGrant::AuthorizationCode),
        ("client_credentials", OauthGrant::ClientCredentials),
        ("workload", OauthGrant::Workload),
    ];
    oauth.grant = fields.choice("grant", &grants).map(|grant| grant.value).unwrap_or_default();
    let hosts = [("127.0.0.1", CallbackHost::Address), ("localhost", CallbackHost::Localhost)];
    oauth.callback_host = fields.choice("callback_host", &hosts).map(|host| host.value);
    oauth.dpop = fields.boolean("dpop").is_some_and(|dpop| dpop.value);
    for exception in fields.strings("allow", &json!(["issuer-slash"])).unwrap_or_default() {
        if OAUTH_EXCEPTIONS.contains(&exception.value.as_str()) {
            oauth.allow.push(exception.value);
            continue;
        }
        fields.report.error_with(
            &exception.origin,
            &fields.at("allow"),
            format!("unknown exception `{}`", exception.value),
            format!("write one of `{}`", OAUTH_EXCEPTIONS.join("`, `")),
        );
    }
}
