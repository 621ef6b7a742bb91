//! The same with axum's routing.
use axum::{
    Router,
    body::{Body, Bytes},
    http::{Response, StatusCode, header::CONTENT_TYPE},
    routing::post,
    serve::ListenerExt,
};
use bare::Reply;
use futures_util::{StreamExt, stream};
use std::convert::Infallible;

async fn handle(body: Bytes) -> Response<Body> {
    let r = Response::builder();
    let mut out = Vec::new();
    match bare::answer(&body, &mut out) {
        Reply::None => r.status(StatusCode::ACCEPTED).body(Body::empty()),
        Reply::Message => r.header(CONTENT_TYPE, "application/json").body(Body::from(out)),
        Reply::Stream => r.header(CONTENT_TYPE, "text/event-stream").body(Body::from_stream(
            stream::iter([Ok::<_, Infallible>(Bytes::from(out))]).chain(stream::pending()),
        )),
    }
    .unwrap()
}

#[tokio::main]
async fn main() {
    let l = tokio::net::TcpListener::bind(("127.0.0.1", bare::port())).await.unwrap();
    axum::serve(l.tap_io(|s| drop(s.set_nodelay(true))), Router::new().route("/mcp", post(handle)))
        .await
        .unwrap();
}
