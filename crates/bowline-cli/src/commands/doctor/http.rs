//! Whether a server speaks HTTP as it should, also to those who do not.

use super::{
    facts::{Facts, Knock, KnockKind, Web},
    finding::{Finding, Level},
};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for web in &facts.web {
        let judged = web.knocks.iter().filter_map(|knock| judge(knock, web));
        for finding in judged.chain(readable(web)).chain(session(web)) {
            // What is the same in both eras is told once.
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    found
}

fn judge(knock: &Knock, web: &Web) -> Option<Finding> {
    let status = match &knock.status {
        Ok(status) => *status,
        Err(reason) => {
            let what = format!("{} gets no answer: {reason}", asked(knock.kind));
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
        let what = format!("{} is answered with {status}; expected {expected}", asked(knock.kind));
        Some(Finding::new(level, check, what, advice))
    };
    // Behind a login nothing can be said.
    if matches!(status, 401 | 407 | 429) {
        return None;
    }
    let here = if web.local { Level::Error } else { Level::Warning };
    match knock.kind {
        KnockKind::ForeignOrigin if served => finding(
            here,
            "http-origin",
            "403",
            "refuse origins that are not known: any page in a browser can otherwise use the server in its user's name",
        ),
        KnockKind::ForeignOrigin if status != 403 => {
            finding(Level::Hint, "http-origin", "403", "refuse foreign origins with 403")
        }
        KnockKind::ForeignHost if served && web.local => finding(
            Level::Warning,
            "http-host",
            "403 or 421",
            "refuse a `Host` that is not this computer's: by rebinding its name a page gets around the check of origins",
        ),
        KnockKind::PlainText if served => finding(
            here,
            "http-content-type",
            "415",
            "take only `application/json`: a page may send plain text anywhere without asking first",
        ),
        KnockKind::WrongAccept if served => {
            finding(Level::Hint, "http-accept", "406", "refuse a client that cannot read the answer")
        }
        KnockKind::WrongVersion if status != 400 => finding(
            Level::Warning,
            "http-version",
            "400",
            "refuse a `MCP-Protocol-Version` that is not known with 400",
        ),
        KnockKind::NotJson if status != 400 => {
            finding(Level::Warning, "http-not-json", "400", "answer with 400 and error -32700 in the body")
        }
        KnockKind::UnknownSession if status != 404 => finding(
            if served { Level::Error } else { Level::Warning },
            "http-session",
            "404",
            "clients open a new session at 404, and at nothing else",
        ),
        KnockKind::DeleteUnknownSession if served || status >= 500 => finding(
            Level::Hint,
            "http-delete",
            "404 or 405",
            "say that there is no such session, or that clients cannot end sessions",
        ),
        KnockKind::Get
            if served
                && !knock
                    .content_type
                    .as_deref()
                    .is_some_and(|kind| kind.starts_with("text/event-stream")) =>
        {
            let what = "GET is answered with something that is no event stream";
            Some(Finding::new(Level::Warning, "http-get", what, "answer with a stream, or with 405"))
        }
        KnockKind::Get if status >= 500 => {
            finding(Level::Warning, "http-get", "a stream, or 405", "answer with a stream, or with 405")
        }
        _ => None,
    }
}

fn asked(kind: KnockKind) -> &'static str {
    match kind {
        KnockKind::ForeignOrigin => "a request from a foreign `Origin`",
        KnockKind::ForeignHost => "a request for a foreign `Host`",
        KnockKind::PlainText => "a request of plain text",
        KnockKind::WrongAccept => "a request that accepts only pictures",
        KnockKind::WrongVersion => "a request of an unknown `MCP-Protocol-Version`",
        KnockKind::NotJson => "a body that is no JSON",
        KnockKind::UnknownSession => "a request in an unknown session",
        KnockKind::Get => "GET",
        KnockKind::DeleteUnknownSession => "the end of an unknown session",
    }
}

/// Whether any page may read the answers.
fn readable(web: &Web) -> Option<Finding> {
    let open = web.knocks.iter().any(|knock| {
        knock.kind == KnockKind::ForeignOrigin
            && knock.allowed_origin.as_deref().is_some_and(|allowed| allowed == "*")
    });
    let level = if web.local { Level::Warning } else { Level::Hint };
    let advice = "name the pages that may read answers in `Access-Control-Allow-Origin`";
    open.then(|| Finding::new(level, "http-cors", "every page may read the answers", advice))
}

fn session(web: &Web) -> Option<Finding> {
    let session = web.session.as_ref()?;
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
    use super::{super::finding::told, *};
    use expect_test::{Expect, expect};

    fn knock(kind: KnockKind, status: u16) -> Knock {
        Knock { kind, status: Ok(status), content_type: None, allowed_origin: None }
    }

    #[expect(clippy::needless_pass_by_value, reason = "an inline snapshot is made where it is checked")]
    fn check_one(local: bool, knock: Knock, expected: Expect) {
        let mut facts = Facts::quiet();
        facts.web = vec![Web { local, session: None, knocks: vec![knock] }];
        expected.assert_eq(&told(&check(&facts)));
    }

    #[test]
    fn what_should_be_refused_and_is_is_not_mentioned() {
        let good = [
            (KnockKind::ForeignOrigin, 403),
            (KnockKind::ForeignHost, 421),
            (KnockKind::PlainText, 415),
            (KnockKind::WrongAccept, 406),
            (KnockKind::WrongVersion, 400),
            (KnockKind::NotJson, 400),
            (KnockKind::UnknownSession, 404),
            (KnockKind::DeleteUnknownSession, 405),
            (KnockKind::Get, 405),
            (KnockKind::ForeignOrigin, 401),
        ];
        for (kind, status) in good {
            check_one(true, knock(kind, status), expect![""]);
        }
        let stream = Knock {
            content_type: Some("text/event-stream; charset=utf-8".into()),
            ..knock(KnockKind::Get, 200)
        };
        check_one(true, stream, expect![""]);
    }

    // V-01 V-02 V-03
    #[test]
    fn what_a_page_in_a_browser_could_do_is_told() {
        check_one(
            true,
            knock(KnockKind::ForeignOrigin, 200),
            expect![
                "error http-origin: a request from a foreign `Origin` is answered with 200; expected 403 []"
            ],
        );
        check_one(
            false,
            knock(KnockKind::ForeignOrigin, 200),
            expect![
                "warning http-origin: a request from a foreign `Origin` is answered with 200; expected 403 []"
            ],
        );
        check_one(
            true,
            knock(KnockKind::ForeignHost, 200),
            expect![
                "warning http-host: a request for a foreign `Host` is answered with 200; expected 403 or 421 []"
            ],
        );
        check_one(false, knock(KnockKind::ForeignHost, 200), expect![""]);
        check_one(
            true,
            knock(KnockKind::PlainText, 202),
            expect!["error http-content-type: a request of plain text is answered with 202; expected 415 []"],
        );
        let open = Knock { allowed_origin: Some("*".into()), ..knock(KnockKind::ForeignOrigin, 403) };
        check_one(true, open, expect!["warning http-cors: every page may read the answers []"]);
    }

    #[test]
    fn what_clients_wait_for_in_vain_is_told() {
        check_one(
            true,
            knock(KnockKind::UnknownSession, 200),
            expect![
                "error http-session: a request in an unknown session is answered with 200; expected 404 []"
            ],
        );
        check_one(
            true,
            knock(KnockKind::UnknownSession, 400),
            expect![
                "warning http-session: a request in an unknown session is answered with 400; expected 404 []"
            ],
        );
        check_one(
            true,
            knock(KnockKind::WrongVersion, 200),
            expect![
                "warning http-version: a request of an unknown `MCP-Protocol-Version` is answered with 200; expected 400 []"
            ],
        );
        check_one(
            true,
            knock(KnockKind::Get, 200),
            expect!["warning http-get: GET is answered with something that is no event stream []"],
        );
        let lost = Knock { status: Err("no answer within 5 s".into()), ..knock(KnockKind::Get, 0) };
        check_one(true, lost, expect!["warning http-no-answer: GET gets no answer: no answer within 5 s []"]);
    }

    #[test]
    fn names_of_sessions_are_looked_at() {
        let told_of = |session: &str| {
            let mut facts = Facts::quiet();
            facts.web = vec![Web { local: true, session: Some(session.into()), knocks: Vec::new() }];
            told(&check(&facts))
        };
        assert_eq!(told_of("0123456789abcdef"), "");
        assert_eq!(told_of("7"), "warning http-session-name: names of sessions are short []");
        assert!(told_of("a b").starts_with("error http-session-name"));
    }
}
