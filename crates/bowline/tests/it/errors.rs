//! Errors of handlers, of any type.

use crate::peer::Peer;
use anyhow::Context as _;
use bowline::{BoxError, BuildError, HandlerError, prelude::*};
use serde_json::Value;
use std::{error::Error as StdError, fmt, io};

/// An error with a source, as most libraries have them.
#[derive(Debug)]
struct Refused(io::Error);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot load the page")
    }
}

impl StdError for Refused {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(&self.0)
    }
}

fn refused() -> Refused {
    Refused(io::Error::other("connection refused"))
}

#[data]
struct Answer {
    text: String,
}

async fn ask(ctx: &Ctx) -> Result<Answer, HandlerError> {
    ctx.ask::<Answer>("Who?").await?.accepted().map_err(|error| Error::from(error).into())
}

#[expect(clippy::unused_self, reason = "the tools of a state are methods")]
#[tools]
impl Failing {
    #[tool]
    fn ours(&self) -> Result<String> {
        Err(refused())?
    }

    #[tool]
    fn std(&self) -> Result<String, Refused> {
        Err(refused())
    }

    #[tool]
    fn boxed(&self) -> Result<String, BoxError> {
        Err(refused())?
    }

    #[tool]
    fn anyhow(&self) -> anyhow::Result<String> {
        Err(refused()).context("cannot look up the weather")
    }

    #[tool]
    fn string(&self) -> Result<String, String> {
        Err("no such city".into())
    }

    #[tool]
    fn str(&self) -> Result<String, &'static str> {
        Err("no such city")
    }

    #[tool]
    fn other(&self) -> Result<String> {
        Err(Error::other(anyhow::anyhow!("inner").context("outer")))
    }

    #[tool]
    fn invalid(&self) -> Result<String> {
        Err(Error::invalid_params("`count` is negative"))
    }

    #[tool]
    fn invalid_boxed(&self) -> Result<String, BoxError> {
        Err(Error::invalid_params("`count` is negative"))?
    }

    #[tool]
    fn invalid_anyhow(&self) -> anyhow::Result<String> {
        Err(Error::invalid_params("`count` is negative").into_std())?
    }

    #[tool]
    fn invalid_with_context(&self) -> anyhow::Result<String> {
        Err(Error::invalid_params("`count` is negative").into_std()).context("cannot order")
    }

    #[tool]
    async fn asks(&self, ctx: Ctx) -> anyhow::Result<String> {
        Ok(ask(&ctx).await?.text)
    }

    #[prompt]
    fn prompt(&self) -> anyhow::Result<String> {
        Err(refused())?
    }

    #[prompt]
    fn invalid_prompt(&self) -> anyhow::Result<String> {
        Err(Error::invalid_params("`topic` is empty").into_std())?
    }

    #[resource("demo://failing")]
    fn resource(&self) -> anyhow::Result<String> {
        Err(refused())?
    }

    #[resource("demo://users/{id}")]
    fn user(&self, id: u64) -> Option<String> {
        (id == 1).then(|| "Ada".into())
    }

    #[resource("demo://teams/{id}")]
    fn team(&self, id: u64) -> anyhow::Result<String> {
        Err(Error::not_found(format!("there is no team {id}")).into_std()).context("cannot read")
    }
}

struct Failing;

async fn called(name: &str) -> Value {
    let mut peer = Peer::of(Server::new("t").with(Failing)).await;
    let result = peer.request("tools/call", &json!({ "name": name })).await;
    peer.close().await;
    result
}

async fn requested(method: &str, params: Value) -> Value {
    let mut peer = Peer::of(Server::new("t").with(Failing)).await;
    let result = peer.request(method, &params).await;
    peer.close().await;
    result
}

#[tokio::test]
async fn the_model_reads_any_error_and_its_sources() {
    for (tool, text) in [
        ("ours", "cannot load the page: connection refused"),
        ("std", "cannot load the page: connection refused"),
        ("boxed", "cannot load the page: connection refused"),
        ("anyhow", "cannot look up the weather: cannot load the page: connection refused"),
        ("string", "no such city"),
        ("str", "no such city"),
        ("other", "outer: inner"),
    ] {
        let result = called(tool).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        assert_eq!(result["content"][0]["text"], text, "{tool}");
    }
}

#[tokio::test]
async fn errors_that_fail_the_request_survive_other_error_types() {
    for (tool, text) in [
        ("invalid", "`count` is negative"),
        ("invalid_boxed", "`count` is negative"),
        ("invalid_anyhow", "`count` is negative"),
        ("invalid_with_context", "cannot order: `count` is negative"),
    ] {
        let error = called(tool).await;
        assert_eq!(error, json!({ "code": -32602, "message": text }), "{tool}");
    }
}

#[tokio::test]
async fn a_question_can_be_asked_with_any_error_type() {
    let result = called("asks").await;
    assert_eq!(result["content"][0]["text"], "the client does not support elicitation");
}

#[tokio::test]
async fn prompts_and_resources_fail_with_any_error() {
    let failed = json!({ "code": -32603, "message": "cannot load the page: connection refused" });
    assert_eq!(requested("prompts/get", json!({ "name": "prompt" })).await, failed);
    assert_eq!(requested("resources/read", json!({ "uri": "demo://failing" })).await, failed);
    assert_eq!(
        requested("prompts/get", json!({ "name": "invalid_prompt" })).await,
        json!({ "code": -32602, "message": "`topic` is empty" })
    );
}

#[tokio::test]
async fn missing_items_are_not_found() {
    // 2025-11-25, which the peer speaks, has its own code for it.
    let read = |uri: &str| requested("resources/read", json!({ "uri": uri }));
    assert_eq!(read("demo://users/1").await["contents"][0]["text"], "Ada");
    let missing = json!({
        "code": -32002, "message": "resource not found: demo://users/2", "data": { "uri": "demo://users/2" }
    });
    assert_eq!(read("demo://users/2").await, missing);
    let missing = json!({
        "code": -32002, "message": "cannot read: there is no team 7", "data": { "uri": "demo://teams/7" }
    });
    assert_eq!(read("demo://teams/7").await, missing);
}

#[tokio::test]
async fn a_variable_of_the_wrong_type_is_named_with_the_type() {
    let message = "invalid arguments: `id`: expected an integer (u64), got `ada`";
    assert_eq!(
        requested("resources/read", json!({ "uri": "demo://users/ada" })).await,
        json!({ "code": -32602, "message": message })
    );
}

#[test]
fn a_build_error_has_a_reason_and_no_code() {
    // It is an error like any other.
    fn start(server: Server) -> anyhow::Result<()> {
        server.build()?;
        Ok(())
    }
    let broken = || Server::new("t").tool(Tool::new("no spaces").handler(|| ""));
    let error: BuildError = broken().build().expect_err("the name is not allowed");
    let message = "tool `no spaces`: the name contains ` `; letters, digits, `_`, `-` and `.` are allowed";
    assert_eq!(error.to_string(), message);
    assert!(start(broken()).is_err_and(|error| error.is::<BuildError>()));
}

#[cfg(feature = "client")]
#[tokio::test]
async fn a_client_error_reports_its_kind() {
    use bowline::client;

    async fn connect() -> Result<Client> {
        Ok(Client::connect(command("/no/such/program", [""; 0])).await?)
    }
    let error = connect().await.expect_err("there is no such program");
    assert!(error.downcast_ref::<client::Error>().is_some_and(client::Error::is_closed), "{error}");
}
