//! Metadata and responses that lead elsewhere, or cost too much.

use super::world::World;
use bowline_http::auth::{LoggedOut, Login, Networks, Visit};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, atomic::Ordering};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
};

const RESOURCE: &str = "/.well-known/oauth-protected-resource/mcp";
const SERVER: &str = "/.well-known/oauth-authorization-server/one";

/// A login that visits the page, and whose response a test changes.
fn answering(world: &World, change: impl Fn(String) -> String + Clone + Send + Sync + 'static) -> Login {
    let world = world.clone();
    Login::with(move |visit: Visit| {
        let redirected = world.agree(&visit).map(change.clone());
        async move { redirected }
    })
}

#[tokio::test]
async fn v53_a_response_of_another_issuer_leads_to_no_token_request() {
    let world = World::new().await;
    let evil = bowline_auth::form::encode(&format!("{}/two", world.base));
    let honest = bowline_auth::form::encode(&format!("{}/one", world.base));
    for announced in [true, false] {
        let announces = json!(announced);
        world.state().metadata.insert("authorization_response_iss_parameter_supported".into(), announces);
        let iss = evil.clone();
        let login = answering(&world, move |url| format!("{url}&iss={iss}"));
        let error = world.connect(login).await.unwrap_err();
        assert!(error.to_string().contains("another authorization server"), "{error}");
        // The error of an attacker is not shown.
        let iss = evil.clone();
        let login = answering(&world, move |url| {
            format!("{}&iss={iss}", url.replace("code=", "error=canary&error_description="))
        });
        let error = world.connect(login).await.unwrap_err();
        assert!(!error.to_string().contains("canary"), "{error}");
    }
    assert_eq!((world.count("POST", "/one/token"), world.count("POST", "/two/token")), (0, 0));
    world.connect(answering(&world, move |url| format!("{url}&iss={honest}"))).await.unwrap();
}

#[tokio::test]
async fn v55_responses_of_two_logins_that_were_swapped_lead_to_no_token_request() {
    let world = World::new().await;
    let (to_first, from_second) = oneshot::channel();
    let (to_second, from_first) = oneshot::channel();
    let swapping = |to: oneshot::Sender<String>, from: oneshot::Receiver<String>| {
        let (world, ends) = (world.clone(), Arc::new(Mutex::new(Some((to, from)))));
        Login::with(move |visit: Visit| {
            let redirected = world.agree(&visit).unwrap();
            let (to, from) = ends.lock().unwrap().take().unwrap();
            async move {
                to.send(redirected).unwrap();
                from.await
            }
        })
    };
    let (first, second) = (swapping(to_second, from_second), swapping(to_first, from_first));
    let (first, second) = tokio::join!(world.connect(first), world.connect(second));
    for result in [first, second] {
        let error = result.unwrap_err();
        assert!(error.to_string().contains("does not belong to this login"), "{error}");
    }
    assert_eq!(world.count("POST", "/one/token"), 0);
}

#[tokio::test]
async fn v55_an_authorization_server_without_s256_gets_no_login() {
    let world = World::new().await;
    let client = world.connect(world.login()).await.unwrap();
    let methods = "code_challenge_methods_supported";
    for offered in [Value::Null, json!([]), json!(["plain"]), json!(["s256"])] {
        world.state().metadata.insert(methods.into(), offered);
        let error = world.connect(world.login()).await.unwrap_err();
        assert!(error.to_string().contains("PKCE with S256"), "{error}");
    }
    // It was announced at the first login, and is not any more.
    world.revoke_all();
    world.state().refresh_status = Some(400);
    let error = client.call("t", ()).await.unwrap_err();
    assert!(error.to_string().contains("PKCE with S256"), "{error}");
    assert_eq!(world.visits.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn v51_redirects_of_registration_and_revocation_are_not_followed() {
    let world = World::new().await;
    let stolen = format!("{}/stolen", world.base);
    world.state().redirects.insert("/one/register".into(), stolen.clone());
    let error = world.connect(world.login()).await.unwrap_err();
    assert!(error.to_string().contains("redirects"), "{error}");
    world.state().redirects.clear();
    let target = world.target(world.login());
    target.log_in().await.unwrap();
    world.state().redirects.insert("/one/revoke".into(), stolen);
    assert_eq!(target.log_out().await.unwrap(), LoggedOut::Deleted, "the revocation is not confirmed");
    assert_eq!(world.count("POST", "/one/revoke"), 1);
    assert_eq!(world.count("POST", "/stolen"), 0);
    assert_eq!(world.count("GET", "/stolen"), 0);
}

// proves: SEC-20
#[tokio::test]
async fn v50_metadata_that_redirects_to_another_origin_is_not_followed() {
    let world = World::new().await;
    let canary = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let elsewhere = format!("http://{}/internal", canary.local_addr().unwrap());
    for path in [RESOURCE, SERVER] {
        world.state().redirects.insert(path.into(), elsewhere.clone());
        world.connect(world.login()).await.unwrap_err();
        world.state().redirects.clear();
    }
    // An earlier connection would be accepted first.
    let own = TcpStream::connect(canary.local_addr().unwrap()).await.unwrap();
    let (_, accepted) = canary.accept().await.unwrap();
    assert_eq!(accepted, own.local_addr().unwrap(), "something else connected");
    assert_eq!(world.visits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn v58_metadata_that_redirects_in_a_circle_ends() {
    let world = World::new().await;
    world.state().redirects.insert(RESOURCE.into(), format!("{}{RESOURCE}", world.base));
    let error = world.connect(world.login()).await.unwrap_err();
    assert!(error.to_string().contains("redirects too often"), "{error}");
    assert_eq!(world.count("GET", RESOURCE), 4);
}

#[tokio::test]
async fn v15_metadata_that_is_too_long_deep_or_compressed_is_refused() {
    let world = World::new().await;
    let resource = format!("{}/mcp", world.base);
    let long = json!({ "resource": resource, "x": "x".repeat(1024 * 1024) }).to_string();
    let deep =
        format!("{{\"resource\":\"{resource}\",\"x\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let fine = json!({ "resource": resource, "authorization_servers": [format!("{}/one", world.base)] });
    for (headers, body) in
        [("", long), ("", deep), ("Content-Encoding: gzip\r\n", "\u{1f}\u{8b}\u{8}\0\0".to_owned())]
    {
        let shown = body.len();
        world.state().documents.insert(RESOURCE.into(), (headers, body));
        world.connect(world.login()).await.expect_err(&format!("{headers}, {shown} bytes"));
    }
    assert_eq!(world.visits.load(Ordering::SeqCst), 0);
    world.state().documents.insert(RESOURCE.into(), ("", fine.to_string()));
    world.connect(world.login()).await.unwrap();
}

#[tokio::test]
async fn v15_metadata_that_never_ends_fails_after_ten_seconds() {
    let world = World::new().await;
    for path in [RESOURCE, SERVER] {
        world.state().stalled = Some(path.into());
        let error = world.connect(world.login()).await.unwrap_err();
        tokio::time::resume();
        world.state().is_paused = false;
        assert!(error.to_string().contains("timed out after 10 s"), "{error}");
    }
    assert_eq!(world.visits.load(Ordering::SeqCst), 0);
}

/// A listener that nothing may connect to.
struct Untouched(TcpListener);

impl Untouched {
    async fn at(address: &str) -> Self {
        Self(TcpListener::bind((address, 0)).await.unwrap())
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }

    async fn check(&self, what: &str) {
        // An earlier connection would be accepted first.
        let mut address = self.0.local_addr().unwrap();
        if address.ip().is_unspecified() {
            address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
        }
        let own = TcpStream::connect(address).await.unwrap();
        let (_, accepted) = self.0.accept().await.unwrap();
        assert_eq!(accepted, own.local_addr().unwrap(), "{what}: something else connected");
    }
}

#[tokio::test]
async fn v50_no_learned_endpoint_leads_into_the_own_network() {
    // A program of one user may use the loopback addresses of a local server, but never the address that is all of them.
    let (local, all) = (Untouched::at("127.0.0.2").await, Untouched::at("0.0.0.0").await);
    let internal = format!("http://127.0.0.2:{}", local.port());
    let unspecified = format!("https://0.0.0.0:{}", all.port());
    for (networks, at, canary, reason) in [
        (Networks::Public, &internal, &local, "is a loopback address"),
        (Networks::Desktop, &unspecified, &all, "is an unspecified address"),
        (Networks::Desktop, &"https://169.254.169.254".to_owned(), &all, "is a link-local address"),
    ] {
        for member in ["registration_endpoint", "token_endpoint", "device_authorization_endpoint"] {
            let world = World::new().await;
            world.state().metadata.insert(member.into(), json!(format!("{at}/internal")));
            let device = || Login::device(|_| {});
            let login = if member.starts_with("device") { device() } else { world.login() };
            let error = world.connect(login.networks(networks)).await.unwrap_err();
            assert!(error.to_string().contains(reason), "{member} at {at}: {error}");
            canary.check(member).await;
        }
        // The authorization server itself.
        let world = World::new().await;
        let resource = format!("{}/mcp", world.base);
        let document = json!({ "resource": resource, "authorization_servers": [at] });
        world.state().documents.insert(RESOURCE.into(), ("", document.to_string()));
        let error = world.connect(world.login().networks(networks)).await.unwrap_err();
        assert!(error.to_string().contains(reason), "issuer at {at}: {error}");
        canary.check("issuer").await;
        // The revocation: the tokens are deleted here, and are not sent there.
        let world = World::new().await;
        world.state().metadata.insert("revocation_endpoint".into(), json!(format!("{at}/internal")));
        let target = world.target(world.login().networks(networks));
        target.log_in().await.unwrap();
        assert_eq!(target.log_out().await.unwrap(), LoggedOut::Deleted);
        canary.check("revocation").await;
    }
}

#[tokio::test]
async fn v50_a_metadata_url_of_a_challenge_leads_nowhere_else() {
    let canary = Untouched::at("127.0.0.2").await;
    let world = World::new().await;
    // The challenge names the path of the server, which names another host in its metadata.
    let elsewhere = format!("http://127.0.0.2:{}/mcp", canary.port());
    let document = json!({ "resource": elsewhere, "authorization_servers": [format!("{}/one", world.base)] });
    world.state().documents.insert(RESOURCE.into(), ("", document.to_string()));
    world.connect(world.login()).await.unwrap_err();
    canary.check("resource").await;
    assert_eq!(world.visits.load(Ordering::SeqCst), 0);
}

/// Compresses a text and `spaces` spaces after it, in one block with fixed codes (RFC 1951, 3.2.6).
fn gzip(text: &str, spaces: usize) -> Vec<u8> {
    struct Bits(Vec<u8>, u32);
    impl Bits {
        fn push(&mut self, bit: bool) {
            if self.1.is_multiple_of(8) {
                self.0.push(0);
            }
            *self.0.last_mut().unwrap() |= u8::from(bit) << (self.1 % 8);
            self.1 += 1;
        }
        /// Codes have their first bit first.
        fn code(&mut self, code: u32, length: u32) {
            (0..length).rev().for_each(|place| self.push(code >> place & 1 == 1));
        }
    }
    let mut bits = Bits(vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255], 0);
    // The last block, with fixed codes.
    for bit in [true, true, false] {
        bits.push(bit);
    }
    for byte in text.bytes().chain([b' ']) {
        bits.code(0x30 + u32::from(byte), 8);
    }
    // 258 bytes from one byte back.
    for _ in 0..spaces / 258 {
        bits.code(0b1100_0101, 8);
        bits.code(0, 5);
    }
    // The end of the block.
    bits.code(0, 7);
    let mut crc = u32::MAX;
    let plain = text.bytes().chain(std::iter::repeat_n(b' ', 1 + spaces / 258 * 258));
    let mut length = 0_u32;
    for byte in plain {
        length += 1;
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        }
    }
    let mut bytes = bits.0;
    bytes.extend((!crc).to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes
}

#[tokio::test]
async fn v15_compressed_metadata_is_not_decompressed() {
    let world = World::new().await;
    let resource = format!("{}/mcp", world.base);
    let fine = json!({ "resource": resource, "authorization_servers": [format!("{}/one", world.base)] });
    // Both are correct documents for a client that decompresses: one of them with 4 MiB.
    for spaces in [0, 4 * 1024 * 1024] {
        let body = gzip(&fine.to_string(), spaces);
        assert!(body.len() < 512 * 1024, "the limit of the length does not explain a failure");
        world.state().compressed.insert(RESOURCE.into(), body);
        world.connect(world.login()).await.expect_err(&format!("{spaces} spaces"));
    }
    assert_eq!(world.visits.load(Ordering::SeqCst), 0);
    let asked = |(_, path, head): &(String, String, String)| path == RESOURCE && head.contains("ncoding");
    assert!(!world.state().heads.iter().any(asked), "no encoding is accepted");
}

#[tokio::test]
async fn v15_metadata_that_drips_fails_after_ten_seconds() {
    let world = World::new().await;
    for path in [RESOURCE, SERVER, "/one/register"] {
        world.state().dripping = Some(path.into());
        let error = world.connect(world.login()).await.unwrap_err();
        tokio::time::resume();
        world.state().is_paused = false;
        assert!(error.to_string().contains("timed out after 10 s"), "{path}: {error}");
    }
    assert_eq!(world.visits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn v15_every_response_of_an_authorization_server_has_a_limit() {
    for path in [SERVER, "/one/register", "/one/token"] {
        let world = World::new().await;
        let long = json!({
            "issuer": format!("{}/one", world.base), "client_id": "a", "access_token": "a", "token_type": "Bearer",
            "authorization_endpoint": format!("{}/one/authorize", world.base),
            "token_endpoint": format!("{}/one/token", world.base),
            "code_challenge_methods_supported": ["S256"], "x": "x".repeat(1024 * 1024),
        });
        world.state().documents.insert(path.into(), ("", long.to_string()));
        let error = world.connect(world.login()).await.unwrap_err();
        assert!(error.to_string().contains("bytes"), "{path}: {error}");
    }
}
