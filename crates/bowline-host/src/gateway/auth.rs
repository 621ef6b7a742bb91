//! The gateway as a resource server: which access tokens it accepts.

use super::problem::Problem;
use bowline_config::{
    Config, DpopMode, Environment, GatewayAuthConfig, GatewayConfig, JwksSource, RuleConfig,
};
use bowline_http::{Dpop, Introspection, Jwks, Protect, ProtectError, Protection, auth::Secret};
use bowline_policy::Effect;
use std::{fs::File, net::SocketAddr};

/// Who issues the access tokens of callers.
#[derive(Clone, Debug)]
pub(super) enum AccessTokens {
    /// The issuers in `[gateway.auth]`, and the secrets of the gateway at them: for questions about tokens, and for the page on
    /// which users connect accounts.
    Configured { auth: Box<GatewayAuthConfig>, secret: Option<Secret>, connect_secret: Option<Secret> },
    /// The gateway itself, for development.
    Dev { scopes: Vec<String> },
}

impl AccessTokens {
    /// Takes the configuration, and the secrets that it names from the environment.
    pub(super) fn configured(auth: &GatewayAuthConfig, environment: &Environment) -> (Self, Vec<Problem>) {
        let mut problems = Vec::new();
        let mut secret = |name: &str, setting: &str| {
            let value = environment.variable(name).map(str::trim).filter(|value| !value.is_empty());
            if value.is_none() {
                let message = format!("the environment variable `{name}` is not set");
                problems.push(Problem::new(setting, message));
            }
            value.map(Secret::new)
        };
        let connect = auth.connect.as_ref().and_then(|connect| connect.client_secret_env.as_ref());
        let connect_secret = connect.and_then(|name| secret(name, "gateway.auth.connect"));
        let introspection = auth.introspection.as_ref();
        let secret = introspection
            .and_then(|introspection| secret(&introspection.client_secret_env, "gateway.auth.introspection"));
        (Self::Configured { auth: Box::new(auth.clone()), secret, connect_secret }, problems)
    }

    /// Returns the configured issuers.
    pub(super) fn issuers(&self) -> &[String] {
        match self {
            Self::Configured { auth, .. } => &auth.issuers,
            Self::Dev { .. } => &[],
        }
    }

    /// Describes how the endpoint is protected. `address` is that of the socket, if there is one.
    pub(super) fn protect(&self, gateway: &GatewayConfig, address: Option<SocketAddr>) -> Protect {
        match self {
            Self::Configured { auth, secret, .. } => protect(auth, secret.as_ref(), gateway, address),
            Self::Dev { scopes } => {
                let protect = Protect::dev().scopes(scopes).name(&gateway.name);
                match address {
                    Some(address) => protect.served_at(address, &gateway.path),
                    None => protect,
                }
            }
        }
    }

    /// Finds mistakes before the gateway serves. Fails with the one that prevents a start, and returns the others.
    pub(super) fn check(&self, config: &Config, listen: SocketAddr) -> Result<Vec<Problem>, Problem> {
        match self {
            Self::Configured { auth, secret, .. } => check(auth, secret.as_ref(), config, listen),
            // The port may not be known yet.
            Self::Dev { .. } => {
                build(self.protect(&config.gateway, Some(listen)))?;
                Ok(Vec::new())
            }
        }
    }
}

fn protect(
    auth: &GatewayAuthConfig,
    secret: Option<&Secret>,
    gateway: &GatewayConfig,
    address: Option<SocketAddr>,
) -> Protect {
    let issuer = || auth.issuers.first().cloned().unwrap_or_default();
    let mut protect = match (&auth.introspection, &auth.jwks) {
        (Some(introspection), _) => {
            let secret = secret.cloned().unwrap_or_else(|| Secret::new(""));
            let mut ask = Introspection::at(&introspection.url)
                .client(&introspection.client_id, secret)
                .max_age(introspection.max_age.as_secs());
            if introspection.without_audience {
                ask = ask.without_audience();
            }
            Protect::introspect(issuer(), ask)
        }
        (None, Some(JwksSource::File(path))) => Protect::keys(issuer(), Jwks::file(path)),
        (None, Some(JwksSource::Url(url))) => Protect::keys(issuer(), Jwks::url(url)),
        _ => Protect::by_any(&auth.issuers),
    };
    if let Some(mode) = auth.dpop {
        protect = protect.dpop(match mode {
            DpopMode::Required => Dpop::Required,
            _ => Dpop::Allowed,
        });
    }
    if auth.dpop_nonces {
        protect = protect.dpop_nonces();
    }
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

fn check(
    auth: &GatewayAuthConfig,
    secret: Option<&Secret>,
    config: &Config,
    listen: SocketAddr,
) -> Result<Vec<Problem>, Problem> {
    let gateway = &config.gateway;
    if auth.resource.is_none() && !listen.ip().is_loopback() {
        let message = "the public URL of the gateway is unknown; set `resource` (only a loopback address works without)";
        return Err(Problem::new("gateway.auth", message));
    }
    build(protect(auth, secret, gateway, Some(listen)))?;
    let mut problems = Vec::new();
    if auth.dpop_nonces && auth.dpop.is_none() {
        let message = "it has no effect without `dpop`; set `dpop = \"required\"`, or remove it";
        problems.push(Problem::new("gateway.auth.dpop_nonces", message));
    }
    if auth
        .connect
        .as_ref()
        .is_some_and(|connect| connect.client_id.is_none() && connect.client_secret_env.is_some())
    {
        let message = "`client_secret_env` has no effect without `client_id`; add the client, or remove it";
        problems.push(Problem::new("gateway.auth.connect", message));
    }
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
