//! Servers over HTTP: status and headers of their responses.

use crate::support::{Site, site};
use bowline_host::{Start, Upstream};
use bowline_http::HttpService;
use bowline_server::{Server, Tool};
use http::{HeaderValue, Request, Response};
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use tokio::net::TcpListener;
use tower_service::Service;

/// Adds headers to responses, and refuses calls of the tool `refused`.
#[derive(Clone)]
struct Marked(HttpService);

impl<B> Service<Request<B>> for Marked
where
    HttpService: Service<Request<B>, Response = Response<bowline_http::Body>, Error = Infallible>,
    <HttpService as Service<Request<B>>>::Future: Send + 'static,
{
    type Response = Response<bowline_http::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let is_refused = request.headers().get("mcp-name").is_some_and(|name| name == "refused");
        let response = self.0.call(request);
        Box::pin(async move {
            let mut response = response.await?;
            if is_refused {
                response = Response::new("busy".to_owned().into());
                *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
                response.headers_mut().insert("retry-after", HeaderValue::from_static("7"));
            }
            response.headers_mut().insert("x-request-id", HeaderValue::from_static("r-42"));
            response.headers_mut().insert("x-api-key", HeaderValue::from_static("never-shown"));
            Ok(response)
        })
    }
}

async fn call(site: &Site, tool: &str) -> Value {
    let params = json!({"name":tool,"arguments":{}});
    let send = json!({"action":"send","server":"remote","method":"tools/call","params":params});
    let (_, sent) = site.act(send).await;
    let call = sent["call"].as_u64().unwrap_or_else(|| panic!("{sent}"));
    site.result(call).await;
    let tree = site.query(json!({"query":"call","call":call})).await;
    let children = tree["root"]["children"].as_array().unwrap().clone();
    children.into_iter().find(|child| child["head"]["leg"] == "server").unwrap_or_else(|| panic!("{tree}"))
}

#[tokio::test]
async fn a_response_shows_its_status_and_headers_without_secrets() {
    let server = Server::new("remote")
        .tool(Tool::new("look").handler(|| "seen".to_owned()))
        .tool(Tool::new("refused").handler(|| "never".to_owned()));
    let service = Marked(HttpService::new(server).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(bowline_http::serve(listener, service, std::future::pending()));
    let site = site(None).await;
    let upstream = Upstream::from(format!("http://{address}/mcp").as_str());
    site.host.add("remote", upstream.start(Start::Lazy));
    let leg = call(&site, "look").await;
    let message = site.query(json!({"query":"message","seq":leg["end"]["seq"]})).await;
    let http = message["http"].as_str().unwrap();
    assert!(http.starts_with("HTTP 200 OK\n"), "{http}");
    assert!(http.contains("\nx-request-id: r-42") && http.contains("\nx-api-key: ***"), "{http}");
    let request = site.query(json!({"query":"message","seq":leg["head"]["seq"]})).await;
    assert_eq!(request["http"], Value::Null);
    // Without a message the status is the end of the call.
    let leg = call(&site, "refused").await;
    let end = &leg["end"];
    let shown = (&end["kind"], &end["status"], &end["code"], &end["name"]);
    assert_eq!(
        shown,
        (&json!("other"), &json!("no_answer"), &json!(503), &json!("HTTP 503 Service Unavailable"))
    );
    let message = site.query(json!({"query":"message","seq":end["seq"]})).await;
    assert!(message["http"].as_str().unwrap().contains("\nretry-after: 7"), "{message}");
    assert!(!site.query(json!({"query":"calls","after":0})).await.to_string().contains("never-shown"));
    serving.abort();
}
