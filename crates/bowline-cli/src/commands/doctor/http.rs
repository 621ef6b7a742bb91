//! Checks the HTTP behavior of a server, including its handling of invalid requests.

use super::{
    facts::{Facts, HttpFacts, HttpProbe, HttpProbeKind},
    finding::{Finding, Level},
};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for http in &facts.http {
        let judged = http.probes.iter().filter_map(|probe| evaluate(probe, http));
        for finding in judged.chain(readable(http)).chain(session(http)) {
            // Report findings that both eras share only once.
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    found
}

fn evaluate(probe: &HttpProbe, http: &HttpFacts) -> Option<Finding> {
    let status = match &probe.status {
        Ok(status) => *status,
        Err(reason) => {
            let what = format!("{}: no response: {reason}", asked(probe.kind));
            return Some(Finding::new(Level::Warning, "http-no-answer", what, "respond to every request"));
        }
    };
    let served = (200..300).contains(&status);
    let finding = |level, check, expected: &str, advice| {
        let what = format!("{}: expected {expected}, got {status}", asked(probe.kind));
        Some(Finding::new(level, check, what, advice))
    };
    // Nothing can be checked without credentials.
    if matches!(status, 401 | 407 | 429) {
        return None;
    }
    let here = if http.local { Level::Error } else { Level::Warning };
    match probe.kind {
        HttpProbeKind::ForeignOrigin if served => finding(
            here,
            "http-origin",
            "403",
            "reject unknown origins: otherwise any web page can use the server on behalf of the user",
        ),
        HttpProbeKind::ForeignOrigin if status != 403 => {
            finding(Level::Hint, "http-origin", "403", "reject unknown origins with 403")
        }
        HttpProbeKind::ForeignHost if served && http.local => finding(
            Level::Warning,
            "http-host",
            "403 or 421",
            "reject unknown `Host` headers: DNS rebinding bypasses the origin check",
        ),
        HttpProbeKind::PlainText if served => finding(
            here,
            "http-content-type",
            "415",
            "accept only `application/json`: web pages can send plain text to any origin without a preflight",
        ),
        HttpProbeKind::WrongAccept if served => {
            finding(Level::Hint, "http-accept", "406", "reject clients that do not accept the response type")
        }
        HttpProbeKind::WrongVersion if status != 400 => finding(
            Level::Warning,
            "http-version",
            "400",
            "reject unknown `MCP-Protocol-Version` headers with 400",
        ),
        HttpProbeKind::NotJson if status != 400 => {
            finding(Level::Warning, "http-not-json", "400", "return 400 with error -32700 in the body")
        }
        HttpProbeKind::UnknownSession if status != 404 => finding(
            if served { Level::Error } else { Level::Warning },
            "http-session",
            "404",
            "return 404: clients open a new session only then",
        ),
        HttpProbeKind::DeleteUnknownSession if served || status >= 500 => finding(
            Level::Hint,
            "http-delete",
            "404 or 405",
            "return 404 for an unknown session, or 405 if clients cannot end sessions",
        ),
        HttpProbeKind::Get
            if served
                && !probe
                    .content_type
                    .as_deref()
                    .is_some_and(|kind| kind.starts_with("text/event-stream")) =>
        {
            let what = "GET: response is not an event stream";
            Some(Finding::new(Level::Warning, "http-get", what, "return an event stream, or 405"))
        }
        HttpProbeKind::Get if status >= 500 => {
            finding(Level::Warning, "http-get", "an event stream or 405", "return an event stream, or 405")
        }
        _ => None,
    }
}

fn asked(kind: HttpProbeKind) -> &'static str {
    match kind {
        HttpProbeKind::ForeignOrigin => "request with a foreign `Origin`",
        HttpProbeKind::ForeignHost => "request with a foreign `Host`",
        HttpProbeKind::PlainText => "request with a plain text body",
        HttpProbeKind::WrongAccept => "request that accepts only images",
        HttpProbeKind::WrongVersion => "request with an unknown `MCP-Protocol-Version`",
        HttpProbeKind::NotJson => "request with invalid JSON",
        HttpProbeKind::UnknownSession => "request with an unknown session",
        HttpProbeKind::Get => "GET",
        HttpProbeKind::DeleteUnknownSession => "DELETE of an unknown session",
    }
}

/// Checks whether any web page can read the responses.
fn readable(http: &HttpFacts) -> Option<Finding> {
    let open = http.probes.iter().any(|probe| {
        probe.kind == HttpProbeKind::ForeignOrigin
            && probe.allowed_origin.as_deref().is_some_and(|allowed| allowed == "*")
    });
    let level = if http.local { Level::Warning } else { Level::Hint };
    let advice = "list the allowed origins in `Access-Control-Allow-Origin` instead of `*`";
    open.then(|| Finding::new(level, "http-cors", "every web page can read the responses", advice))
}

fn session(http: &HttpFacts) -> Option<Finding> {
    let session = http.session.as_ref()?;
    if !session.is_empty() && session.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) {
        let short = session.len() < 16;
        let advice = "session ids must not be guessable: use 128 random bits";
        return short
            .then(|| Finding::new(Level::Warning, "http-session-name", "session id is short", advice));
    }
    let advice = "use only visible ASCII characters";
    Some(Finding::new(Level::Error, "http-session-name", "session id contains invalid characters", advice))
}

#[cfg(test)]
mod tests {
    use super::{super::finding::summary_lines, *};
    use expect_test::{Expect, expect};

    fn probe(kind: HttpProbeKind, status: u16) -> HttpProbe {
        HttpProbe { kind, status: Ok(status), content_type: None, allowed_origin: None }
    }

    #[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
    fn check_one(local: bool, probe: HttpProbe, expected: Expect) {
        let mut facts = Facts::without_findings();
        facts.http = vec![HttpFacts { local, session: None, probes: vec![probe] }];
        expected.assert_eq(&summary_lines(&check(&facts)));
    }

    #[test]
    fn correct_rejections_have_no_findings() {
        let good = [
            (HttpProbeKind::ForeignOrigin, 403),
            (HttpProbeKind::ForeignHost, 421),
            (HttpProbeKind::PlainText, 415),
            (HttpProbeKind::WrongAccept, 406),
            (HttpProbeKind::WrongVersion, 400),
            (HttpProbeKind::NotJson, 400),
            (HttpProbeKind::UnknownSession, 404),
            (HttpProbeKind::DeleteUnknownSession, 405),
            (HttpProbeKind::Get, 405),
            (HttpProbeKind::ForeignOrigin, 401),
        ];
        for (kind, status) in good {
            check_one(true, probe(kind, status), expect![""]);
        }
        let stream = HttpProbe {
            content_type: Some("text/event-stream; charset=utf-8".into()),
            ..probe(HttpProbeKind::Get, 200)
        };
        check_one(true, stream, expect![""]);
    }

    // V-01 V-02 V-03
    #[test]
    fn attacks_through_a_browser_are_reported() {
        check_one(
            true,
            probe(HttpProbeKind::ForeignOrigin, 200),
            expect!["error http-origin: request with a foreign `Origin`: expected 403, got 200 []"],
        );
        check_one(
            false,
            probe(HttpProbeKind::ForeignOrigin, 200),
            expect!["warning http-origin: request with a foreign `Origin`: expected 403, got 200 []"],
        );
        check_one(
            true,
            probe(HttpProbeKind::ForeignHost, 200),
            expect!["warning http-host: request with a foreign `Host`: expected 403 or 421, got 200 []"],
        );
        check_one(false, probe(HttpProbeKind::ForeignHost, 200), expect![""]);
        check_one(
            true,
            probe(HttpProbeKind::PlainText, 202),
            expect!["error http-content-type: request with a plain text body: expected 415, got 202 []"],
        );
        let open = HttpProbe { allowed_origin: Some("*".into()), ..probe(HttpProbeKind::ForeignOrigin, 403) };
        check_one(true, open, expect!["warning http-cors: every web page can read the responses []"]);
    }

    #[test]
    fn missing_http_responses_are_reported() {
        check_one(
            true,
            probe(HttpProbeKind::UnknownSession, 200),
            expect!["error http-session: request with an unknown session: expected 404, got 200 []"],
        );
        check_one(
            true,
            probe(HttpProbeKind::UnknownSession, 400),
            expect!["warning http-session: request with an unknown session: expected 404, got 400 []"],
        );
        check_one(
            true,
            probe(HttpProbeKind::WrongVersion, 200),
            expect![
                "warning http-version: request with an unknown `MCP-Protocol-Version`: expected 400, got 200 []"
            ],
        );
        check_one(
            true,
            probe(HttpProbeKind::Get, 200),
            expect!["warning http-get: GET: response is not an event stream []"],
        );
        let lost = HttpProbe { status: Err("no response within 5 s".into()), ..probe(HttpProbeKind::Get, 0) };
        check_one(true, lost, expect!["warning http-no-answer: GET: no response: no response within 5 s []"]);
    }

    #[test]
    fn session_ids_are_checked() {
        let findings_for = |session: &str| {
            let mut facts = Facts::without_findings();
            facts.http = vec![HttpFacts { local: true, session: Some(session.into()), probes: Vec::new() }];
            summary_lines(&check(&facts))
        };
        assert_eq!(findings_for("0123456789abcdef"), "");
        assert_eq!(findings_for("7"), "warning http-session-name: session id is short []");
        assert!(findings_for("a b").starts_with("error http-session-name"));
    }
}
