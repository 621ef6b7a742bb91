//! `bowline doctor` about logins.

use super::*;

#[test]
fn the_doctor_finds_problems_of_the_authorization() {
    let findings = |state: State| {
        let (place, issuer) = (Place::new(), Issuer::start(state));
        let (printed, code) = place.run(&["doctor", &issuer.server(), "--json"]);
        let report = printed.split_once("\n{").map_or(printed.as_str(), |(report, _)| report);
        let end = report.rfind('}').map_or(report.len(), |end| end + 1);
        let report: serde_json::Value = serde_json::from_str(&report[..end]).unwrap_or_default();
        let checks = report["findings"].as_array().cloned().unwrap_or_default();
        let checks: Vec<_> =
            checks.iter().map(|found| found["check"].as_str().unwrap_or("").to_owned()).collect();
        (checks.join(" "), code, printed)
    };
    for (state, expected, exit) in [
        (State { breaks_rules: true, ..State::default() }, "auth-pkce", 8),
        (State { has_no_metadata: true, ..State::default() }, "auth-server-metadata", 8),
        (
            State { resource: Some("https://evil.example/mcp".to_owned()), ..State::default() },
            "auth-resource-metadata",
            8,
        ),
        (State { registers_no_clients: true, ..State::default() }, "auth-registration", 7),
        (
            State { authorization_endpoint: Some("http://evil.example/a".to_owned()), ..State::default() },
            "auth-server-metadata",
            8,
        ),
    ] {
        let (checks, code, printed) = findings(state);
        assert_eq!((checks.as_str(), code), (expected, Some(exit)), "{printed}");
    }
    let (checks, code, output) = findings(State::default());
    assert_eq!((checks.as_str(), code), ("", Some(7)), "{output}");
    for (state, expected, exit) in [
        (State { sends_no_challenge: true, ..State::default() }, "auth-challenge", 8),
        (State { has_no_page: true, ..State::default() }, "auth-no-login", 7),
        (State { date: Some("Mon, 05 Jan 2026 10:00:00 GMT"), ..State::default() }, "auth-clock", 7),
    ] {
        let (checks, code, output) = findings(state);
        assert_eq!((checks.as_str(), code), (expected, Some(exit)), "{output}");
    }
}

#[test]
fn the_doctor_finds_problems_of_a_stored_login() {
    let place = Place::new();
    // The only token of the login has expired, and there is nothing to renew it with.
    let issuer = Issuer::start(State { issues_no_refresh_tokens: true, ..State::default() });
    configure(&place, &issuer, "oauth = { allow = [\"issuer-slash\"] }");
    let login = Background::start(with_browser(&place, place.program(&["login", "notes"])));
    get(&consent(&opened(&place)));
    let (code, output) = login.end();
    assert_eq!(code, Some(0), "{output}");
    issuer.expire();
    let (output, _) = place.run(&["doctor", "notes", "--json"]);
    for (check, level) in [("auth-expired", "warning"), ("auth-exceptions", "hint")] {
        assert!(output.contains(&format!("\"{check}\"")), "{check} ({level}) is not in {output}");
    }
    assert!(output.contains("issuer-slash"), "{output}");
}
