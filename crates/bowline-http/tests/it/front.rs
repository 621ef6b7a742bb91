//! What stands before the endpoint: further paths, and who is let through.

use bowline_http::{Body, HttpOptions, HttpService, Principal, RequestFilter};
use bowline_server::{BoxFuture, Ctx, Server, Tool};
use http::{Response, StatusCode, header, request::Parts};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

/// Answers at `/hello`, and lets only those through who name themselves.
#[derive(Debug)]
struct Porter;

impl RequestFilter for Porter {
    fn check<'a>(&'a self, request: &'a mut Parts) -> BoxFuture<'a, Option<Response<Body>>> {
        Box::pin(async move {
            // As one that asks a database who it is.
            tokio::task::yield_now().await;
            if request.uri.path() == "/hello" {
                return Some(Response::new(Body::from("hello")));
            }
            let Some(name) = request.headers.get("x-name").and_then(|name| name.to_str().ok()) else {
                let mut response = Response::new(Body::from("who are you?"));
                *response.status_mut() = StatusCode::UNAUTHORIZED;
                response.headers_mut().insert(header::WWW_AUTHENTICATE, "Name".parse().unwrap());
                return Some(response);
            };
            request.extensions.insert(Principal(name.into()));
            None
        })
    }
}

fn call(headers: &str) -> String {
    let meta: Value = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "whoami", "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: whoami\r\nConnection: close\r\n\
         {headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn a_front_answers_in_the_endpoints_place_or_lets_pass() {
    let whoami = Tool::new("whoami").handler(|ctx: Ctx| {
        let principal = ctx.client().principal.clone();
        principal.map_or_else(|| "nobody".to_owned(), |name| name.to_string())
    });
    let server = Server::new("s").tool(whoami).build().unwrap();
    let service = HttpService::with_options(server, HttpOptions::new().filter(Porter));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (end, ended) = oneshot::channel::<()>();
    let served = tokio::spawn(async move { service.serve(listener, async { drop(ended.await) }).await });

    let get =
        |path: &str, host: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let named = |path: &str| get(path, "localhost\r\nX-Name: ada");
    for (request, status, text) in [
        (get("/hello", "localhost"), "200", "hello"),
        // The front is behind the check of `Host`, at every path.
        (
            get("/hello", "evil.example"),
            "403",
            "host `evil.example` is not allowed; add it to `HttpOptions::hosts`",
        ),
        (get("/elsewhere", "localhost"), "401", "who are you?"),
        (named("/elsewhere"), "404", "not found"),
        (call("Host: localhost\r\n"), "401", "www-authenticate: Name"),
        (call("Host: localhost\r\nX-Name: ada\r\n"), "200", "\"text\":\"ada\""),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        assert!(
            reply.starts_with(&format!("HTTP/1.1 {status}")) && reply.contains(text),
            "{request}\n{reply}"
        );
    }
    drop(end);
    served.await.unwrap().unwrap();
}
