//! The floor for HTTP: hyper alone.
use bare::Reply;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body::Frame;
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::{
    Method, Request, Response, StatusCode, body::Incoming, header::CONTENT_TYPE, server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;

async fn handle(
    req: Request<Incoming>,
) -> Result<
    Response<impl http_body::Body<Data = Bytes, Error = Box<dyn std::error::Error + Send + Sync>>>,
    hyper::Error,
> {
    if req.method() != Method::POST {
        let refused = Response::builder().status(StatusCode::METHOD_NOT_ALLOWED);
        return Ok(refused.body(Either::Left(Full::default())).unwrap());
    }
    let body = req.into_body().collect().await?.to_bytes();
    let r = Response::builder();
    let mut out = Vec::new();
    Ok(match bare::answer(&body, &mut out) {
        Reply::None => r.status(StatusCode::ACCEPTED).body(Either::Left(Full::default())),
        Reply::Message => r.header(CONTENT_TYPE, "application/json").body(Either::Left(Full::from(out))),
        Reply::Stream => r.header(CONTENT_TYPE, "text/event-stream").body(Either::Right(StreamBody::new(
            stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from(out)))]).chain(stream::pending()),
        ))),
    }
    .unwrap())
}

#[tokio::main]
async fn main() {
    let l = tokio::net::TcpListener::bind(("127.0.0.1", bare::port())).await.unwrap();
    loop {
        let (s, _) = l.accept().await.unwrap();
        s.set_nodelay(true).ok();
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(s), service_fn(handle)));
    }
}
