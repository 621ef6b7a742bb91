//! How much servers may use, and that it is counted.

use super::site::*;
use bowline_http::Poster;
use bowline_models::{Broker, Cap, Caps, Model, SampleErrorKind, Settings};
use bowline_types::error_code;

fn capped(site: &Site, caps: Caps) -> Broker {
    with(Settings::new().provider(site.open_ai()).model(Model::new("prov", "m-1")).caps(caps))
}

#[tokio::test]
async fn reported_usage_is_counted_per_server() {
    let site = Site::new([reply(200, said("ok")), reply(200, message_said("ok"))]).await;
    let broker = broker(site.open_ai());
    broker.sample("one", hello()).await.unwrap();
    let usage = broker.usage("one");
    assert_eq!((usage.calls, usage.input_tokens, usage.output_tokens, usage.tokens_in_hour), (1, 19, 10, 29));
    assert_eq!(broker.usage("other").calls, 0);
    // Tokens of the cache are read as well.
    let broker = super::site::broker(site.anthropic());
    broker.sample("one", hello()).await.unwrap();
    let usage = broker.usage("one");
    assert_eq!((usage.input_tokens, usage.output_tokens), (27, 5));
}

#[tokio::test]
async fn uncounted_tokens_are_estimated() {
    let silent = format!(r#"{{"choices":[{{"message":{{"content":"{}"}}}}]}}"#, "x".repeat(40));
    let zero =
        silent.replace("]}", r#"],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}"#);
    for answer in [silent.clone(), zero] {
        let site = Site::new([reply(200, answer)]).await;
        let broker = broker(site.open_ai());
        sample(&broker, hello()).await.unwrap();
        let usage = broker.usage("tickets");
        assert_eq!((usage.input_tokens, usage.output_tokens), (5, 10));
    }
}

#[tokio::test]
async fn a_server_that_wants_more_than_a_call_may_have_gets_that_much() {
    // proves: SAMP-23
    let site = Site::new([reply(200, said("ok")), reply(200, said("ok"))]).await;
    let mut request = hello();
    request.max_tokens = 1_000_000;
    sample(&capped(&site, Caps::new().tokens_per_call(50)), request.clone()).await.unwrap();
    assert_eq!(site.bodies()[0]["max_tokens"], 50);
    let settings = Settings::new().provider(site.open_ai()).model(Model::new("prov", "m-1").max_tokens(40));
    sample(&with(settings), request).await.unwrap();
    assert_eq!(site.bodies()[1]["max_tokens"], 40);
}

#[tokio::test]
async fn a_server_that_exceeded_its_budget_gets_an_error_that_names_it() {
    // V-103
    for (caps, cap, text) in [
        (
            Caps::new().tokens_per_run(30),
            Cap::TokensPerRun,
            "sampling refused: this server has reached its limit of 30 tokens per run",
        ),
        (
            Caps::new().tokens_per_hour(30),
            Cap::TokensPerHour,
            "sampling refused: this server has reached its limit of 30 tokens per hour",
        ),
        (
            Caps::new().calls_per_hour(1),
            Cap::CallsPerHour,
            "sampling refused: this server has reached its limit of 1 calls per hour",
        ),
    ] {
        let site = Site::new([reply(200, said("ok")), reply(200, said("ok"))]).await;
        let broker = capped(&site, caps);
        sample(&broker, hello()).await.unwrap();
        let error = sample(&broker, hello()).await.unwrap_err();
        assert_eq!(error.kind(), SampleErrorKind::Capped(cap));
        let rpc = broker.answer("tickets", hello()).await.unwrap_err();
        assert_eq!((rpc.code, rpc.message.as_ref()), (error_code::USER_REJECTED, text));
        assert_eq!(site.seen().len(), 1);
        // Others are not affected.
        broker.sample("other", hello()).await.unwrap();
    }
}

#[tokio::test]
async fn the_remaining_budget_limits_the_answer() {
    let site = Site::new([reply(200, said("ok")), reply(200, said("ok"))]).await;
    let broker = capped(&site, Caps::new().tokens_per_run(60));
    sample(&broker, hello()).await.unwrap();
    sample(&broker, hello()).await.unwrap();
    let limits: Vec<_> = site.bodies().iter().map(|body| body["max_tokens"].as_u64().unwrap()).collect();
    // Five of the tokens are the question; after the first call, 29 are used.
    assert_eq!(limits, [55, 26]);
}

#[tokio::test]
async fn more_calls_at_once_than_allowed_are_refused() {
    // V-103
    let site = Site::new([Reply::Silence, reply(200, said("ok"))]).await;
    let broker = capped(&site, Caps::new().calls_at_once(1));
    let first = tokio::spawn({
        let broker = broker.clone();
        async move { sample(&broker, hello()).await }
    });
    site.arrived().await;
    let error = sample(&broker, hello()).await.unwrap_err();
    assert_eq!(error.kind(), SampleErrorKind::Capped(Cap::CallsAtOnce));
    first.abort();
    site.hung_up().await;
    assert!(first.await.is_err());
    sample(&broker, hello()).await.unwrap();
}

#[tokio::test]
async fn rejected_calls_are_not_charged() {
    let site = Site::new([reply(401, "no"), reply(404, "no"), reply(400, "no"), reply(200, "<html>")]).await;
    let broker = broker(site.open_ai());
    for _ in 0..3 {
        sample(&broker, hello()).await.unwrap_err();
    }
    assert_eq!(broker.usage("tickets").tokens_in_hour, 0);
    // An answer that cannot be read may have cost something, so it counts in full.
    sample(&broker, hello()).await.unwrap_err();
    assert_eq!(broker.usage("tickets").tokens_in_hour, 105);
}

#[tokio::test]
async fn without_a_provider_there_is_no_broker() {
    assert!(Broker::new(Settings::new(), Poster::new()).unwrap().is_none());
    assert!(Broker::new(Settings::new().model(Model::new("p", "m")), Poster::new()).unwrap().is_none());
    let site = Site::new([]).await;
    assert!(Broker::new(Settings::new().provider(site.open_ai()), Poster::new()).is_err());
}
