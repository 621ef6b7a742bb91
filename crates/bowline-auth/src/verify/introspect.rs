//! Asks the authorization server about an access token (RFC 7662), for tokens that only it can read.

use super::{CLOCK_SKEW, Expected, Refusal, Verdict};
use crate::{
    AuthMethod, ClientAuth, ClientId, Error, Form, Issuer, Reply, Request, RequestBody, Secret, jose::Claims,
};
use bowline_types::RawJson;
use serde_json::Value;
use std::{sync::Arc, time::Duration};

/// The request about a token, and the rules for the response.
#[derive(Clone, Debug)]
pub struct Introspection {
    issuer: Issuer,
    endpoint: String,
    auth: ClientAuth,
    requires_audience: bool,
}

impl Introspection {
    /// Asks `issuer` at its introspection endpoint. The server is known there as `client_id`, with a secret that is sent in
    /// `Authorization: Basic`.
    ///
    /// Fails if the endpoint is not `https`, or at a loopback address with an issuer at one.
    pub fn new(issuer: Issuer, endpoint: &str, client_id: &str, secret: Secret) -> Result<Self, Error> {
        super::check_source(&issuer, endpoint).map_err(Error::misuse)?;
        let auth = ClientAuth::by_secret(&ClientId::new(client_id)?, secret, AuthMethod::ClientSecretBasic);
        Ok(Self { issuer, endpoint: endpoint.to_owned(), auth, requires_audience: true })
    }

    /// Accepts responses without `aud`. They need a `token_type`, because a refresh token is active too.
    ///
    /// Use it only if the authorization server answers for no other resource with this client: otherwise a token that a user gave
    /// to another server is accepted here.
    #[must_use]
    pub fn without_audience(mut self) -> Self {
        self.requires_audience = false;
        self
    }

    /// Returns the issuer.
    #[must_use]
    pub fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Returns the request about a token. It follows no redirect.
    pub fn request(&self, token: &str) -> Result<Request, Error> {
        let form = Form::new().with("token", token).with("token_type_hint", "access_token");
        let (form, authorization) = self.auth.apply(form)?;
        Ok(Request { authorization, ..Request::post(&self.endpoint, RequestBody::Form(form)) })
    }

    /// Reads the response. Whatever is not a clear answer means that the token could not be checked.
    pub fn read(&self, reply: &Reply, expected: Expected<'_>) -> Verdict {
        let issuer = &self.issuer;
        if reply.status != 200 {
            let status = reply.status;
            return Err(Refusal::unavailable(format!("the introspection at {issuer} has status {status}")));
        }
        let unreadable = || Refusal::unavailable(format!("the introspection at {issuer} cannot be read"));
        let claims = Claims::parse(&reply.body).map_err(|_| unreadable())?;
        match claims.get("active") {
            Some(Value::Bool(true)) => {}
            Some(Value::Bool(false)) => return Err(Refusal::invalid("the token is not active")),
            _ => return Err(unreadable()),
        }
        if claims.text("iss")?.is_some_and(|iss| iss != issuer.as_str()) {
            return Err(Refusal::invalid("the token is from another issuer"));
        }
        // Authorization servers answer for refresh tokens too. These have no audience, or a type of their own.
        let is_access_token =
            |kind: &str| ["bearer", "dpop"].iter().any(|known| kind.eq_ignore_ascii_case(known));
        match claims.text("token_type")? {
            Some(kind) if is_access_token(kind) => {}
            None if claims.get("aud").is_some() => {}
            _ => return Err(Refusal::invalid("the issuer does not call the token an access token")),
        }
        let is_bound = claims.text("token_type")?.is_some_and(|kind| kind.eq_ignore_ascii_case("dpop"));
        if is_bound && claims.get("cnf").is_none() {
            // Without the key it would count as a token for everybody.
            return Err(Refusal::invalid("the token is bound to a key that the issuer does not name"));
        }
        check_time(&claims, Duration::from_secs(expected.now))?;
        let has_audience = claims.get("aud").is_some() || self.requires_audience;
        if has_audience && !claims.has_audience(|audience| expected.is_for_us([audience]))? {
            return Err(Refusal::invalid("the token is for another audience"));
        }
        let text = String::from_utf8(reply.body.clone()).map_err(|_| unreadable())?;
        let claims = RawJson::parse(text).map_err(|_| unreadable())?;
        expected.claims.caller(issuer.as_str(), claims).map(Arc::new)
    }
}

/// Checks `exp` and `nbf`. `exp` is optional here: the authorization server has checked it, and a response is kept for a short
/// time only.
fn check_time(claims: &Claims, now: Duration) -> Result<(), Refusal> {
    let skew = Duration::from_secs(CLOCK_SKEW);
    if claims.time("exp")?.is_some_and(|expiry| now > expiry.saturating_add(skew)) {
        return Err(Refusal::invalid("the token has expired"));
    }
    if claims.time("nbf")?.is_some_and(|start| start > now.saturating_add(skew)) {
        return Err(Refusal::invalid("the token is not valid yet"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::ClaimNames;

    const ISSUER: &str = "https://as.example";
    const RESOURCE: &str = "https://mcp.example/mcp";
    const NOW: u64 = 1_900_000_000;

    fn introspection() -> Introspection {
        let issuer = Issuer::new(ISSUER).unwrap();
        Introspection::new(issuer, "https://as.example/introspect", "notes server", "a:b".into()).unwrap()
    }

    fn read(introspection: &Introspection, status: u16, body: &str) -> Verdict {
        let audiences = [RESOURCE.to_owned()];
        let claims = ClaimNames::default();
        introspection.read(&Reply::new(status, body), Expected::new(NOW, &audiences, &claims))
    }

    #[test]
    fn the_request_authenticates_the_server_and_hints_at_an_access_token() {
        let request = introspection().request("opaque").unwrap();
        assert_eq!(request.url, "https://as.example/introspect");
        let RequestBody::Form(form) = &request.body else { panic!("a form") };
        assert_eq!(form.text().expose(), "token=opaque&token_type_hint=access_token&client_id=notes+server");
        // `notes+server:a%3Ab`
        assert_eq!(request.authorization.unwrap().expose(), "Basic bm90ZXMrc2VydmVyOmElM0Fi");
        let issuer = Issuer::new(ISSUER).unwrap();
        for endpoint in ["http://as.example/introspect", "http://127.0.0.1/introspect", "introspect"] {
            Introspection::new(issuer.clone(), endpoint, "rs", "s".into()).unwrap_err();
        }
    }

    #[test]
    fn an_active_token_of_this_issuer_for_this_server_is_accepted() {
        let body = format!(
            r#"{{"active":true,"iss":"{ISSUER}","aud":["x","{RESOURCE}"],"sub":"ada","client_id":"app","scope":"a b",
            "exp":{},"token_type":"Bearer"}}"#,
            NOW - 60
        );
        let caller = read(&introspection(), 200, &body).unwrap();
        assert_eq!((caller.issuer(), caller.subject(), caller.client_id()), (ISSUER, "ada", Some("app")));
        assert_eq!(caller.scopes().to_string(), "a b");
        let short = format!(r#"{{"active":true,"aud":"{RESOURCE}","sub":"ada"}}"#);
        assert_eq!(read(&introspection(), 200, &short).unwrap().expiry(), None);
    }

    #[test]
    fn v66_what_is_not_a_clear_answer_is_never_an_active_token() {
        let good = format!(r#""aud":"{RESOURCE}","sub":"ada""#);
        for (status, body) in [
            (429, format!(r#"{{"active":true,{good}}}"#)),
            (500, format!(r#"{{"active":true,{good}}}"#)),
            (401, String::new()),
            (302, String::new()),
            (204, String::new()),
            (200, String::new()),
            (200, "<html>".into()),
            (200, "true".into()),
            (200, format!(r#"[{{"active":true,{good}}}]"#)),
            (200, format!("{{{good}}}")),
            (200, format!(r#"{{"active":"true",{good}}}"#)),
            (200, format!(r#"{{"active":1,{good}}}"#)),
            (200, format!(r#"{{"active":null,{good}}}"#)),
            (200, format!(r#"{{"active":false,"active":true,{good}}}"#)),
        ] {
            let refusal = read(&introspection(), status, &body).unwrap_err();
            assert!(matches!(refusal, Refusal::Unavailable(_)), "{status} {body}: {refusal}");
        }
    }

    #[test]
    fn v60_an_active_token_for_somebody_else_is_refused() {
        for members in [
            r#""sub":"ada""#.to_owned(),
            r#""sub":"ada","aud":[]"#.to_owned(),
            r#""sub":"ada","aud":null"#.to_owned(),
            r#""sub":"ada","token_type":"Bearer""#.to_owned(),
            // Bound to a key that is not named.
            format!(r#""sub":"ada","aud":"{RESOURCE}","token_type":"DPoP""#),
            r#""sub":"ada","aud":"https://other.example/mcp""#.to_owned(),
            format!(r#""sub":"ada","aud":"{RESOURCE}/""#),
            format!(r#""sub":"ada","aud":"{RESOURCE}","iss":"https://evil.example""#),
            format!(r#""sub":"ada","aud":"{RESOURCE}","iss":"{ISSUER}/""#),
            format!(r#""sub":"ada","aud":"{RESOURCE}","exp":{}"#, NOW - 61),
            format!(r#""sub":"ada","aud":"{RESOURCE}","exp":"never""#),
            format!(r#""sub":"ada","aud":"{RESOURCE}","nbf":{}"#, NOW + 61),
            format!(r#""sub":"ada","aud":"{RESOURCE}","token_type":"refresh_token""#),
            format!(r#""aud":"{RESOURCE}""#),
        ] {
            let refusal =
                read(&introspection(), 200, &format!(r#"{{"active":true,{members}}}"#)).unwrap_err();
            assert!(matches!(refusal, Refusal::Invalid(_)), "{members}: {refusal}");
        }
        let inactive = read(&introspection(), 200, r#"{"active":false}"#).unwrap_err();
        assert!(matches!(inactive, Refusal::Invalid(_)));
    }

    #[test]
    fn a_server_of_its_own_needs_no_audience_but_respects_one() {
        let alone = introspection().without_audience();
        let bearer = r#""active":true,"sub":"ada","token_type":"bearer""#;
        assert!(read(&alone, 200, &format!("{{{bearer}}}")).is_ok());
        assert!(read(&alone, 200, &format!(r#"{{{bearer},"aud":"https://other.example"}}"#)).is_err());
        // A refresh token of `oidc-provider` has neither a type nor an audience.
        assert!(read(&alone, 200, r#"{"active":true,"sub":"ada"}"#).is_err());
    }
}
