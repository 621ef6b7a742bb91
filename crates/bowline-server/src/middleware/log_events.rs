//! Events of `tracing` as log messages to the caller.

use bowline_proto::service::{BoxFuture, Call, CallNotification, Middleware, Next, Notifier, Outcome};
use bowline_types::{LoggingLevel, RawJson};
use serde_json::{Map, Value};
use std::{fmt, sync::OnceLock};
use tracing::{
    Dispatch, Event, Level, Metadata, Subscriber, dispatcher,
    field::{Field, Visit},
    instrument::WithSubscriber as _,
    span,
    subscriber::Interest,
};

tokio::task_local! {
    /// Where the events of the running call go.
    static NOTIFIER: Notifier;
}

/// Sends the `tracing` events of a call to its caller as log messages, if it wants them. They still reach the subscriber
/// that is in place.
///
/// An event belongs to the call in whose handler it happens. One that a spawned task or a `blocking` tool causes belongs to
/// none. Events of this library are left out. Never put secrets in an event.
///
/// While a call runs, this middleware is the current subscriber and passes everything on, so extensions of
/// `tracing-subscriber` that look for their own layer in the current subscriber do not find it.
///
/// ```
/// use bowline_server::{Server, middleware::LogEvents};
///
/// let server = Server::new("demo").layer(LogEvents::new());
/// ```
#[derive(Debug)]
pub struct LogEvents {
    level: Level,
    tee: OnceLock<Dispatch>,
}

impl LogEvents {
    /// Sends events from `info` on.
    pub fn new() -> Self {
        Self::from_level(Level::INFO)
    }

    /// Sends events from `level` on.
    pub fn from_level(level: Level) -> Self {
        Self { level, tee: OnceLock::new() }
    }

    /// Returns the shared subscriber. There is one for all calls, because a new subscriber makes `tracing` check all
    /// callsites again.
    fn tee(&self) -> Dispatch {
        let make = || Dispatch::new(Tee { inner: dispatcher::get_default(Clone::clone), level: self.level });
        self.tee.get_or_init(make).clone()
    }
}

impl Default for LogEvents {
    fn default() -> Self {
        Self::new()
    }
}

impl Middleware for LogEvents {
    fn call<'a>(&'a self, call: Call, notifier: Notifier, next: Next<'a>) -> BoxFuture<'a, Outcome> {
        // Without a level no message would be sent.
        if call.log_level.is_none() {
            return next.run(call, notifier);
        }
        let run = NOTIFIER.scope(notifier.clone(), next.run(call, notifier));
        Box::pin(run.with_subscriber(self.tee()))
    }
}

/// Passes everything on to the subscriber in place, and events to the caller too.
struct Tee {
    inner: Dispatch,
    level: Level,
}

impl Tee {
    fn sends(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.level && !metadata.target().starts_with("bowline")
    }
}

impl Subscriber for Tee {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // The subscriber in place may change its mind.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        self.sends(metadata) || self.inner.enabled(metadata)
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        self.inner.new_span(attributes)
    }

    fn record(&self, span: &span::Id, values: &span::Record<'_>) {
        self.inner.record(span, values);
    }

    fn record_follows_from(&self, span: &span::Id, follows: &span::Id) {
        self.inner.record_follows_from(span, follows);
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        if self.inner.enabled(metadata) {
            self.inner.event(event);
        }
        if self.sends(metadata) {
            // Outside of a call there is no client to notify.
            let _ = NOTIFIER.try_with(|notifier| notifier.emit(notice(event)));
        }
    }

    fn enter(&self, span: &span::Id) {
        self.inner.enter(span);
    }

    fn exit(&self, span: &span::Id) {
        self.inner.exit(span);
    }

    fn clone_span(&self, span: &span::Id) -> span::Id {
        self.inner.clone_span(span)
    }

    fn try_close(&self, span: span::Id) -> bool {
        self.inner.try_close(span)
    }
}

fn notice(event: &Event<'_>) -> CallNotification {
    let level = match *event.metadata().level() {
        Level::ERROR => LoggingLevel::Error,
        Level::WARN => LoggingLevel::Warning,
        Level::INFO => LoggingLevel::Info,
        _ => LoggingLevel::Debug,
    };
    let mut fields = Fields::default();
    event.record(&mut fields);
    let data = match (fields.0.remove("message"), fields.0.is_empty()) {
        (Some(message), true) => message,
        (Some(message), false) => {
            fields.0.insert("message".into(), message);
            Value::Object(fields.0)
        }
        (None, _) => Value::Object(fields.0),
    };
    CallNotification::Log {
        level,
        logger: Some(event.metadata().target().to_owned()),
        data: RawJson::from(data),
    }
}

/// The fields of an event.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}
