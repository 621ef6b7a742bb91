//! The token endpoint and the revocation endpoint.

use super::{
    authorize::{Parameters, read_scopes, target},
    client::Method,
    documents::is_document_url,
    reply::{self, Failure},
    server::{AuthorizationServer, Moment},
    session::digest,
};
use crate::{
    Scopes, form,
    jose::{Claims, Jws, encode},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, Request, Response, StatusCode, header};
use serde_json::{Value, json};

/// Answers a token request.
pub(super) fn exchange(
    server: &mut AuthorizationServer,
    request: &Request<Vec<u8>>,
    moment: &Moment,
) -> Response<Vec<u8>> {
    match try_exchange(server, request, moment) {
        Ok(tokens) => reply::private_json(StatusCode::OK, &tokens),
        Err(failure) => failure.response(),
    }
}

/// The client of a request, authenticated as it is registered.
struct Caller {
    id: String,
    is_machine: bool,
}

fn try_exchange(
    server: &mut AuthorizationServer,
    request: &Request<Vec<u8>>,
    moment: &Moment,
) -> Result<Value, Failure> {
    let parameters = read_form(request)?;
    let caller = authenticate(server, request.headers(), &parameters, moment.now())?;
    match parameters.get("grant_type") {
        Some("authorization_code") => exchange_code(server, &caller, &parameters, moment),
        Some("refresh_token") => refresh(server, &caller, &parameters, moment),
        Some("client_credentials") => client_credentials(server, &caller, &parameters, moment),
        Some(_) => Err(Failure::new("unsupported_grant_type", "the metadata lists the grant types")),
        None => Err(Failure::new("invalid_request", "`grant_type` is missing")),
    }
}

fn exchange_code(
    server: &mut AuthorizationServer,
    caller: &Caller,
    parameters: &Parameters,
    moment: &Moment,
) -> Result<Value, Failure> {
    let invalid = |description| Failure::new("invalid_grant", description);
    let code = parameters.get("code").ok_or_else(|| Failure::new("invalid_request", "`code` is missing"))?;
    let verifier = parameters.get("code_verifier");
    let verifier = verifier.ok_or_else(|| Failure::new("invalid_request", "`code_verifier` is missing"))?;
    let known = server.grants.unused_code(code, moment.now());
    let known = known.ok_or_else(|| invalid("the code is unknown, used or too old"))?;
    if known.asked.client_id != caller.id {
        return Err(invalid("the code belongs to another client"));
    }
    if parameters.get("redirect_uri").is_some_and(|uri| uri != known.asked.redirect_uri) {
        return Err(invalid("`redirect_uri` is not the one of the authorization request"));
    }
    // RFC 7636, 4.1.
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_verifier = (43..=128).contains(&verifier.len()) && verifier.bytes().all(is_part);
    if !is_verifier || digest(verifier) != known.asked.challenge {
        return Err(invalid("`code_verifier` does not match the code challenge"));
    }
    if parameters.resource().map_or(true, |asked| asked.is_some_and(|asked| asked != known.asked.resource)) {
        return Err(Failure::new("invalid_target", "the user agreed to another resource"));
    }
    let opened = server.grants.open(code, moment.id(), moment.secret(), server.access_time, moment.now());
    let (session, refresh) = opened.ok_or_else(|| invalid("the code is unknown, used or too old"))?;
    let grant = Grant {
        subject: &session.subject,
        client_id: &session.client_id,
        scopes: &session.scopes,
        resource: &session.resource,
        sid: Some(&session.sid),
    };
    issue(server, &grant, refresh.as_deref(), moment)
}

fn refresh(
    server: &mut AuthorizationServer,
    caller: &Caller,
    parameters: &Parameters,
    moment: &Moment,
) -> Result<Value, Failure> {
    let token = parameters.get("refresh_token");
    let token = token.ok_or_else(|| Failure::new("invalid_request", "`refresh_token` is missing"))?;
    // A request that is refused for another reason must not use the token up.
    let mut narrowed = None;
    if let Some(session) = server.grants.session_of(token, moment.now()) {
        if let Some(text) = parameters.get("scope") {
            let scopes = read_scopes(text).filter(|scopes| session.scopes.covers(scopes));
            narrowed = Some(scopes.ok_or_else(|| {
                Failure::new("invalid_scope", "a refresh cannot ask for more than was granted")
            })?);
        }
        let is_other = |asked: Option<&str>| asked.is_some_and(|asked| asked != session.resource);
        if parameters.resource().map_or(true, is_other) {
            return Err(Failure::new("invalid_target", "the user agreed to another resource"));
        }
    }
    let rotated = server.grants.rotate(token, &caller.id, moment.secret(), moment.now());
    let (session, next) = rotated.ok_or_else(|| {
        Failure::new("invalid_grant", "the refresh token is unknown, used, revoked or of another client")
    })?;
    let grant = Grant {
        subject: &session.subject,
        client_id: &session.client_id,
        scopes: narrowed.as_ref().unwrap_or(&session.scopes),
        resource: &session.resource,
        sid: Some(&session.sid),
    };
    issue(server, &grant, Some(&next), moment)
}

fn client_credentials(
    server: &AuthorizationServer,
    caller: &Caller,
    parameters: &Parameters,
    moment: &Moment,
) -> Result<Value, Failure> {
    if !caller.is_machine {
        return Err(Failure::new("unauthorized_client", "this client acts for users only"));
    }
    let resource = target(server, parameters);
    let resource = resource
        .ok_or_else(|| Failure::new("invalid_target", "tokens for this resource are not issued here"))?;
    let scopes = match parameters.get("scope") {
        Some(text) => read_scopes(text),
        None => Some(server.default_scopes.clone()),
    };
    let is_granted = |scopes: &Scopes| server.scopes.as_ref().is_none_or(|all| all.covers(scopes));
    let scopes = scopes.filter(is_granted);
    let scopes = scopes.ok_or_else(|| Failure::new("invalid_scope", "a scope is malformed or unknown"))?;
    let grant = Grant { subject: &caller.id, client_id: &caller.id, scopes: &scopes, resource, sid: None };
    issue(server, &grant, None, moment)
}

/// What an access token says.
struct Grant<'a> {
    subject: &'a str,
    client_id: &'a str,
    scopes: &'a Scopes,
    resource: &'a str,
    sid: Option<&'a str>,
}

/// Signs an access token (RFC 9068) and writes the response.
fn issue(
    server: &AuthorizationServer,
    grant: &Grant<'_>,
    refresh: Option<&str>,
    moment: &Moment,
) -> Result<Value, Failure> {
    let mut claims = json!({
        "iss": server.issuer.as_str(),
        "sub": grant.subject,
        "aud": grant.resource,
        "client_id": grant.client_id,
        "scope": grant.scopes.to_string(),
        "iat": moment.now(),
        "exp": moment.now().saturating_add(server.access_time),
        "jti": encode(moment.token_id()),
    });
    if let Some(sid) = grant.sid {
        claims["sid"] = sid.into();
    }
    let (kid, key) = &server.key;
    let token =
        key.sign(json!({ "typ": "at+jwt", "kid": kid }), claims).map_err(|_| Failure::server_error())?;
    let mut response = json!({
        "access_token": token,
        "token_type": "Bearer",
        "expires_in": server.access_time,
        "scope": grant.scopes.to_string(),
    });
    if let Some(refresh) = refresh {
        response["refresh_token"] = refresh.into();
    }
    Ok(response)
}

/// Revokes a refresh token, or the session of an access token (RFC 7009). A token that is unknown or of another client is
/// answered like one that was revoked.
pub(super) fn revoke(
    server: &mut AuthorizationServer,
    request: &Request<Vec<u8>>,
    moment: &Moment,
) -> Response<Vec<u8>> {
    let checked = read_form(request).and_then(|parameters| {
        let caller = authenticate(server, request.headers(), &parameters, moment.now())?;
        let token = parameters.get("token").map(str::to_owned);
        Ok((caller, token.ok_or_else(|| Failure::new("invalid_request", "`token` is missing"))?))
    });
    let (caller, token) = match checked {
        Ok(checked) => checked,
        Err(failure) => return failure.response(),
    };
    let sid = match server.grants.session_of(&token, moment.now()) {
        Some(session) => Some(session.sid.clone()),
        None => sid_of(server, &token),
    };
    if let Some(sid) = sid
        && server.grants.session(&sid, moment.now()).is_some_and(|session| session.client_id == caller.id)
    {
        server.grants.revoke(&sid);
    }
    reply::private_json(StatusCode::OK, &json!({}))
}

/// Returns the session of an access token that this server signed.
fn sid_of(server: &AuthorizationServer, token: &str) -> Option<String> {
    let jws = Jws::parse(token).ok()?;
    let keys = server.key_set();
    let key = keys.find(jws.header().algorithm(), jws.header().kid()).key()?;
    let claims = Claims::parse(jws.verify(key).ok()?).ok()?;
    claims.text("sid").ok()?.map(str::to_owned)
}

fn read_form(request: &Request<Vec<u8>>) -> Result<Parameters, Failure> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(Failure::new("invalid_request", "expected `application/x-www-form-urlencoded`"));
    }
    let text = std::str::from_utf8(request.body()).ok().and_then(Parameters::read);
    text.ok_or_else(|| {
        Failure::new("invalid_request", "the form cannot be read, or contains a parameter twice")
    })
}

/// Authenticates the client exactly as it is registered.
fn authenticate(
    server: &AuthorizationServer,
    headers: &HeaderMap,
    parameters: &Parameters,
    now: u64,
) -> Result<Caller, Failure> {
    let refused = || {
        Failure::invalid_client("the client is unknown, or did not authenticate with its registered method")
    };
    let basic = match headers.get(header::AUTHORIZATION) {
        Some(value) => Some(value.to_str().ok().and_then(read_basic).ok_or_else(refused)?),
        None => None,
    };
    let (id, secret, method) = match (basic, parameters.get("client_secret")) {
        (Some(_), Some(_)) => {
            return Err(Failure::new("invalid_request", "the client authenticates in two ways"));
        }
        (Some((id, secret)), None) => {
            if parameters.get("client_id").is_some_and(|other| other != id) {
                return Err(Failure::new("invalid_request", "two clients are named"));
            }
            (id, Some(secret), Method::Basic)
        }
        (None, secret) => {
            let id = parameters.get("client_id").ok_or_else(refused)?.to_owned();
            let method = if secret.is_some() { Method::Post } else { Method::None };
            (id, secret.map(str::to_owned), method)
        }
    };
    match server.registered(&id, now) {
        Some(client) if client.method == method => {
            // Digests are compared, so the time reveals nothing about the secret.
            if client.secret != secret.as_deref().map(digest) {
                return Err(refused());
            }
            Ok(Caller { id, is_machine: client.is_machine })
        }
        // The code or refresh token says whether such a client was ever allowed.
        None if method == Method::None && is_document_url(&id) => Ok(Caller { id, is_machine: false }),
        _ => Err(refused()),
    }
}

/// Reads the header of HTTP Basic. Both parts are form-encoded (RFC 6749, 2.3.1).
fn read_basic(value: &str) -> Option<(String, String)> {
    let (scheme, rest) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
    let (id, secret) = text.split_once(':')?;
    Some((form::decode_value(id)?, form::decode_value(secret)?))
}
