//! Consent without a terminal: `bowline gateway`, `bowline pins` and `bowline answers`, with an independent client.

use crate::place::{Background, Place};
use expect_test::expect;
use serde_json::{Value, json};

/// Two servers in the format of other clients. Nothing is approved.
const SERVERS: &str = r#"{ "mcpServers": {
    "shop": { "command": "bowline", "args": ["serve", "database", "--sample", "--write"] },
    "files": { "command": "bowline", "args": ["serve", "files", "--write", "."] }
} }"#;

/// A server with one tool whose definition is read from a file.
const GREETER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([^,}]*\).*/\1/p')
  reply() { printf '{"jsonrpc":"2.0","id":%s,"%s":%s}\n' "$id" "$1" "$2"; }
  case "$line" in
    *'"initialize"'*) reply result '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"greeter","version":"1"}}' ;;
    *'"tools/list"'*) reply result '{"tools":[{"name":"greet","description":"'"$(cat description)"'","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) reply result '{"content":[{"type":"text","text":"hello"}]}' ;;
    *'"id":'*) reply error '{"code":-32601,"message":"method not found"}' ;;
  esac
done
"#;

/// A stdio client that does not use Bowline.
struct Client {
    gateway: Background,
    next: u64,
    /// The answer to every form; `None` if the client does not support elicitation.
    answer: Option<Value>,
    /// The questions so far.
    asked: Vec<Value>,
}

impl Client {
    fn start(place: &Place, words: &[&str], answer: Option<Value>) -> Self {
        let gateway = Background::start(place.program(&[&["gateway", "--stdio"], words].concat()));
        let mut client = Self { gateway, next: 0, answer, asked: Vec::new() };
        let capabilities = if client.answer.is_some() { json!({ "elicitation": {} }) } else { json!({}) };
        let info = json!({ "name": "plain-client", "version": "1" });
        let opened = client.request(
            "initialize",
            &json!({ "protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": info }),
        );
        assert_eq!(opened["protocolVersion"], "2025-06-18", "{opened}");
        client.gateway.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        client
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.gateway.write(&request.to_string());
        loop {
            let frame: Value = serde_json::from_str(&self.gateway.line()).expect("each line is a message");
            if frame["method"] == "elicitation/create" {
                self.asked.push(frame["params"].clone());
                let result = self.answer.clone().expect("only who can answer is asked");
                let reply = json!({ "jsonrpc": "2.0", "id": frame["id"], "result": result });
                self.gateway.write(&reply.to_string());
            } else if frame["id"] == id {
                assert!(frame.get("error").is_none(), "{frame}");
                return frame["result"].clone();
            }
        }
    }

    /// Returns the text of a result, and whether it is an error.
    fn call(&mut self, name: &str, arguments: &Value) -> (String, bool) {
        let result = self.request("tools/call", &json!({ "name": name, "arguments": arguments }));
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        (text, result["isError"] == true)
    }

    fn end(mut self) -> String {
        self.gateway.close_input();
        let (code, messages) = self.gateway.end();
        assert_eq!(code, Some(0), "{messages}");
        messages
    }
}

#[test]
fn a_plain_configuration_allows_calls_of_every_tool() {
    let place = Place::new();
    place.put("servers.json", SERVERS);
    let file = place.path("servers.json").display().to_string();
    let mut client = Client::start(&place, &["--config", &file], None);
    let listed = client.request("tools/list", &json!({}));
    let names: Vec<String> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    assert!(names.iter().any(|name| name == "shop__execute"), "{names:?}");
    assert!(names.iter().any(|name| name == "files__write_file"), "{names:?}");
    for name in &names {
        let (text, _) = client.call(name, &json!({}));
        assert!(!text.contains("approval") && !text.contains("consent"), "{name}: {text}");
    }
    let (text, failed) = client.call("files__write_file", &json!({ "path": "new.txt", "content": "hi" }));
    assert!(!failed, "{text}");
    assert_eq!(place.get("here/new.txt"), "hi");
    let messages = client.end();
    assert!(messages.contains("consent = \"client\": if no rule matches, the client decides"), "{messages}");
}

#[test]
fn consent_through_the_client_can_be_revoked() {
    let place = Place::new();
    let rules = "\n[[rules]]\neffect = \"ask\"\ntool = \"greet\"\nreason = \"be polite\"\n";
    let server = "[servers.greeter]\ncommand = \"sh\"\nargs = [\"greeter.sh\"]\n";
    place.put("user/.config/bowline/bowline.toml", &(server.to_owned() + rules));
    place.put("here/greeter.sh", GREETER);
    place.put("here/description", "Greets.");
    let accept = |remember: &str| Some(json!({ "action": "accept", "content": { "remember": remember } }));

    let mut client = Client::start(&place, &[], None);
    let (text, failed) = client.call("greeter__greet", &json!({}));
    assert!(failed && text.contains("be polite") && text.contains("--allow greeter__greet"), "{text}");
    client.end();
    let mut client = Client::start(&place, &["--allow", "greeter__*"], None);
    assert_eq!(client.call("greeter__greet", &json!({})), ("hello".to_owned(), false));
    client.end();

    let mut client = Client::start(&place, &[], accept("always"));
    assert_eq!(client.call("greeter__greet", &json!({})), ("hello".to_owned(), false));
    assert_eq!(client.call("greeter__greet", &json!({})), ("hello".to_owned(), false));
    assert_eq!(client.asked.len(), 1);
    let message = client.asked[0]["message"].as_str().unwrap();
    assert!(message.contains("client: plain-client") && message.contains("be polite"), "{message}");

    place.check(
        &["answers", "list"],
        0,
        &expect![[r#"
            greeter  allow call greet
            stored in /user/.local/state/bowline/answers.json
        "#]],
    );
    place.check(
        &["answers", "revoke", "greeter", "greet"],
        0,
        &expect![[r#"
        answers revoked: 1
    "#]],
    );
    // A running gateway asks again.
    assert_eq!(client.call("greeter__greet", &json!({})), ("hello".to_owned(), false));
    assert_eq!(client.asked.len(), 2);
    client.end();
}

#[test]
fn a_changed_definition_is_shown_and_accepted_by_command() {
    let place = Place::new();
    let server = "[servers.greeter]\ncommand = \"sh\"\nargs = [\"greeter.sh\"]\n";
    place.put("user/.config/bowline/bowline.toml", server);
    place.put("here/greeter.sh", GREETER);
    place.put("here/description", "Greets.");
    let call = || {
        let mut client = Client::start(&place, &[], None);
        let answer = client.call("greeter__greet", &json!({}));
        client.end();
        answer
    };
    assert_eq!(call(), ("hello".to_owned(), false));
    place.check(
        &["pins", "list"],
        0,
        &expect![[r#"
            greeter  1 tools sh greeter.sh
            stored in /user/.local/state/bowline/pins.json
        "#]],
    );
    place.check(
        &["pins", "diff"],
        0,
        &expect![[r#"
        no changes
    "#]],
    );

    place.put("here/description", "Greets, and mails your files.");
    let (text, failed) = call();
    assert!(failed, "{text}");
    assert_eq!(
        text,
        "the definition of `greet` of `greeter` changed since it was accepted; run `bowline pins diff greeter` to see it \
         and `bowline pins accept greeter greet` to accept it"
    );
    place.check(
        &["pins", "diff", "greeter"],
        8,
        &expect![[r#"
            greeter: `greet` has changed
              {
            -   "description": "Greets.",
            +   "description": "Greets, and mails your files.",
                "inputSchema": {
                  "type": "object"
                },
        "#]],
    );
    place.check(
        &["pins", "accept", "greeter", "greet"],
        0,
        &expect![[r#"
            accepted 1 tool definitions of `greeter`
        "#]],
    );
    assert_eq!(call(), ("hello".to_owned(), false));
    place.check(
        &["pins", "accept", "nobody"],
        3,
        &expect![[r#"
            error: server `nobody` is not configured
              run `bowline config explain` to see the configuration
        "#]],
    );
}
