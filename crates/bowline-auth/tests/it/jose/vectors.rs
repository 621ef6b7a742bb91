//! The examples of RFC 7515, 7638, 8037 and 9449.

use super::{encode, key, refusal, rfc_keys};
use bowline_auth::jose::{Algorithm, Claims, Found, Jws, PublicKey};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::time::Duration;

/// The payload of RFC 7515, A.1 to A.3.
const JOE: &str =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

/// RFC 7515, A.3.
pub(super) const ES256: (&str, &str) = (
    "eyJhbGciOiJFUzI1NiJ9",
    "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
);

/// RFC 7515, A.2.
const RS256: (&str, &str) = (
    "eyJhbGciOiJSUzI1NiJ9",
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZc\
     AcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOk\
     HWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
);

pub(super) fn ec() -> Value {
    json!({
        "kty": "EC", "crv": "P-256", "kid": "ec", "use": "sig",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    })
}

pub(super) fn rsa() -> Value {
    json!({
        "kty": "RSA", "kid": "rsa", "e": "AQAB",
        "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-p\
              CgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2Cap\
              Hg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54\
              h4FRWyuXpoQ",
    })
}

/// RFC 8037, A.2.
pub(super) fn ed25519() -> Value {
    json!({ "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo" })
}

pub(super) fn token((header, signature): (&str, &str)) -> String {
    format!("{header}.{JOE}.{signature}")
}

#[test]
fn the_signed_examples_of_rfc_7515_are_valid() {
    let keys = rfc_keys();
    for (example, algorithm) in [(ES256, Algorithm::Es256), (RS256, Algorithm::Rs256)] {
        let token = token(example);
        let jws = Jws::parse(&token).unwrap();
        assert_eq!(jws.header().algorithm(), algorithm);
        let key = keys.find(algorithm, None).key().unwrap();
        let claims = Claims::parse(jws.verify(key).unwrap()).unwrap();
        assert_eq!(claims.text("iss"), Ok(Some("joe")));
        assert_eq!(claims.time("exp"), Ok(Some(Duration::from_secs(1_300_819_380))));
        assert_eq!(claims.get("http://example.com/is_root"), Some(&Value::Bool(true)));
    }
}

#[test]
fn the_other_examples_of_rfc_7515_use_algorithms_that_are_not_accepted() {
    // A.1: HS256. A.4: ES512. A.5: none, with an empty signature.
    let hs256 = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9";
    assert_eq!(
        refusal(&token((hs256, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"))),
        "the algorithm `HS256` is not accepted"
    );
    assert_eq!(
        refusal(&token(("eyJhbGciOiJFUzUxMiJ9", "AdwMgeerwtHoh"))),
        "the algorithm `ES512` is not accepted"
    );
    assert_eq!(refusal(&token(("eyJhbGciOiJub25lIn0", ""))), "the algorithm `none` is not accepted");
}

#[test]
fn the_examples_of_rfc_8037_are_valid() {
    let token = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
                 hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    let jws = Jws::parse(token).unwrap();
    assert_eq!(jws.verify(&key(&ed25519())).unwrap(), b"Example of Ed25519 signing");
    assert_eq!(key(&ed25519()).thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

#[test]
fn the_thumbprint_of_rfc_7638_is_computed() {
    let jwk = json!({
        "kty": "RSA", "e": "AQAB", "alg": "RS256", "kid": "2011-04-29",
        "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3okn\
              jhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6\
              qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8a\
              wapJzKnqDKgw",
    });
    assert_eq!(key(&jwk).thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
}

#[test]
fn the_proof_of_rfc_9449_is_valid() {
    let proof = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscE\
                 JoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.e\
                 yJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0I\
                 joxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg";
    let jws = Jws::parse(proof).unwrap();
    assert!(jws.header().has_type(&["dpop+jwt"]));
    let key = PublicKey::from_jwk(jws.header().member("jwk").unwrap().as_object().unwrap()).unwrap();
    let claims = Claims::parse(jws.verify(&key).unwrap()).unwrap();
    assert_eq!(claims.text("htu"), Ok(Some("https://server.example.com/token")));
    // Section 6.1.
    assert_eq!(key.thumbprint(), "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I");
    // Section 7.1: `ath`.
    let token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU";
    assert_eq!(encode(digest(&SHA256, token.as_bytes())), "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
}

#[test]
fn a_key_of_another_kind_never_verifies() {
    let keys = rfc_keys();
    for kid in ["ec", "rsa", "ed"] {
        let fitting =
            Algorithm::ALL.into_iter().filter(|algorithm| keys.find(*algorithm, Some(kid)).key().is_some());
        let fitting: Vec<&str> = fitting.map(Algorithm::name).collect();
        let expected = match kid {
            "ec" => vec!["ES256"],
            "rsa" => vec!["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
            _ => vec!["EdDSA"],
        };
        assert_eq!(fitting, expected, "{kid}");
    }
    let token = token(ES256);
    let jws = Jws::parse(&token).unwrap();
    let error = jws.verify(&key(&rsa())).unwrap_err();
    assert_eq!(error.to_string(), "the key cannot be used with the algorithm `ES256`");
    assert!(!error.is_signature());
    assert_eq!(keys.find(Algorithm::Es256, Some("rsa")), Found::Unfit);
}
