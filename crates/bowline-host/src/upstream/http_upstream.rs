//! Servers with a URL, whose headers may come from a command that runs for each connection.

use bowline_client::{Connect, Error, Inbox, Restart, Result, Transport};
use bowline_config::{ChildCommands, Commands, Text};
use bowline_http::{HttpTarget, auth::Login};
use bowline_proto::service::BoxFuture;
use bowline_types::Era;
use std::{collections::BTreeMap, fmt};

/// A server with a URL, and optionally a command that prints its headers.
#[derive(Clone)]
pub struct HttpUpstream {
    target: HttpTarget,
    helper: Vec<Text>,
}

impl HttpUpstream {
    /// Headers that the command prints override those of the target.
    pub(super) fn new(target: HttpTarget, helper: &[Text]) -> Self {
        Self { target, helper: helper.to_vec() }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { target: self.target.header(name, value), helper: self.helper }
    }

    /// Logs in with OAuth when the server asks for it.
    #[must_use]
    pub fn login(self, login: Login) -> Self {
        Self { target: self.target.login(login), helper: self.helper }
    }

    /// Returns the URL.
    pub fn url(&self) -> &str {
        self.target.url()
    }

    /// Runs the command and returns the target with the headers that it printed. Fails if the command fails.
    pub async fn resolve_headers(&self) -> Result<HttpTarget> {
        if self.helper.is_empty() {
            return Ok(self.target.clone());
        }
        let words: Vec<_> = self.helper.iter().map(|word| word.expose().to_owned()).collect();
        let unknown = |reason: String| Error::unreachable(format!("cannot get its headers: {reason}"));
        let printed = tokio::task::spawn_blocking(move || ChildCommands::default().run(&words)).await;
        let printed = printed.map_err(|error| unknown(error.to_string()))?.map_err(unknown)?;
        let found = headers(&printed).map_err(unknown)?.into_iter();
        Ok(found.fold(self.target.clone(), |target, (name, value)| target.header(name, value)))
    }
}

impl From<HttpTarget> for HttpUpstream {
    fn from(target: HttpTarget) -> Self {
        Self::new(target, &[])
    }
}

impl Connect for HttpUpstream {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        Box::pin(async move { self.resolve_headers().await?.connect(inbox).await })
    }

    fn restart(&self) -> Restart {
        Connect::restart(&self.target)
    }

    fn known_era(&self) -> Option<Era> {
        Connect::known_era(&self.target)
    }

    fn extensions(&self) -> Vec<&'static str> {
        self.target.extensions()
    }
}

/// Parses the output of the command. An error does not contain the output, which may hold a secret.
fn headers(printed: &str) -> Result<BTreeMap<String, String>, String> {
    serde_json::from_str(printed)
        .map_err(|_| "the command must print a JSON object whose values are strings".to_owned())
}

impl fmt::Debug for HttpUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpUpstream").field("target", &self.target).field("helper", &self.helper).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_of_strings_is_accepted_and_errors_do_not_quote_it() {
        let found = headers("{\"X-Key\": \"k\", \"X-Other\": \"\"}\n").unwrap();
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            [("X-Key".to_owned(), "k".to_owned()), ("X-Other".to_owned(), String::new())]
        );
        for printed in
            ["", "s3cret", "[\"s3cret\"]", "{\"X-Key\": 5}", "{\"X-Key\": [\"s3cret\"]}", "{} s3cret"]
        {
            let told = headers(printed).unwrap_err();
            assert!(told.contains("JSON object") && !told.contains("s3cret"), "{told}");
        }
    }
}
