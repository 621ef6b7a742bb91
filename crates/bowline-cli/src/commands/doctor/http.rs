//! Whether a server speaks HTTP as it should, also to those who do not.

use super::{
    facts::{Facts, HttpFacts, HttpProbe, HttpProbeKind},
    finding::{Finding, Level},
};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for http in &facts.http {
        let judged = http.probes.iter().filter_map(|probe| judge(probe, http));
        for finding in judged.chain(readable(http)).chain(session(http)) {
            // What is the same in both eras is told once.
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    found
}

fn judge(probe: &HttpProbe, http: &HttpFacts) -> Option<Finding> {
    let status = match &probe.status {
        Ok(status) => *status,
        Err(reason) => {
            let what = format!("{} gets no answer: {reason}", asked(probe.kind));
            return Some(Finding::new(
                Level::Warning,
                "http-no-answer",
                what,
                "answer every request with a status",
            ));
        }
    };
    let served = (200..300).contains(&status);
    let finding = |level, check, expected: &str, advice| {
        let what = format!("{} is answered with {status}; expected {expected}", asked(probe.kind));
        Some(Finding::new(level, check, what, advice))
    };
    // Behind a login nothing can be said.
    if matches!(status, 401 | 407 | 429) {
        return None;
    }
    let here = if http.local { Level::Error } else { Level::Warning };
    match probe.kind {
        HttpProbeKind::ForeignOrigin if served => finding(
            here,
            "http-origin",
            "403",
            "refuse origins that are not known: any page in a browser can otherwise use the server in its user's name",
        ),
        HttpProbeKind::ForeignOrigin if status != 403 => {
            finding(Level::Hint, "http-origin", "403", "refuse foreign origins with 403")
        }
        HttpProbeKind::ForeignHost if served && http.local => finding(
            Level::Warning,
            "http-host",
            "403 or 421",
            "refuse a `Host` that is not this computer's: by rebinding its name a page gets around the check of origins",
        ),
        HttpProbeKind::PlainText if served => finding(
            here,
            "http-content-type",
            "415",
            "take only `application/json`: a page may send plain text anywhere without asking first",
        ),
        HttpProbeKind::WrongAccept if served => {
            finding(Level::Hint, "http-accept", "406", "refuse a client that cannot read the answer")
        }
        HttpProbeKind::WrongVersion if status != 400 => finding(
            Level::Warning,
            "http-version",
            "400",
            "refuse a `MCP-Protocol-Version` that is not known with 400",
        ),
        HttpProbeKind::NotJson if status != 400 => {
            finding(Level::Warning, "http-not-json", "400", "answer with 400 and error -32700 in the body")
        }
        HttpProbeKind::UnknownSession if status != 404 => finding(
            if served { Level::Error } else { Level::Warning },
            "http-session",
            "404",
            "clients open a new session at 404, and at nothing else",
        ),
        HttpProbeKind::DeleteUnknownSession if served || status >= 500 => finding(
            Level::Hint,
            "http-delete",
            "404 or 405",
            "say that there is no such session, or that clients cannot end sessions",
        ),
        HttpProbeKind::Get
            if served
                && !probe
                    .content_type
                    .as_deref()
                    .is_some_and(|kind| kind.starts_with("text/event-stream")) =>
        {
            let what = "GET is answered with something that is no event stream";
            Some(Finding::new(Level::Warning, "http-get", what, "answer with a stream, or with 405"))
        }
        HttpProbeKind::Get if status >= 500 => {
            finding(Level::Warning, "http-get", "a stream, or 405", "answer with a stream, or with 405")
        }
        _ => None,
    }
}

fn asked(kind: HttpProbeKind) -> &'static str {
    match kind {
        HttpProbeKind::ForeignOrigin => "a request from a foreign `Origin`",
        HttpProbeKind::ForeignHost => "a request for a foreign `Host`",
        HttpProbeKind::PlainText => "a request of plain text",
        HttpProbeKind::WrongAccept => "a request that accepts only pictures",
        HttpProbeKind::WrongVersion => "a request of an unknown `MCP-Protocol-Version`",
        HttpProbeKind::NotJson => "a body that is no JSON",
        HttpProbeKind::UnknownSession => "a request in an unknown session",
        HttpProbeKind::Get => "GET",
        HttpProbeKind::DeleteUnknownSession => "the end of an unknown session",
    }
}

/// Whether any page may read the answers.
fn readable(http: &HttpFacts) -> Option<Finding> {
    let open = http.probes.iter().any(|probe| {
        probe.kind == HttpProbeKind::ForeignOrigin
            && probe.allowed_origin.as_deref().is_some_and(|allowed| allowed == "*")
    });
    let level = if http.local { Level::Warning } else { Level::Hint };
    let advice = "name the pages that may read answers in `Access-Control-Allow-Origin`";
    open.then(|| Finding::new(level, "http-cors", "every page may read the answers", advice))
}

fn session(http: &HttpFacts) -> Option<Finding> {
    let session = http.session.as_ref()?;
    if !session.is_empty() && session.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) {
        let short = session.len() < 16;
        let advice = "whoever guesses a name is in the session: use 128 random bits";
        return short.then(|| {
            Finding::new(Level::Warning, "http-session-name", "names of sessions are short", advice)
        });
    }
    let advice = "use only visible characters of ASCII";
    Some(Finding::new(
        Level::Error,
        "http-session-name",
        "a session's name has characters that do not belong there",
        advice,
    ))
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
        let mut facts = Facts::quiet();
        facts.http = vec![HttpFacts { local, session: None, probes: vec![probe] }];
        expected.assert_eq(&summary_lines(&check(&facts)));
    }

    #[test]
    fn what_should_be_refused_and_is_is_not_mentioned() {
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
    fn what_a_page_in_a_browser_could_do_is_told() {
        check_one(
            true,
            probe(HttpProbeKind::ForeignOrigin, 200),
            expect![
                "error http-origin: a request from a foreign `Origin` is answered with 200; expected 403 []"
            ],
        );
        check_one(
            false,
            probe(HttpProbeKind::ForeignOrigin, 200),
            expect![
                "warning http-origin: a request from a foreign `Origin` is answered with 200; expected 403 []"
            ],
        );
        check_one(
            true,
            probe(HttpProbeKind::ForeignHost, 200),
            expect![
                "warning http-host: a request for a foreign `Host` is answered with 200; expected 403 or 421 []"
            ],
        );
        check_one(false, probe(HttpProbeKind::ForeignHost, 200), expect![""]);
        check_one(
            true,
            probe(HttpProbeKind::PlainText, 202),
            expect!["error http-content-type: a request of plain text is answered with 202; expected 415 []"],
        );
        let open = HttpProbe { allowed_origin: Some("*".into()), ..probe(HttpProbeKind::ForeignOrigin, 403) };
        check_one(true, open, expect!["warning http-cors: every page may read the answers []"]);
    }

    #[test]
    fn what_clients_wait_for_in_vain_is_told() {
        check_one(
            true,
            probe(HttpProbeKind::UnknownSession, 200),
            expect![
                "error http-session: a request in an unknown session is answered with 200; expected 404 []"
            ],
        );
        check_one(
            true,
            probe(HttpProbeKind::UnknownSession, 400),
            expect![
                "warning http-session: a request in an unknown session is answered with 400; expected 404 []"
            ],
        );
        check_one(
            true,
            probe(HttpProbeKind::WrongVersion, 200),
            expect![
                "warning http-version: a request of an unknown `MCP-Protocol-Version` is answered with 200; expected 400 []"
            ],
        );
        check_one(
            true,
            probe(HttpProbeKind::Get, 200),
            expect!["warning http-get: GET is answered with something that is no event stream []"],
        );
        let lost = HttpProbe { status: Err("no answer within 5 s".into()), ..probe(HttpProbeKind::Get, 0) };
        check_one(true, lost, expect!["warning http-no-answer: GET gets no answer: no answer within 5 s []"]);
    }

    #[test]
    fn names_of_sessions_are_looked_at() {
        let told_of = |session: &str| {
            let mut facts = Facts::quiet();
            facts.http = vec![HttpFacts { local: true, session: Some(session.into()), probes: Vec::new() }];
            summary_lines(&check(&facts))
        };
        assert_eq!(told_of("0123456789abcdef"), "");
        assert_eq!(told_of("7"), "warning http-session-name: names of sessions are short []");
        assert!(told_of("a b").starts_with("error http-session-name"));
    }
}
