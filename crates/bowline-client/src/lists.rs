//! Lists of the server: page by page, as a stream, or complete.

use crate::{
    Error, ListBudget, Result,
    cache::Key,
    client::{Client, decode},
    request::Options,
};
use bowline_proto::service::BoxFuture;
use bowline_types::{Method, Prompt, RawJson, RawMap, Resource, ResourceTemplate, Tool, error_code};
use futures_core::Stream;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

/// One page of a list.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Page<T> {
    /// The entries.
    pub items: Vec<T>,
    /// The cursor of the next page; `None` on the last one. An empty string is a valid cursor.
    pub next_cursor: Option<String>,
}

/// An entry of a list.
trait Listed: DeserializeOwned + Send + 'static {
    const METHOD: Method;
    const MEMBER: &'static str;

    /// Records information about the entry for later.
    fn note(&self, client: &Client) {
        let _ = client;
    }
}

impl Listed for Tool {
    const METHOD: Method = Method::ListTools;
    const MEMBER: &'static str = "tools";

    fn note(&self, client: &Client) {
        client.core().shared.tools.note(self);
    }
}

impl Listed for Resource {
    const METHOD: Method = Method::ListResources;
    const MEMBER: &'static str = "resources";
}

impl Listed for ResourceTemplate {
    const METHOD: Method = Method::ListResourceTemplates;
    const MEMBER: &'static str = "resourceTemplates";
}

impl Listed for Prompt {
    const METHOD: Method = Method::ListPrompts;
    const MEMBER: &'static str = "prompts";
}

/// Parses a page. Invalid entries are skipped, so that they do not hide others.
fn read<T: Listed>(client: &Client, result: &RawJson) -> Result<Page<T>> {
    let malformed = |error| Error::malformed(format!("the result of `{}`", T::METHOD), error);
    let members: RawMap = decode(T::METHOD, result)?;
    let entries: Vec<RawJson> = members.decode(T::MEMBER).map_err(malformed)?.unwrap_or_default();
    let next_cursor: Option<Option<String>> = members.decode("nextCursor").map_err(malformed)?;
    let mut items = Vec::with_capacity(entries.len());
    for entry in entries {
        match entry.decode::<T>() {
            Ok(item) => {
                item.note(client);
                items.push(item);
            }
            Err(error) => tracing::warn!(list = T::MEMBER, %error, "skipped an invalid list entry"),
        }
    }
    Ok(Page { items, next_cursor: next_cursor.flatten() })
}

/// Returns a page, from the cache if `use_cache` is set and it is fresh. It must fit into `budget`.
async fn page<T: Listed>(
    client: &Client,
    cursor: Option<String>,
    use_cache: bool,
    budget: &mut ListBudget,
) -> Result<Page<T>> {
    let core = client.core();
    let key: Key = (T::METHOD, cursor);
    if use_cache && let Some(result) = core.shared.cache.get(&key) {
        budget.take(T::METHOD, &result)?;
        return read(client, &result);
    }
    if !core.offers(T::METHOD.as_str()).await? {
        return Ok(Page { items: Vec::new(), next_cursor: None });
    }
    let params =
        key.1.as_ref().map_or_else(RawJson::empty_object, |cursor| json!({ "cursor": cursor }).into());
    let slot = core.shared.cache.slot();
    let answer = core.ask(T::METHOD.as_str(), &params, Options::new(&core.shared)).await;
    if let (Err(error), Some(_)) = (&answer, &key.1)
        && error.as_rpc().is_some_and(|error| error.code == error_code::INVALID_PARAMS)
    {
        // The list has changed since the cursor was returned.
        core.shared.cache.forget(|(method, _)| *method == T::METHOD);
    }
    let (result, _) = answer?;
    if let Err(error) = budget.take(T::METHOD, &result) {
        core.shared.cache.forget(|(method, _)| *method == T::METHOD);
        return Err(error);
    }
    let page = read(client, &result)?;
    core.shared.cache.put(slot, key, &result);
    Ok(page)
}

/// Returns the complete list: from the cache if all pages are fresh, otherwise fetched from the start, so that the
/// pages are consistent.
async fn whole<T: Listed>(client: &Client) -> Result<Vec<T>> {
    if let Some(items) = all_cached(client)? {
        return Ok(items);
    }
    let retried =
        |error: &Error| error.as_rpc().is_some_and(|error| error.code == error_code::INVALID_PARAMS);
    match fetch_all(client).await {
        Err((error, true)) if retried(&error) => fetch_all(client).await.map_err(|(error, _)| error),
        result => result.map_err(|(error, _)| error),
    }
}

/// Fetches all pages. The error says whether a page after the first failed.
async fn fetch_all<T: Listed>(client: &Client) -> Result<Vec<T>, (Error, bool)> {
    let mut items = Vec::new();
    let mut budget = budget(client);
    let mut cursor = None;
    loop {
        let later = cursor.is_some();
        let page = page(client, cursor, false, &mut budget).await.map_err(|error| (error, later))?;
        items.extend(page.items);
        match page.next_cursor {
            None => return Ok(items),
            Some(next) => {
                budget.follow(&next).map_err(|error| (error, false))?;
                cursor = Some(next);
            }
        }
    }
}

fn all_cached<T: Listed>(client: &Client) -> Result<Option<Vec<T>>> {
    let mut items = Vec::new();
    let mut budget = budget(client);
    let mut key: Key = (T::METHOD, None);
    loop {
        let Some(result) = client.core().shared.cache.get(&key) else { return Ok(None) };
        budget.take(T::METHOD, &result)?;
        let page = read::<T>(client, &result)?;
        items.extend(page.items);
        match page.next_cursor {
            None => return Ok(Some(items)),
            Some(next) => {
                budget.follow(&next)?;
                key.1 = Some(next);
            }
        }
    }
}

fn budget(client: &Client) -> ListBudget {
    ListBudget::new(client.core().shared.settings.lists)
}

/// Returns a single page, which may be as large as a complete list.
async fn single<T: Listed>(client: &Client, cursor: Option<&str>) -> Result<Page<T>> {
    page(client, cursor.map(Into::into), true, &mut budget(client)).await
}

type Fetching<T> = BoxFuture<'static, (Result<Page<T>>, ListBudget)>;

/// A list as a stream. Each page is fetched when the previous one is used up. The stream ends after an error, for
/// example if the list exceeds the [limits](crate::ListLimits).
#[must_use = "a stream does nothing until it is polled"]
pub struct Items<T> {
    client: Client,
    fetch: fn(Client, Option<String>, ListBudget) -> Fetching<T>,
    buffer: VecDeque<T>,
    fetching: Option<Fetching<T>>,
}

impl<T: Unpin> Items<T> {
    /// Returns the next entry, or `None` at the end.
    pub async fn next(&mut self) -> Option<Result<T>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl<T: Unpin> Stream for Items<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        loop {
            if let Some(item) = self.buffer.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            let Some(fetching) = &mut self.fetching else { return Poll::Ready(None) };
            let (page, mut budget) = match fetching.as_mut().poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(fetched) => fetched,
            };
            self.fetching = None;
            let next = match page {
                Ok(page) => {
                    self.buffer = page.items.into();
                    page.next_cursor
                }
                Err(error) => return Poll::Ready(Some(Err(error))),
            };
            if let Some(next) = next {
                if let Err(error) = budget.follow(&next) {
                    self.buffer.clear();
                    return Poll::Ready(Some(Err(error)));
                }
                self.fetching = Some((self.fetch)(self.client.clone(), Some(next), budget));
            }
        }
    }
}

impl<T> fmt::Debug for Items<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").field("buffered", &self.buffer.len()).finish_non_exhaustive()
    }
}

fn items<T: Listed>(client: &Client) -> Items<T> {
    let fetch = |client: Client, cursor, mut budget: ListBudget| -> Fetching<T> {
        Box::pin(async move { (page(&client, cursor, true, &mut budget).await, budget) })
    };
    Items {
        client: client.clone(),
        fetch,
        buffer: VecDeque::new(),
        fetching: Some(fetch(client.clone(), None, budget(client))),
    }
}

/// A list that exceeds the limits of the client is an error: see
/// [`ClientBuilder::list_limits`](crate::ClientBuilder::list_limits).
///
/// Lists are cached for as long as the server allows, and fetched again after a notification of a change. If the server
/// does not declare a capability, the list is empty and no request is sent.
impl Client {
    /// Returns all tools.
    pub async fn tools(&self) -> Result<Vec<Tool>> {
        whole(self).await
    }

    /// Returns the tools as a stream.
    pub fn tools_stream(&self) -> Items<Tool> {
        items(self)
    }

    /// Returns one page of tools: the first, or the one at `cursor`, the cursor of the page before.
    pub async fn tools_page(&self, cursor: Option<&str>) -> Result<Page<Tool>> {
        single(self, cursor).await
    }

    /// Returns all resources.
    pub async fn resources(&self) -> Result<Vec<Resource>> {
        whole(self).await
    }

    /// Returns the resources as a stream.
    pub fn resources_stream(&self) -> Items<Resource> {
        items(self)
    }

    /// Returns one page of resources.
    pub async fn resources_page(&self, cursor: Option<&str>) -> Result<Page<Resource>> {
        single(self, cursor).await
    }

    /// Returns all resource templates.
    pub async fn templates(&self) -> Result<Vec<ResourceTemplate>> {
        whole(self).await
    }

    /// Returns the resource templates as a stream.
    pub fn templates_stream(&self) -> Items<ResourceTemplate> {
        items(self)
    }

    /// Returns one page of resource templates.
    pub async fn templates_page(&self, cursor: Option<&str>) -> Result<Page<ResourceTemplate>> {
        single(self, cursor).await
    }

    /// Returns all prompts.
    pub async fn prompts(&self) -> Result<Vec<Prompt>> {
        whole(self).await
    }

    /// Returns the prompts as a stream.
    pub fn prompts_stream(&self) -> Items<Prompt> {
        items(self)
    }

    /// Returns one page of prompts.
    pub async fn prompts_page(&self, cursor: Option<&str>) -> Result<Page<Prompt>> {
        single(self, cursor).await
    }
}
