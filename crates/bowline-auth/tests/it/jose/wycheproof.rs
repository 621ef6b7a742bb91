//! The vectors of Project Wycheproof. `tests/wycheproof/run` downloads them and sets `BOWLINE_WYCHEPROOF` to their folder.

use super::encode;
use bowline_auth::jose::{Algorithm, PublicKey};
use serde_json::{Value, json};
use std::{env, fs, io::Write as _, path::Path};

const FILES: [(Algorithm, &[&str]); 9] = [
    (Algorithm::Es256, &["ecdsa_secp256r1_sha256_p1363"]),
    (Algorithm::Es384, &["ecdsa_secp384r1_sha384_p1363"]),
    (Algorithm::EdDsa, &["ed25519"]),
    (
        Algorithm::Rs256,
        &[
            "rsa_signature_2048_sha256",
            "rsa_signature_3072_sha256",
            "rsa_signature_4096_sha256",
            "rsa_signature_8192_sha256",
        ],
    ),
    (
        Algorithm::Rs384,
        &[
            "rsa_signature_2048_sha384",
            "rsa_signature_3072_sha384",
            "rsa_signature_4096_sha384",
            "rsa_signature_8192_sha384",
        ],
    ),
    (
        Algorithm::Rs512,
        &[
            "rsa_signature_2048_sha512",
            "rsa_signature_3072_sha512",
            "rsa_signature_4096_sha512",
            "rsa_signature_8192_sha512",
        ],
    ),
    (
        Algorithm::Ps256,
        &["rsa_pss_2048_sha256_mgf1_32", "rsa_pss_3072_sha256_mgf1_32", "rsa_pss_4096_sha256_mgf1_32"],
    ),
    (Algorithm::Ps384, &["rsa_pss_2048_sha384_mgf1_48", "rsa_pss_4096_sha384_mgf1_48"]),
    (Algorithm::Ps512, &["rsa_pss_4096_sha512_mgf1_64"]),
];

/// Vectors for parameters that JWS does not use (RFC 7518, 3.5: the salt is as long as the hash). What is valid there must not
/// verify here.
const FOREIGN: [(Algorithm, &str); 2] =
    [(Algorithm::Ps256, "rsa_pss_2048_sha256_mgf1_0"), (Algorithm::Ps512, "rsa_pss_4096_sha512_mgf1_32")];

#[derive(Debug, Default)]
struct Count {
    accepted: usize,
    refused: usize,
    /// Vectors for which both verdicts are allowed.
    either: usize,
}

#[test]
fn signatures_of_wycheproof_get_the_right_verdict() {
    let Some(folder) = env::var_os("BOWLINE_WYCHEPROOF") else {
        // As `bowline_testing::skip`, which this crate cannot use without building everything above it first.
        let line = "\nskipped: wycheproof: the vectors are not here; run tests/wycheproof/run\n";
        let _ = std::io::stderr().write_all(line.as_bytes());
        return;
    };
    let mut all = Count::default();
    for (algorithm, names) in FILES {
        for name in names {
            let count = check(Path::new(&folder), algorithm, name, |expected| expected);
            assert!(count.accepted > 0 && count.refused > 0, "{name}: {count:?}");
            all.accepted += count.accepted;
            all.refused += count.refused;
            all.either += count.either;
        }
    }
    for (algorithm, name) in FOREIGN {
        let count = check(Path::new(&folder), algorithm, name, |expected| {
            if expected == "valid" { "invalid" } else { "either" }
        });
        all.refused += count.refused;
    }
    let line =
        format!("wycheproof: {} accepted, {} refused, {} either\n", all.accepted, all.refused, all.either);
    let _ = std::io::stderr().write_all(line.as_bytes());
}

fn check<'a>(folder: &Path, algorithm: Algorithm, name: &str, expect: impl Fn(&'a str) -> &'a str) -> Count {
    let text = fs::read_to_string(folder.join(format!("{name}_test.json"))).unwrap();
    let document: &'a Value = Box::leak(Box::new(serde_json::from_str(&text).unwrap()));
    let mut count = Count::default();
    for group in document["testGroups"].as_array().unwrap() {
        let key = PublicKey::from_jwk(jwk(&group["publicKey"]).as_object().unwrap());
        for test in group["tests"].as_array().unwrap() {
            let (message, signature) = (hex(&test["msg"]), hex(&test["sig"]));
            let verified = key.as_ref().is_ok_and(|key| key.verify(algorithm, &message, &signature).is_ok());
            let about = format!("{name} {}: {}", test["tcId"], test["comment"]);
            match expect(test["result"].as_str().unwrap()) {
                "valid" => assert!(verified, "{about}"),
                "invalid" => assert!(!verified, "{about}"),
                _ => {
                    count.either += 1;
                    continue;
                }
            }
            count.accepted += usize::from(verified);
            count.refused += usize::from(!verified);
        }
    }
    count
}

/// The key of a group, as the JWK that an issuer would publish.
fn jwk(key: &Value) -> Value {
    if let Some(point) = key.get("uncompressed") {
        let point = hex(point);
        let (x, y) = point[1..].split_at(point.len() / 2);
        let curve = if x.len() == 32 { "P-256" } else { "P-384" };
        return json!({ "kty": "EC", "crv": curve, "x": encode(x), "y": encode(y) });
    }
    if let Some(key) = key.get("pk") {
        return json!({ "kty": "OKP", "crv": "Ed25519", "x": encode(hex(key)) });
    }
    let number = |name: &str| encode(hex(&key[name]));
    json!({ "kty": "RSA", "n": number("modulus"), "e": number("publicExponent") })
}

fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    let text = if text.len().is_multiple_of(2) { text.to_owned() } else { format!("0{text}") };
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
