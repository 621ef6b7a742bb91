//! `bare::full` behind axum: the header checks of Streamable HTTP 2026-07-28 and a JSON reply.
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Response, header},
    routing::post,
    serve::ListenerExt,
};
use bare::full::{Mirror, Server, Step, render, render_failure};
use std::sync::Arc;

fn plain(status: u16, text: &'static str) -> Response<Body> {
    Response::builder().status(status).body(Body::from(text)).unwrap()
}

fn json(status: u16, body: Vec<u8>) -> Response<Body> {
    let mut r = Response::new(Body::from(body));
    *r.status_mut() = status.try_into().unwrap();
    r.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    r
}

async fn handle(State(server): State<Arc<Server>>, h: HeaderMap, body: Bytes) -> Response<Body> {
    let get = |k: &str| h.get(k).and_then(|v| v.to_str().ok());
    let host = get("host").unwrap_or("");
    let host = host.rsplit_once(':').map_or(host, |x| x.0);
    if !["localhost", "127.0.0.1", "[::1]"].iter().any(|a| a.eq_ignore_ascii_case(host)) {
        return plain(403, "host");
    }
    if let Some(o) = get("origin")
        && !o.starts_with("http://localhost")
        && !o.starts_with("http://127.0.0.1")
    {
        return plain(403, "origin");
    }
    if !get("accept").is_some_and(|a| a.contains("application/json") && a.contains("text/event-stream")) {
        return plain(406, "accept");
    }
    if !get("content-type").is_some_and(|c| c.starts_with("application/json")) {
        return plain(415, "content-type");
    }
    let mirror =
        Mirror { version: get("mcp-protocol-version"), method: get("mcp-method"), name: get("mcp-name") };
    match server.step(&body, Some(mirror)) {
        Step::Accepted => plain(202, ""),
        Step::Done(v) => json(200, v),
        Step::Call(id, fut) => match fut.await {
            Ok(r) => {
                let mut v = Vec::with_capacity(256);
                render(id, &r, &mut v);
                json(200, v)
            }
            Err(f) => json(f.status, render_failure(Some(id), &f)),
        },
        Step::Failed(id, f) => json(f.status, render_failure(id, &f)),
    }
}

#[tokio::main]
async fn main() {
    let l = tokio::net::TcpListener::bind(("127.0.0.1", bare::port())).await.unwrap();
    let app = Router::new().route("/mcp", post(handle)).with_state(Arc::new(Server::bench()));
    axum::serve(l.tap_io(|s| drop(s.set_nodelay(true))), app).await.unwrap();
}
