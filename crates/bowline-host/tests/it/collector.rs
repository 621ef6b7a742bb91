//! A collector of traces on a local socket: it answers as it was told to, and notes what it was sent.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// A reply, head and body.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> String {
    let mut reply = format!("HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        let _ = write!(reply, "{name}: {value}\r\n");
    }
    reply + "\r\n" + body
}

pub(crate) struct Collector {
    url: String,
    requests: Arc<Mutex<Vec<Request>>>,
    count: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Collector {
    /// Gives these answers, and 200 when there are none left.
    pub(crate) async fn start(answers: impl IntoIterator<Item = String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut answers: VecDeque<String> = answers.into_iter().collect();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (counter, count) = watch::channel(0);
        let noted = Arc::clone(&requests);
        let task = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                while let Some(request) = read(&mut stream).await {
                    noted.lock().unwrap().push(request);
                    let reply = answers.pop_front().unwrap_or_else(|| answer(200, &[], "{}"));
                    stream.write_all(reply.as_bytes()).await.unwrap();
                    counter.send_modify(|count| *count += 1);
                }
            }
        });
        Self { url, requests, count, task }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }

    /// Until so many requests were answered.
    pub(crate) async fn wait_for(&self, requests: usize) {
        self.count.clone().wait_for(|count| *count >= requests).await.unwrap();
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One request; `None` when the connection has ended.
async fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request { head, body })
}
