//! The fault proxy: what passes, where it ends, and how.

use bowline_testing::fault::{Fault, FaultProxy};
use std::{io::ErrorKind, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};

const REQUEST: &[u8] = b"request";
const REPLY: &[u8] = b"the reply";

/// How a conversation through the proxy went: what each side has read, and whether its end was in good order.
#[derive(Debug, PartialEq, Eq)]
struct Exchanged {
    server: (String, bool),
    client: (String, bool),
}

async fn read(stream: &mut TcpStream) -> (String, bool) {
    let mut bytes = Vec::new();
    let ended = match stream.read_to_end(&mut bytes).await {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            false
        }
    };
    (String::from_utf8(bytes).unwrap(), ended)
}

/// The server answers a whole request, and closes; the client sends one, and reads to the end.
async fn converse(proxy: &FaultProxy, server: &TcpListener) -> Exchanged {
    let answering = async {
        let (mut stream, _) = server.accept().await.unwrap();
        let mut request = [0; REQUEST.len()];
        let mut length = 0;
        let ended = loop {
            match stream.read(&mut request[length..]).await {
                Ok(0) => break true,
                Ok(more) => length += more,
                Err(_) => break false,
            }
            if length == request.len() {
                drop(stream.write_all(REPLY).await);
                drop(stream.shutdown().await);
                break read(&mut stream).await.1;
            }
        };
        (String::from_utf8_lossy(&request[..length]).into_owned(), ended)
    };
    let asking = async {
        let mut stream = TcpStream::connect(proxy.addr()).await.unwrap();
        drop(stream.write_all(REQUEST).await);
        read(&mut stream).await
    };
    let both = async { tokio::join!(answering, asking) };
    let (server, client) = timeout(Duration::from_secs(10), both).await.expect("it does not hang");
    Exchanged { server, client }
}

async fn check(fault: Fault, server: (&str, bool), client: (&str, bool)) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = FaultProxy::to(listener.local_addr().unwrap()).fault(fault.clone()).start().await.unwrap();
    let owned = |(text, ended): (&str, bool)| (text.to_owned(), ended);
    let expected = Exchanged { server: owned(server), client: owned(client) };
    assert_eq!(converse(&proxy, &listener).await, expected, "{fault:?}");
    // A fault triggers once.
    let whole = Exchanged { server: owned(("request", true)), client: owned(("the reply", true)) };
    assert_eq!(converse(&proxy, &listener).await, whole);
    assert_eq!(proxy.triggered(), 1);
    assert_eq!(proxy.traffic().connections, 2);
}

#[tokio::test]
async fn a_connection_is_closed_at_any_byte_of_either_direction() {
    for (at, passed) in ["", "r", "re", "req", "requ", "reque", "reques", "request"].into_iter().enumerate() {
        check(Fault::request(at as u64), (passed, true), ("", true)).await;
        check(Fault::request(at as u64).containing("quest"), (passed, true), ("", true)).await;
    }
    for at in 0..=REPLY.len() {
        let passed = std::str::from_utf8(&REPLY[..at]).unwrap();
        check(Fault::reply(at as u64), ("request", true), (passed, true)).await;
        check(Fault::reply(at as u64).containing("quest"), ("request", true), (passed, true)).await;
    }
}

#[tokio::test]
async fn a_reset_reaches_both_sides() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = FaultProxy::to(listener.local_addr().unwrap()).fault(Fault::request(3).rst());
    let proxy = proxy.start().await.unwrap();
    // What was on its way may be lost with a reset, so only the end is sure.
    let Exchanged { server, client } = converse(&proxy, &listener).await;
    assert!(!server.1 && "req".starts_with(&server.0), "{server:?}");
    assert_eq!(client, (String::new(), false));
}

#[tokio::test]
async fn bytes_can_be_put_in_between() {
    check(Fault::reply(4).garbage("*!"), ("request", true), ("the *!reply", true)).await;
    check(Fault::reply(0).garbage("*!"), ("request", true), ("*!the reply", true)).await;
}

#[tokio::test]
async fn a_stalled_direction_delivers_nothing_and_ends_with_its_source() {
    check(Fault::reply(4).stall(), ("request", true), ("the ", true)).await;
}

#[tokio::test]
async fn delayed_bytes_arrive_later() {
    let started = Instant::now();
    let delay = Duration::from_millis(30);
    check(Fault::reply(4).delay(delay), ("request", true), ("the reply", true)).await;
    assert!(started.elapsed() >= delay);
}

#[tokio::test]
async fn the_connection_can_be_chosen_and_the_fault_changed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = FaultProxy::to(listener.local_addr().unwrap()).fault(Fault::reply(0).on_connection(1));
    let proxy = proxy.start().await.unwrap();
    assert_eq!(converse(&proxy, &listener).await.client.0, "the reply");
    assert_eq!(converse(&proxy, &listener).await.client.0, "");
    assert_eq!(converse(&proxy, &listener).await.client.0, "the reply");
    proxy.set(Fault::reply(3).always());
    for _ in 0..3 {
        assert_eq!(converse(&proxy, &listener).await.client.0, "the");
    }
    proxy.wait_until_triggered(4).await;
    proxy.set(Fault::reply(3).containing("something else"));
    assert_eq!(converse(&proxy, &listener).await.client.0, "the reply");
    proxy.clear();
    assert_eq!((proxy.triggered(), proxy.traffic().connections), (4, 7));
    assert_eq!(proxy.traffic().requested, 7 * REQUEST.len() as u64);
    assert_eq!(proxy.traffic().replied, (3 * REPLY.len() + 3 * 3) as u64);
}

#[tokio::test]
async fn nothing_is_open_after_all_clients_have_disconnected() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = FaultProxy::to(listener.local_addr().unwrap()).start().await.unwrap();
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    client.write_all(b"x").await.unwrap();
    assert_eq!(server.read_u8().await.unwrap(), b'x');
    assert_eq!(proxy.traffic().sockets, 2);
    drop((client, server));
    timeout(Duration::from_secs(10), async {
        while proxy.traffic().sockets > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the sockets are closed");

    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    let (mut server, _) = listener.accept().await.unwrap();
    drop(proxy);
    assert!(read(&mut client).await.0.is_empty());
    assert!(read(&mut server).await.0.is_empty());
}

#[tokio::test]
async fn an_exited_server_is_also_closed_behind_the_proxy() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = FaultProxy::to(listener.local_addr().unwrap()).start().await.unwrap();
    drop(listener);
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(read(&mut client).await, (String::new(), false));
}
