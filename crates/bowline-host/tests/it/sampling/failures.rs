//! Everything that can go wrong with a provider, and what the server and the user receive.

use super::site::*;
use bowline_http::{Post, PostAnswer, PostError};
use bowline_models::{Broker, Model, Provider, RequestSettings, SampleError, SampleErrorKind, Settings};
use bowline_proto::service::BoxFuture;
use bytes::Bytes;
use expect_test::{Expect, expect};
use http::{HeaderMap, StatusCode};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{net::TcpListener, time::Instant};

/// What the user and the server receive about a failure. Ports and the like differ from run to run.
fn told(site: &Site, error: &SampleError) -> String {
    let rpc = error.to_rpc();
    assert!(rpc.data.is_none());
    let text = format!("{error}\n{} {}\n", rpc.code, rpc.message);
    for line in text.lines().skip(1) {
        assert!(!line.contains("127.0.0.1") && !line.contains("prov`") && !line.contains("m-1"), "{line}");
    }
    text.replace(&site.address.to_string(), "HOST")
}

async fn fails(provider: impl Fn(&Site) -> Provider, replies: Vec<Reply>, expected: Expect) {
    let count = replies.len();
    let site = Site::new(replies).await;
    let error = sample(&broker(provider(&site)), hello()).await.unwrap_err();
    expected.assert_eq(&told(&site, &error));
    assert_eq!(site.seen().len(), count, "all replies are used");
}

fn open_ai_error(message: &str, kind: &str, code: &str) -> String {
    format!(r#"{{"error":{{"message":"{message}","type":"{kind}","param":null,"code":{code}}}}}"#)
}

fn anthropic_error(kind: &str, message: &str) -> String {
    format!(
        r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}}"#
    )
}

#[tokio::test]
async fn a_rejected_key() {
    let masked = "Incorrect API key provided: sk-test-*********************6789. You can find your API key at https://platform.openai.com/account/api-keys.";
    fails(
        Site::open_ai,
        vec![
            reply(401, open_ai_error(masked, "invalid_request_error", "\"invalid_api_key\""))
                .header("x-request-id", "req_9"),
        ],
        expect![[r#"
            provider `prov`, model `m-1`: it rejected the key: 401 Unauthorized, invalid_api_key: Incorrect API key provided: *** You can find your API key at https://platform.openai.com/account/api-keys., request req_9
            -32603 the model provider rejected the client's credentials
        "#]],
    )
    .await;
    fails(
        Site::anthropic,
        vec![reply(401, anthropic_error("authentication_error", "invalid x-api-key"))],
        expect![[r#"
            provider `prov`, model `m-1`: it rejected the key: 401 Unauthorized, authentication_error: invalid x-api-key
            -32603 the model provider rejected the client's credentials
        "#]],
    )
    .await;
    fails(
        Site::anthropic,
        vec![reply(
            403,
            anthropic_error(
                "permission_error",
                "Your API key does not have permission to use the specified resource.",
            ),
        )],
        expect![[r#"
            provider `prov`, model `m-1`: it rejected the key: 403 Forbidden, permission_error: Your API key does not have permission to use the specified resource.
            -32603 the model provider rejected the client's credentials
        "#]],
    )
    .await;
}

#[tokio::test]
async fn an_unknown_model() {
    let missing = "The model `m-1` does not exist or you do not have access to it.";
    fails(
        Site::open_ai,
        vec![reply(404, open_ai_error(missing, "invalid_request_error", "\"model_not_found\""))],
        expect![[r#"
            provider `prov`, model `m-1`: the model or the base URL does not exist: 404 Not Found, model_not_found: The model `m-1` does not exist or you do not have access to it.
            -32603 the client's model is not available at its provider
        "#]],
    )
    .await;
    fails(Site::anthropic, vec![reply(404, anthropic_error("not_found_error", "model: m-1"))], expect![[r#"
        provider `prov`, model `m-1`: the model or the base URL does not exist: 404 Not Found, not_found_error: model: m-1
        -32603 the client's model is not available at its provider
    "#]])
        .await;
    // What a wrong base URL gives.
    fails(Site::open_ai, vec![reply(404, "404 page not found")], expect![[r#"
        provider `prov`, model `m-1`: the model or the base URL does not exist: 404 Not Found, 404 page not found
        -32603 the client's model is not available at its provider
    "#]]).await;
}

#[tokio::test]
async fn a_rejected_request() {
    fails(
        Site::open_ai,
        vec![reply(
            400,
            open_ai_error(
                "This model's maximum context length is 8192 tokens.",
                "invalid_request_error",
                "\"context_length_exceeded\"",
            ),
        )],
        expect![[r#"
            provider `prov`, model `m-1`: it rejected the request: 400 Bad Request, context_length_exceeded: This model's maximum context length is 8192 tokens.
            -32602 the model provider rejected the request
        "#]],
    )
    .await;
    fails(
        Site::anthropic,
        vec![reply(
            413,
            anthropic_error("request_too_large", "Request exceeds the maximum allowed number of bytes."),
        )],
        expect![[r#"
            provider `prov`, model `m-1`: it rejected the request: 413 Payload Too Large, request_too_large: Request exceeds the maximum allowed number of bytes.
            -32602 the model provider rejected the request
        "#]],
    )
    .await;
}

#[tokio::test]
async fn too_many_requests() {
    let limited =
        || reply(429, anthropic_error("rate_limit_error", "This request would exceed your rate limit."));
    // Asked again once, and no more than that.
    fails(
        Site::anthropic,
        vec![limited().header("retry-after-ms", "1"), limited().header("retry-after-ms", "1")],
        expect![[r#"
            provider `prov`, model `m-1`: it is rate limiting requests: 429 Too Many Requests, rate_limit_error: This request would exceed your rate limit.
            -32603 the model provider is rate limiting the client; try again later
        "#]],
    )
    .await;
    // Not for as long as that.
    fails(Site::anthropic, vec![limited().header("retry-after", "3600")], expect![[r#"
        provider `prov`, model `m-1`: it is rate limiting requests: 429 Too Many Requests, rate_limit_error: This request would exceed your rate limit.
        -32603 the model provider is rate limiting the client; try again later
    "#]]).await;
    // Nor when it would not help.
    fails(
        Site::open_ai,
        vec![reply(
            429,
            open_ai_error(
                "You exceeded your current quota, please check your plan and billing details.",
                "insufficient_quota",
                "\"insufficient_quota\"",
            ),
        )],
        expect![[r#"
            provider `prov`, model `m-1`: it is rate limiting requests: 429 Too Many Requests, insufficient_quota: You exceeded your current quota, please check your plan and billing details.
            -32603 the model provider is rate limiting the client; try again later
        "#]],
    )
    .await;
    let site = Site::new([limited().header("retry-after-ms", "1"), reply(200, message_said("there"))]).await;
    let result = sample(&broker(site.anthropic()), hello()).await.unwrap();
    assert_eq!(result.content.as_slice()[0].as_text(), Some("there"));
}

#[tokio::test]
async fn a_provider_that_fails() {
    let failed = || {
        reply(
            500,
            open_ai_error("The server had an error while processing your request.", "server_error", "null"),
        )
    };
    fails(Site::open_ai, vec![failed(), failed(), failed()], expect![[r#"
        provider `prov`, model `m-1`: it failed: 500 Internal Server Error, server_error: The server had an error while processing your request.
        -32603 the model provider failed
    "#]]).await;
    fails(
        Site::open_ai,
        vec![reply(502, "<html>\r\n<h1>502 Bad Gateway</h1></html>"); 3],
        expect![[r#"
            provider `prov`, model `m-1`: it failed: 502 Bad Gateway, <html> <h1>502 Bad Gateway</h1></html>
            -32603 the model provider failed
        "#]],
    )
    .await;
    let site = Site::new([failed(), failed(), reply(200, said("there"))]).await;
    assert!(sample(&broker(site.open_ai()), hello()).await.is_ok());
    fails(Site::open_ai, vec![failed().header("x-should-retry", "false")], expect![[r#"
        provider `prov`, model `m-1`: it failed: 500 Internal Server Error, server_error: The server had an error while processing your request.
        -32603 the model provider failed
    "#]]).await;
}

#[tokio::test]
async fn an_overloaded_provider() {
    fails(
        Site::anthropic,
        vec![reply(529, anthropic_error("overloaded_error", "Overloaded")); 3],
        expect![[r#"
            provider `prov`, model `m-1`: it is overloaded: 529, overloaded_error: Overloaded
            -32603 the model provider is overloaded; try again later
        "#]],
    )
    .await;
    fails(
        Site::open_ai,
        vec![
            reply(
                503,
                open_ai_error(
                    "The engine is currently overloaded, please try again later",
                    "server_error",
                    "null"
                )
            );
            3
        ],
        expect![[r#"
            provider `prov`, model `m-1`: it is overloaded: 503 Service Unavailable, server_error: The engine is currently overloaded, please try again later
            -32603 the model provider is overloaded; try again later
        "#]],
    )
    .await;
}

#[tokio::test]
async fn an_error_with_a_success_status() {
    fails(
        Site::open_ai,
        vec![reply(200, r#"{"error":{"message":"Provider returned error","code":502}}"#)],
        expect![[r#"
            provider `prov`, model `m-1`: it failed: 200 OK, 502: Provider returned error
            -32603 the model provider failed
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_redirection_is_not_followed() {
    for status in [301, 302, 307, 308] {
        let target = Site::new([]).await;
        let to = format!("http://{}/v1/chat/completions", target.address);
        let site = Site::new([reply(status, "").header("location", to)]).await;
        let error = sample(&broker(site.open_ai()), hello()).await.unwrap_err();
        assert_eq!(error.kind(), SampleErrorKind::Redirected);
        assert!(error.to_string().contains(&target.address.to_string()), "{error}");
        assert!(!error.to_rpc().message.contains(&target.address.to_string()));
        assert!(target.seen().is_empty());
    }
}

#[tokio::test]
async fn an_invalid_answer() {
    fails(
        Site::open_ai,
        vec![reply(200, "<html>")],
        expect![[r#"
        provider `prov`, model `m-1`: its response is invalid: expected value at line 1 column 1
        -32603 the model provider sent an invalid response
    "#]],
    )
    .await;
    fails(
        Site::open_ai,
        vec![reply(200, r#"{"choices":[]}"#)],
        expect![[r#"
        provider `prov`, model `m-1`: its response is invalid: it contains no choices
        -32603 the model provider sent an invalid response
    "#]],
    )
    .await;
    fails(Site::open_ai, vec![reply(200, r#"{"choices":[{"message":{"content":7}}]}"#)], expect![[r#"
        provider `prov`, model `m-1`: its response is invalid: data did not match any variant of untagged enum ResponseContent at line 1 column 36
        -32603 the model provider sent an invalid response
    "#]]).await;
    fails(
        Site::open_ai,
        vec![reply(204, "")],
        expect![[r#"
            provider `prov`, model `m-1`: its response is invalid: 204 No Content
            -32603 the model provider sent an invalid response
        "#]],
    )
    .await;
    fails(Site::anthropic, vec![reply(200, r#"{"content":[{"type":"tool_use","id":"1"}]}"#)], expect![[r#"
        provider `prov`, model `m-1`: its response is invalid: it contains a tool use without name, id or input
        -32603 the model provider sent an invalid response
    "#]])
        .await;
    fails(Site::anthropic, vec![reply(200, r#"{"content":"text"}"#)], expect![[r#"
        provider `prov`, model `m-1`: its response is invalid: invalid type: string "text", expected a sequence at line 1 column 17
        -32603 the model provider sent an invalid response
    "#]]).await;
    fails(Site::open_ai, vec![Reply::Bytes(b"SSH-2.0-OpenSSH_9.6\r\n".to_vec())], expect![[r#"
        provider `prov`, model `m-1`: its response is invalid: http://HOST/v1/chat/completions: the response cannot be read: client error (SendRequest): invalid HTTP version parsed
        -32603 the model provider sent an invalid response
    "#]]).await;
}

#[tokio::test]
async fn a_too_long_answer() {
    let fits = said(&"x".repeat(60_000));
    let site = Site::new([reply(200, fits)]).await;
    assert!(sample(&broker(site.open_ai()), hello()).await.is_ok());
    fails(
        Site::open_ai,
        vec![reply(200, "x".repeat(70_000))],
        expect![[r#"
        provider `prov`, model `m-1`: http://HOST/v1/chat/completions: the answer is longer than 65536 bytes
        -32603 the response of the model is too long
    "#]],
    )
    .await;
    // No length is told beforehand.
    let mut endless = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    endless.extend(vec![b'x'; 100_000]);
    fails(
        Site::open_ai,
        vec![Reply::Bytes(endless)],
        expect![[r#"
        provider `prov`, model `m-1`: http://HOST/v1/chat/completions: the answer is longer than 65536 bytes
        -32603 the response of the model is too long
    "#]],
    )
    .await;
}

#[tokio::test]
async fn a_broken_connection_fails_the_request() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choices\"".to_vec();
    let site = Site::new([Reply::Bytes(half)]).await;
    let error = sample(&broker(site.open_ai()), hello()).await.unwrap_err();
    assert_eq!(error.kind(), SampleErrorKind::Lost);
    assert_eq!(error.to_rpc().message, "the connection to the model provider was lost");
}

#[tokio::test]
async fn an_unreachable_provider() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let provider = Provider::open_ai("prov").base_url(format!("http://{address}/v1"));
    let error = sample(&broker(provider), hello()).await.unwrap_err();
    assert_eq!(error.kind(), SampleErrorKind::Unreachable);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert_eq!(error.to_rpc().message, "the model provider cannot be reached");
}

#[tokio::test]
async fn dropping_the_call_aborts_the_request() {
    let site = Site::new([Reply::Silence]).await;
    let broker = broker(site.open_ai());
    let call = tokio::spawn({
        let broker = broker.clone();
        async move { sample(&broker, hello()).await }
    });
    site.arrived().await;
    call.abort();
    site.hung_up().await;
    assert!(call.await.unwrap_err().is_cancelled());
    let usage = broker.usage("tickets");
    assert_eq!((usage.calls, usage.output_tokens), (1, 100));
}

/// A provider in memory, for what takes time. It says nothing when it has no more answers.
#[derive(Clone, Debug, Default)]
struct Timed {
    answers: Arc<Mutex<VecDeque<(u16, &'static str)>>>,
    asked: Arc<Mutex<Vec<Instant>>>,
}

impl Post for Timed {
    fn post<'a>(
        &'a self,
        _: &'a str,
        _: HeaderMap,
        _: Bytes,
    ) -> BoxFuture<'a, Result<PostAnswer, PostError>> {
        self.asked.lock().unwrap().push(Instant::now());
        let next = self.answers.lock().unwrap().pop_front();
        let Some((status, delay)) = next else { return Box::pin(std::future::pending()) };
        let mut headers = HeaderMap::new();
        if !delay.is_empty() {
            headers.insert("retry-after", delay.parse().unwrap());
        }
        let body = if status == 200 { said("ok").into() } else { Bytes::new() };
        let answer = PostAnswer { status: StatusCode::from_u16(status).unwrap(), headers, body };
        Box::pin(async move { Ok(answer) })
    }
}

async fn waits(
    answers: &[(u16, &'static str)],
    random: u64,
    request_settings: RequestSettings,
) -> (Vec<u128>, bool) {
    let post = Timed { answers: Arc::new(Mutex::new(answers.iter().copied().collect())), ..Timed::default() };
    let settings = Settings::new()
        .provider(Provider::open_ai("prov"))
        .model(Model::new("prov", "m-1"))
        .request_settings(request_settings);
    let broker = Broker::with_random(settings, post.clone(), move || random).unwrap().unwrap();
    let done = sample(&broker, hello()).await.is_ok();
    let asked = post.asked.lock().unwrap();
    let delays = asked.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    (delays, done)
}

#[tokio::test(start_paused = true)]
async fn delays_grow_randomly_and_follow_retry_after() {
    let half = 1 << 63;
    let request_settings = RequestSettings::new;
    let failures = [(500, ""), (502, ""), (200, "")];
    // Timers fire at the next millisecond.
    assert_eq!(waits(&failures, 0, request_settings()).await, (vec![0, 0], true));
    assert_eq!(waits(&failures, half, request_settings()).await, (vec![250, 500], true));
    assert_eq!(waits(&failures, u64::MAX, request_settings()).await, (vec![500, 1000], true));
    assert_eq!(
        waits(&failures, u64::MAX, request_settings().longest_delay(Duration::from_millis(600))).await,
        (vec![500, 600], true)
    );
    assert_eq!(waits(&failures, half, request_settings().retries(1)).await, (vec![250], false));
    assert_eq!(waits(&[(500, "")], half, request_settings().retries(0)).await, (vec![], false));
    assert_eq!(waits(&[(429, "7"), (200, "")], half, request_settings()).await, (vec![7_250], true));
    assert_eq!(waits(&[(429, "20"), (200, "")], 0, request_settings()).await, (vec![20_000], true));
    assert_eq!(waits(&[(429, "21")], 0, request_settings()).await, (vec![], false));
    // A delay beyond the end of the call is not begun.
    assert_eq!(
        waits(&[(503, "10")], 0, request_settings().timeout(Duration::from_secs(10))).await,
        (vec![], false)
    );
    assert_eq!(waits(&failures, 0, request_settings().timeout(Duration::MAX)).await, (vec![0, 0], true));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_does_not_respond() {
    let settings = Settings::new()
        .provider(Provider::open_ai("prov"))
        .model(Model::new("prov", "m-1"))
        .request_settings(RequestSettings::new().timeout(Duration::from_secs(7)));
    let post = Timed::default();
    post.answers.lock().unwrap().push_back((500, "2"));
    let broker = Broker::with_random(settings, post.clone(), || 0).unwrap().unwrap();
    let start = Instant::now();
    let error = sample(&broker, hello()).await.unwrap_err();
    // The time is that of the whole call, not of each request.
    assert_eq!((start.elapsed().as_secs(), post.asked.lock().unwrap().len()), (7, 2));
    assert_eq!(error.kind(), SampleErrorKind::TimedOut);
    assert!(error.to_string().contains("https://api.openai.com/v1/chat/completions: 7s"), "{error}");
    assert_eq!(error.to_rpc().message, "the model timed out");
    // Nobody knows what it has cost, so it counts in full.
    assert_eq!(broker.usage("tickets").output_tokens, 100);
}
