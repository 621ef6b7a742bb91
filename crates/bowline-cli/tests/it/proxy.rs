//! The program behind the proxy of a company, whose certificate it has to trust.

use crate::place::{Background, Place};
use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use std::{
    process::Command,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    runtime::Runtime,
};
use tokio_rustls::TlsAcceptor;

/// A certificate for `tickets.example` that vouches for itself, as base64 of DER. With its key it was made by `openssl req -x509
/// -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 300000 -subj /CN=tickets.example -addext
/// subjectAltName=DNS:tickets.example`.
const CERTIFICATE: &str = "MIIBnTCCAUSgAwIBAgIUMlxSGOWUQIDVa1LRUfn2WdNzak0wCgYIKoZIzj0EAwIwFzEVMBMGA1UEAwwMYm93bGluZSB0ZXN0MCAX\
    DTI2MTExNzA2MjEwOFoYDzI4NDgwNDAxMDYyMTA4WjAXMRUwEwYDVQQDDAxib3dsaW5lIHRlc3QwWTATBgcqhkjOPQIBBggqhkjO\
    PQMBBwNCAATliB7i+d8cBdEIe30t2iqpckUoxVCBU00U0yIA9yGgWXcJwQGT7X45VrkHeE8YmserIu7Cb31DIEoJQgpqU7pGo2ww\
    ajAdBgNVHQ4EFgQU9d8TNmjxkRq4SpENejuJmt/Jhg8wHwYDVR0jBBgwFoAU9d8TNmjxkRq4SpENejuJmt/Jhg8wGgYDVR0RBBMw\
    EYIPdGlja2V0cy5leGFtcGxlMAwGA1UdEwEB/wQCMAAwCgYIKoZIzj0EAwIDRwAwRAIgJBsvP3VeP3vDQzvJfQIXnGH/4Thq8tyE\
    BaE0lppfnXoCIGj6/4yj/px+W4hE7etsdH4unsUNJqflJLNvnddB0KZ/";
const KEY: &str = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg4l8HPVqRc534HfxhcnzaizIQ1w2U/4UDPETUSD34AqyhRANCAATl\
    iB7i+d8cBdEIe30t2iqpckUoxVCBU00U0yIA9yGgWXcJwQGT7X45VrkHeE8YmserIu7Cb31DIEoJQgpqU7pG";

fn decoded(text: &str) -> Vec<u8> {
    STANDARD.decode(text).expect("it is base64")
}

/// A proxy that decrypts what is sent to `tickets.example`, as the proxies of companies do, and passes it on to a server of this
/// machine.
struct CompanyProxy {
    url: String,
    /// The first line of each request to the proxy.
    asked: Arc<Mutex<Vec<String>>>,
    // Ends the proxy when it is dropped.
    _runtime: Runtime,
}

impl CompanyProxy {
    fn start(server: String) -> Self {
        let runtime = Runtime::new().expect("there are threads");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("there is a free port");
        let url = format!("http://ann:secret@{}", listener.local_addr().expect("it is bound"));
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&asked);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass_on(stream, server.clone(), Arc::clone(&seen)));
            }
        });
        Self { url, asked, _runtime: runtime }
    }

    /// Returns what the proxy was asked for since the last time.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().expect("no test panics with it"))
    }
}

async fn pass_on(mut stream: TcpStream, server: String, asked: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else { return };
        head.push(byte);
    }
    let head = String::from_utf8(head).expect("it is text");
    let line = head.lines().next().unwrap_or_default().to_owned();
    let is_tickets = line == "CONNECT tickets.example:443 HTTP/1.1";
    let is_ann = head.contains("\r\nProxy-Authorization: Basic YW5uOnNlY3JldA==\r\n");
    asked.lock().expect("no test panics with it").push(line);
    if !(is_tickets && is_ann) {
        drop(stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await);
        return;
    }
    if stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.is_err() {
        return;
    }
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(decoded(KEY)));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(vec![CertificateDer::from(decoded(CERTIFICATE))], key)
        })
        .expect("the certificate is good");
    let Ok(mut stream) = TlsAcceptor::from(Arc::new(config)).accept(stream).await else { return };
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    drop(copy_bidirectional(&mut stream, &mut server).await);
}

/// A server that is reached as `https://tickets.example/mcp` through a proxy, and a home whose environment names the proxy.
struct Company {
    place: Place,
    proxy: CompanyProxy,
    /// The URL of the server on this machine.
    url: String,
    server: Background,
}

impl Company {
    fn new() -> Self {
        let place = Place::new();
        place.put(
            "root.pem",
            &format!("-----BEGIN CERTIFICATE-----\n{CERTIFICATE}\n-----END CERTIFICATE-----\n"),
        );
        let words =
            ["serve", "everything", "--http", "127.0.0.1:0", "--no-token", "--http-host", "tickets.example"];
        let mut server = Background::start(place.program(&words));
        let url = server.line();
        let address =
            url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp")).expect("it is a URL");
        Self { proxy: CompanyProxy::start(address.to_owned()), url, place, server }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.place.program(words);
        command
            .env("HTTPS_PROXY", &self.proxy.url)
            .env("HTTP_PROXY", &self.proxy.url)
            .env("SSL_CERT_FILE", self.place.path("root.pem"));
        command
    }

    fn run(&self, words: &[&str]) -> (String, Option<i32>) {
        self.place.output(self.command(words))
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        self.server.close_input();
    }
}

const TUNNEL: &str = "CONNECT tickets.example:443 HTTP/1.1";
const URL: &str = "https://tickets.example/mcp";

#[test]
fn a_server_is_reached_through_the_proxy_of_the_environment() {
    let company = Company::new();
    let (output, code) = company.run(&["tools", URL]);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("echo"), "{output}");
    assert!(company.proxy.asked().iter().all(|line| line == TUNNEL));

    // Configured servers too, which the gateway reaches in the same way.
    company.place.put("user/.config/bowline/bowline.toml", &format!("[servers.tickets]\nurl = \"{URL}\"\n"));
    let (output, code) = company.run(&["call", "tickets", "echo", "message=hi"]);
    assert_eq!(code, Some(0), "{output}");
    assert!(company.proxy.asked().iter().any(|line| line == TUNNEL), "{output}");

    // Only the variable makes the certificate of the company a good one.
    let mut command = company.command(&["tools", URL]);
    command.env_remove("SSL_CERT_FILE");
    let (output, code) = company.place.output(command);
    assert_ne!(code, Some(0), "{output}");
    assert!(output.contains("certificate"), "{output}");
}

#[test]
fn servers_of_this_machine_and_exceptions_are_reached_directly() {
    let company = Company::new();
    let (output, code) = company.run(&["tools", &company.url]);
    assert_eq!(code, Some(0), "{output}");
    let mut command = company.command(&["tools", URL]);
    command.env("NO_PROXY", "other.example,.example");
    let (output, code) = company.place.output(command);
    assert_ne!(code, Some(0), "{output}");
    assert_eq!(company.proxy.asked(), Vec::<String>::new());
}

#[test]
fn pages_are_fetched_through_the_proxy_and_private_addresses_are_not() {
    let company = Company::new();
    let fetch = |url: &str| company.run(&["call", "web", "fetch", &format!("url={url}")]).0;
    fetch(URL);
    assert!(company.proxy.asked().iter().any(|line| line == TUNNEL));
    for url in ["http://10.0.0.7/", "https://169.254.169.254/", "http://printer.local/", &company.url] {
        let output = fetch(url);
        assert!(output.contains("not allowed"), "{url}: {output}");
    }
    assert_eq!(company.proxy.asked(), Vec::<String>::new());
}
