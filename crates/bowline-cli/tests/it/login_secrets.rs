//! What logins must not reveal: in logs, recordings, messages and the arguments of processes.

use crate::{
    issuer::{CANARY, Issuer, State, consent, get},
    login::{GATEWAY, REVISION, configure, issuer, log_in, opened, with_browser},
    place::{Background, Place},
};
use std::{collections::HashMap, fs};

/// Runs the program with logs of every level, and checks that it logged.
fn logged(place: &Place, words: &[&str]) -> (String, Option<i32>) {
    let mut command = place.program(words);
    command.env("BOWLINE_LOG", "trace");
    let (output, code) = place.output(command);
    assert!(output.contains("TRACE logging started"), "{words:?} logs nothing: {output}");
    (output, code)
}

#[test]
fn a_command_logs_if_it_is_asked_to() {
    let (place, issuer) = (Place::new(), issuer());
    log_in(&place, &issuer, &[]);
    issuer.expire();
    let words = ["ping", &issuer.server(), REVISION[0], REVISION[1]];
    let (output, code) = logged(&place, &words);
    assert_eq!(code, Some(0), "{output}");
    assert!(
        output.contains(&format!("DEBUG authorization event=refreshed the token of {}", issuer.url)),
        "{output}"
    );
    let (output, _) = place.run(&words);
    assert!(!output.contains("DEBUG") && !output.contains("TRACE"), "{output}");
    let mut command = place.program(&words);
    command.env("BOWLINE_LOG", "loud");
    let (output, code) = place.output(command);
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("invalid log level `loud`"), "{output}");
}

/// Returns the arguments of a process and of all processes below it, which every user of the machine can read. Nothing where
/// there is no `/proc`.
fn arguments_of_descendants(root: u32, expected: &str) -> String {
    if !cfg!(target_os = "linux") {
        return String::new();
    }
    let read = |id: &str, file: &str| fs::read_to_string(format!("/proc/{id}/{file}")).unwrap_or_default();
    let mut parents = HashMap::new();
    for entry in fs::read_dir("/proc").expect("there are processes").flatten() {
        let id = entry.file_name().to_string_lossy().into_owned();
        // The name of a program may contain spaces and parentheses; its parent is the second word after it.
        let stat = read(&id, "stat");
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)).map(str::to_owned);
        parents.extend(parent.map(|parent| (id, parent)));
    }
    let root = root.to_string();
    let is_below = |id: &String| {
        let mut at = Some(id);
        while let Some(id) = at {
            if *id == root {
                return true;
            }
            at = parents.get(id);
        }
        false
    };
    let arguments: Vec<String> =
        parents.keys().filter(|id| is_below(id)).map(|id| read(id, "cmdline").replace('\0', " ")).collect();
    assert!(arguments.iter().any(|line| line.contains(expected)), "{arguments:?}");
    arguments.join("\n")
}

#[test]
fn v57_no_secret_is_printed_recorded_or_passed_to_a_program() {
    let place = Place::new();
    let secret = format!("{CANARY}-secret");
    let issuer = Issuer::start(State {
        client_secret: Some(secret.clone()),
        needed_scope: Some("notes:write".to_owned()),
        ..State::default()
    });
    let audit = place.path("audit.jsonl");
    let settings = format!(
        "oauth = {{ client_id = \"confidential\", client_secret = \"{secret}\" }}\n[audit]\nfile = \"{}\"",
        audit.display()
    );
    configure(&place, &issuer, &settings);
    let mut seen = String::new();
    // The second login is the step-up that the call needs.
    for words in [&["login", "notes", "--trace"][..], &["login", "notes", "--scope", "notes:write"]] {
        let mut command = place.program(words);
        command.env("BOWLINE_LOG", "trace").env("RUST_LOG", "trace");
        let login = Background::start(with_browser(&place, command));
        let visited = opened(&place);
        seen += &visited;
        // What the process itself shows to others.
        seen += &arguments_of_descendants(login.id(), "login");
        get(&consent(&visited));
        let (code, output) = login.end();
        assert_eq!(code, Some(0), "{output}");
        for expected in ["TRACE logging started", "event=logging in at", "event=logged in at"] {
            assert!(output.contains(expected), "{expected} is not in {output}");
        }
        seen += &output;
        let (output, _) = logged(&place, &["call", "notes", "read", "--trace", "--record", "call.txtar"]);
        assert!(output.contains("DEBUG"), "{output}");
        seen += &output;
        seen += &place.get("here/call.txtar");
    }
    // The gateway refreshes the token before it calls, with everything in its log.
    issuer.expire();
    let refreshes = issuer.with(|state| state.refreshes);
    let gateway = ["gateway", "--stdio", "--log", "trace"];
    let (output, code) =
        logged(&place, &[&["call", "notes__read", "--trace", "--", "bowline"][..], &gateway].concat());
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(issuer.with(|state| state.refreshes), refreshes + 1);
    assert!(output.contains("event=refreshed the token of"), "{output}");
    seen += &output;
    issuer.expire();
    let server = "notes";
    for words in [
        &["ping", server, "--trace", "--record", "ping.txtar"][..],
        &["whoami"],
        &["whoami", "--json"],
        &["logout", server, "--trace"],
        &["ping", server, "--json"],
    ] {
        seen += &logged(&place, &[words, &REVISION].concat()).0;
    }
    seen += &place.get("here/ping.txtar");
    // The rules were used: a token was refreshed, and the call was written to the audit log.
    assert!(issuer.with(|state| state.refreshes) > 0);
    let audited = place.get("audit.jsonl");
    assert!(audited.contains("notes"), "{audited}");
    seen += &audited;
    // A workload logs in with its assertion.
    let workload =
        Issuer::start(State { assertion: Some(format!("{CANARY}-assertion")), ..State::default() });
    configure(
        &place,
        &workload,
        "oauth = { grant = \"workload\", issuer = \"ORIGIN\", assertion_file = \"a.jwt\" }",
    );
    place.put("user/.config/bowline/a.jwt", &format!("{CANARY}-assertion"));
    let (output, code) = logged(&place, &["call", "notes", "read", "--trace"]);
    assert_eq!(code, Some(0), "{output}");
    seen += &output;
    assert!(!seen.contains(CANARY), "{seen}");
}

#[cfg(target_os = "linux")]
#[test]
fn v57_no_process_has_a_secret_in_its_arguments() {
    let place = Place::new();
    let issuer = Issuer::start(State { client_secret: Some(format!("{CANARY}-secret")), ..State::default() });
    let secret = format!("oauth = {{ client_id = \"confidential\", client_secret = \"{CANARY}-secret\" }}");
    configure(&place, &issuer, &secret);
    let login = Background::start(with_browser(&place, place.program(&["login", "notes"])));
    get(&consent(&opened(&place)));
    let (code, output) = login.end();
    assert_eq!(code, Some(0), "{output}");
    issuer.expire();
    // The gateway has the tokens and waits for new ones while its arguments are read.
    issuer.with(|state| state.holds_refresh = true);
    let call = Background::start(place.program(&GATEWAY));
    issuer.wait(|state| state.refreshes == 1);
    let arguments = arguments_of_descendants(call.id(), "gateway --stdio");
    assert!(!arguments.contains(CANARY), "{arguments}");
}
