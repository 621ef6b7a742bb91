//! Credentials of an interface: from the environment, to where the interface wants them.

use super::document::{At, Document};
use crate::{percent, web::error::Error};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::{collections::BTreeMap, fmt};

/// A credential, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(pub(super) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Where a credential is put.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Header(HeaderName),
    Query(String),
    Cookie(String),
    Bearer,
    Basic,
}

/// A way to show who one is.
#[derive(Clone, Debug)]
struct Scheme {
    place: Place,
    variable: String,
    secret: Option<Secret>,
}

/// All ways of an interface, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Schemes(BTreeMap<String, Scheme>);

/// What an operation wants: one of these sets of schemes, each by name. None at all means nothing is wanted.
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

    /// Puts the credentials of the first set there is into a request: into its headers, and what this gives into its query.
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
                [] => "the operation needs credentials of a kind that cannot be given".into(),
                _ => format!(
                    "the operation needs credentials: expected the operator of this server to set the environment variable \
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
            let unfit = format!("{} is no value for a header", scheme.variable);
            let mut value = HeaderValue::try_from(value).map_err(|_| unfit)?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(query)
    }

    /// Text in which no credential is left.
    pub(super) fn scrub(&self, text: String) -> String {
        let secrets = self.0.values().filter_map(|scheme| scheme.secret.as_ref());
        secrets.fold(text, |text, Secret(secret)| {
            text.replace(&percent::encode(secret), "***").replace(secret, "***")
        })
    }
}

/// The variable that holds a credential: `BOWLINE_API_` and the name of the scheme in capitals.
fn variable_of(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("BOWLINE_API_{name}")
}

/// Where a scheme has its credential; `None` for what is not sent at all.
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
                return Err(at.wrong("expected `in` to be `header`, `query` or `cookie`"));
            }
            (Some("http"), _, Some("basic")) => Place::Basic,
            (Some("http"), _, Some("bearer")) | (Some("oauth2" | "openIdConnect"), _, _) => Place::Bearer,
            (Some(_), _, _) => return Ok(None),
            (None, _, _) => return Err(at.wrong("expected `type`")),
        },
    ))
}

/// What an operation, or the whole document, wants.
pub(super) fn wanted(at: &At<'_>) -> Result<Option<Wanted>, Error> {
    if at.get("security").is_none() {
        return Ok(None);
    }
    let sets = at.items("security")?;
    let sets: Result<Wanted, Error> =
        sets.iter().map(|set| Ok(set.object()?.keys().cloned().collect())).collect();
    sets.map(Some)
}
