//! The key of a provider goes to the provider and nowhere else.

use super::site::*;
use bowline_http::Poster;
use bowline_models::{Broker, Model, RequestSettings, SampleError, Settings};
use bowline_testing::Log;
use std::time::Duration;

/// Whether a text holds a telling part of the key.
fn leaks(text: &str) -> bool {
    let key: Vec<char> = KEY.chars().collect();
    key.windows(8).any(|part| text.contains(&part.iter().collect::<String>()))
}

fn shown(error: &SampleError) -> String {
    let rpc = error.to_rpc();
    format!("{error} {error:?} {rpc:?} {rpc} {}", serde_json::to_string(&rpc).unwrap())
}

#[tokio::test]
async fn no_error_and_no_log_contains_the_key() {
    // proves: SAMP-36
    assert!(leaks(&format!("Bearer {KEY}")) && leaks(&KEY[10..20]) && !leaks("sk-test"));
    let (log, _guard) = Log::start();
    let (start, end) = (&KEY[..20], &KEY[20..]);
    // Every failure there is, from a provider that repeats the key wherever it can.
    let texts = [
        KEY.to_owned(),
        format!("bad key {KEY}!"),
        format!("Bearer {KEY}, {start}…{end}"),
        format!(
            r#"{{"error":{{"message":"Incorrect API key provided: {KEY}","type":"{KEY}","code":"{KEY}","param":"{KEY}"}}}}"#
        ),
        format!(r#"{{"type":"error","error":{{"type":"{KEY}","message":"{}{KEY}"}}}}"#, "x".repeat(390)),
        format!(r#"{{"error":"{start}\n{end}"}}"#),
        format!(r#"{{"choices":"{KEY}","content":"{KEY}"}}"#),
    ];
    let mut replies = Vec::new();
    for text in &texts {
        for status in [200, 301, 400, 401, 403, 404, 413, 429, 500, 503, 529] {
            let reply = reply(status, text.clone())
                .header("location", format!("http://{KEY}.example/?key={KEY}"))
                .header("request-id", KEY)
                .header("x-should-retry", if status == 500 { "true" } else { "false" });
            replies.push(reply.clone());
            if status == 500 {
                replies.push(reply.clone());
                replies.push(reply);
            }
        }
    }
    replies.push(Reply::Bytes(format!("{KEY}\r\n\r\n").into_bytes()));
    replies
        .push(Reply::Bytes(format!("HTTP/1.1 200 {KEY}\r\ncontent-length: 900\r\n\r\n{KEY}").into_bytes()));
    let calls = texts.len() * 11 + 2;
    for anthropic in [false, true] {
        let site = Site::new(replies.clone()).await;
        let broker = broker(if anthropic { site.anthropic() } else { site.open_ai() });
        assert!(!leaks(&format!("{broker:?} {:?} {:?}", site.open_ai(), site.anthropic())));
        for call in 0..calls {
            let result = if call % 2 == 0 {
                broker.sample("tickets", hello()).await.map_err(|error| shown(&error))
            } else {
                broker.answer("tickets", hello()).await.map_err(|error| format!("{error:?} {error}"))
            };
            let error = result.unwrap_err();
            assert!(!leaks(&error), "{error}");
        }
        assert_eq!(site.seen().len(), replies.len());
        let header = if anthropic { "x-api-key" } else { "authorization" };
        assert!(site.seen().iter().all(|seen| seen.header(header).is_some_and(leaks)));
        assert!(site.seen().iter().all(|seen| !leaks(&seen.body) && !leaks(&seen.path)));
    }
    let lines = log.lines();
    assert!(lines.iter().any(|line| line.contains("WARN") && line.contains("a sampling request failed")));
    assert!(lines.iter().any(|line| line.contains("retrying a model request")));
    for line in &lines {
        assert!(!leaks(line), "{line}");
    }
}

#[tokio::test]
async fn a_call_that_works_is_logged_without_the_key_or_the_conversation() {
    let (log, _guard) = Log::start();
    let site = Site::new([reply(200, said("an answer in confidence"))]).await;
    let mut request = hello();
    request.system_prompt = Some("a prompt in confidence".into());
    sample(&broker(site.open_ai()), request).await.unwrap();
    let lines = log.lines();
    assert!(
        lines
            .iter()
            .any(|line| line.contains("a model answered a sampling request") && line.contains("tickets"))
    );
    for line in lines.iter().filter(|line| line.contains("model")) {
        assert!(!leaks(line) && !line.contains("in confidence"), "{line}");
    }
}

#[tokio::test]
async fn a_timeout_does_not_show_the_key() {
    let site = Site::new([Reply::Silence]).await;
    let settings = Settings::new()
        .provider(site.open_ai())
        .model(Model::new("prov", "m-1"))
        .request_settings(RequestSettings::new().timeout(Duration::from_millis(20)));
    let broker = Broker::new(settings, Poster::new()).unwrap().unwrap();
    let error = sample(&broker, hello()).await.unwrap_err();
    assert!(!leaks(&shown(&error)), "{error}");
}
