//! Sets of public keys.

use super::{encode, vectors};
use bowline_auth::jose::{Algorithm, Found, KeySet, MAX_KEY_SET, MAX_KEYS};
use serde_json::{Value, json};

fn parse(keys: &[Value]) -> KeySet {
    KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

/// The key of RFC 7515, A.3, with other members.
fn ec_with(members: &[(&str, Value)]) -> Value {
    with(vectors::ec(), members)
}

fn with(mut jwk: Value, members: &[(&str, Value)]) -> Value {
    for (name, value) in members {
        jwk[*name] = value.clone();
    }
    jwk
}

/// Checks that a key is skipped for this reason and does no harm to the key beside it.
fn check_skipped(jwk: &Value, reason: &str) {
    let set = parse(&[jwk.clone(), with(vectors::ed25519(), &[("kid", json!("good"))])]);
    let reasons: Vec<String> = set.skipped().iter().map(ToString::to_string).collect();
    assert_eq!(reasons, [reason], "{jwk}");
    assert_eq!(set.len(), 1);
    assert!(set.find(Algorithm::EdDsa, Some("good")).key().is_some());
}

#[test]
fn use_and_operations_of_a_key_are_respected() {
    for members in [
        &[][..],
        &[("use", json!("sig"))],
        &[("key_ops", json!(["verify"]))],
        &[("key_ops", json!(["sign", "verify"]))],
        &[("alg", json!("ES256"))],
    ] {
        assert_eq!(parse(&[ec_with(members)]).len(), 1, "{members:?}");
    }
    check_skipped(&ec_with(&[("use", json!("enc"))]), "the key is for `enc`, not for signatures");
    check_skipped(&ec_with(&[("use", json!("SIG"))]), "the key is for `SIG`, not for signatures");
    check_skipped(&ec_with(&[("use", json!(1))]), "`use` has the wrong type");
    for operations in [json!([]), json!(["sign"]), json!(["Verify"]), json!(["encrypt", 1])] {
        let reason = "the key is not usable: `key_ops` does not contain `verify`";
        check_skipped(&ec_with(&[("key_ops", operations)]), reason);
    }
    check_skipped(&ec_with(&[("key_ops", json!("verify"))]), "`key_ops` has the wrong type");
}

#[test]
fn the_algorithm_of_a_key_binds_it() {
    let set = parse(&[with(vectors::rsa(), &[("alg", json!("RS256"))])]);
    assert!(set.find(Algorithm::Rs256, Some("rsa")).key().is_some());
    for algorithm in [Algorithm::Rs384, Algorithm::Ps256, Algorithm::Es256] {
        assert_eq!(set.find(algorithm, Some("rsa")), Found::Unfit, "{algorithm}");
    }
    check_skipped(&ec_with(&[("alg", json!("RS256"))]), "the key cannot be used with the algorithm `RS256`");
    check_skipped(&ec_with(&[("alg", json!("HS256"))]), "the algorithm `HS256` is not accepted");
    check_skipped(&ec_with(&[("alg", json!("ECDH-ES"))]), "the algorithm `ECDH-ES` is not accepted");
    check_skipped(&ec_with(&[("alg", Value::Null)]), "`alg` has the wrong type");
    // RFC 9864 names the curve.
    assert_eq!(parse(&[with(vectors::ed25519(), &[("alg", json!("Ed25519"))])]).len(), 1);
}

#[test]
fn symmetric_and_private_keys_are_skipped() {
    check_skipped(
        &json!({ "kty": "oct", "k": "AyM1SysPpbyDfgZld3umj1qzKObwVMko" }),
        "the key contains the private member `k`",
    );
    check_skipped(&json!({ "kty": "oct" }), "the key is not usable: `kty` is none of EC, OKP and RSA");
    for name in ["d", "p", "q", "dp", "dq", "qi", "oth"] {
        check_skipped(
            &ec_with(&[(name, json!("AQ"))]),
            &format!("the key contains the private member `{name}`"),
        );
    }
}

#[test]
fn keys_that_cannot_be_read_are_skipped() {
    check_skipped(&json!(1), "the key is not usable: it is not an object");
    check_skipped(&json!({ "kid": "ec" }), "`kty` is missing");
    check_skipped(&ec_with(&[("kty", json!(1))]), "`kty` has the wrong type");
    check_skipped(&ec_with(&[("kid", json!(1))]), "`kid` has the wrong type");
    for curve in ["P-521", "secp256k1", "p-256", ""] {
        check_skipped(
            &ec_with(&[("crv", json!(curve))]),
            "the key is not usable: the curve is neither P-256 nor P-384",
        );
    }
    check_skipped(&ec_with(&[("x", json!("f83O="))]), "the x is not base64url without padding");
    check_skipped(
        &ec_with(&[("x", json!(encode([1; 33])))]),
        "the key is not usable: a coordinate is too long",
    );
    check_skipped(&ec_with(&[("y", json!(""))]), "the key is not usable: a coordinate is empty");
    let okp = |name: &str, value: &str| with(vectors::ed25519(), &[(name, json!(value))]);
    check_skipped(&okp("crv", "Ed448"), "the key is not usable: the curve is not Ed25519");
    check_skipped(&okp("crv", "X25519"), "the key is not usable: the curve is not Ed25519");
    check_skipped(&okp("x", &encode([1; 31])), "the key is not usable: `x` does not have 32 bytes");
    check_skipped(&okp("x", &encode([1; 33])), "the key is not usable: `x` does not have 32 bytes");
}

#[test]
fn rsa_keys_have_2048_to_8192_bits_and_an_odd_exponent() {
    let rsa = |modulus: &[u8], exponent: &[u8]| json!({ "kty": "RSA", "n": encode(modulus), "e": encode(exponent) });
    let number = |bytes: usize, first: u8| {
        let mut number = vec![0xff; bytes];
        number[0] = first;
        number
    };
    let three = [1, 0, 1];
    for modulus in [number(256, 0x80), number(1024, 0xff), [vec![0; 3], number(256, 0x80)].concat()] {
        assert_eq!(parse(&[rsa(&modulus, &three)]).len(), 1, "{}", modulus.len());
    }
    let few = "the key is not usable: the RSA modulus has fewer than 2048 bits";
    for modulus in [number(256, 0x7f), number(128, 0xff), vec![], vec![0; 300]] {
        check_skipped(&rsa(&modulus, &three), few);
    }
    let many = "the key is not usable: the RSA modulus has more than 8192 bits";
    check_skipped(&rsa(&number(1025, 1), &three), many);
    let exponent = "the key is not usable: invalid RSA exponent";
    for e in [&[][..], &[0], &[1], &[2], &[1, 0, 0], &[1, 0, 0, 0, 1]] {
        check_skipped(&rsa(&number(256, 0x80), e), exponent);
    }
    assert_eq!(parse(&[rsa(&number(256, 0x80), &[0, 3])]).len(), 1);
}

#[test]
fn coordinates_without_their_leading_zeros_are_the_same_key() {
    let x = [&[0, 0][..], &[7; 30]].concat();
    let keys = |x: &[u8]| parse(&[ec_with(&[("x", json!(encode(x)))])]);
    assert_eq!(keys(&x), keys(&x[2..]));
    assert_ne!(keys(&x), keys(&[&x[2..], &[0, 0]].concat()));
}

#[test]
fn a_token_is_matched_by_its_key_id() {
    let set = parse(&[vectors::ec(), vectors::rsa(), vectors::ed25519()]);
    assert!(set.find(Algorithm::Es256, Some("ec")).key().is_some());
    assert_eq!(set.find(Algorithm::Es256, Some("EC")), Found::Unknown);
    assert_eq!(set.find(Algorithm::Es256, Some("")), Found::Unknown);
    assert_eq!(set.find(Algorithm::Es256, Some("../../ec")), Found::Unknown);
    assert_eq!(set.find(Algorithm::Es256, Some("ed")), Found::Unfit);
    // A key without a name is not found by one.
    let mut nameless = vectors::ec();
    nameless.as_object_mut().unwrap().remove("kid");
    assert_eq!(parse(&[nameless]).find(Algorithm::Es256, Some("ec")), Found::Unknown);
    assert_eq!(KeySet::default().find(Algorithm::Es256, None), Found::Unknown);
}

#[test]
fn a_token_without_key_id_needs_exactly_one_key_that_fits() {
    let set = parse(&[vectors::ec(), vectors::rsa()]);
    assert!(set.find(Algorithm::Es256, None).key().is_some());
    assert_eq!(set.find(Algorithm::EdDsa, None), Found::Unknown);
    let set = parse(&[vectors::ec(), ec_with(&[("kid", json!("other"))])]);
    assert_eq!(set.find(Algorithm::Es256, None), Found::Ambiguous);
    assert!(set.find(Algorithm::Es256, Some("other")).key().is_some());
    // The same name twice: the algorithm decides, and if it cannot, nothing does.
    let rsa = with(vectors::rsa(), &[("kid", json!("ec"))]);
    let set = parse(&[vectors::ec(), rsa]);
    assert!(set.find(Algorithm::Es256, Some("ec")).key().is_some());
    assert!(set.find(Algorithm::Ps256, Some("ec")).key().is_some());
    assert_eq!(parse(&[vectors::ec(), vectors::ec()]).find(Algorithm::Es256, Some("ec")), Found::Ambiguous);
}

#[test]
fn a_set_has_limits() {
    let refusal = |text: &str| KeySet::parse(text.as_bytes()).unwrap_err().to_string();
    let set = |count| json!({ "keys": vec![vectors::ed25519(); count] }).to_string();
    assert_eq!(KeySet::parse(set(MAX_KEYS).as_bytes()).unwrap().len(), MAX_KEYS);
    assert_eq!(refusal(&set(MAX_KEYS + 1)), "the key set has more than 100 keys");
    let padded = |length: usize| {
        let text = set(1);
        format!("{}{}", text, " ".repeat(length - text.len()))
    };
    assert_eq!(KeySet::parse(padded(MAX_KEY_SET).as_bytes()).unwrap().len(), 1);
    assert_eq!(refusal(&padded(MAX_KEY_SET + 1)), "the key set is longer than 262144 bytes");
    assert_eq!(refusal("{}"), "`keys` is missing");
    assert_eq!(refusal(r#"{"keys":{}}"#), "`keys` has the wrong type");
    assert!(refusal("[]").starts_with("the key set is not a valid JSON object"));
    assert!(refusal("<html>").starts_with("the key set is not a valid JSON object"));
    assert!(refusal(r#"{"keys":[],"keys":[]}"#).contains("`keys` occurs twice"));
    assert!(refusal(r#"{"keys":[{"kty":"EC","kty":"RSA"}]}"#).contains("`kty` occurs twice"));
}
