//! Our side of the cross-check with npm `jose`: verifies its tokens, and signs tokens for it.

use bowline::{
    auth::{
        dpop::Proof,
        jose::{Algorithm, Jws, KeySet, PublicKey, SigningKey, client_assertion},
    },
    prelude::*,
};
use serde_json::{Value, json};
use std::io::{BufRead as _, Write as _};

/// Answers each line of standard input with one line.
pub(crate) fn answer_lines(answer: fn(&Value) -> Result<String, String>) -> Result<()> {
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line?)?;
        writeln!(output, "{}", answer(&request).unwrap_or_else(|reason| format!("refused: {reason}")))?;
    }
    Ok(())
}

/// Takes `keys` and `token`. Returns the payload if the token verifies.
pub(crate) fn verify(request: &Value) -> Result<String, String> {
    let keys = KeySet::parse(request["keys"].to_string().as_bytes()).map_err(text)?;
    let jws = Jws::parse(member(request, "token")?).map_err(text)?;
    let key = keys.find(jws.header().algorithm(), jws.header().kid()).key().ok_or("no key fits")?;
    let payload = jws.verify(key).map_err(text)?;
    Ok(String::from_utf8_lossy(payload).into_owned())
}

/// Takes `alg`, `pem`, `now`, and what the tokens are about. Without `pem`, the key is a new one. Returns everything that we sign,
/// and the public key.
pub(crate) fn sign(request: &Value) -> Result<String, String> {
    let algorithm = Algorithm::parse(member(request, "alg")?).ok_or("unknown algorithm")?;
    let key = match (&request["pem"], algorithm) {
        (Value::String(pem), _) => SigningKey::from_pem(pem),
        (_, Algorithm::EdDsa) => SigningKey::generate_ed25519(),
        _ => SigningKey::generate_es256(),
    };
    let key = key.and_then(|key| key.with_algorithm(algorithm)).map_err(text)?;
    let now = request["now"].as_u64().ok_or("`now` is missing")?;
    let random = |number: u8| {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&now.to_be_bytes());
        bytes[8] = number;
        bytes
    };
    let token = key.sign(json!({ "typ": "at+jwt", "kid": "k" }), request["claims"].clone()).map_err(text)?;
    let (client, issuer) = (member(request, "client")?, member(request, "issuer")?);
    let assertion = client_assertion(&key, Some("k"), client, issuer, now, &random(1)).map_err(text)?;
    let (url, nonce) = (member(request, "url")?, member(request, "nonce")?);
    let proof = Proof::new("POST", url).token(&token).nonce(Some(nonce));
    let proof = proof.sign(&key, now, &random(2)).map_err(text)?;
    let answer = json!({
        "token": token, "assertion": assertion, "proof": proof,
        "jwk": key.public().to_jwk(), "thumbprint": key.public().thumbprint(),
    });
    Ok(answer.to_string())
}

/// Takes a public key. Returns its thumbprint.
pub(crate) fn thumbprint(request: &Value) -> Result<String, String> {
    let jwk = request.as_object().ok_or("the key is not an object")?;
    Ok(PublicKey::from_jwk(jwk).map_err(text)?.thumbprint())
}

fn member<'a>(request: &'a Value, name: &str) -> Result<&'a str, String> {
    request[name].as_str().ok_or_else(|| format!("`{name}` is missing"))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
