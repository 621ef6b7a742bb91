//! The shapes of messages, and what one of each has to come to.

use super::site::Site;
use bowline_client::{Change, Client, Error, Request, Result, ToolResult};
use bowline_types::{RawJson, Reference, Revision, SubscriptionFilter};
use serde_json::{Value, json};
use std::{sync::Mutex, time::Duration};
use tokio::{sync::oneshot, time::sleep};

/// What is sent when a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A call whose text makes more than one piece of it.
    LargeCall,
    /// `subscriptions/listen`, or the standing stream, with a change to tell.
    Listen,
    /// `server/discover` or `initialize`.
    Open,
    /// `notifications/initialized`, which only the legacy revisions have.
    Ready,
    /// A call that reports its progress, and so is answered with events.
    Progress,
    /// A call whose handler asks the user.
    Question,
    /// The answer of the user: the second round of the call, or a response of the client.
    Answer,
    /// A call that is given up.
    Cancel,
    ListTools,
    SmallCall,
    /// A call that fails.
    FailingCall,
    Read,
    Prompt,
    Complete,
    Ping,
}

/// All of them, those that take longest first.
pub(super) const ALL: [Shape; 15] = [
    Shape::LargeCall,
    Shape::Listen,
    Shape::Open,
    Shape::Ready,
    Shape::Progress,
    Shape::Question,
    Shape::Answer,
    Shape::Cancel,
    Shape::ListTools,
    Shape::SmallCall,
    Shape::FailingCall,
    Shape::Read,
    Shape::Prompt,
    Shape::Complete,
    Shape::Ping,
];

/// What marks the request to cut, where nothing else tells it from others.
const MARK: &str = "example.com/cut";

impl Shape {
    pub(super) fn exists_in(self, revision: Revision) -> bool {
        self != Self::Ready || !revision.is_modern()
    }

    /// The text that only the request to cut carries.
    pub(super) fn text(self, revision: Revision) -> &'static str {
        match (self, revision.is_modern()) {
            (Self::Open, true) => "server/discover",
            (Self::Open, false) => r#""method":"initialize""#,
            (Self::Ready, _) => "notifications/initialized",
            (Self::Listen, true) => "subscriptions/listen",
            (Self::Listen, false) => "GET /mcp",
            (Self::Answer, true) => "inputResponses",
            (Self::Answer, false) => r#""action":"accept""#,
            (Self::Cancel, false) => "notifications/cancelled",
            _ => MARK,
        }
    }

    /// Whether every cut needs a client of its own, because it is the opening that is cut or has to be done again.
    pub(super) fn opens(self) -> bool {
        matches!(self, Self::Open | Self::Ready | Self::Listen)
    }

    /// Whether nothing may be lost for good although the connection is: the client is to send or to ask again.
    pub(super) fn must_succeed(self, revision: Revision) -> bool {
        !revision.is_modern() && matches!(self, Self::Ready | Self::Answer | Self::Cancel | Self::Listen)
    }

    /// Its result if no connection is cut.
    pub(super) fn expected(self) -> String {
        match self {
            Self::LargeCall => large_text(),
            Self::SmallCall | Self::Open | Self::Ready => "hi".into(),
            Self::FailingCall => "failed: no luck".into(),
            Self::Progress => "done".into(),
            Self::Question | Self::Answer => "hello Ada".into(),
            Self::Cancel => "given up".into(),
            Self::ListTools => "echo fail steps greet wait".into(),
            Self::Read => "first".into(),
            Self::Prompt => "what about it?".into(),
            Self::Complete => "x!".into(),
            Self::Ping => "pong".into(),
            Self::Listen => "note://one".into(),
        }
    }

    /// Sends it, as the call of this number, and returns its result.
    pub(super) async fn send(self, site: &Site, client: &Client, number: u64) -> Result<String> {
        let numbered = json!({ "number": number });
        let call = |name: &str, arguments: &Value| client.call(name, arguments).meta(MARK, json!(true));
        let echo = |text: &str| call("echo", &json!({ "number": number, "text": text }));
        Ok(match self {
            Self::LargeCall => text_of(&echo(&large_text()).await?),
            Self::SmallCall | Self::Open | Self::Ready => text_of(&echo("hi").await?),
            Self::FailingCall => text_of(&call("fail", &numbered).await?),
            Self::Progress => text_of(&call("steps", &numbered).progress(|_| ()).await?),
            Self::Question | Self::Answer => text_of(&call("greet", &numbered).await?),
            Self::Cancel => give_up(site, call("wait", &numbered)).await?,
            Self::ListTools => {
                // By its name: what is asked for as a list may be answered from the cache.
                let listed: Value = client.request("tools/list", json!({ "_meta": { MARK: true } })).await?;
                let tools = listed["tools"].as_array().into_iter().flatten();
                tools.filter_map(|tool| tool["name"].as_str()).collect::<Vec<_>>().join(" ")
            }
            Self::Read => {
                let read = client.read("note://one").meta(MARK, json!(true)).await?;
                let text = RawJson::of(&read.contents).ok().and_then(|contents| contents.decode().ok());
                text.and_then(|text: Value| Some(text[0]["text"].as_str()?.to_owned())).unwrap_or_default()
            }
            Self::Prompt => {
                let prompt = client.prompt("about", json!({ "topic": "x" })).meta(MARK, json!(true)).await?;
                prompt.messages.iter().filter_map(|message| message.content.as_text()).collect()
            }
            Self::Complete => {
                let typed = client.complete(Reference::prompt("about"), "topic", "x");
                typed.meta(MARK, json!(true)).await?.values.concat()
            }
            Self::Ping => client.ping().meta(MARK, json!(true)).await.map(|()| "pong".into())?,
            Self::Listen => {
                let filter = SubscriptionFilter::new().resource_subscriptions(vec!["note://one".to_owned()]);
                let mut listen = client.listen(filter).await?;
                site.registry.resource_updated("note://one");
                match listen.next().await {
                    Some(Change::Resource(uri)) => uri,
                    Some(other) => format!("{other:?}"),
                    None => return Err(listen.error().unwrap_or_else(|| Error::closed("in good order"))),
                }
            }
        })
    }
}

fn large_text() -> String {
    "0123456789abcdef".repeat(128)
}

fn text_of(called: &ToolResult) -> String {
    if called.is_error() { format!("failed: {}", called.text()) } else { called.text() }
}

/// Gives a call up once it runs and its client has heard of it. The handler has to end, whether it is given up or cut.
async fn give_up(site: &Site, call: Request<ToolResult>) -> Result<String> {
    let (heard, hearing) = oneshot::channel();
    let heard = Mutex::new(Some(heard));
    let call = call.progress(move |_| {
        let heard = heard.lock().ok().and_then(|mut heard| heard.take());
        let _ = heard.map(|heard| heard.send(()));
    });
    let result = tokio::select! {
        called = call => called.map(|called| text_of(&called)),
        // Dropping the call gives it up.
        _ = hearing => Ok("given up".into()),
    };
    while site.ledger.running() > 0 {
        sleep(Duration::from_millis(1)).await;
    }
    result
}
