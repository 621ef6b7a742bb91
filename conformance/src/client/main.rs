//! A client for the scenarios of the conformance suite: `everything-client <url>`.
//!
//! Which scenario it is, at which revision and with which data, is in the environment.

mod answers;
mod login;
mod scenarios;

use bowline::client::{Client, ClientBuilder, Error, Result};
use bowline::http::http;
use bowline::types::Revision;
use serde_json::Value;
use std::time::Duration;

/// A client that hangs would keep the suite waiting for longer than this.
const LIMIT: Duration = Duration::from_secs(25);

/// What the suite wants.
struct Wanted {
    url: String,
    scenario: String,
    revision: Revision,
    context: Value,
}

impl Wanted {
    fn read() -> Result<Self> {
        let missing = |what: &str| Error::misuse(format!("{what} is missing"));
        let variable = |name: &str| std::env::var(name).map_err(|_| missing(name));
        let version = variable("MCP_CONFORMANCE_PROTOCOL_VERSION")?;
        Ok(Self {
            url: std::env::args().nth(1).ok_or_else(|| missing("the URL"))?,
            scenario: variable("MCP_CONFORMANCE_SCENARIO")?,
            revision: Revision::parse(&version)
                .ok_or_else(|| Error::misuse(format!("`{version}` is not known")))?,
            context: variable("MCP_CONFORMANCE_CONTEXT")
                .ok()
                .and_then(|text| serde_json::from_str(&text).ok())
                .unwrap_or_default(),
        })
    }

    /// A client of this revision that can be asked everything.
    fn client(&self) -> ClientBuilder {
        Client::builder()
            .name("everything")
            .version(env!("CARGO_PKG_VERSION"))
            .revisions([self.revision])
            .on_ask(answers::form)
            .on_sample(answers::message)
            .roots([])
    }
}

async fn play(wanted: &Wanted) -> Result {
    let mut target = http(&wanted.url);
    if wanted.scenario.starts_with("auth/") {
        target = target.login(login::login(wanted));
    }
    let client = wanted.client().connect(target).await?;
    let played = match wanted.scenario.as_str() {
        "initialize" | "request-metadata" | "json-schema-ref-no-deref" => scenarios::list(&client).await,
        "tools_call" => scenarios::add(&client).await,
        "elicitation-sep1034-client-defaults" => {
            scenarios::call(&client, "test_client_elicitation_defaults").await
        }
        "sse-retry" => scenarios::call(&client, "test_reconnection").await,
        "sep-2322-client-request-state" => scenarios::answer_rounds(&client).await,
        "http-standard-headers" => scenarios::use_everything(&client).await,
        "http-custom-headers" => scenarios::call_as_told(&client, &wanted.context).await,
        "http-invalid-tool-headers" => scenarios::call_what_is_left(&client).await,
        "json-schema-2020-12-preservation" => scenarios::echo_schema(&client).await,
        "auth/authorization-server-migration" => scenarios::list_twice(&client).await,
        auth if auth.starts_with("auth/") => scenarios::call(&client, "test-tool").await,
        other => Err(Error::misuse(format!("the scenario `{other}` is not known"))),
    };
    client.close().await;
    played
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let wanted = Wanted::read()?;
    let in_time = tokio::time::timeout(LIMIT, play(&wanted)).await;
    in_time.unwrap_or_else(|_| Err(Error::misuse("the scenario takes too long")))
}
