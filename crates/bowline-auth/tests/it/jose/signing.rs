//! Tokens that our own keys sign.

use bowline_auth::jose::{Algorithm, Claims, Jws, PublicKey, SigningKey};
use serde_json::json;

/// Test keys from `openssl genpkey`; they protect nothing.
pub(crate) const RSA: &str = "\
-----BEGIN PRIVATE KEY-----\n\
MIIEuwIBADANBgkqhkiG9w0BAQEFAASCBKUwggShAgEAAoIBAQDM4YvGJgQE6zDY\n\
wc5p3c7Z8h/Qm53Poa8u8XqHQuoB0xpJ7MMDuBNafwlzRQEqxmcsyGju5u4j7g5n\n\
4LO6lpWXRB6QA26Vn3o/F2ciA4KALFwPK57MvOTuawkYR6CQlCz2rPvXA8XgraaQ\n\
PSUjZUytjtwG5K/wraK5DZ1X1DH6Mk/YjVJe09Czwp8BTl9OFVx/P7ihchfJFGDo\n\
KYEP8dCd29mX+TO1nJmGI551kx6UyVH9L7BFyDdM7OKZUjQdhqa2mB+mLFnDXrya\n\
QeN0tQBJcv//mccFRrlmYSFCTPMQA1rNNUkkfzNBTdpEFtQJ8V9U7CGzqjaTQgRa\n\
Ro/LXTwxAgMBAAECggEAAJAOBjlMgYbz12SQ4JGPY+HaXIRQ5qUXChX3tC9m3SJr\n\
TBCuaHA0/Waj7AEgg7GPzvut7hoMRWT9/SMM21JWjtfNDbA0uYx6lXnG+rzvutJk\n\
XlZMVVufdVgt6jcoJb2Cchr/hhOok3lmn7bLR1Gb6E4gJJS0NwEDFWcIK5mVmY5Q\n\
j55gj9zPZyPhux9Jui96N1fLSoiIvy5TqpMQQME/Y4irYqRZTiqMkjxvwBZDSbV1\n\
u6rS7J6/9AJPF8+zURViwfASELlG0JRIeJMXVXLAuMp9C89AeZ+7f7Hll4rRbvwo\n\
VOtfo4BcmXjL7INIP+QexwcKtU/ybZ49vc8nP6aZAQKBgQDsIqqN8Eis6L14x9XU\n\
t1eI/JXjdQRp6vYK1y9qDLQX4+Ox64jPC7BQDh7/quuaFkfz7EoMlPiMxGlMmrbL\n\
n8H0TW9yZnxvkJ+oDpbSnayIq6NpS05e6IZ6CI6e8Qir4thhwXWTwFqloErBzZgl\n\
V9301i0AhSo8rKnQkJaXQylsCQKBgQDeHcvBPxS3xlk+ZYhmXCOnrVDAy/c8frmT\n\
XL0uBsu9TcwuV3vYja+BPbImlJdXBfmgusWCWRjOboqNSkdQnucOZSL7w3euq38C\n\
QlXc33F4Q+lrnR19n0zfeEglP53plv5u+xnv4Uw7YHLjZo6qLrSZN+R7s0HEeY28\n\
P+GqlqSo6QKBgQCNp8IvAe1nJPu9AAyL3iy59eSpHeK284gEOtCrytEi38gRTN22\n\
bymm7MG12EAcIK+raZ2GbLuqHo2YsdtkzgLZXrazpz2Q4+6TL6VU1dfR6T1PhiiO\n\
kOlTPdzpBmmQS7ZI9nhlWWhHoaAXIRHbnRl+rhkzDa+n1GDOyF4+gcDQmQJ/FbDT\n\
NQvz+f5kuLMxns1grf8+45UHj+DQPpPP5a7ENrhiOCRS89LiULy1qQ7ZuKXcutWC\n\
dDg/M+mXnjSiwjzCU6WMxQlRpr0Yqh/QQsGPUy9OnDO7rYjg+PHGGd0cjrMwJaZf\n\
4g0eZK4Gii55wCTPfib3KR1YTteP/9I9N2t+qQKBgD/fG2FqkMhqLhh7GGtjcbim\n\
p5gItPmdWycpuOD+psfGnV7qS+Og+0aY8PuqbPGDB2uT1/yUUBm0WwUfTorqc/1A\n\
OwkIfmbCPxTNvRBtnzQZka9cSggsOF0GXzv+goI3VRYG9GrVnoeyp7ZWbTUEl0ps\n\
gsfkea9k0w0kMaDseoR7\n\
-----END PRIVATE KEY-----\n\
";
const P256: &str = "\
-----BEGIN PRIVATE KEY-----\n\
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgcfX2TyLtAukyqRs3\n\
jXABnzBfTIH/EndLWxkUJwcbRpuhRANCAARhHOTV3P5Ylxzgjw2/6xZjc0K8yT43\n\
eS8CleH3mr4xLVzyJUVi4BDzgq+KRDPyLyHVqy0zH8TN0I3zPTT5kLDj\n\
-----END PRIVATE KEY-----\n\
";
const P384: &str = "\
-----BEGIN PRIVATE KEY-----\n\
MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDD96vSR1Ibu11f6t0Bd\n\
RV5uEvJhcl+YEB82rMPjNy6gfrhkt8UVUkByVCUfLiYpyVShZANiAASR7cIoVbyo\n\
+byIzdcJxxT1cpsKWEYA37aFdFv/M6usCKfUP9c8a0Nn6HHei/HyooLAhqm0jlaV\n\
5UNAVMdkKeXufqO9Qr0HoKTBFEzwoMADcpvVvRhA3G36Itnk2H3KrtY=\n\
-----END PRIVATE KEY-----\n\
";
const ED25519: &str = "\
-----BEGIN PRIVATE KEY-----\n\
MC4CAQAwBQYDK2VwBCIEIFDc4+7OQ2u54O9PqRPEOrUyy63tWFBAII494HaPyxKU\n\
-----END PRIVATE KEY-----\n\
";

fn check(key: &SigningKey) {
    let token = key.sign(json!({ "typ": "JWT", "alg": "none" }), json!({ "sub": "ada" })).unwrap();
    let jws = Jws::parse(&token).unwrap();
    assert_eq!(jws.header().algorithm(), key.algorithm());
    let claims = Claims::parse(jws.verify(key.public()).unwrap()).unwrap();
    assert_eq!(claims.text("sub"), Ok(Some("ada")));
    // The public key survives its form as JWK.
    assert_eq!(&PublicKey::from_jwk(&key.public().to_jwk()).unwrap(), key.public());
    let other = SigningKey::generate_es256().unwrap();
    assert!(jws.verify(other.public()).is_err());
}

#[test]
fn every_algorithm_signs_and_verifies() {
    for (pem, algorithm) in [(P256, Algorithm::Es256), (P384, Algorithm::Es384), (ED25519, Algorithm::EdDsa)]
    {
        let key = SigningKey::from_pem(pem).unwrap();
        assert_eq!(key.algorithm(), algorithm);
        check(&key);
    }
    assert_eq!(SigningKey::from_pem(RSA).unwrap().algorithm(), Algorithm::Rs256);
    for algorithm in &Algorithm::ALL[2..8] {
        check(&SigningKey::from_pem(RSA).unwrap().with_algorithm(*algorithm).unwrap());
    }
}

#[test]
fn new_keys_differ_and_survive_storage() {
    for generate in [SigningKey::generate_es256, SigningKey::generate_ed25519] {
        let key = generate().unwrap();
        check(&key);
        assert_ne!(generate().unwrap().public(), key.public());
        let restored = SigningKey::from_pkcs8(key.pkcs8()).unwrap();
        assert_eq!(restored.public(), key.public());
        assert_eq!(restored.algorithm(), key.algorithm());
    }
}

#[test]
fn a_key_signs_only_with_algorithms_that_fit() {
    let error = SigningKey::from_pem(P256).unwrap().with_algorithm(Algorithm::Rs256).unwrap_err();
    assert_eq!(error.to_string(), "the key cannot be used with the algorithm `RS256`");
    SigningKey::from_pem(RSA).unwrap().with_algorithm(Algorithm::EdDsa).unwrap_err();
}

#[test]
fn a_key_that_cannot_be_read_says_what_to_do() {
    let sec1 = P256.replace("PRIVATE KEY", "EC PRIVATE KEY");
    for pem in ["", "secret", &sec1] {
        let error = SigningKey::from_pem(pem).unwrap_err().to_string();
        assert!(error.ends_with("convert it with `openssl pkcs8 -topk8 -nocrypt`"), "{error}");
    }
    let error = SigningKey::from_pkcs8(b"\x30\x00").unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot use the private key: it is not a P-256, P-384, Ed25519 or RSA key that can be used"
    );
}

#[test]
fn a_private_key_is_not_shown() {
    assert_eq!(format!("{:?}", SigningKey::from_pem(P256).unwrap()), "SigningKey(ES256, ***)");
}
