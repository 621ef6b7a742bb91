//! Methods of a state as tools, prompts and resources.

use crate::peer::{Peer, check, check_tools};
use bowline::prelude::*;
use expect_test::expect;
use std::{
    fmt::Display,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

#[derive(Default)]
struct Counter {
    value: AtomicI64,
}

#[tools]
impl Counter {
    /// A method of its own, untouched.
    fn now(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Add to the counter.
    #[tool(title = "Add")]
    async fn add(
        &self,
        ctx: Ctx,
        /// How much.
        #[serde(default = "one")]
        amount: i64,
    ) -> Result<i64> {
        ctx.progress(1.0, 1.0);
        tokio::task::yield_now().await;
        Ok(self.value.fetch_add(amount, Ordering::Relaxed) + amount)
    }

    /// Set the counter back.
    #[bowline::tool(idempotent)]
    fn reset(&self) {
        self.value.store(0, Ordering::Relaxed);
    }

    #[tool]
    fn version() -> &'static str {
        "1"
    }

    #[cfg(any())]
    #[tool]
    fn absent(&self) {}

    /// Ask for a rhyme.
    #[prompt]
    fn rhyme(&self, word: String) -> String {
        format!("rhyme {word} with {}", self.now())
    }

    /// Where the counter stands.
    #[resource("counter://value")]
    async fn value(&self) -> String {
        tokio::task::yield_now().await;
        self.now().to_string()
    }

    /// Where it would stand.
    #[resource("counter://value/{plus}")]
    fn value_plus(&self, plus: i64) -> String {
        (self.now() + plus).to_string()
    }
}

fn one() -> i64 {
    1
}

#[tokio::test]
async fn methods_are_listed() {
    check_tools(
        Server::new("t").tools(Counter::default()),
        expect![[r#"
            {
              "tools": [
                {
                  "name": "add",
                  "title": "Add",
                  "description": "Add to the counter.",
                  "inputSchema": {
                    "type": "object",
                    "properties": {
                      "amount": {
                        "description": "How much.",
                        "type": "integer",
                        "default": 1
                      }
                    }
                  }
                },
                {
                  "name": "reset",
                  "description": "Set the counter back.",
                  "inputSchema": {
                    "type": "object",
                    "additionalProperties": false
                  },
                  "annotations": {
                    "idempotentHint": true
                  }
                },
                {
                  "name": "version",
                  "inputSchema": {
                    "type": "object",
                    "additionalProperties": false
                  }
                }
              ]
            }"#]],
    )
    .await;
    check(
        Server::new("t").tools(Counter::default()),
        "prompts/list",
        json!({}),
        expect![[r#"
        {
          "prompts": [
            {
              "name": "rhyme",
              "description": "Ask for a rhyme.",
              "arguments": [
                {
                  "name": "word",
                  "required": true
                }
              ]
            }
          ]
        }"#]],
    )
    .await;
}

#[tokio::test]
async fn methods_share_the_state() {
    let mut peer = Peer::of(Server::new("t").tools(Counter::default())).await;
    assert_eq!(peer.call("add", json!({})).await, "1");
    assert_eq!(peer.call("add", json!({ "amount": 4 })).await, "5");
    let value = peer.request("resources/read", &json!({ "uri": "counter://value" })).await;
    assert_eq!(value["contents"][0]["text"], "5");
    let value = peer.request("resources/read", &json!({ "uri": "counter://value/2" })).await;
    assert_eq!(value["contents"][0]["text"], "7");
    let prompt =
        peer.request("prompts/get", &json!({ "name": "rhyme", "arguments": { "word": "drive" } })).await;
    assert_eq!(prompt["messages"][0]["content"]["text"], "rhyme drive with 5");
    peer.call("reset", json!({})).await;
    assert_eq!(peer.call("add", json!({})).await, "1");
    assert_eq!(peer.call("version", json!({})).await, "1");
    peer.close().await;
}

#[test]
fn methods_stay_methods() {
    let counter = Counter::default();
    counter.reset();
    assert_eq!(counter.rhyme("hero".into()), "rhyme hero with 0");
}

/// A state may have a type parameter.
struct Greeter<N> {
    name: Arc<N>,
}

#[tools]
impl<N: Display + Send + Sync + 'static> Greeter<N> {
    #[tool]
    fn greet(&self, name: String) -> String {
        format!("{name}, I am {}", self.name)
    }
}

#[tokio::test]
async fn a_state_may_be_generic() {
    let mut peer = Peer::of(Server::new("t").tools(Greeter { name: Arc::new("Ann") })).await;
    assert_eq!(peer.call("greet", json!({ "name": "Bo" })).await, "Bo, I am Ann");
    peer.close().await;
}
