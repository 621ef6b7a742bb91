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
        Server::new("t").with(Counter::default()),
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
        Server::new("t").with(Counter::default()),
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
    let mut peer = Peer::of(Server::new("t").with(Counter::default())).await;
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
    let mut peer = Peer::of(Server::new("t").with(Greeter { name: Arc::new("Ann") })).await;
    assert_eq!(peer.call("greet", json!({ "name": "Bo" })).await, "Bo, I am Ann");
    peer.close().await;
}

/// A state with several blocks.
struct Atlas {
    cities: Vec<&'static str>,
}

#[tools(include(travel, statistics))]
impl Atlas {
    #[tool]
    fn first(&self) -> Option<String> {
        self.cities.first().map(ToString::to_string)
    }
}

mod travel {
    use super::Atlas;
    use bowline::prelude::*;
    use std::sync::Arc;

    #[expect(
        clippy::unused_self,
        clippy::needless_pass_by_value,
        reason = "the entries of a state are methods, and completers own their request"
    )]
    #[tools(part = travel)]
    impl Atlas {
        /// Plan a trip.
        #[prompt]
        fn trip(
            &self,
            #[complete(Self::suggest)] city: String,
            #[complete(Self::suggest_later)] then: Option<String>,
        ) -> String {
            format!("{city} {then:?}")
        }

        fn suggest(&self, request: CompletionRequest) -> Vec<&'static str> {
            self.cities.iter().copied().filter(|city| city.starts_with(&request.value)).collect()
        }

        async fn suggest_later(
            self: Arc<Self>,
            ctx: Ctx,
            request: CompletionRequest,
        ) -> Result<Vec<String>, String> {
            tokio::task::yield_now().await;
            if request.value == "?" {
                return Err("no idea".into());
            }
            Ok(vec![format!("{} {}", ctx.client().revision, request.arguments["city"])])
        }
    }
}

#[tools(part = statistics)]
impl Atlas {
    #[tool]
    async fn count(self: Arc<Self>) -> usize {
        tokio::task::yield_now().await;
        self.cities.len()
    }

    #[tool]
    fn owners(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }
}

fn atlas() -> Arc<Atlas> {
    Arc::new(Atlas { cities: vec!["Oslo", "Paris"] })
}

#[tokio::test]
async fn a_state_may_have_several_blocks_and_be_shared() {
    let atlas = atlas();
    let mut peer = Peer::of(Server::new("t").with(Arc::clone(&atlas))).await;
    assert_eq!(peer.call("first", json!({})).await, "Oslo");
    assert_eq!(peer.call("count", json!({})).await, "2");
    assert_eq!(peer.call("owners", json!({})).await, "true");
    peer.close().await;
    assert_eq!(atlas.cities.len(), 2);
}

#[tokio::test]
async fn completion_sees_the_state_and_the_call() {
    let mut peer = Peer::of(Server::new("t").with(atlas())).await;
    let params = |argument: &str, value: &str| {
        json!({
            "ref": { "type": "ref/prompt", "name": "trip" },
            "argument": { "name": argument, "value": value },
            "context": { "arguments": { "city": "Oslo" } }
        })
    };
    let result = peer.request("completion/complete", &params("city", "P")).await;
    assert_eq!(result["completion"]["values"], json!(["Paris"]));
    let result = peer.request("completion/complete", &params("then", "")).await;
    assert_eq!(result["completion"]["values"], json!(["2025-11-25 Oslo"]));
    let error = peer.request("completion/complete", &params("then", "?")).await;
    assert_eq!(error, json!({ "code": -32603, "message": "no idea" }));
    peer.close().await;
}

#[tokio::test]
async fn a_server_can_merge_another() {
    let other = Server::new("other").with(Counter::default()).title("ignored");
    let mut peer = Peer::of(Server::new("t").with(atlas()).merge(other)).await;
    assert_eq!(peer.call("first", json!({})).await, "Oslo");
    assert_eq!(peer.call("add", json!({ "amount": 4 })).await, "4");
    let value = peer.request("resources/read", &json!({ "uri": "counter://value/2" })).await;
    assert_eq!(value["contents"][0]["text"], "6");
    peer.close().await;
    let twice = Server::new("t").with(atlas()).merge(Server::new("other").with(atlas())).build();
    assert_eq!(twice.expect_err("both have it").to_string(), "two tools are named `first`");
}

#[tokio::test]
async fn definitions_carry_metadata() {
    let meta = || serde_json::from_value(json!({ "example.com/owner": "ops" })).expect("a valid `_meta`");
    let server = Server::new("t")
        .prompt(Prompt::new("p").meta(meta()).handler(|| "p"))
        .resource(Resource::new("demo://r", "r").meta(meta()).text("r"));
    let mut peer = Peer::of(server).await;
    let prompts = peer.request("prompts/list", &json!({})).await;
    assert_eq!(prompts["prompts"][0]["_meta"], json!({ "example.com/owner": "ops" }));
    let resources = peer.request("resources/list", &json!({})).await;
    assert_eq!(resources["resources"][0]["_meta"], json!({ "example.com/owner": "ops" }));
    peer.close().await;
}
