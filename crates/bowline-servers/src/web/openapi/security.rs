//! Credentials of an API: read from the environment and added to requests.

use super::document::{At, Document};
use crate::{percent, web::error::Error};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::{collections::BTreeMap, fmt};

/// A credential. Never displayed.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(pub(super) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where a credential is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Header(HeaderName),
    Query(String),
    Cookie(String),
    Bearer,
    Basic,
}

/// A security scheme.
#[derive(Clone, Debug)]
struct Scheme {
    place: Place,
    variable: String,
    secret: Option<Secret>,
}

/// The security schemes of an API, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Schemes(BTreeMap<String, Scheme>);

/// The requirements of an operation: one of these sets of schemes. Empty means no credentials.
pub(super) type Wanted = Vec<Vec<String>>;

impl Schemes {
    pub(super) fn read(
        document: &Document,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Error> {
        let schemes =
            document.root().get("components").and_then(|components| components.get("securitySchemes"));
        let mut known = BTreeMap::new();
        for (name, at) in schemes.map(|schemes| schemes.members()).transpose()?.unwrap_or_default() {
            let at = document.resolve(at)?;
            if let Some(place) = place(&at)? {
                let named = variable_of(name);
                let secret = variable(&named).filter(|value| !value.is_empty()).map(Secret);
                known.insert(name.to_owned(), Scheme { place, variable: named, secret });
            }
        }
        Ok(Self(known))
    }

    /// Adds the first available set of credentials to the headers, and returns query parameters.
    pub(super) fn apply(
        &self,
        wanted: &Wanted,
        headers: &mut HeaderMap,
    ) -> Result<Vec<(String, String)>, String> {
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let has = |name: &String| self.0.get(name).is_some_and(|scheme| scheme.secret.is_some());
        let Some(set) = wanted.iter().find(|set| set.iter().all(has)) else {
            let variables: Vec<&str> = wanted
                .iter()
                .flatten()
                .filter_map(|name| Some(self.0.get(name)?.variable.as_str()))
                .collect();
            return Err(match variables.as_slice() {
                [] => "the operation needs an unsupported kind of credentials".into(),
                _ => format!(
                    "the operation needs credentials: the operator of this server must set the environment variable \
                     {}",
                    variables.join(" or ")
                ),
            });
        };
        let mut query = Vec::new();
        for scheme in set.iter().filter_map(|name| self.0.get(name)) {
            let Some(Secret(secret)) = &scheme.secret else { continue };
            let (name, value) = match &scheme.place {
                Place::Query(name) => {
                    query.push((name.clone(), secret.clone()));
                    continue;
                }
                Place::Header(name) => (name.clone(), secret.clone()),
                Place::Bearer => (header::AUTHORIZATION, format!("Bearer {secret}")),
                Place::Basic => (header::AUTHORIZATION, format!("Basic {}", STANDARD.encode(secret))),
                Place::Cookie(name) => {
                    let known = headers.get(header::COOKIE).and_then(|known| known.to_str().ok());
                    let known = known.map(|known| format!("{known}; ")).unwrap_or_default();
                    (header::COOKIE, format!("{known}{name}={}", percent::encode(secret)))
                }
            };
            let unfit = format!(
                "the value of environment variable `{}` is not a valid header value",
                scheme.variable
            );
            let mut value = HeaderValue::try_from(value).map_err(|_| unfit)?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(query)
    }

    /// Masks all credentials in a text.
    pub(super) fn scrub(&self, text: String) -> String {
        let secrets = self.0.values().filter_map(|scheme| scheme.secret.as_ref());
        secrets.fold(text, |text, Secret(secret)| {
            text.replace(&percent::encode(secret), "***").replace(secret, "***")
        })
    }
}

/// Returns the variable of a credential: `BOWLINE_API_` and the name of the scheme in upper case.
fn variable_of(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("BOWLINE_API_{name}")
}

/// Returns where a scheme sends its credential; `None` if it is not supported.
fn place(at: &At<'_>) -> Result<Option<Place>, Error> {
    let name = || at.text("name").ok_or_else(|| at.wrong("expected `name`"));
    Ok(Some(
        match (at.text("type"), at.text("in"), at.text("scheme").map(str::to_ascii_lowercase).as_deref()) {
            (Some("apiKey"), Some("header"), _) => {
                Place::Header(HeaderName::try_from(name()?).map_err(|error| at.wrong(error))?)
            }
            (Some("apiKey"), Some("query"), _) => Place::Query(name()?.into()),
            (Some("apiKey"), Some("cookie"), _) => Place::Cookie(percent::encode(name()?)),
            (Some("apiKey"), _, _) => {
                return Err(at.wrong("`in` must be `header`, `query` or `cookie`"));
            }
            (Some("http"), _, Some("basic")) => Place::Basic,
            (Some("http"), _, Some("bearer")) | (Some("oauth2" | "openIdConnect"), _, _) => Place::Bearer,
            (Some(_), _, _) => return Ok(None),
            (None, _, _) => return Err(at.wrong("expected `type`")),
        },
    ))
}

/// Parses the requirements of an operation or the document.
pub(super) fn wanted(at: &At<'_>) -> Result<Option<Wanted>, Error> {
    if at.get("security").is_none() {
        return Ok(None);
    }
    let sets = at.items("security")?;
    let sets: Result<Wanted, Error> =
        sets.iter().map(|set| Ok(set.object()?.keys().cloned().collect())).collect();
    sets.map(Some)
}
