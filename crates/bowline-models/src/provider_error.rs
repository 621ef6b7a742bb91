//! Reads errors of providers, and decides whether to retry.

use super::error::SampleErrorKind;
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use std::time::Duration;

/// The number of characters of a text that are shown.
const SHOWN: usize = 400;
/// The number of bytes of a text that are read.
const READ: usize = 4_096;

/// An error in the body of a response, in any of the common formats.
#[derive(Debug, Default)]
pub(super) struct ProviderError {
    message: String,
    kind: Option<String>,
    code: Option<String>,
    param: Option<String>,
}

impl ProviderError {
    /// Parses a body. A body of unknown format is used as the message.
    pub(super) fn read(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(Value::Object(object)) => {
                // The formats are `{"error": {…}}`, `{"error": "message"}`, and all members at the top.
                let inner = object.get("error").unwrap_or(&Value::Null);
                let top = Value::Object(object.clone());
                let holder = if inner.is_object() { inner } else { &top };
                let text = |key: &str| match holder.get(key) {
                    Some(Value::String(text)) => Some(text.clone()),
                    Some(Value::Number(number)) => Some(number.to_string()),
                    _ => None,
                };
                let words = inner.as_str().map(str::to_owned);
                let message = words.or_else(|| text("message")).or_else(|| text("detail"));
                let message = message.unwrap_or_else(|| top.to_string());
                Self { message, kind: text("type"), code: text("code"), param: text("param") }
            }
            _ => Self { message: String::from_utf8_lossy(body).into_owned(), ..Self::default() },
        }
    }

    /// Returns the error in a response with a success status, as some gateways send it.
    pub(super) fn in_success(body: &[u8]) -> Option<Self> {
        #[derive(serde::Deserialize)]
        struct Failure {
            error: Value,
        }
        let failure: Failure = serde_json::from_slice(body).ok()?;
        (!failure.error.is_null()).then(|| Self::read(body))
    }

    /// Returns the message on one short line, with secrets removed by `scrub`.
    pub(super) fn line(&self, scrub: impl Fn(&str) -> String) -> String {
        let kind = self.code.as_deref().or(self.kind.as_deref()).unwrap_or_default();
        match kind {
            "" => one_line(&self.message, scrub),
            kind => one_line(&format!("{kind}: {}", self.message), scrub),
        }
    }

    /// Returns whether the model does not support this parameter.
    pub(super) fn rejects(&self, parameter: &str) -> bool {
        let message = self.message.to_ascii_lowercase();
        let unsupported = ["not support", "unsupported", "deprecated", "unrecognized", "unknown parameter"];
        if !unsupported.iter().any(|word| message.contains(word)) {
            return false;
        }
        if let Some(param) = &self.param {
            return param == parameter;
        }
        // The first quoted name is the rejected parameter; a second one may be the suggested replacement.
        let first = message.split(['\'', '`', '"']).nth(1);
        first.or_else(|| message.split(' ').next()) == Some(parameter)
    }

    /// Returns whether the user has no credit left, so that retries are useless.
    fn is_out_of_credit(&self) -> bool {
        let is = |text: &Option<String>| {
            matches!(
                text.as_deref(),
                Some("insufficient_quota" | "billing_hard_limit_reached" | "billing_error")
            )
        };
        is(&self.kind) || is(&self.code)
    }
}

/// Shortens a foreign text to one line, with secrets removed by `scrub`.
pub(super) fn one_line(text: &str, scrub: impl Fn(&str) -> String) -> String {
    let start: String = text.chars().take(READ).collect();
    let clean = scrub(&start);
    let words = clean.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let mut line = words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(SHOWN) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// Returns the error kind of a status.
pub(super) fn error_kind(status: StatusCode, provider_error: &ProviderError) -> SampleErrorKind {
    match status.as_u16() {
        300..=399 => SampleErrorKind::Redirected,
        401 | 403 => SampleErrorKind::Unauthorized,
        404 => SampleErrorKind::NoModel,
        429 => SampleErrorKind::Limited,
        503 | 529 => SampleErrorKind::Overloaded,
        _ if provider_error.kind.as_deref() == Some("overloaded_error") => SampleErrorKind::Overloaded,
        408 | 500..=599 => SampleErrorKind::Failed,
        400..=499 => SampleErrorKind::Refused,
        _ => SampleErrorKind::Malformed,
    }
}

/// Returns the delay that the provider requests, in any of the common formats except dates.
fn requested_delay(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| -> Option<f64> { headers.get(name)?.to_str().ok()?.trim().parse().ok() };
    let delay = number("retry-after-ms").map(|value| value / 1000.0).or_else(|| number("retry-after"))?;
    // A delay that does not fit into a `Duration` is too long in any case.
    (delay >= 0.0).then(|| Duration::try_from_secs_f64(delay).unwrap_or(Duration::MAX))
}

/// Whether and when to retry after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// Do not retry.
    Never,
    /// Retry after our own delay.
    Soon,
    /// Retry after at least this delay.
    After(Duration),
}

/// Decides how to continue after failure number `attempt`, starting at 0.
pub(super) fn retry(
    kind: SampleErrorKind,
    provider_error: &ProviderError,
    headers: &HeaderMap,
    attempt: u32,
    retries: u32,
) -> Retry {
    let most = match kind {
        SampleErrorKind::Limited if provider_error.is_out_of_credit() => 0,
        SampleErrorKind::Limited => retries.min(1),
        SampleErrorKind::Overloaded | SampleErrorKind::Failed => retries,
        _ => 0,
    };
    let forbidden = headers.get("x-should-retry").is_some_and(|value| value == "false");
    if attempt >= most || forbidden {
        return Retry::Never;
    }
    requested_delay(headers).map_or(Retry::Soon, Retry::After)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_every_form_are_read() {
        for (body, line) in [
            (
                r#"{"error":{"message":"The model `x` does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}"#,
                "model_not_found: The model `x` does not exist",
            ),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#,
                "overloaded_error: Overloaded",
            ),
            (r#"{"error":"model 'x' not found"}"#, "model 'x' not found"),
            (
                r#"{"object":"error","message":"too long","type":"BadRequestError","code":400}"#,
                "400: too long",
            ),
            (r#"{"detail":"Not Found"}"#, "Not Found"),
            (r#"{"odd":1}"#, r#"{"odd":1}"#),
            ("<h1>\r\n Bad\tGateway</h1>\u{7}", "<h1> Bad Gateway</h1>"),
            ("", ""),
        ] {
            assert_eq!(ProviderError::read(body.as_bytes()).line(str::to_owned), line);
        }
        let long = ProviderError::read("ü".repeat(1000).as_bytes()).line(str::to_owned);
        assert_eq!(long.chars().count(), SHOWN + 1);
    }

    #[test]
    fn an_error_in_a_success_is_found() {
        assert!(ProviderError::in_success(br#"{"error":{"message":"no","code":502}}"#).is_some());
        assert!(ProviderError::in_success(br#"{"choices":[],"error":null}"#).is_none());
        assert!(ProviderError::in_success(b"{}").is_none());
    }

    #[test]
    fn delays_are_read_in_all_their_forms() {
        let check = |name: &'static str, value: &str, expected: Option<Duration>| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(requested_delay(&headers), expected, "{name}: {value}");
        };
        check("retry-after", "3", Some(Duration::from_secs(3)));
        check("retry-after", " 0.5 ", Some(Duration::from_millis(500)));
        check("retry-after-ms", "250", Some(Duration::from_millis(250)));
        check("retry-after", "1e300", Some(Duration::MAX));
        check("retry-after", "inf", Some(Duration::MAX));
        check("retry-after", "-1", None);
        check("retry-after", "NaN", None);
        check("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT", None);
    }

    #[test]
    fn only_temporary_failures_are_retried() {
        let check = |status: u16, body: &str, attempt: u32, expected: Retry| {
            let provider_error = ProviderError::read(body.as_bytes());
            let kind = error_kind(StatusCode::from_u16(status).unwrap(), &provider_error);
            assert_eq!(
                retry(kind, &provider_error, &HeaderMap::new(), attempt, 2),
                expected,
                "{status} {attempt}"
            );
        };
        for status in [500, 502, 503, 504, 529, 408] {
            check(status, "", 0, Retry::Soon);
            check(status, "", 1, Retry::Soon);
            check(status, "", 2, Retry::Never);
        }
        check(429, "", 0, Retry::Soon);
        check(429, "", 1, Retry::Never);
        check(429, r#"{"error":{"message":"no credit","code":"insufficient_quota"}}"#, 0, Retry::Never);
        for status in [302, 400, 401, 403, 404, 413, 422] {
            check(status, "", 0, Retry::Never);
        }
        let headers = HeaderMap::from_iter([("x-should-retry".parse().unwrap(), "false".parse().unwrap())]);
        let kind = SampleErrorKind::Failed;
        assert_eq!(retry(kind, &ProviderError::default(), &headers, 0, 2), Retry::Never);
    }
}
