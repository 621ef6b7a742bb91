//! The authorization server for development, request by request.

mod authorize;
mod clients;
mod tokens;

use bowline_auth::{
    Step, form,
    issuer::{AuthorizationServer, Moment},
    jose::{Claims, Jws, SigningKey},
};
use http::{Request, Response, StatusCode, header};
use serde_json::{Value, json};

const ISSUER: &str = "http://127.0.0.1:4000";
const RESOURCE: &str = "http://127.0.0.1:4000/mcp";
const REDIRECT: &str = "https://app.example/cb";
/// The verifier and the challenge of RFC 7636, B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// A server with a clock and a counter instead of randomness.
struct World {
    server: AuthorizationServer,
    now: u64,
    count: u64,
}

impl World {
    fn new() -> Self {
        Self::with(|server| server)
    }

    fn with(settings: impl FnOnce(AuthorizationServer) -> AuthorizationServer) -> Self {
        let server = AuthorizationServer::new(ISSUER, SigningKey::generate_es256().unwrap()).unwrap();
        Self { server: settings(server.resource(RESOURCE)), now: 1_800_000_000, count: 0 }
    }

    fn moment(&mut self) -> Moment {
        self.count += 1;
        let mut random = [0; 64];
        for (index, byte) in random.iter_mut().enumerate() {
            *byte = self.count.to_be_bytes()[index % 8];
        }
        Moment::new(self.now, random)
    }

    fn send(&mut self, request: &Request<Vec<u8>>) -> Response<Vec<u8>> {
        let moment = self.moment();
        match self.server.answer(request, &moment) {
            Step::Done(response) => response,
            Step::Fetch(request) => panic!("it wants {}", request.url),
        }
    }

    fn get(&mut self, target: &str) -> Response<Vec<u8>> {
        self.send(&Request::get(target).body(Vec::new()).unwrap())
    }

    fn post(&mut self, path: &str, parameters: &[(&str, &str)]) -> Response<Vec<u8>> {
        let request = Request::post(path).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        self.send(&request.body(encoded(parameters).into_bytes()).unwrap())
    }

    fn register(&mut self, body: &Value) -> Value {
        let request = Request::post("/register").body(body.to_string().into_bytes()).unwrap();
        let response = self.send(&request);
        assert_eq!(response.status(), StatusCode::CREATED, "{}", text(&response));
        json_of(&response)
    }

    /// Registers a public client with refresh tokens.
    fn client(&mut self) -> String {
        let registered = self.register(&json!({
            "client_name": "App", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
        }));
        registered["client_id"].as_str().unwrap().to_owned()
    }

    /// Asks for consent, agrees, and returns the parameters of the redirect.
    fn consent(&mut self, request: &[(&str, &str)], decision: &str) -> Vec<(String, String)> {
        let page = self.get(&format!("/authorize?{}", encoded(request)));
        assert_eq!(page.status(), StatusCode::OK, "{}", text(&page));
        let key = key_of(&page);
        let response = self.post("/authorize", &[("request", &key), ("user", "ada"), ("decision", decision)]);
        redirected(&response, REDIRECT)
    }

    fn code(&mut self, client: &str) -> String {
        let asked = self.consent(&asking(client), "allow");
        value(&asked, "code").unwrap().to_owned()
    }

    fn exchange(&mut self, client: &str, code: &str) -> Response<Vec<u8>> {
        self.post(
            "/token",
            &[
                ("grant_type", "authorization_code"),
                ("client_id", client),
                ("code", code),
                ("code_verifier", VERIFIER),
                ("redirect_uri", REDIRECT),
                ("resource", RESOURCE),
            ],
        )
    }

    fn refresh(&mut self, client: &str, token: &str) -> Response<Vec<u8>> {
        self.post(
            "/token",
            &[("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)],
        )
    }

    /// Logs in and returns the token response.
    fn log_in(&mut self, client: &str) -> Value {
        let code = self.code(client);
        let response = self.exchange(client, &code);
        assert_eq!(response.status(), StatusCode::OK, "{}", text(&response));
        json_of(&response)
    }

    /// The claims of an access token, verified with the published keys.
    fn claims(&mut self, tokens: &Value) -> Claims {
        let jws = Jws::parse(tokens["access_token"].as_str().unwrap()).unwrap();
        let keys = self.server.key_set();
        let key = keys.find(jws.header().algorithm(), jws.header().kid()).key().unwrap();
        Claims::parse(jws.verify(key).unwrap()).unwrap()
    }

    fn is_live(&mut self, tokens: &Value) -> bool {
        let claims = self.claims(tokens);
        let sid = claims.text("sid").unwrap().unwrap().to_owned();
        self.server.is_live(&sid, self.now)
    }
}

/// The parameters of a good authorization request.
fn asking(client: &str) -> Vec<(&str, &str)> {
    vec![
        ("client_id", client),
        ("redirect_uri", REDIRECT),
        ("response_type", "code"),
        ("code_challenge", CHALLENGE),
        ("code_challenge_method", "S256"),
        ("state", "s t"),
        ("scope", "notes:read notes:write"),
        ("resource", RESOURCE),
    ]
}

/// The same with one parameter replaced, or removed if the value is empty.
fn asking_with<'a>(client: &'a str, name: &'a str, value: &'a str) -> Vec<(&'a str, &'a str)> {
    let mut asking: Vec<_> = asking(client).into_iter().filter(|(known, _)| *known != name).collect();
    if !value.is_empty() {
        asking.push((name, value));
    }
    asking
}

fn encoded(parameters: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = parameters
        .iter()
        .map(|(name, value)| format!("{}={}", form::encode(name), form::encode(value)))
        .collect();
    pairs.join("&")
}

fn text(response: &Response<Vec<u8>>) -> String {
    String::from_utf8(response.body().clone()).unwrap()
}

fn json_of(response: &Response<Vec<u8>>) -> Value {
    serde_json::from_slice(response.body()).unwrap()
}

fn error_of(response: &Response<Vec<u8>>) -> String {
    json_of(response)["error"].as_str().unwrap_or_default().to_owned()
}

/// The key of a consent page.
fn key_of(page: &Response<Vec<u8>>) -> String {
    let page = text(page);
    let (_, rest) = page.split_once("name=\"request\" value=\"").expect("it is a consent page");
    rest.split('"').next().unwrap().to_owned()
}

/// The parameters of a redirect to `uri`.
fn redirected(response: &Response<Vec<u8>>, uri: &str) -> Vec<(String, String)> {
    assert_eq!(response.status(), StatusCode::SEE_OTHER, "{}", text(response));
    let location = response.headers()[header::LOCATION].to_str().unwrap();
    form::decode(location.strip_prefix(&format!("{uri}?")).expect("it goes to the client")).unwrap()
}

fn value<'a>(parameters: &'a [(String, String)], name: &str) -> Option<&'a str> {
    parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

proptest::proptest! {
    #[test]
    fn no_request_panics(query in "\\PC{0,200}", body in proptest::collection::vec(proptest::num::u8::ANY, 0..300)) {
        let mut world = World::new();
        let client = world.client();
        let encoded_query = form::encode(&query);
        for target in [
            format!("/authorize?{encoded_query}"),
            format!("/authorize?client_id={client}&redirect_uri={encoded_query}"),
            format!("/authorize?{}&state={encoded_query}&x={encoded_query}", encoded(&asking_with(&client, "state", ""))),
        ] {
            world.get(&target);
        }
        for path in ["/authorize", "/token", "/register", "/revoke", "/jwks"] {
            for kind in ["application/json", "application/x-www-form-urlencoded"] {
                let request = Request::post(path).header(header::CONTENT_TYPE, kind);
                world.send(&request.header(header::AUTHORIZATION, format!("Basic {encoded_query}")).body(body.clone()).unwrap());
                let request = Request::post(path).header(header::CONTENT_TYPE, kind);
                world.send(&request.body(query.clone().into_bytes()).unwrap());
            }
        }
    }
}
