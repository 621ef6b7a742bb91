//! What stands in `Authorization`, and who is asked for it.

use bowline_client::{BoxFuture, Error, Result};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::{fmt, sync::Arc};
use tokio::sync::Mutex;

/// Why a server wants other credentials than it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// The status of the refusal: 401, or 403 when the credentials are good but do not reach far enough.
    pub status: u16,
    /// What stands in `WWW-Authenticate`.
    pub www_authenticate: Option<String>,
}

impl Challenge {
    /// The challenge of a reply, if it is one.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        let lines = headers.get_all(header::WWW_AUTHENTICATE).iter();
        let lines: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
        let www_authenticate = (!lines.is_empty()).then(|| lines.join(", "));
        let is_one = match status {
            StatusCode::UNAUTHORIZED => true,
            StatusCode::FORBIDDEN => {
                www_authenticate.as_ref().is_some_and(|text| text.contains("insufficient_scope"))
            }
            _ => false,
        };
        is_one.then(|| Self { status: status.as_u16(), www_authenticate })
    }
}

pub(super) type Hook =
    Arc<dyn Fn(Option<Challenge>) -> BoxFuture<'static, Result<Option<String>>> + Send + Sync>;

/// Keeps what the hook said last, and asks it one question at a time.
pub(super) struct Authorizer {
    hook: Hook,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    asked: bool,
    value: Option<HeaderValue>,
}

impl Authorizer {
    pub(super) fn new(hook: Hook) -> Self {
        Self { hook, state: Mutex::default() }
    }

    /// The value to send.
    pub(super) async fn value(&self) -> Result<Option<HeaderValue>> {
        let mut state = self.state.lock().await;
        if !state.asked {
            state.value = self.ask(None).await?;
            state.asked = true;
        }
        Ok(state.value.clone())
    }

    /// Another value than the one that was refused; `None` when there is no other.
    ///
    /// Of many requests refused at once, the first asks and the others take what it got.
    pub(super) async fn renew(
        &self,
        refused: Option<&HeaderValue>,
        challenge: Challenge,
    ) -> Result<Option<HeaderValue>> {
        let mut state = self.state.lock().await;
        if state.value.as_ref() == refused {
            state.value = self.ask(Some(challenge)).await?;
        }
        Ok(state.value.clone().filter(|value| Some(value) != refused))
    }

    async fn ask(&self, challenge: Option<Challenge>) -> Result<Option<HeaderValue>> {
        let Some(text) = (self.hook)(challenge).await? else { return Ok(None) };
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| Error::misuse("the value for `Authorization` does not fit into a header"))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorizer")
    }
}
