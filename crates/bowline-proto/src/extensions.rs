//! Values that travel with a call, from the transport and the middleware to the handler.

use crate::caller::Caller;
#[cfg(feature = "http")]
use std::sync::LazyLock;
use std::{
    any::{Any, TypeId},
    fmt,
    sync::Arc,
};

/// A map from types to values. Empty ones, as most calls have, take no memory.
///
/// Clones share the values. Over HTTP it also holds the headers and the `http::Extensions` of the request, so what a
/// tower or axum layer put there is found here.
#[derive(Clone, Default)]
pub struct Extensions {
    // Calls have few values, so a list is quicker than a map.
    values: Option<Arc<Values>>,
    #[cfg(feature = "http")]
    request: Option<Arc<HttpRequest>>,
}

type Values = Vec<(TypeId, Arc<dyn Any + Send + Sync>)>;

/// The HTTP request that a call came with.
#[cfg(feature = "http")]
#[derive(Debug, Default)]
pub struct HttpRequest {
    /// Its headers.
    pub headers: http::HeaderMap,
    /// What layers in front of the endpoint added.
    pub extensions: http::Extensions,
    /// The session it belongs to; only legacy revisions have sessions.
    pub session_id: Option<Arc<str>>,
}

impl Extensions {
    /// Creates an empty map.
    pub const fn new() -> Self {
        Self {
            values: None,
            #[cfg(feature = "http")]
            request: None,
        }
    }

    /// Adds a value, which replaces an earlier one of the same type. Clones made before do not see it.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        let values = Arc::make_mut(self.values.get_or_insert_default());
        values.retain(|(known, _)| *known != TypeId::of::<T>());
        values.push((TypeId::of::<T>(), Arc::new(value)));
    }

    /// Returns the value of this type, if there is one.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<&T> {
        let values = self.values.iter().flat_map(|values| values.iter());
        let found = values.into_iter().find(|(known, _)| *known == TypeId::of::<T>());
        let found = found.and_then(|(_, value)| value.downcast_ref());
        #[cfg(feature = "http")]
        let found = found.or_else(|| self.request.as_ref()?.extensions.get());
        found
    }

    /// Returns the authenticated caller, if the transport verified an access token.
    pub fn caller(&self) -> Option<&Arc<Caller>> {
        self.get()
    }

    /// Returns whether the call came over HTTP.
    pub fn is_http(&self) -> bool {
        #[cfg(feature = "http")]
        return self.request.is_some();
        #[cfg(not(feature = "http"))]
        false
    }

    /// Returns the session that the call belongs to. Only HTTP in legacy revisions has one with a name.
    pub fn session_id(&self) -> Option<&str> {
        #[cfg(feature = "http")]
        return self.request.as_ref()?.session_id.as_deref();
        #[cfg(not(feature = "http"))]
        None
    }
}

#[cfg(feature = "http")]
impl Extensions {
    /// Creates a map for a call that came with `request`.
    pub fn of_request(request: HttpRequest) -> Self {
        Self { values: None, request: Some(Arc::new(request)) }
    }

    /// Adds headers, as if the call had come with them.
    #[must_use]
    pub fn with_headers(mut self, headers: http::HeaderMap) -> Self {
        self.request = Some(Arc::new(HttpRequest { headers, ..HttpRequest::default() }));
        self
    }

    /// Returns the headers of the HTTP request; none when the call did not come over HTTP.
    pub fn headers(&self) -> &http::HeaderMap {
        static NONE: LazyLock<http::HeaderMap> = LazyLock::new(http::HeaderMap::new);
        self.request.as_ref().map_or(&*NONE, |request| &request.headers)
    }
}

/// Prints how many values there are. Headers may hold secrets, so they are not printed.
impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.values.as_ref().map_or(0, |values| values.len());
        f.debug_struct("Extensions").field("values", &count).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_type_and_replaced() {
        let mut extensions = Extensions::new();
        assert_eq!(extensions.get::<u32>(), None);
        extensions.insert(1_u32);
        let before = extensions.clone();
        extensions.insert(2_u32);
        extensions.insert("text");
        assert_eq!((before.get::<u32>(), before.get::<&str>()), (Some(&1), None));
        assert_eq!((extensions.get::<u32>(), extensions.get::<&str>()), (Some(&2), Some(&"text")));
        assert_eq!(extensions.session_id(), None);
    }
}
