//! Tokens that break one rule each.

use super::{encode, key, refusal, vectors};
use bowline_auth::jose::{Jws, MAX_TOKEN};

/// A token with this header, and the payload and signature of another.
fn with_header(header: &str) -> String {
    let token = vectors::token(vectors::ES256);
    let (_, rest) = token.split_once('.').unwrap();
    format!("{}.{rest}", encode(header))
}

fn check_header(header: &str, expected: &str) {
    assert_eq!(refusal(&with_header(header)), expected, "{header}");
}

#[test]
fn an_altered_token_does_not_verify() {
    let token = vectors::token(vectors::ES256);
    let key = key(&vectors::ec());
    assert!(Jws::parse(&token).unwrap().verify(&key).is_ok());
    let mut altered = 0;
    for position in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        bytes[position] = if bytes[position] == b'A' { b'B' } else { b'A' };
        let text = String::from_utf8(bytes).unwrap();
        let verdict = Jws::parse(&text).and_then(|jws| jws.verify(&key).map(<[u8]>::to_vec));
        altered += usize::from(verdict.is_err());
    }
    assert_eq!(altered, token.len());
}

#[test]
fn a_signature_of_another_length_does_not_verify() {
    let key = key(&vectors::ec());
    let (header, signature) = vectors::ES256;
    let zeros = encode([0; 64]);
    // Cut, extended, empty, all zeros, and the ASN.1 form that JWS does not use.
    for signature in [&signature[..84], &format!("{signature}AAAA"), "", &zeros, "MEUCIQDnx-xnxw"] {
        let token = vectors::token((header, signature));
        let error = Jws::parse(&token).unwrap().verify(&key).unwrap_err();
        assert!(error.is_signature(), "{signature}");
    }
}

#[test]
fn a_token_has_three_parts() {
    let token = vectors::token(vectors::ES256);
    let (signed, signature) = token.rsplit_once('.').unwrap();
    for text in [
        "",
        ".",
        "a",
        "a.b",
        signed,
        &format!("{token}.x"),
        &format!("{signed}.x.y.{signature}"),
        "...",
        "....",
    ] {
        assert_eq!(refusal(text), "the token does not have three parts", "{text}");
    }
    assert_eq!(
        refusal(".."),
        "the header is not a valid JSON object: EOF while parsing a value at line 1 column 0"
    );
    assert!(refusal(&format!(".{token}")).contains("three parts"));
}

#[test]
fn base64url_is_strict() {
    let token = vectors::token(vectors::ES256);
    let [header, payload, signature]: [&str; 3] = token.split('.').collect::<Vec<_>>().try_into().unwrap();
    for (text, part) in [
        (format!("{header}=.{payload}.{signature}"), "header"),
        (format!("{header}\n.{payload}.{signature}"), "header"),
        (format!(" {token}"), "header"),
        (format!("{header}.{payload}==.{signature}"), "payload"),
        (format!("{header}.+{payload}.{signature}"), "payload"),
        (format!("{header}.{payload}.{signature}=="), "signature"),
        (format!("{header}.{payload}.{signature}\n"), "signature"),
        // Two bits of the last character carry no data. Another character with the same data is not the same text.
        (format!("{header}.{payload}.{}R", &signature[..85]), "signature"),
        (format!("{header}.{payload}.{}", signature.replace('-', "+").replace('_', "/")), "signature"),
        (format!("{header}.{payload}.{signature}é"), "signature"),
    ] {
        assert_eq!(refusal(&text), format!("the {part} is not base64url without padding"), "{text}");
    }
}

#[test]
fn the_algorithm_comes_from_a_fixed_list() {
    for name in
        ["none", "None", "nOnE", "HS256", "HS384", "HS512", "ES512", "ES256K", "es256", "RSA-OAEP", "dir", ""]
    {
        check_header(&format!(r#"{{"alg":"{name}"}}"#), &format!("the algorithm `{name}` is not accepted"));
    }
    check_header("{}", "`alg` is missing");
    for value in ["null", "1", "true", "[\"ES256\"]", "{}"] {
        check_header(&format!(r#"{{"alg":{value}}}"#), "`alg` has the wrong type");
    }
    // Values of a peer are shortened and made printable.
    let long = format!(r#"{{"alg":"\u001b\n{}"}}"#, "x".repeat(100));
    check_header(&long, &format!("the algorithm `??{}` is not accepted", "x".repeat(38)));
}

#[test]
fn critical_extensions_are_refused() {
    for value in [r#"["exp"]"#, r#"["b64"]"#, "[]", "null", "\"x\"", "{}"] {
        check_header(
            &format!(r#"{{"alg":"ES256","crit":{value},"b64":false}}"#),
            "the token has critical extensions (`crit`), and none is supported",
        );
    }
}

#[test]
fn members_that_occur_twice_are_refused() {
    for (header, name) in [
        (r#"{"alg":"ES256","alg":"ES256"}"#, "alg"),
        (r#"{"alg":"none","alg":"ES256"}"#, "alg"),
        (r#"{"alg":"ES256","kid":"a","kid":"b"}"#, "kid"),
        (r#"{"alg":"ES256","typ":"JWT","\u0074yp":"JWT"}"#, "typ"),
        (r#"{"alg":"ES256","x":{"y":1,"y":2}}"#, "y"),
    ] {
        let refusal = refusal(&with_header(header));
        assert!(refusal.contains(&format!("`{name}` occurs twice")), "{header}: {refusal}");
    }
}

#[test]
fn members_of_the_wrong_type_are_refused() {
    for name in ["typ", "kid"] {
        for value in ["null", "1", "[]", "{}", "true"] {
            check_header(
                &format!(r#"{{"alg":"ES256","{name}":{value}}}"#),
                &format!("`{name}` has the wrong type"),
            );
        }
    }
}

#[test]
fn the_header_is_one_object_in_utf_8() {
    for header in ["", "null", "[]", "\"ES256\"", r#"{"alg":"ES256"} x"#, r#"{"alg":"ES256""#, "\u{feff}{}"] {
        assert!(
            refusal(&with_header(header)).starts_with("the header is not a valid JSON object: "),
            "{header}"
        );
    }
    let token = format!("{}.e30.AA", encode(b"{\"alg\":\"ES256\",\"x\":\"\xff\"}"));
    assert_eq!(refusal(&token), "the header is not a valid JSON object: it is not UTF-8");
}

#[test]
fn a_token_has_a_limit_in_bytes() {
    let token = vectors::token(vectors::ES256);
    let (header, rest) = token.split_once('.').unwrap();
    let (_, signature) = rest.split_once('.').unwrap();
    let room = MAX_TOKEN - header.len() - signature.len() - 2;
    let longest = format!("{header}.{}.{signature}", "A".repeat(room));
    assert_eq!(longest.len(), MAX_TOKEN);
    assert!(Jws::parse(&longest).is_ok());
    let longer = format!("{header}.{}.{signature}", "A".repeat(room + 1));
    assert_eq!(refusal(&longer), "the token is longer than 16384 bytes");
    assert_eq!(refusal(&"a".repeat(1_000_000)), "the token is longer than 16384 bytes");
}

#[test]
fn a_key_in_the_token_is_not_used() {
    // The header carries the key that made the signature, and the addresses of others.
    let jwk = vectors::ec();
    let header = format!(
        r#"{{"alg":"ES256","jwk":{jwk},"jku":"https://evil.example/k","x5u":"https://evil.example/c"}}"#
    );
    let token = with_header(&header);
    let other = serde_json::json!({
        "kty": "EC", "crv": "P-256",
        "x": "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs", "y": "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
    });
    let error = Jws::parse(&token).unwrap().verify(&key(&other)).unwrap_err();
    assert!(error.is_signature());
}

#[test]
fn a_type_is_compared_in_any_case_with_or_without_its_prefix() {
    let has = |typ: &str| {
        let token = with_header(&format!(r#"{{"alg":"ES256","typ":"{typ}"}}"#));
        Jws::parse(&token).unwrap().header().has_type(&["JWT", "at+jwt"])
    };
    for typ in ["JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt", "Application/At+Jwt"] {
        assert!(has(typ), "{typ}");
    }
    for typ in
        ["", "dpop+jwt", "at+jwt ", "x/at+jwt", "application/", "application/application/jwt", "jwt;v=1"]
    {
        assert!(!has(typ), "{typ}");
    }
}
