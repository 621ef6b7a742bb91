//! `--auth dev`: a protected server or gateway without an identity provider, as docs/protect.md and docs/team.md describe it.

use crate::{
    issuer::get,
    place::{Background, Place},
};
use std::{
    io::{Read, Write},
    net::TcpStream,
};

/// Posts a form, and returns the value of `Location`.
fn post(url: &str, form: &str) -> String {
    let rest = url.strip_prefix("http://").expect("it is a loopback URL");
    let (authority, path) = rest.split_once('/').expect("it has a path");
    let mut stream = TcpStream::connect(authority).expect("it listens");
    let length = form.len();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nOrigin: http://{authority}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{form}"
    )
    .expect("it reads");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("it is text");
    assert!(reply.starts_with("HTTP/1.1 303"), "{reply}");
    let location = reply
        .lines()
        .find_map(|line| line.to_ascii_lowercase().starts_with("location: ").then(|| &line[10..]));
    location.expect("it redirects").to_owned()
}

/// Opens the consent page and chooses "Allow" or "Deny", as a browser does.
fn decide(url: &str, user: &str, decision: &str) -> String {
    let (status, _, page) = get(url);
    assert_eq!(status, 200, "{page}");
    assert!(page.contains(">Allow</button>"), "{page}");
    let (_, rest) = page.split_once("name=\"request\" value=\"").expect("it is a consent page");
    let key = rest.split('"').next().expect("it ends");
    post(
        url.split('?').next().expect("it has a path"),
        &format!("request={key}&user={user}&decision={decision}"),
    )
}

/// Logs in without a browser, and returns the messages.
fn log_in(place: &Place, url: &str, words: &[&str], user: &str) -> String {
    let mut login = Background::start(place.program(&[&["login", url, "--no-browser"], words].concat()));
    let page = login.message("/authorize?").trim().to_owned();
    login.write(&decide(&page, user, "allow"));
    let (code, printed) = login.end();
    assert_eq!(code, Some(0), "{printed}");
    printed
}

#[test]
fn a_server_with_auth_dev_is_logged_in_to_used_stepped_up_and_logged_out_of() {
    let place = Place::new();
    let words = ["serve", "everything", "--http", "0", "--auth", "dev", "--auth-scope", "notes:read"];
    let mut server = Background::start(place.program(&words));
    let url = server.line();
    let call = ["call", &url, "echo", "message=hello"];

    let (printed, code) = place.run(&call);
    assert_eq!(code, Some(7), "{printed}");
    assert!(printed.contains(&format!("bowline login {url}")), "{printed}");

    // Denied, and then allowed for the wrong scope.
    let mut login = Background::start(place.program(&["login", &url, "--no-browser"]));
    let page = login.message("/authorize?").trim().to_owned();
    assert!(page.contains("scope=notes%3Aread"), "{page}");
    login.write(&decide(&page, "ada", "deny"));
    let (code, printed) = login.end();
    assert_ne!(code, Some(0), "{printed}");
    assert!(printed.contains("access_denied"), "{printed}");
    log_in(&place, &url, &["--scope", "notes:list"], "ada");

    // The token lacks the scope: the command names the login that adds it.
    let (printed, code) = place.run(&call);
    assert_eq!(code, Some(7), "{printed}");
    assert!(printed.contains("--scope notes:read"), "{printed}");
    log_in(&place, &url, &["--scope", "notes:read"], "ada");
    let (printed, code) = place.run(&call);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("hello"), "{printed}");
    let (printed, _) = place.run(&["whoami", &url]);
    assert!(printed.contains("notes:read"), "{printed}");

    let (printed, code) = place.run(&["logout", &url]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("revoked"), "{printed}");
    assert_eq!(place.run(&call).1, Some(7));
    // A new login works again.
    log_in(&place, &url, &[], "grace");
    assert_eq!(place.run(&call).1, Some(0));
}

#[test]
fn the_guide_shows_the_commands_that_are_tested_here() {
    let guide = include_str!("../../../../docs/protect.md");
    for command in [
        "bowline serve everything --http 8080 --auth dev --auth-scope notes:read",
        "bowline login http://127.0.0.1:8080/mcp --no-browser",
        "bowline call http://127.0.0.1:8080/mcp echo message=hello",
        "bowline logout http://127.0.0.1:8080/mcp",
    ] {
        assert!(guide.contains(command), "{command}");
    }
}

#[test]
fn auth_dev_is_refused_where_it_would_not_be_safe() {
    let place = Place::new();
    for (words, reason) in [
        (&["--http", "0.0.0.0:0", "--auth", "dev"][..], "works only on a loopback address"),
        (&["--auth", "dev"], "needs `--http`"),
        (&["--http", "0", "--auth", "dev", "--no-token"], "conflicts with `--auth dev`"),
        (&["--http", "0", "--auth-scope", "x"], "needs `--auth dev`"),
    ] {
        let (printed, code) = place.run(&[&["serve", "everything"], words].concat());
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.contains(reason), "{reason} in {printed}");
    }
}

/// A configuration with one server that anyone may call.
const GATEWAY: &str = "[[rules]]\neffect = \"allow\"\n[servers.demo]\ncommand = \"bowline\"\n\
    args = [\"serve\", \"everything\"]\n";

#[test]
fn a_gateway_with_auth_dev_is_used_after_a_login() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", GATEWAY);
    let words = ["gateway", "--listen", "127.0.0.1:0", "--auth", "dev", "--auth-scope", "mcp"];
    let mut gateway = Background::start(place.program(&words));
    let printed = gateway.message("clients must log in");
    let (_, rest) = printed.split_once("`bowline login ").expect("it names the command");
    let url = rest.split('`').next().expect("it ends").to_owned();
    let call = ["call", &url, "demo__echo", "message=hello"];
    let (printed, code) = place.run(&call);
    assert_eq!(code, Some(7), "{printed}");
    log_in(&place, &url, &[], "ada");
    let (printed, code) = place.run(&call);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("hello"), "{printed}");
    let (printed, _) = place.run(&["whoami", &url]);
    assert!(printed.contains("mcp"), "{printed}");
}

#[test]
fn up_with_auth_dev_asks_clients_to_log_in_and_knows_its_own_user() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", GATEWAY);
    let mut up = Background::start(place.program(&["up", "--port", "0", "--auth", "dev"]));
    let url = up.line();
    up.message("clients must log in");
    assert_eq!(get(&url).0, 401);
    let (status, _, metadata) = get(&url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"));
    assert_eq!(status, 200, "{metadata}");
    assert!(metadata.contains("authorization_servers"), "{metadata}");
    let (printed, code) = place.run(&["call", "up", "demo__echo", "message=hello"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("hello"), "{printed}");
}

#[test]
fn auth_dev_of_a_gateway_is_refused_where_it_would_not_be_safe() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", GATEWAY);
    place
        .put("here/auth.toml", &format!("{GATEWAY}[gateway.auth]\nissuer = \"https://login.example.com\"\n"));
    for (words, code, reason) in [
        (&["gateway", "--listen", "0.0.0.0:0", "--auth", "dev"][..], 2, "works only on a loopback address"),
        (&["gateway", "--stdio", "--auth", "dev"], 2, "needs `--listen`"),
        (&["gateway", "--listen", "0", "--auth", "dev", "--no-token"], 2, "conflicts with `--auth dev`"),
        (&["up", "--host", "0.0.0.0", "--port", "0", "--auth", "dev"], 2, "works only on a loopback address"),
        (&["up", "--port", "0", "--auth-scope", "x"], 2, "needs `--auth dev`"),
        (
            &["-c", "auth.toml", "gateway", "--listen", "0", "--auth", "dev"],
            2,
            "conflicts with `[gateway.auth]`",
        ),
    ] {
        let (printed, ended) = place.run(words);
        assert_eq!(ended, Some(code), "{words:?}: {printed}");
        assert!(printed.contains(reason), "{reason} in {printed}");
    }
}
