//! When the keys of an issuer are fetched, and how long they are used.

use crate::{
    Issuer,
    jose::KeySet,
    url::{PlainHttp, Url, check_learned},
};
use serde_json::Value;
use std::sync::Arc;

/// Keys are fetched again after this time if the issuer does not say when, in seconds.
const LIFETIME: u64 = 600;
/// The shortest and the longest time that an issuer can ask for.
const LIFETIMES: std::ops::RangeInclusive<u64> = 60..=86_400;
/// Keys that cannot be fetched again are used for this long, in seconds.
const MAX_STALE: u64 = 86_400;
/// A key that is not known, and a refresh that failed, lead to at most one fetch in this time, in seconds.
const RETRY: u64 = 30;
/// Without any keys no token can be verified, so the next attempt comes sooner.
const RETRY_WITHOUT_KEYS: u64 = 5;

/// The keys of an issuer and their age. Time is an argument, in seconds since the Unix epoch.
#[derive(Debug, Default)]
pub struct KeyCache {
    held: Option<Held>,
    attempted: Option<u64>,
    generation: u64,
}

#[derive(Debug)]
struct Held {
    keys: Arc<KeySet>,
    fetched: u64,
    lifetime: u64,
}

/// What to do before a token is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// The keys are fresh.
    Use(Arc<KeySet>),
    /// The keys are old but usable: use them, and fetch new ones meanwhile.
    UseAndFetch(Arc<KeySet>),
    /// There are no usable keys: fetch them first.
    Fetch,
    /// There are no usable keys, and the last attempt failed moments ago.
    Unavailable,
}

impl KeyCache {
    /// Returns what to do at `now`.
    #[must_use]
    pub fn plan(&self, now: u64) -> Plan {
        match &self.held {
            Some(held) if held.age(now) < held.lifetime => Plan::Use(Arc::clone(&held.keys)),
            Some(held) if held.age(now) < MAX_STALE => {
                let keys = Arc::clone(&held.keys);
                if self.may_fetch(now, RETRY) { Plan::UseAndFetch(keys) } else { Plan::Use(keys) }
            }
            _ if self.may_fetch(now, RETRY_WITHOUT_KEYS) => Plan::Fetch,
            _ => Plan::Unavailable,
        }
    }

    /// Returns whether a token with an unknown key may cause a fetch at `now`.
    #[must_use]
    pub fn may_fetch_unknown(&self, now: u64) -> bool {
        self.may_fetch(now, RETRY)
    }

    /// Returns whether the last attempt was long enough ago. A clock that was set back must not stop fetches, so the distance
    /// counts, not the order.
    fn may_fetch(&self, now: u64, interval: u64) -> bool {
        self.attempted.is_none_or(|attempted| now.abs_diff(attempted) >= interval)
    }

    /// Records that a fetch starts.
    pub fn start(&mut self, now: u64) {
        self.attempted = Some(now);
    }

    /// Records what was fetched. `cache_control` is the header of the response.
    pub fn store(&mut self, keys: KeySet, cache_control: Option<&str>, now: u64) {
        let lifetime = lifetime(cache_control);
        let keys = match self.held.take() {
            Some(held) if *held.keys == keys => held.keys,
            _ => {
                self.generation += 1;
                Arc::new(keys)
            }
        };
        self.held = Some(Held { keys, fetched: now, lifetime });
    }

    /// Returns a number that grows with each change of the keys.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }
}

impl Held {
    fn age(&self, now: u64) -> u64 {
        now.abs_diff(self.fetched)
    }
}

/// Returns how long keys are fresh, from the header `Cache-Control` (RFC 9111, 5.2).
fn lifetime(cache_control: Option<&str>) -> u64 {
    let mut lifetime = LIFETIME;
    for directive in cache_control.unwrap_or_default().split(',') {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => return *LIFETIMES.start(),
            "max-age" => lifetime = value.trim().trim_matches('"').parse().unwrap_or(lifetime),
            _ => {}
        }
    }
    lifetime.clamp(*LIFETIMES.start(), *LIFETIMES.end())
}

/// Reads `jwks_uri` from a document at one of [`Issuer::metadata_urls`]. `None` if there is no document, so the next URL counts.
///
/// Fails if the document is of another issuer, if the server is in trouble, or if the URL is not usable: without TLS, only a
/// loopback issuer may name a loopback URL.
pub fn read_jwks_uri(issuer: &Issuer, status: u16, body: &[u8]) -> Result<Option<String>, String> {
    match status {
        200 => {}
        429 | 500.. => return Err(format!("the metadata of {issuer} is not available (status {status})")),
        400.. => return Ok(None),
        _ => return Err(format!("the metadata of {issuer} cannot be read (status {status})")),
    }
    let Ok(document) = serde_json::from_slice::<Value>(body) else { return Ok(None) };
    if document.get("issuer").and_then(Value::as_str) != Some(issuer.as_str()) {
        return Err(format!("the metadata of {issuer} names another issuer"));
    }
    let Some(uri) = document.get("jwks_uri").and_then(Value::as_str) else {
        return Err(format!("the metadata of {issuer} has no `jwks_uri`"));
    };
    check_source(issuer, uri)?;
    Ok(Some(uri.to_owned()))
}

/// Checks the URL of a document from which keys are learned.
pub fn check_source(issuer: &Issuer, url: &str) -> Result<(), String> {
    let is_loopback = Url::split(issuer.as_str()).is_ok_and(|issuer| issuer.is_loopback());
    let plain_http = if is_loopback { PlainHttp::Loopback } else { PlainHttp::Refused };
    check_learned(&format!("the source of the keys of {issuer}"), url, plain_http)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jose::{PublicKey, SigningKey};

    fn keys(number: u8) -> KeySet {
        thread_local!(static KEY: PublicKey = SigningKey::generate_ed25519().unwrap().public().clone());
        KeySet::of(Some(&number.to_string()), KEY.with(Clone::clone))
    }

    fn fetched(cache_control: Option<&str>) -> KeyCache {
        let mut cache = KeyCache::default();
        assert_eq!(cache.plan(1000), Plan::Fetch);
        cache.start(1000);
        cache.store(keys(1), cache_control, 1000);
        cache
    }

    #[test]
    fn fresh_keys_are_used_and_old_ones_fetched_again_meanwhile() {
        let mut cache = fetched(None);
        let held = Arc::new(keys(1));
        assert_eq!(cache.plan(1000), Plan::Use(Arc::clone(&held)));
        assert_eq!(cache.plan(1599), Plan::Use(Arc::clone(&held)));
        assert_eq!(cache.plan(1600), Plan::UseAndFetch(Arc::clone(&held)));
        // One attempt per 30 s, while the issuer is down.
        cache.start(1600);
        assert_eq!(cache.plan(1629), Plan::Use(Arc::clone(&held)));
        assert_eq!(cache.plan(1630), Plan::UseAndFetch(Arc::clone(&held)));
        cache.store(keys(1), None, 1640);
        assert_eq!(cache.plan(2239), Plan::Use(held));
    }

    #[test]
    fn keys_serve_for_a_day_after_the_issuer_went_away() {
        let mut cache = fetched(None);
        cache.start(87_390);
        assert_eq!(cache.plan(87_399), Plan::Use(Arc::new(keys(1))));
        assert_eq!(cache.plan(87_400), Plan::Fetch);
        cache.start(87_400);
        assert_eq!(cache.plan(87_404), Plan::Unavailable);
        assert_eq!(cache.plan(87_405), Plan::Fetch);
    }

    #[test]
    fn unknown_keys_cause_at_most_one_fetch_in_30_seconds() {
        let mut cache = fetched(None);
        assert!(!cache.may_fetch_unknown(1000));
        assert!(!cache.may_fetch_unknown(1029));
        assert!(cache.may_fetch_unknown(1030));
        cache.start(1030);
        assert!(!cache.may_fetch_unknown(1059));
        assert!(cache.may_fetch_unknown(1060));
    }

    #[test]
    fn a_clock_that_was_set_back_stops_nothing() {
        let cache = fetched(None);
        assert!(cache.may_fetch_unknown(500));
        assert_eq!(cache.plan(399), Plan::UseAndFetch(Arc::new(keys(1))));
    }

    #[test]
    fn the_generation_grows_only_when_the_keys_change() {
        let mut cache = fetched(None);
        assert_eq!(cache.generation(), 1);
        cache.store(keys(1), None, 1600);
        assert_eq!(cache.generation(), 1);
        cache.store(keys(2), None, 2200);
        assert_eq!(cache.generation(), 2);
    }

    #[test]
    fn the_issuer_chooses_a_lifetime_between_a_minute_and_a_day() {
        for (header, expected) in [
            (None, 600),
            (Some("public"), 600),
            (Some("max-age=3600"), 3600),
            (Some("public, Max-Age = \"120\" , must-revalidate"), 120),
            (Some("max-age=1"), 60),
            (Some("max-age=99999999"), 86_400),
            (Some("max-age=-5"), 600),
            (Some("max-age=99999999999999999999999"), 600),
            (Some("no-cache, max-age=3600"), 60),
            (Some("no-store"), 60),
            (Some("s-maxage=7000"), 600),
        ] {
            assert_eq!(lifetime(header), expected, "{header:?}");
        }
    }

    fn read(issuer: &str, status: u16, body: &str) -> Result<Option<String>, String> {
        read_jwks_uri(&Issuer::new(issuer).unwrap(), status, body.as_bytes())
    }

    #[test]
    fn the_keys_are_where_the_metadata_of_the_same_issuer_says() {
        let body = r#"{"issuer":"https://as.example","jwks_uri":"https://keys.example/k"}"#;
        assert_eq!(read("https://as.example", 200, body), Ok(Some("https://keys.example/k".to_owned())));
        for (issuer, body) in [
            ("https://as.example/", body),
            ("https://as.example", r#"{"issuer":"https://as.example/","jwks_uri":"https://k"}"#),
            ("https://as.example", r#"{"jwks_uri":"https://k"}"#),
            ("https://as.example", r#"{"issuer":1,"jwks_uri":"https://k"}"#),
            ("https://as.example", "[]"),
        ] {
            assert!(
                read(issuer, 200, body).unwrap_err().ends_with("names another issuer"),
                "{issuer} {body}"
            );
        }
        let missing = read("https://as.example", 200, r#"{"issuer":"https://as.example"}"#).unwrap_err();
        assert_eq!(missing, "the metadata of https://as.example has no `jwks_uri`");
    }

    #[test]
    fn an_absent_document_is_not_a_broken_one() {
        for (status, body) in [(404, ""), (400, ""), (401, "{}"), (410, ""), (200, "<html>"), (200, "")] {
            assert_eq!(read("https://as.example", status, body), Ok(None), "{status}");
        }
        for status in [429, 500, 502, 503, 599, 302, 204] {
            read("https://as.example", status, "").unwrap_err();
        }
    }

    #[test]
    fn keys_come_over_tls_or_stay_on_the_machine() {
        let read = |issuer: &str, uri: &str| {
            read(issuer, 200, &format!(r#"{{"issuer":"{issuer}","jwks_uri":"{uri}"}}"#))
        };
        for (issuer, uri) in [
            ("https://as.example", "https://as.example/k"),
            ("http://127.0.0.1:9400", "http://localhost:9400/k"),
            ("http://localhost:9400", "https://as.example/k"),
        ] {
            assert_eq!(read(issuer, uri), Ok(Some(uri.to_owned())));
        }
        for (issuer, uri) in [
            ("https://as.example", "http://as.example/k"),
            ("https://as.example", "http://127.0.0.1/k"),
            ("http://localhost:9400", "http://as.example/k"),
            ("https://as.example", "file:///etc/passwd"),
            ("https://as.example", "https://u:p@as.example/k"),
            ("https://as.example", "/k"),
        ] {
            assert!(read(issuer, uri).is_err(), "{issuer} {uri}");
        }
    }
}
