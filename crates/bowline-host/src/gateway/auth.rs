//! The gateway as a resource server: which access tokens it accepts.

use super::problem::Problem;
use bowline_config::{Config, GatewayAuthConfig, GatewayConfig, JwksSource, RuleConfig};
use bowline_http::{Jwks, Protect, ProtectError, Protection};
use bowline_policy::Effect;
use std::{fs::File, net::SocketAddr};

/// Describes how the endpoint is protected. `address` is that of the socket, if there is one.
pub(super) fn protect(
    auth: &GatewayAuthConfig,
    gateway: &GatewayConfig,
    address: Option<SocketAddr>,
) -> Protect {
    let issuer = || auth.issuers.first().cloned().unwrap_or_default();
    let mut protect = match &auth.jwks {
        Some(JwksSource::File(path)) => Protect::keys(issuer(), Jwks::file(path)),
        Some(JwksSource::Url(url)) => Protect::keys(issuer(), Jwks::url(url)),
        _ => Protect::by_any(&auth.issuers),
    };
    protect = protect.audience(&auth.audience).scopes(&auth.scopes).name(&gateway.name);
    let loopback = address.filter(|address| address.ip().is_loopback());
    let of_socket = || loopback.map(|address| format!("http://{address}{}", gateway.path));
    if let Some(resource) = auth.resource.clone().or_else(of_socket) {
        protect = protect.resource(resource);
    }
    if let Some(claim) = &auth.subject_claim {
        protect = protect.subject_claim(claim);
    }
    if let Some(claim) = &auth.scope_claim {
        protect = protect.scope_claim(claim);
    }
    for (scope, implied) in &auth.implies {
        protect = protect.implies(scope, implied);
    }
    protect
}

/// Builds the protection of the endpoint.
pub(super) fn build(protect: Protect) -> Result<Protection, Problem> {
    let problem = |error: ProtectError| Problem::new("gateway.auth", error);
    protect.build().map_err(problem)
}

/// Finds mistakes before the gateway serves. Fails with the one that prevents a start, and returns the others.
pub(super) fn check(
    auth: &GatewayAuthConfig,
    config: &Config,
    listen: SocketAddr,
) -> Result<Vec<Problem>, Problem> {
    let gateway = &config.gateway;
    if auth.resource.is_none() && !listen.ip().is_loopback() {
        let message = "the public URL of the gateway is unknown; set `resource` (only a loopback address works without)";
        return Err(Problem::new("gateway.auth", message));
    }
    build(protect(auth, gateway, Some(listen)))?;
    let mut problems = Vec::new();
    if let Some(JwksSource::File(path)) = &auth.jwks
        && let Err(error) = File::open(path)
    {
        // The file may be written later, so this does not prevent a start.
        let message =
            format!("cannot read `{}`: {error}; every token is refused until it can be read", path.display());
        problems.push(Problem::new("gateway.auth.jwks_file", message));
    }
    let is_ambiguous = |rule: &&RuleConfig| rule.effect == Effect::Allow && rule.issuer.is_none();
    for rule in config.rules.iter().filter(|_| auth.issuers.len() > 1).filter(is_ambiguous) {
        // A user is known by the issuer and the name. Each issuer chooses its names.
        if let Some(user) = rule.principal.as_ref().or(rule.caller.as_ref()) {
            let place = rule.origin.short();
            let message = format!("{place}: the rule allows the user `{user}` of every issuer; add `issuer`");
            problems.push(Problem::new("rules", message));
        }
    }
    Ok(problems)
}
