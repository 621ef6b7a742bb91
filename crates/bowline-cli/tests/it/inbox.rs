//! Questions that `bowline up` asks both at the terminal and in the Inbox of the inspector.

use crate::{
    place::{Background, Place, signal},
    pty::Pty,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
};

/// The inspector, as a page uses it.
pub(crate) struct Page {
    authority: String,
    key: String,
}

impl Page {
    /// Enters with the link that the terminal shows.
    pub(crate) fn enter(screen: &str) -> Self {
        let link = screen
            .lines()
            .find_map(|line| Some(line.split_once("http://")?.1).filter(|link| link.contains("/open#")));
        let (authority, code) = link.and_then(|link| link.split_once("/open#")).expect("a link is shown");
        let mut page = Self { authority: authority.to_owned(), key: String::new() };
        let entered = page.post("/api/enter", &json!({ "code": code.trim() }));
        entered["key"].as_str().expect("the code is valid").clone_into(&mut page.key);
        page
    }

    /// Reads the event stream until it has a text.
    pub(crate) fn until(&self, text: &str) {
        let request = format!(
            "GET /api/events?after=0 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
            self.authority, self.key
        );
        let mut stream = TcpStream::connect(&self.authority).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&seen).contains(text) {
            let count = stream.read(&mut buffer).expect("it sends events");
            assert!(count > 0, "the stream ended without `{text}`");
            seen.extend_from_slice(&buffer[..count]);
        }
    }

    pub(crate) fn query(&self, query: &Value) -> Value {
        self.post("/api/query", query)
    }

    pub(crate) fn act(&self, action: &Value) -> Value {
        self.post("/api/act", action)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.authority,
            self.key,
            body.len()
        );
        let mut stream = TcpStream::connect(&self.authority).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("it answers with text");
        assert!(reply.starts_with("HTTP/1.1 200 "), "{path}: {reply}");
        let (_, body) = reply.split_once("\r\n\r\n").expect("it has a body");
        serde_json::from_str(body).expect("it is JSON")
    }

    fn inbox(&self) -> Value {
        self.post("/api/query", &json!({ "query": "inbox" }))
    }

    /// Returns the id of the only question that waits.
    fn waiting(&self) -> String {
        let inbox = self.inbox();
        assert_eq!(inbox["waiting"].as_array().map(Vec::len), Some(1), "{inbox}");
        inbox["waiting"][0]["id"].as_str().expect("it has an id").to_owned()
    }

    /// Checks that nothing waits, and who accepted the last question.
    fn assert_allowed_by(&self, by: &str) {
        let inbox = self.inbox();
        assert_eq!(inbox["waiting"], json!([]), "{inbox}");
        assert_eq!(inbox["answered"][0]["by"], by, "{inbox}");
        assert_eq!(inbox["answered"][0]["allowed"], true, "{inbox}");
    }
}

#[test]
fn the_terminal_and_the_inbox_ask_the_same_question() {
    let place = Place::new();
    let server = "[servers.mine]\ncommand = \"bowline\"\nargs = [\"serve\", \"everything\"]\n";
    place.put("user/.config/bowline/bowline.toml", server);
    let mut up = Pty::sized(place.program(&["up", "--port", "0"]), 100, 160);
    up.expect("Press Ctrl-C to stop.");
    let page = Page::enter(&up.screen());
    let call = |message: &str| {
        Background::start(place.program(&["call", "up", "mine__echo", &format!("message={message}")]))
    };
    let finish = |mut call: Background, message: &str| {
        assert_eq!(call.line(), message);
        assert_eq!(call.end().0, Some(0));
    };

    let first = call("first");
    up.expect("mine>");
    assert!(up.screen().contains("first"), "{}", up.screen());
    page.waiting();
    up.enter("y");
    finish(first, "first");
    page.assert_allowed_by("terminal");

    let second = call("second");
    up.wait("the second question", |screen| {
        screen.contains("second") && screen.matches("mine>").count() == 2
    });
    let id = page.waiting();
    page.post("/api/act", &json!({ "action": "answer", "question": id, "answer": { "kind": "allow" } }));
    finish(second, "second");
    page.assert_allowed_by("page");
    up.expect("This question was answered in the inspector, or its call has ended.");

    // The next question is shown at once, and what was typed for the one before does not answer it.
    let third = call("third");
    up.expect("third").expect("Press Enter to answer.");
    up.enter("n").wait("the prompt", |screen| screen.matches("mine>").count() == 3);
    page.waiting();
    up.enter("y");
    finish(third, "third");
    page.assert_allowed_by("terminal");

    signal(up.id(), Signal::INT);
    let (code, screen) = up.finish();
    assert_eq!(code, Some(0), "{screen}");
}
