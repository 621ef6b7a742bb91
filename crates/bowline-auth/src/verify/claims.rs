//! From the claims of a verified token to its caller.

use crate::{Caller, Refusal, Scopes};
use bowline_types::RawJson;
use serde::Deserialize;

/// The claims that hold the subject and the scopes of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimNames {
    subject: String,
    /// Without one, `scope` or else `scp`.
    scopes: Option<String>,
}

impl Default for ClaimNames {
    fn default() -> Self {
        Self { subject: "sub".to_owned(), scopes: None }
    }
}

/// The claims that name the client, in this order: RFC 9068, OpenID Connect, Okta, Entra.
const CLIENT_CLAIMS: [&str; 4] = ["client_id", "azp", "cid", "appid"];

impl ClaimNames {
    /// Takes the subject from another claim than `sub`.
    #[must_use]
    pub fn with_subject(mut self, name: impl Into<String>) -> Self {
        self.subject = name.into();
        self
    }

    /// Takes the scopes from this claim, a text or a list, instead of `scope` and `scp`.
    #[must_use]
    pub fn with_scopes(mut self, name: impl Into<String>) -> Self {
        self.scopes = Some(name.into());
        self
    }

    /// Returns the caller that verified claims of `issuer` describe.
    ///
    /// Without a subject, the client takes its place. Fails if there is neither, or if one of these claims has the wrong type.
    pub fn caller(&self, issuer: &str, claims: RawJson) -> Result<Caller, Refusal> {
        let members = claims.members().map_err(|_| Refusal::invalid("the claims are not a JSON object"))?;
        let text = |name: &str| match members.get(name) {
            None => Ok(None),
            Some(value) => value
                .decode::<String>()
                .map(|text| Some(text).filter(|text| !text.is_empty()))
                .map_err(|_| Refusal::invalid(format!("the claim `{name}` is not a string"))),
        };
        let mut client_id = None;
        for name in CLIENT_CLAIMS {
            if client_id.is_none() {
                client_id = text(name)?;
            }
        }
        let subject = text(&self.subject)?.or_else(|| client_id.clone());
        let subject =
            subject.ok_or_else(|| Refusal::invalid("the token names neither a subject nor a client"))?;
        let scopes = match &self.scopes {
            Some(name) => members.get(name),
            None => members.get("scope").or_else(|| members.get("scp")),
        };
        let scopes = scopes.map_or_else(|| Ok(Scopes::new()), read_scopes)?;
        let expiry = members.get("exp").map(read_time).transpose()?;
        let mut caller = Caller::new(issuer, subject).with_scopes(scopes).with_claims(claims);
        if let Some(client_id) = client_id {
            caller = caller.with_client_id(client_id);
        }
        Ok(match expiry {
            Some(expiry) => caller.with_expiry(expiry),
            None => caller,
        })
    }
}

/// Returns a text with spaces, or a list.
fn read_scopes(value: &RawJson) -> Result<Scopes, Refusal> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Claim {
        Text(String),
        List(Vec<String>),
    }
    match value.decode() {
        Ok(Claim::Text(text)) => Ok(Scopes::parse(&text)),
        Ok(Claim::List(list)) => Ok(list.iter().collect()),
        Err(_) => Err(Refusal::invalid("expected the scopes to be a string or a list of strings")),
    }
}

/// Seconds since the Unix epoch. RFC 7519 allows a fraction, which is cut off.
fn read_time(value: &RawJson) -> Result<u64, Refusal> {
    let wrong = || Refusal::invalid("the expiry is not a number of seconds");
    if let Ok(seconds) = value.decode::<u64>() {
        return Ok(seconds);
    }
    let seconds = value.decode::<f64>().map_err(|_| wrong())?;
    // Everything that fits is exact enough below this limit, the year 142,000,000.
    if !(0.0..4.5e15).contains(&seconds) {
        return Err(wrong());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked above")]
    Ok(seconds as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(names: &ClaimNames, claims: &str) -> Result<Caller, String> {
        let claims = RawJson::parse(claims.to_owned()).unwrap();
        names.caller("https://i", claims).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn the_usual_claims_are_read() {
        let read = caller(
            &ClaimNames::default(),
            r#"{"sub":"ada","client_id":"app","azp":"x","scope":"a b","exp":17.9}"#,
        )
        .unwrap();
        assert_eq!((read.subject(), read.client_id(), read.expiry()), ("ada", Some("app"), Some(17)));
        assert_eq!(read.scopes().to_string(), "a b");
        assert_eq!(read.issuer(), "https://i");
        for (claims, scopes) in [
            (r#"{"sub":"a","scp":"x y"}"#, "x y"),
            (r#"{"sub":"a","scp":["x","y"]}"#, "x y"),
            (r#"{"sub":"a","scope":"z","scp":["x"]}"#, "z"),
            (r#"{"sub":"a"}"#, ""),
        ] {
            assert_eq!(caller(&ClaimNames::default(), claims).unwrap().scopes().to_string(), scopes);
        }
    }

    #[test]
    fn other_claims_can_be_named() {
        let names = ClaimNames::default().with_subject("oid").with_scopes("roles");
        let read = caller(&names, r#"{"sub":"pairwise","oid":"ada","scp":"x","roles":["admin"]}"#).unwrap();
        assert_eq!((read.subject(), read.scopes().to_string().as_str()), ("ada", "admin"));
    }

    #[test]
    fn the_client_id_replaces_a_missing_subject() {
        let read = caller(&ClaimNames::default(), r#"{"azp":"machine"}"#).unwrap();
        assert_eq!((read.subject(), read.client_id()), ("machine", Some("machine")));
    }

    #[test]
    fn claims_of_the_wrong_type_are_refused() {
        for (claims, reason) in [
            ("[]", "the claims are not a JSON object"),
            ("{}", "the token names neither a subject nor a client"),
            (r#"{"sub":""}"#, "the token names neither a subject nor a client"),
            (r#"{"sub":1}"#, "the claim `sub` is not a string"),
            (r#"{"sub":"a","client_id":null}"#, "the claim `client_id` is not a string"),
            (r#"{"sub":"a","scope":7}"#, "expected the scopes to be a string or a list of strings"),
            (r#"{"sub":"a","exp":"soon"}"#, "the expiry is not a number of seconds"),
            (r#"{"sub":"a","exp":-1}"#, "the expiry is not a number of seconds"),
            (r#"{"sub":"a","exp":1e300}"#, "the expiry is not a number of seconds"),
            (r#"{"sub":"a","sub":"b"}"#, "the claims are not a JSON object"),
        ] {
            assert_eq!(caller(&ClaimNames::default(), claims).unwrap_err(), reason, "{claims}");
        }
    }
}
