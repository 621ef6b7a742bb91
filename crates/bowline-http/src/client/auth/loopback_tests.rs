//! Tests of the listener for redirects.

use super::*;
use std::future::Future;

const STATE: &str = "uJ7-4z_state";

fn has_state(target: &str) -> bool {
    target.ends_with(&format!("state={STATE}"))
}

fn check(request: &str, expected: &Answer) {
    let head = request.replace('\n', "\r\n");
    assert_eq!(&evaluate(head.as_bytes(), "127.0.0.1:8976", &has_state), expected, "{request}");
}

#[test]
fn v64_only_requests_to_the_own_host_and_path_are_answered() {
    let target = "/callback?code=c&state=uJ7-4z_state";
    let own = "Accept: */*\nhost:127.0.0.1:8976";
    check(&format!("GET {target} HTTP/1.1\n{own}"), &Answer::Response(target.to_owned()));
    for (host, status) in [
        ("Host: evil.example", Status::Forbidden),
        ("Host: evil.example:8976", Status::Forbidden),
        ("Host: 127.0.0.1", Status::Forbidden),
        ("Host: localhost:8976", Status::Forbidden),
        ("Accept: */*", Status::BadRequest),
        ("Host: 127.0.0.1:8976\nHost: evil.example", Status::BadRequest),
    ] {
        check(&format!("GET {target} HTTP/1.1\n{host}"), &Answer::Error(status));
    }
    for (line, status) in [
        ("GET /favicon.ico HTTP/1.1", Status::NotFound),
        ("GET /callback/?state=uJ7-4z_state HTTP/1.1", Status::NotFound),
        ("GET http://127.0.0.1:8976/callback?state=uJ7-4z_state HTTP/1.1", Status::NotFound),
        ("POST /callback?state=uJ7-4z_state HTTP/1.1", Status::NotAllowed),
        ("OPTIONS /callback?state=uJ7-4z_state HTTP/1.1", Status::NotAllowed),
        ("GET /callback?state=uJ7-4z_state HTTP/2", Status::BadRequest),
        ("GET /callback?state=uJ7-4z_state x HTTP/1.1", Status::BadRequest),
        ("", Status::BadRequest),
    ] {
        check(&format!("{line}\nHost: 127.0.0.1:8976"), &Answer::Error(status));
    }
    assert_eq!(evaluate(&[0xFF], "a", &has_state), Answer::Error(Status::BadRequest));
}

/// Sends a request and returns the whole reply.
async fn send(authority: &str, target: &str, host: &str) -> String {
    let address = authority.replace("localhost", "127.0.0.1");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    // The listener closes a connection that sends too much.
    let _ = stream.write_all(request.as_bytes()).await;
    let mut reply = Vec::new();
    let _ = stream.read_to_end(&mut reply).await;
    String::from_utf8(reply).unwrap()
}

/// Runs a wait beside what clients do meanwhile.
async fn beside<T>(loopback: &Loopback, clients: impl Future<Output = T>) -> (io::Result<String>, T) {
    tokio::join!(loopback.wait(has_state, Duration::from_secs(60)), clients)
}

#[tokio::test]
async fn v55_a_wrong_state_gets_an_error_and_does_not_end_the_wait() {
    let loopback = Loopback::bind(CallbackHost::Address, None).await.unwrap();
    let authority = loopback.authority.clone();
    assert_eq!(loopback.redirect_uri(), format!("http://{authority}/callback"));
    let (url, replies) = beside(&loopback, async {
        // A connection that sends nothing, as browsers open in advance.
        let _silent = TcpStream::connect(&authority).await.unwrap();
        let mut replies = Vec::new();
        for (target, host) in [
            ("/callback?code=<b>&state=guess", &*authority),
            ("/callback?code=c&state=uJ7-4z_state", "evil.example"),
            ("/callback?code=right&state=uJ7-4z_state", &*authority),
        ] {
            replies.push(send(&authority, target, host).await);
        }
        replies
    })
    .await;
    let statuses: Vec<_> = replies.iter().map(|reply| reply.lines().next().unwrap_or_default()).collect();
    assert_eq!(statuses, ["HTTP/1.1 400 Bad Request", "HTTP/1.1 403 Forbidden", "HTTP/1.1 200 OK"]);
    for reply in &replies {
        assert!(reply.contains("Content-Security-Policy: default-src 'none'"), "{reply}");
        for echoed in ["<b>", "guess", "evil", "right", STATE, "Access-Control"] {
            assert!(!reply.contains(echoed), "{echoed} in {reply}");
        }
    }
    assert_eq!(url.unwrap(), format!("http://{authority}/callback?code=right&state={STATE}"));
}

#[tokio::test]
async fn a_head_that_is_too_long_is_refused() {
    let loopback = Loopback::bind(CallbackHost::Localhost, None).await.unwrap();
    let authority = loopback.authority.clone();
    let (_, reply) = beside(&loopback, async {
        let long = format!("/callback?code={}&state={STATE}", "c".repeat(MAX_HEAD));
        let reply = send(&authority, &long, &authority).await;
        send(&authority, &format!("/callback?state={STATE}"), &authority).await;
        reply
    })
    .await;
    assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 431"), "{reply}");
}

#[tokio::test]
async fn v64_a_busy_port_is_refused_and_a_free_one_is_found() {
    let taken = Loopback::bind(CallbackHost::Address, None).await.unwrap();
    let port = taken.listeners[0].local_addr().unwrap().port();
    for host in [CallbackHost::Address, CallbackHost::Localhost] {
        let error = Loopback::bind(host, Some(port)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
    drop(taken);
    // The port of a registration is bound again.
    let again = Loopback::bind(CallbackHost::Localhost, Some(port)).await.unwrap();
    assert_eq!(again.redirect_uri(), format!("http://localhost:{port}/callback"));
}

#[tokio::test]
async fn v64_a_port_that_is_taken_on_the_other_address_is_refused() {
    let Ok(taken) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await else {
        return bowline_testing::skip("this machine has no IPv6");
    };
    let port = taken.local_addr().unwrap().port();
    let error = Loopback::bind(CallbackHost::Localhost, Some(port)).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
}

#[tokio::test]
async fn a_wait_times_out() {
    let loopback = Loopback::bind(CallbackHost::Address, None).await.unwrap();
    let error = loopback.wait(has_state, Duration::ZERO).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(error.to_string(), "no redirect arrived within 0 s");
}
