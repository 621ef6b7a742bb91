//! Sends sampling requests of servers to a model.

use super::{
    anthropic,
    choice::choose,
    error::{SampleError, SampleErrorKind, SettingsError},
    openai,
    provider_error::{ProviderError, Retry, error_kind, one_line, retry},
    quirks::Quirks,
    request::{EncodedRequest, ModelRequest, ModelResponse, estimate, shown},
    settings::{Api, Model, Provider, RequestSettings, Settings},
    usage::{Tokens, Usage, UsageTracker},
};
use bowline_client::{Backoff, BoxFuture};
use bowline_http::{Post, PostAnswer, PostError};
use bowline_proto::sampling;
use bowline_types::{
    ContentBlock, CreateMessageParams, CreateMessageResult, IncludeContext, OneOrMany, Role, RpcError,
    StopReason,
};
use http::{HeaderMap, StatusCode, header};
use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::time::{Instant, sleep, timeout_at};

/// Effectively no limit.
const ONE_YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// Answers sampling requests of servers. Clones share their usage counters.
#[derive(Clone)]
pub struct Broker(Arc<Shared>);

struct Shared {
    models: Vec<Ready>,
    tracker: Arc<UsageTracker>,
    requests: RequestSettings,
    post: Box<dyn Post>,
    random: Box<dyn Fn() -> u64 + Send + Sync>,
}

/// A model with its provider and encoder.
struct Ready {
    provider: Provider,
    url: String,
    headers: HeaderMap,
    quirks: Mutex<Quirks>,
    /// The properties used to choose a model.
    model: Model,
}

/// The server that sends a request, and its context.
#[derive(Clone, Debug)]
pub struct Asker {
    server: String,
    context: Option<String>,
}

impl Asker {
    /// Creates an asker with the configured name of the server, under which usage is counted.
    pub fn new(server: impl Into<String>) -> Self {
        Self { server: server.into(), context: None }
    }

    /// Sets the context for requests with `includeContext`: this text is put before the system prompt. Without it,
    /// `includeContext` is ignored, as the protocol allows. The context of other servers is never included.
    #[must_use]
    pub fn context(mut self, text: impl Into<String>) -> Self {
        self.context = Some(text.into());
        self
    }
}

impl<T: Into<String>> From<T> for Asker {
    fn from(server: T) -> Self {
        Self::new(server)
    }
}

impl Broker {
    /// Creates a broker. Returns `None` if the settings have no provider.
    ///
    /// Fails if the settings are invalid, for example an invalid base URL or a model of an unknown provider.
    pub fn new(settings: Settings, post: impl Post + 'static) -> Result<Option<Self>, SettingsError> {
        Self::with_random(settings, post, || RandomState::new().hash_one(0))
    }

    /// Like [`new`](Self::new), with a source of random numbers for the delays between retries.
    pub fn with_random(
        settings: Settings,
        post: impl Post + 'static,
        random: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Result<Option<Self>, SettingsError> {
        if settings.is_empty() {
            return Ok(None);
        }
        settings.check()?;
        let Settings { providers, models, caps, requests } = settings;
        let mut ready = Vec::with_capacity(models.len());
        for model in models {
            let provider = providers.iter().find(|provider| provider.name == model.provider).cloned();
            let Some(provider) = provider else { continue };
            let (url, headers) = (provider.url(), provider.headers()?);
            let quirks = Mutex::new(Quirks::expected(&provider));
            ready.push(Ready { provider, url, headers, quirks, model });
        }
        let (tracker, post, random) = (UsageTracker::new(caps), Box::new(post), Box::new(random));
        Ok(Some(Self(Arc::new(Shared { models: ready, tracker, requests, post, random }))))
    }

    /// Sends a sampling request of a server to a model.
    ///
    /// Dropping the future aborts the request. The tokens reserved for it then count as used.
    pub async fn sample(
        &self,
        asker: impl Into<Asker>,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, SampleError> {
        let asker = asker.into();
        sampling::check(&params).map_err(SampleError::invalid)?;
        if params.max_tokens == 0 {
            return Err(SampleError::invalid("expected `maxTokens` to be at least 1"));
        }
        let shared = &*self.0;
        let place = choose(shared.models.iter().map(|ready| &ready.model), params.model_preferences.as_ref());
        let ready = place.and_then(|place| shared.models.get(place));
        let ready = ready.ok_or_else(|| {
            SampleError::invalid("no model is configured; add one to `[[sampling.models]]`")
        })?;
        let system = system(&asker, &params);
        let input = estimate(&params, system.as_deref());
        let wanted = params.max_tokens.min(ready.model.max_tokens.unwrap_or(u64::MAX));
        let reservation = shared.tracker.reserve(&asker.server, Instant::now(), input, wanted)?;
        let request = ModelRequest {
            params: &params,
            model: &ready.model.name,
            max_tokens: reservation.output(),
            system,
            quirks: ready.quirks(),
        };
        match shared.ask(ready, request).await {
            Ok(response) => {
                let tokens = response.tokens.filter(|tokens| *tokens != Tokens::default());
                let tokens = tokens.unwrap_or_else(|| Tokens { input, output: written(&response.content) });
                reservation.charge_actual(tokens);
                tracing::info!(
                    server = asker.server,
                    provider = ready.provider.name,
                    model = ready.model.name,
                    input_tokens = tokens.input,
                    output_tokens = tokens.output,
                    "a model answered a sampling request"
                );
                Ok(result(response, &ready.model.name))
            }
            Err(error) => {
                if !error.may_have_cost() {
                    reservation.charge_actual(Tokens::default());
                }
                Err(error.asked(&ready.provider.name, &ready.model.name))
            }
        }
    }

    /// Like [`sample`](Self::sample), with an error for the server. The details for the user are logged.
    pub async fn answer(
        &self,
        asker: impl Into<Asker>,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, RpcError> {
        let asker = asker.into();
        let server = asker.server.clone();
        self.sample(asker, params).await.map_err(|error| {
            tracing::warn!(server, %error, "a sampling request failed");
            error.to_rpc()
        })
    }

    /// Returns a handler for [`on_sample`](bowline_client::ClientBuilder::on_sample) of the client of one server.
    pub fn handler(
        &self,
        asker: impl Into<Asker>,
    ) -> impl Fn(CreateMessageParams) -> BoxFuture<'static, Result<CreateMessageResult, RpcError>>
    + Send
    + Sync
    + 'static {
        let (broker, asker) = (self.clone(), asker.into());
        move |params| {
            let (broker, asker) = (broker.clone(), asker.clone());
            Box::pin(async move { broker.answer(asker, params).await })
        }
    }

    /// Returns the usage of a server.
    pub fn usage(&self, server: &str) -> Usage {
        self.0.tracker.usage(server, Instant::now())
    }
}

impl fmt::Debug for Broker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let models: Vec<_> = self.0.models.iter().map(|ready| &ready.model).collect();
        f.debug_struct("Broker")
            .field("models", &models)
            .field("requests", &self.0.requests)
            .finish_non_exhaustive()
    }
}

/// Returns the system prompt.
fn system(asker: &Asker, params: &CreateMessageParams) -> Option<String> {
    let wanted =
        matches!(params.include_context, Some(IncludeContext::ThisServer | IncludeContext::AllServers));
    let context = asker.context.as_deref().filter(|context| wanted && !context.is_empty());
    let prompt = params.system_prompt.as_deref().filter(|prompt| !prompt.is_empty());
    match (context, prompt) {
        (Some(context), Some(prompt)) => Some(format!("{context}\n\n{prompt}")),
        (Some(text), None) | (None, Some(text)) => Some(text.to_owned()),
        (None, None) => None,
    }
}

/// Estimates the number of output tokens.
fn written(content: &[ContentBlock]) -> u64 {
    let letters = content.iter().map(|block| match block {
        ContentBlock::Text(block) => block.text.len(),
        ContentBlock::ToolUse(block) => block.input.as_bytes().len(),
        _ => 0,
    });
    u64::try_from(letters.fold(0, usize::saturating_add) / 4).unwrap_or(u64::MAX)
}

fn result(response: ModelResponse, asked: &str) -> CreateMessageResult {
    let mut blocks = response.content;
    // A single block is sent without a list, the only form in older revisions. A response may be empty.
    let content = match blocks.pop() {
        None => OneOrMany::from(""),
        Some(single) if blocks.is_empty() => OneOrMany::One(single),
        Some(last) => {
            blocks.push(last);
            OneOrMany::Many(blocks)
        }
    };
    let model = response.model.as_deref().map(shown).filter(|name| !name.is_empty());
    let model = model.unwrap_or_else(|| asked.to_owned());
    let mut result = CreateMessageResult::new(Role::Assistant, content, model);
    result.stop_reason = response.stop_reason;
    result
}

impl Ready {
    fn quirks(&self) -> Quirks {
        *self.quirks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, request: &ModelRequest<'_>) -> Result<EncodedRequest, SampleError> {
        let written = match self.provider.api {
            Api::OpenAi => openai::write(request),
            Api::Anthropic { .. } => anthropic::write(request),
        };
        written.map_err(SampleError::invalid)
    }

    fn read(&self, answer: &PostAnswer, written: &EncodedRequest) -> Result<ModelResponse, SampleError> {
        let response = match self.provider.api {
            Api::OpenAi => openai::read(&answer.body, written),
            Api::Anthropic { .. } => anthropic::read(&answer.body, written),
        };
        let mut response = response.map_err(|reason| match ProviderError::in_success(&answer.body) {
            Some(provider_error) => self.failure(SampleErrorKind::Failed, answer, &provider_error),
            None => SampleError::new(SampleErrorKind::Malformed, self.line(&reason)),
        })?;
        if written.stops.cut(&mut response.content) {
            response.stop_reason = Some(StopReason::StopSequence);
        }
        Ok(response)
    }

    /// Formats a text for display.
    fn line(&self, text: &str) -> String {
        one_line(text, |text| self.provider.scrub(text))
    }

    /// Builds the error for the user.
    fn failure(
        &self,
        kind: SampleErrorKind,
        answer: &PostAnswer,
        provider_error: &ProviderError,
    ) -> SampleError {
        let header = |name: &str| answer.headers.get(name)?.to_str().ok();
        let location = header(header::LOCATION.as_str()).filter(|_| kind == SampleErrorKind::Redirected);
        let words = match location {
            Some(to) => format!("to {}", self.line(to)),
            None => provider_error.line(|text| self.provider.scrub(text)),
        };
        let request = header("x-request-id").or_else(|| header("request-id"));
        let request = request.map(|id| format!("request {}", self.line(id))).unwrap_or_default();
        let status = match answer.status.canonical_reason() {
            Some(reason) => format!("{} {reason}", answer.status.as_str()),
            None => answer.status.as_str().to_owned(),
        };
        let known: Vec<String> =
            [status, words, request].into_iter().filter(|part| !part.is_empty()).collect();
        let detail = known.join(", ");
        SampleError::new(kind, detail)
    }

    fn no_answer(&self, error: &PostError) -> SampleError {
        let kind = match error {
            PostError::Lost(_) => SampleErrorKind::Lost,
            PostError::Unreadable(_) => SampleErrorKind::Malformed,
            PostError::TooLong(_) => SampleErrorKind::TooLong,
            _ => SampleErrorKind::Unreachable,
        };
        SampleError::new(kind, self.line(&format!("{}: {error}", self.url)))
    }
}

impl Shared {
    /// Sends a request, with retries.
    async fn ask(&self, ready: &Ready, mut request: ModelRequest<'_>) -> Result<ModelResponse, SampleError> {
        let now = Instant::now();
        let deadline = now.checked_add(self.requests.timeout).unwrap_or(now + ONE_YEAR);
        let mut attempt = 0;
        let mut backoff = self.backoff();
        loop {
            let written = ready.write(&request)?;
            let posted = self.post.post(&ready.url, ready.headers.clone(), written.body.clone());
            let answer = timeout_at(deadline, posted).await.map_err(|_| {
                SampleError::new(
                    SampleErrorKind::TimedOut,
                    format!("{}: {:?}", ready.url, self.requests.timeout),
                )
            })?;
            let answer = answer.map_err(|error| ready.no_answer(&error))?;
            if answer.status.is_success() && answer.status != StatusCode::NO_CONTENT {
                return ready.read(&answer, &written);
            }
            let provider_error = ProviderError::read(&answer.body);
            if request.quirks.learn(answer.status, &provider_error) {
                tracing::debug!(
                    provider = ready.provider.name,
                    model = request.model,
                    "retrying without a parameter that the model rejects"
                );
                *ready.quirks.lock().unwrap_or_else(PoisonError::into_inner) = request.quirks;
                continue;
            }
            let kind = error_kind(answer.status, &provider_error);
            let failure = ready.failure(kind, &answer, &provider_error);
            let delay = match retry(kind, &provider_error, &answer.headers, attempt, self.requests.retries) {
                Retry::Never => return Err(failure),
                Retry::Soon => backoff.next_delay((self.random)()),
                Retry::After(asked) if asked > self.requests.longest_delay => {
                    return Err(failure);
                }
                // Add jitter, so that clients that failed together do not retry together.
                Retry::After(asked) => asked.saturating_add(self.backoff().next_delay((self.random)())),
            };
            if deadline.duration_since(Instant::now()) <= delay {
                return Err(failure);
            }
            tracing::debug!(error = %failure, ?delay, "retrying a model request");
            attempt += 1;
            sleep(delay).await;
        }
    }

    fn backoff(&self) -> Backoff {
        Backoff::new().delays(self.requests.first_delay, self.requests.longest_delay)
    }
}
