//! What a request may do: its caller, and the scopes that it needs.

#[cfg(feature = "auth")]
use super::auth::Protection;
use super::{body::Body, reply, service::Shared};
use bowline_proto::{
    caller::Caller,
    encode,
    envelope::{self, Frame, Message},
    scope::Scopes,
    subscribe::Subscriber,
};
use bowline_server::ServerHandle;
use bowline_types::{Id, RpcError, error_code};
use http::{Response, StatusCode, request::Parts};
use std::{sync::Arc, time::Duration};

/// Without the feature `auth` nothing verifies tokens.
#[cfg(not(feature = "auth"))]
#[derive(Clone)]
pub(super) enum Protection {}

#[cfg(not(feature = "auth"))]
impl Protection {
    fn base_scopes(&self) -> &Scopes {
        match *self {}
    }

    fn refuse_scopes(&self, _: Option<&Id>, _: &Scopes, _: Option<&Caller>) -> Response<Body> {
        match *self {}
    }

    fn stream_time(&self, _: &Caller) -> Duration {
        match *self {}
    }
}

/// Marks a request whose credentials the filter accepted: it needs no access token.
#[derive(Clone, Copy, Debug)]
#[cfg(feature = "auth")]
pub(super) struct AcceptedByFilter;

/// The access of one request.
pub(super) struct Access {
    caller: Option<Arc<Caller>>,
    protection: Option<Protection>,
    /// The scopes that the items named by the request declare.
    declared: Option<Arc<Scopes>>,
}

impl Access {
    /// Returns the access of a request whose token, if the endpoint is protected, was verified.
    pub(super) fn of(shared: &Shared, parts: &Parts) -> Self {
        #[cfg(feature = "auth")]
        let protection = match parts.extensions.get::<AcceptedByFilter>() {
            Some(AcceptedByFilter) => None,
            None => shared.protection().or_else(|| parts.extensions.get()).cloned(),
        };
        #[cfg(not(feature = "auth"))]
        let protection = {
            let _ = shared;
            None
        };
        Self { caller: parts.extensions.get().cloned(), protection, declared: None }
    }

    /// Returns whom sessions and sealed states belong to, if the request was made with a token.
    pub(super) fn principal(&self) -> Option<Arc<str>> {
        self.caller.as_ref().map(|caller| Arc::clone(caller.principal()))
    }

    /// Returns the token that a subscription of this request has.
    pub(super) fn subscriber(&self) -> Subscriber {
        Subscriber::Http(self.caller.clone())
    }

    /// Refuses a request without the scopes that every request needs.
    pub(super) fn check(&self) -> Result<(), Box<Response<Body>>> {
        self.check_scopes(None)
    }

    /// Refuses messages without the required scopes. In a batch, one such message refuses the whole batch.
    pub(super) fn check_frame(
        &mut self,
        server: &ServerHandle,
        frame: &Frame,
    ) -> Result<(), Box<Response<Body>>> {
        let declared = |message: &Message| match message {
            Message::Request { method, params, .. } => {
                server.declared_scopes(method.known()?, params.as_ref()?)
            }
            Message::Notification { .. } | Message::Response { .. } | Message::Failure { .. } => None,
        };
        match frame {
            Frame::Single(Ok(message)) => {
                self.declared = declared(message);
                let id = match message {
                    Message::Request { id, .. } => Some(id),
                    _ => None,
                };
                self.check_scopes(id)
            }
            Frame::Batch(messages) => {
                for scopes in messages.iter().flatten().filter_map(declared) {
                    self.declared = Some(match self.declared.take() {
                        Some(known) => Arc::new(known.union(&scopes)),
                        None => scopes,
                    });
                }
                self.check_scopes(None)
            }
            Frame::Single(Err(_)) => self.check_scopes(None),
        }
    }

    fn check_scopes(&self, id: Option<&Id>) -> Result<(), Box<Response<Body>>> {
        static NOTHING: Scopes = Scopes::new();
        let declared = self.declared.as_deref().unwrap_or(&NOTHING);
        let Some(protection) = &self.protection else {
            return match &self.caller {
                // Nobody granted anything to a caller that is not known.
                _ if declared.is_empty() => Ok(()),
                Some(caller) if caller.allows_all(declared) => Ok(()),
                _ => Err(Box::new(no_tokens(id, declared))),
            };
        };
        let is_allowed = self
            .caller
            .as_ref()
            .is_some_and(|caller| caller.allows_all(protection.base_scopes()) && caller.allows_all(declared));
        if is_allowed {
            Ok(())
        } else {
            Err(Box::new(protection.refuse_scopes(id, declared, self.caller.as_deref())))
        }
    }

    /// Returns the maximum duration of a stream for notifications; `None` means unlimited.
    pub(super) fn stream_time(&self) -> Option<Duration> {
        Some(self.protection.as_ref()?.stream_time(self.caller.as_ref()?))
    }

    /// Turns the error of a handler that requires more scopes into a challenge.
    pub(super) fn challenge(&self, response: Response<Body>) -> Response<Body> {
        let Some(protection) = &self.protection else { return response };
        let Some((id, scopes)) = response.body().as_whole().and_then(required_scopes) else {
            return response;
        };
        let scopes = match &self.declared {
            Some(declared) => declared.union(&scopes),
            None => scopes,
        };
        let mut refused = protection.refuse_scopes(id.as_ref(), &scopes, self.caller.as_deref());
        for (name, value) in response.headers() {
            // The session of a legacy client.
            if !refused.headers().contains_key(name) && name != http::header::CONTENT_LENGTH {
                refused.headers_mut().append(name, value.clone());
            }
        }
        refused
    }
}

/// Returns the response if scopes are needed but the endpoint does not verify tokens.
fn no_tokens(id: Option<&Id>, declared: &Scopes) -> Response<Body> {
    let mut error = RpcError::insufficient_scope(declared.iter());
    error.message = format!(
        "{}, but this endpoint verifies no tokens; protect it with `HttpOptions::protect`",
        error.message
    )
    .into();
    reply::json(StatusCode::FORBIDDEN, encode::failure(id, &error))
}

/// The code of the error for a missing scope, as it is written.
const CODE: &[u8] = b"-32003";
const _: () = assert!(error_code::INSUFFICIENT_SCOPE == -32003, "the text is that of the code");

/// How far into a response its error is looked for. A response with a longer id stays as it is.
const ERROR_WITHIN: usize = 256;

/// Returns the scopes that a response asks for, if it is the error for that, and its id.
fn required_scopes(body: &bytes::Bytes) -> Option<(Option<Id>, Scopes)> {
    let start = body.get(..ERROR_WITHIN.min(body.len()))?;
    // Most responses are results, and need not be parsed.
    if !start.windows(CODE.len()).any(|window| window == CODE) {
        return None;
    }
    match envelope::parse(body) {
        Frame::Single(Ok(Message::Failure { id, error })) => {
            Some((id, error.required_scopes()?.into_iter().collect()))
        }
        _ => None,
    }
}
