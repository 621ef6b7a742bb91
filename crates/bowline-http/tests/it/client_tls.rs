//! Servers behind TLS: reached over both versions of HTTP, and only when their certificate is good.

use bowline_client::{Client, Error};
use bowline_http::{HttpService, Post, PostError, Poster, http};
use bowline_server::{Ctx, Server, Tool};
use bowline_types::Revision;
use http::Version;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair},
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use std::sync::{Arc, Mutex};
use tokio::{io::AsyncWriteExt, net::TcpListener, task::JoinHandle};
use tokio_rustls::TlsAcceptor;
use tower_service::Service;

/// One value of DER: a tag, a length, and what is in it.
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut out = vec![tag];
    match u8::try_from(content.len()) {
        Ok(short) if short < 0x80 => out.push(short),
        Ok(byte) => out.extend([0x81, byte]),
        Err(_) => {
            out.push(0x82);
            out.extend(u16::try_from(content.len()).unwrap().to_be_bytes());
        }
    }
    out.extend(content);
    out
}

const SEQUENCE: u8 = 0x30;
const OID: u8 = 0x06;

/// A certificate for `localhost` that vouches for itself, and its key.
fn certificate() -> (Vec<u8>, Vec<u8>) {
    let random = SystemRandom::new();
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.as_ref(), &random).unwrap();
    let ecdsa_with_sha256 = der(SEQUENCE, &[&der(OID, &[&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2]])]);
    let common_name = der(SEQUENCE, &[&der(OID, &[&[0x55, 4, 3]]), &der(0x0c, &[b"bowline test"])]);
    let name = der(SEQUENCE, &[&der(0x31, &[&common_name])]);
    let validity = der(SEQUENCE, &[&der(0x18, &[b"20200101000000Z"]), &der(0x18, &[b"29991231235959Z"])]);
    let algorithm = der(
        SEQUENCE,
        &[
            &der(OID, &[&[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1]]),
            &der(OID, &[&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]]),
        ],
    );
    let public_key = der(SEQUENCE, &[&algorithm, &der(0x03, &[&[0], pair.public_key().as_ref()])]);
    let names = der(SEQUENCE, &[&der(0x82, &[b"localhost"])]);
    let alternative = der(SEQUENCE, &[&der(OID, &[&[0x55, 0x1d, 0x11]]), &der(0x04, &[&names])]);
    let extensions = der(0xa3, &[&der(SEQUENCE, &[&alternative])]);
    let version = der(0xa0, &[&der(0x02, &[&[2]])]);
    let serial = der(0x02, &[&[1]]);
    let signed = der(
        SEQUENCE,
        &[&version, &serial, &ecdsa_with_sha256, &name, &validity, &name, &public_key, &extensions],
    );
    let signature = pair.sign(&random, &signed).unwrap();
    let signature = der(0x03, &[&[0], signature.as_ref()]);
    (der(SEQUENCE, &[&signed, &ecdsa_with_sha256, &signature]), key.as_ref().to_vec())
}

/// A server behind TLS.
struct Site {
    port: u16,
    certificate: Vec<u8>,
    /// The versions of HTTP that requests came by.
    versions: Arc<Mutex<Vec<Version>>>,
    serving: JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn site(protocols: &[&[u8]]) -> Site {
    let (certificate, key) = certificate();
    let chain = vec![CertificateDer::from(certificate.clone())];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let steps = Tool::new("steps").handler(|ctx: Ctx| async move {
        ctx.progress(1.0, 2.0);
        "done"
    });
    let endpoint = HttpService::new(Server::new("secret").tool(steps)).unwrap();
    let versions: Arc<Mutex<Vec<Version>>> = Arc::default();
    let seen = Arc::clone(&versions);
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, endpoint, seen) = (acceptor.clone(), endpoint.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service =
                    hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
                        seen.lock().unwrap().push(request.version());
                        endpoint.clone().call(request)
                    });
                let serving = auto::Builder::new(TokioExecutor::new());
                drop(serving.serve_connection(TokioIo::new(stream), service).await);
            });
        }
    });
    Site { port, certificate, versions, serving }
}

#[tokio::test]
async fn a_server_with_a_trusted_certificate_is_reached() {
    for (protocols, version) in [
        (&[&b"h2"[..], b"http/1.1"][..], Version::HTTP_2),
        (&[b"http/1.1"], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let site = site(protocols).await;
        for revision in Revision::ALL {
            let target = http(format!("https://localhost:{}/mcp", site.port)).trust(site.certificate.clone());
            let client = Client::builder().revisions([revision]).connect(target).await.unwrap();
            let received = Arc::new(Mutex::new(0));
            let count = Arc::clone(&received);
            let call = client.call("steps", ()).progress(move |_| *count.lock().unwrap() += 1);
            assert_eq!(call.await.unwrap().text(), "done");
            assert_eq!(*received.lock().unwrap(), 1);
            client.close().await;
        }
        let versions = site.versions.lock().unwrap();
        assert!(versions.iter().all(|seen| *seen == version), "{versions:?}");
    }
}

async fn refused(url: &str, trusted: Vec<u8>) -> Error {
    Client::connect(http(url).trust(trusted)).await.unwrap_err()
}

#[tokio::test]
async fn a_server_with_another_certificate_is_not() {
    let site = site(&[]).await;
    let (other, _) = certificate();
    let error = refused(&format!("https://localhost:{}/mcp", site.port), other).await;
    assert!(error.is_unreachable() && error.to_string().contains("certificate"), "{error}");
    // A good certificate, but for another name.
    let error = refused(&format!("https://127.0.0.1:{}/mcp", site.port), site.certificate.clone()).await;
    assert!(error.is_unreachable() && error.to_string().contains("certificate"), "{error}");
    assert!(site.versions.lock().unwrap().is_empty());
    let error = refused("https://localhost/", b"no certificate".to_vec()).await;
    assert!(!error.is_closed(), "{error}");
}

#[tokio::test]
async fn a_plain_http_request_follows_the_same_rules() {
    for (protocols, version) in [(&[&b"h2"[..]][..], Version::HTTP_2), (&[], Version::HTTP_11)] {
        let site = site(protocols).await;
        let url = format!("https://localhost:{}/other", site.port);
        let post = |poster: Poster| {
            let url = url.clone();
            async move { poster.post(&url, http::HeaderMap::new(), bytes::Bytes::from_static(b"{}")).await }
        };
        let answer = post(Poster::new().trust(site.certificate.clone())).await.unwrap();
        assert!(answer.status.is_client_error(), "{answer:?}");
        assert_eq!(*site.versions.lock().unwrap(), [version]);
        let error = post(Poster::new().trust(certificate().0)).await.unwrap_err();
        assert!(
            matches!(&error, PostError::Unreachable(reason) if reason.contains("certificate")),
            "{error}"
        );
        let error = post(Poster::new().trust(b"no certificate".to_vec())).await.unwrap_err();
        assert!(matches!(error, PostError::Misuse(_)), "{error}");
        assert_eq!(site.versions.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_server_without_tls_is_not_reached_by_an_https_url() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/mcp", listener.local_addr().unwrap().port());
    let plain = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await);
        }
    });
    let error = refused(&url, certificate().0).await;
    assert!(error.is_unreachable(), "{error}");
    plain.abort();
}
