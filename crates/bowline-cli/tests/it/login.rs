//! `bowline login`, `logout` and `whoami`, and commands that need a login.

use crate::{
    issuer::{CANARY, Issuer, State, consent, get},
    place::{Background, Place, signal},
    pty::Pty,
};
use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    process::Signal,
};
use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, path::Path, process::Command, thread};

/// The revision of the scripted server, so that commands do not probe for the era.
const REVISION: [&str; 2] = ["--revision", "2025-11-25"];

fn issuer() -> Issuer {
    Issuer::start(State { first_lifetime: 3600, ..State::default() })
}

/// Puts a program `xdg-open` on the path. It passes its argument to the test.
fn with_browser(place: &Place, mut command: Command) -> Command {
    let (folder, pipe) = (place.path("bin"), place.path("visited"));
    if !pipe.exists() {
        mknodat(CWD, &pipe, FileType::Fifo, Mode::from(0o600), 0).expect("pipes can be made");
        place.put("bin/xdg-open", &format!("#!/bin/sh\nprintf '%s|%s' $# \"$1\" > '{}'\n", pipe.display()));
        fs::set_permissions(folder.join("xdg-open"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    command.env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    command
}

/// Waits until the program opens the browser, and returns the URL.
fn opened(place: &Place) -> String {
    let seen = place.get("visited");
    let url = seen.strip_prefix("1|").expect("the URL is one argument");
    url.to_owned()
}

/// Logs in with a browser.
fn log_in(place: &Place, issuer: &Issuer, words: &[&str]) -> String {
    let server = issuer.server();
    let command = place.program(&[&["login", &server], words].concat());
    let login = Background::start(with_browser(place, command));
    let (status, _, page) = get(&consent(&opened(place)));
    assert_eq!(status, 200, "{page}");
    let (code, told) = login.end();
    assert_eq!(code, Some(0), "{told}");
    told
}

fn ping(place: &Place, issuer: &Issuer) -> (String, Option<i32>) {
    place.run(&["ping", &issuer.server(), REVISION[0], REVISION[1]])
}

/// Returns the files of the store.
fn stored(place: &Place) -> Vec<String> {
    let Ok(entries) = fs::read_dir(place.path("user/.local/state/bowline/credentials")) else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.expect("it is ours").file_name().to_string_lossy().into_owned());
    names.filter(|name| Path::new(name).extension().is_some_and(|end| end == "json")).collect()
}

#[test]
fn a_login_in_the_browser_is_stored_and_used() {
    let (place, issuer) = (Place::new(), issuer());
    let told = log_in(&place, &issuer, &[]);
    // The URL is always printed too.
    assert!(told.contains(&format!("{}/authorize?", issuer.url)), "{told}");
    let (told, code) = ping(&place, &issuer);
    assert_eq!(code, Some(0), "{told}");
    let (told, code) = place.run(&["whoami"]);
    assert_eq!(code, Some(0), "{told}");
    for expected in [
        &issuer.server(),
        &issuer.url,
        "client-1 (registered by this login)",
        "notes:read",
        "renewed when needed",
    ] {
        assert!(told.contains(expected), "{expected} in {told}");
    }
    let (told, _) = place.run(&["whoami", &issuer.server(), "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told).expect("it is JSON");
    assert_eq!((&told[0]["issuer"], &told[0]["renewable"]), (&issuer.url.as_str().into(), &true.into()));
    // A second login uses the registration again, with the same port.
    log_in(&place, &issuer, &[]);
    assert_eq!(issuer.with(|state| state.registrations.len()), 1);
    assert_eq!(stored(&place).len(), 1);
    let file = place.path("user/.local/state/bowline/credentials").join(&stored(&place)[0]);
    assert_eq!(fs::metadata(file).expect("it is there").permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_missing_login_ends_with_exit_code_7_and_the_command_to_run() {
    let (place, issuer) = (Place::new(), issuer());
    let (told, code) = ping(&place, &issuer);
    assert_eq!(code, Some(7), "{told}");
    assert!(told.contains(&format!("run `bowline login {}`", issuer.server())), "{told}");
    let (told, code) = place.run(&["whoami", &issuer.server()]);
    assert_eq!(code, Some(7), "{told}");
    assert!(told.contains("not logged in"), "{told}");
    assert_eq!(place.run(&["whoami"]), ("no logins are stored\n".to_owned(), Some(0)));
}

#[test]
fn without_a_browser_the_redirected_url_is_pasted() {
    let (place, issuer) = (Place::new(), issuer());
    let mut login =
        Background::start(place.program(&["login", &issuer.server(), "--no-browser", "--account", "work"]));
    let url = login.message("/authorize?").trim().to_owned();
    let redirected = consent(&url);
    let code = redirected.split(['=', '&']).nth(1).expect("it has a code").to_owned();
    login.write(&code);
    login.message("a code alone is not accepted");
    login.write(&redirected.replace("state=", "state=x"));
    login.message("a code alone is not accepted");
    assert_eq!(issuer.with(|state| state.requests.get("/token").copied()), None);
    login.write(&redirected);
    let (code, told) = login.end();
    assert_eq!(code, Some(0), "{told}");
    let (told, _) = place.run(&["whoami"]);
    assert!(told.contains("work"), "{told}");
}

#[test]
fn a_code_is_entered_on_another_device() {
    let (place, issuer) = (Place::new(), issuer());
    let exception = ["--allow-exception", "issuer-slash"];
    let mut login = Background::start(place.program(&[
        "login",
        &issuer.server(),
        "--device",
        exception[0],
        exception[1],
    ]));
    assert_eq!(login.message("/activate").trim(), format!("{}/activate", issuer.url));
    login.message("and enter the code WDJB-MJHT");
    issuer.wait(|state| state.requests.contains_key("/token"));
    issuer.with(|state| state.device_is_approved = true);
    let (code, told) = login.end();
    assert_eq!(code, Some(0), "{told}");
    assert!(!told.contains(CANARY), "{told}");
    let (told, code) = ping(&place, &issuer);
    assert_eq!(code, Some(0), "{told}");
    // Refreshes need the exception, too.
    let (told, _) = place.run(&["whoami"]);
    assert!(told.contains("allowed  issuer-slash"), "{told}");
}

#[test]
fn a_command_at_a_terminal_offers_to_log_in() {
    let (place, issuer) = (Place::new(), issuer());
    let server = issuer.server();
    let start = || {
        let mut command = place.program(&["ping", &server, REVISION[0], REVISION[1]]);
        command.env("TERM", "xterm");
        Pty::sized(with_browser(&place, command), 40, 200)
    };
    let mut pty = start();
    pty.expect("Log in now? [y/n]").enter("n");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(7), "{screen}");
    assert!(screen.contains("you declined it"), "{screen}");
    let mut pty = start();
    pty.expect("Log in now? [y/n]").enter("y");
    get(&consent(&opened(&place)));
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn a_configured_server_has_its_own_client_and_the_gateway_of_its_user_uses_the_login() {
    let (place, issuer) = (Place::new(), issuer());
    let file = format!(
        "[[rules]]\neffect = \"allow\"\n[servers.notes]\nurl = \"{}\"\n\
         oauth = {{ client_id = \"by-hand\", scopes = [\"notes:read\"] }}\n",
        issuer.server()
    );
    place.put("user/.config/bowline/bowline.toml", &file);
    let (told, code) = place.run(&["ping", "notes"]);
    assert_eq!(code, Some(7), "{told}");
    assert!(told.contains("run `bowline login notes`"), "{told}");
    let gateway = ["call", "notes__read", "--", "bowline", "gateway", "--stdio"];
    let (told, code) = place.run(&gateway);
    assert_ne!(code, Some(0), "{told}");
    let login = Background::start(with_browser(&place, place.program(&["login", "notes"])));
    get(&consent(&opened(&place)));
    let (code, told) = login.end();
    assert_eq!(code, Some(0), "{told}");
    let (told, _) = place.run(&["whoami", "notes"]);
    assert!(told.contains("by-hand (configured)"), "{told}");
    assert_eq!(issuer.with(|state| state.registrations.len()), 0);
    assert_eq!(place.run(&["call", "notes", "read"]), ("milk\n".to_owned(), Some(0)));
    let (told, code) = place.run(&gateway);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("milk"), "{told}");
}

#[test]
fn stored_logins_are_sealed_with_the_key_of_the_user() {
    let (place, issuer) = (Place::new(), issuer());
    let key = "11".repeat(32);
    let server = issuer.server();
    let with_key = |words: &[&str], variable: &str, value: &str| {
        let mut command = place.program(words);
        command.env(variable, value);
        command
    };
    let login = with_browser(&place, with_key(&["login", &server], "BOWLINE_LOGIN_KEY", &key));
    let login = Background::start(login);
    get(&consent(&opened(&place)));
    let (code, told) = login.end();
    assert_eq!(code, Some(0), "{told}");
    let file = place.path("user/.local/state/bowline/credentials").join(&stored(&place)[0]);
    let text = fs::read_to_string(file).expect("it is there");
    assert!(!text.contains(CANARY) && text.contains("\"sealed\""), "{text}");

    let ping = |variable: &str, value: &str| {
        place.output(with_key(&["ping", &server, REVISION[0], REVISION[1]], variable, value))
    };
    let (told, code) = ping("BOWLINE_LOGIN_KEY", &key);
    assert_eq!(code, Some(0), "{told}");
    // The same key, in a file.
    place.put("key", &format!("{key}\n"));
    let path = place.path("key");
    let path = path.to_str().expect("it is text");
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let (told, code) = ping("BOWLINE_LOGIN_KEY_FILE", path);
    assert_ne!(code, Some(0), "{told}");
    assert!(told.contains("readable by others"), "{told}");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let (told, code) = ping("BOWLINE_LOGIN_KEY_FILE", path);
    assert_eq!(code, Some(0), "{told}");
    for (value, reason) in [
        ("22".repeat(32).as_str(), "another key"),
        ("short-secret", "is not a key"),
        ("keyring", "cannot use the keyring"),
        ("", "there is no key to open it"),
    ] {
        let (told, code) = ping("BOWLINE_LOGIN_KEY", value);
        assert_ne!(code, Some(0), "{told}");
        assert!(told.contains(reason) && !told.contains("short-secret"), "{reason} in {told}");
    }
}

#[test]
fn logging_out_revokes_and_deletes_the_tokens() {
    let (place, issuer) = (Place::new(), issuer());
    log_in(&place, &issuer, &[]);
    let (told, code) = place.run(&["logout", &issuer.server()]);
    assert_eq!((told, code), (format!("{}: revoked\n", issuer.server()), Some(0)));
    assert_eq!(issuer.with(|state| state.revoked.clone()), [format!("{CANARY}-refresh-1")]);
    assert_eq!(stored(&place), Vec::<String>::new());
    assert_eq!(ping(&place, &issuer).1, Some(7));
    let (told, _) = place.run(&["logout", &issuer.server()]);
    assert!(told.contains("not logged in"), "{told}");
    log_in(&place, &issuer, &[]);
    log_in(&place, &issuer, &["--account", "work"]);
    let (told, code) = place.run(&["logout", "--all"]);
    assert_eq!((told.lines().count(), code), (2, Some(0)), "{told}");
    assert_eq!(stored(&place), Vec::<String>::new());
}

#[test]
fn v58_seven_processes_at_expiry_refresh_once() {
    let place = Place::new();
    // The token of the login has expired when the commands start.
    let issuer = Issuer::start(State::default());
    log_in(&place, &issuer, &[]);
    issuer.expire();
    let ended: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..7).map(|_| scope.spawn(|| ping(&place, &issuer))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
    });
    assert!(ended.iter().all(|(_, code)| *code == Some(0)), "{ended:?}");
    assert_eq!(issuer.with(|state| state.refreshes), 1);
}

#[test]
fn v58_a_process_killed_while_it_refreshes_is_reported_and_nothing_loops() {
    let place = Place::new();
    let issuer = Issuer::start(State { holds_refresh: true, ..State::default() });
    log_in(&place, &issuer, &[]);
    let killed = Background::start(place.program(&["ping", &issuer.server(), REVISION[0], REVISION[1]]));
    // The refresh token is rotated, and the response is never received.
    issuer.wait(|state| state.refreshes == 1);
    killed.signal(Signal::KILL);
    killed.end();
    issuer.with(|state| state.holds_refresh = false);
    issuer.expire();
    let (told, code) = ping(&place, &issuer);
    assert_eq!(code, Some(7), "{told}");
    assert!(told.contains("interrupted"), "{told}");
    assert!(told.contains("bowline login"), "{told}");
    let (told, code) = ping(&place, &issuer);
    assert_eq!(code, Some(7), "{told}");
    // The spent refresh token was tried once more, and never again.
    assert_eq!(issuer.with(|state| state.refreshes), 2);
    log_in(&place, &issuer, &[]);
    issuer.with(|state| state.first_lifetime = 3600);
}

#[test]
fn v55_a_page_that_calls_the_listener_gets_an_error_and_does_not_end_the_wait() {
    let (place, issuer) = (Place::new(), issuer());
    let login = Background::start(with_browser(&place, place.program(&["login", &issuer.server()])));
    let redirected = consent(&opened(&place));
    let (callback, _) = redirected.split_once('?').expect("it has a query");
    for query in ["code=evil", "code=evil&state=", "code=evil&state=guess", "error=access_denied", ""] {
        let (status, _, page) = get(&format!("{callback}?{query}"));
        assert_eq!(status, 400, "{page}");
        assert!(!page.contains("evil"), "{page}");
    }
    assert_eq!(issuer.with(|state| state.requests.get("/token").copied()), None);
    assert_eq!(get(&redirected).0, 200);
    let (code, told) = login.end();
    assert_eq!(code, Some(0), "{told}");
    assert_eq!(issuer.with(|state| state.requests["/token"]), 1);
}

#[test]
fn v52_a_malicious_authorization_page_is_never_opened() {
    for page in [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://evil.example/authorize",
        "https://evil.example/\"; touch x; \"",
        "https://evil.example/$(touch x)\n",
        "https://evil.example/`touch x`",
        "-a Calculator",
        "https://user:pass@evil.example/",
    ] {
        let place = Place::new();
        let state = State { authorization_endpoint: Some(page.to_owned()), ..State::default() };
        let issuer = Issuer::start(state);
        place.put("bin/xdg-open", "#!/bin/sh\n: > opened\n");
        fs::set_permissions(place.path("bin/xdg-open"), fs::Permissions::from_mode(0o755))
            .expect("it is ours");
        let mut command = place.program(&["login", &issuer.server()]);
        command.env("PATH", format!("{}:/usr/bin:/bin", place.path("bin").display()));
        let (told, code) = place.output(command);
        assert_ne!(code, Some(0), "{page}: {told}");
        assert!(!place.path("here/opened").exists(), "{page}: {told}");
        assert_eq!(issuer.with(|state| state.requests.get("/register").copied()), None, "{page}: {told}");
    }
}

#[test]
fn v64_a_busy_callback_port_is_refused_and_named() {
    let (place, issuer) = (Place::new(), issuer());
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let words = ["login", &issuer.server(), "--client-id", "fixed", "--callback-port", &port];
    let (told, code) = place.run(&words);
    assert_ne!(code, Some(0), "{told}");
    assert!(told.contains(&format!("port {port}")), "{told}");
    assert_eq!(issuer.with(|state| state.requests.get("/authorize").copied()), None);
}

#[test]
fn an_account_is_chosen_by_its_name() {
    let (place, issuer) = (Place::new(), issuer());
    log_in(&place, &issuer, &["--account", "work"]);
    let (told, code) = ping(&place, &issuer);
    assert_eq!(code, Some(7), "{told}");
    let server = issuer.server();
    let with = |account: &str| place.run(&["ping", &server, "--account", account, REVISION[0], REVISION[1]]);
    assert_eq!(with("work").1, Some(0));
    let (told, code) = with("home");
    assert_eq!(code, Some(7), "{told}");
    assert!(told.contains(&format!("bowline login {server} --account home`")), "{told}");
    let (told, code) = place.run(&["ping", "everything", "--account", "work"]);
    assert_eq!(code, Some(2), "{told}");
}

#[test]
fn a_client_secret_of_the_command_line_is_kept_for_refreshes() {
    let place = Place::new();
    let secret = format!("{CANARY}-secret");
    let state = State { client_secret: Some(secret.clone()), ..State::default() };
    let issuer = Issuer::start(state);
    let server = issuer.server();
    let words = ["login", &server, "--client-id", "confidential", "--client-secret-env", "NOTES_SECRET"];
    let mut command = place.program(&words);
    command.env("NOTES_SECRET", &secret);
    let login = Background::start(with_browser(&place, command));
    get(&consent(&opened(&place)));
    let (code, told) = login.end();
    assert_eq!(code, Some(0), "{told}");
    let (told, _) = place.run(&["whoami"]);
    assert!(told.contains("confidential (configured, its secret is stored)"), "{told}");
    // The variable is not set any more, and the token has expired.
    issuer.expire();
    let (told, code) = ping(&place, &issuer);
    assert_eq!((code, issuer.with(|state| state.refreshes)), (Some(0), 1), "{told}");
}

#[test]
fn exceptions_are_named_allowed_shown_and_kept_for_refreshes() {
    let place = Place::new();
    let issuer = Issuer::start(State { breaks_rules: true, ..State::default() });
    let (told, code) = place.run(&["login", &issuer.server(), "--no-browser"]);
    assert_ne!(code, Some(0), "{told}");
    assert!(told.contains("`unannounced-pkce`"), "{told}");
    let (told, code) = place.run(&["login", &issuer.server(), "--allow-exception", "everything"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("no-resource-parameter"), "{told}");
    let exceptions = ["--allow-exception", "unannounced-pkce", "--allow-exception", "no-resource-parameter"];
    log_in(&place, &issuer, &exceptions);
    let (told, _) = place.run(&["whoami"]);
    assert!(told.contains("allowed  unannounced-pkce, no-resource-parameter"), "{told}");
    issuer.expire();
    let (told, code) = ping(&place, &issuer);
    assert_eq!((code, issuer.with(|state| state.refreshes)), (Some(0), 1), "{told}");
    let (told, _) = place.run(&["whoami", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told).expect("it is JSON");
    assert_eq!(told[0]["exceptions"][0], "unannounced-pkce");
}

/// Writes the configuration of a server with settings for its login.
fn configure(place: &Place, issuer: &Issuer, settings: &str) {
    let (server, origin) = (issuer.server(), &issuer.url);
    let file = format!("[[rules]]\neffect = \"allow\"\n[servers.notes]\nurl = \"{server}\"\n{settings}\n");
    place.put("user/.config/bowline/bowline.toml", &file.replace("ORIGIN", origin));
}

const GATEWAY: [&str; 6] = ["call", "notes__read", "--", "bowline", "gateway", "--stdio"];

#[test]
fn configured_urls_and_parameters_are_used_at_a_login() {
    let place = Place::new();
    let issuer = Issuer::start(State { has_no_metadata: true, first_lifetime: 3600, ..State::default() });
    let settings = "oauth = { client_id = \"by-hand\", authorization_url = \"ORIGIN/authorize\", \
                    token_url = \"ORIGIN/token\", authorization_params = { audience = \"notes\" }, \
                    resource = \"ORIGIN/other\" }";
    configure(&place, &issuer, settings);
    let login = Background::start(with_browser(&place, place.program(&["login", "notes"])));
    get(&consent(&opened(&place)));
    let (code, told) = login.end();
    assert_eq!(code, Some(0), "{told}");
    let asked = issuer.with(|state| state.authorization.clone());
    assert_eq!(asked["audience"], "notes");
    assert_eq!(asked["resource"], format!("{}/other", issuer.url));
    assert_eq!(place.run(&["call", "notes", "read"]), ("milk\n".to_owned(), Some(0)));
    let (told, code) = place.run(&GATEWAY);
    assert_eq!(code, Some(0), "{told}");
}

#[test]
fn a_machine_credential_needs_no_login() {
    for settings in [
        "oauth = { grant = \"client_credentials\", issuer = \"ORIGIN\", client_id = \"confidential\", \
         client_secret = \"s3cret\" }",
        "oauth = { grant = \"workload\", issuer = \"ORIGIN\", assertion_file = \"assertion.jwt\" }",
    ] {
        let place = Place::new();
        let is_secret = settings.contains("client_secret");
        let state = State {
            client_secret: is_secret.then(|| "s3cret".to_owned()),
            assertion: Some("platform".to_owned()),
            ..State::default()
        };
        let issuer = Issuer::start(state);
        configure(&place, &issuer, settings);
        place.put("user/.config/bowline/assertion.jwt", "platform\n");
        assert_eq!(place.run(&["call", "notes", "read"]), ("milk\n".to_owned(), Some(0)), "{settings}");
        let (told, code) = place.run(&GATEWAY);
        assert_eq!(code, Some(0), "{told}");
        assert_eq!(issuer.with(|state| state.requests.get("/authorize").copied()), None);
    }
}

#[test]
fn a_server_without_a_login_is_used_without_tokens() {
    let (place, issuer) = (Place::new(), issuer());
    log_in(&place, &issuer, &[]);
    for settings in ["oauth = false", "auth = \"none\""] {
        configure(&place, &issuer, settings);
        let (told, code) = place.run(&["call", "notes", "read"]);
        assert_ne!(code, Some(0), "{settings}: {told}");
        let (told, code) = place.run(&["login", "notes"]);
        assert_eq!(code, Some(2), "{settings}: {told}");
        assert!(told.contains("auth = \"none\""), "{told}");
    }
}

#[test]
fn a_gateway_at_a_terminal_asks_before_it_opens_a_browser() {
    let (place, issuer) = (Place::new(), issuer());
    configure(&place, &issuer, "");
    let mut command = with_browser(&place, place.program(&["up", "--port", "0"]));
    command.env("TERM", "xterm");
    let mut up = Pty::sized(command, 50, 200);
    up.expect("notes");
    let call = Background::start(place.program(&["call", "up", "notes__read"]));
    up.expect("notes>");
    let screen = up.screen();
    assert!(screen.contains(&format!("a call needs a login at {}", issuer.url)), "{screen}");
    assert_eq!(issuer.with(|state| state.requests.get("/authorize").copied()), None);
    up.enter("y");
    get(&consent(&opened(&place)));
    let (code, told) = call.end();
    assert_eq!(code, Some(0), "{told}");
    signal(up.id(), Signal::INT);
    let (code, screen) = up.finish();
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn the_doctor_finds_problems_of_the_authorization() {
    let findings = |state: State| {
        let (place, issuer) = (Place::new(), Issuer::start(state));
        let (told, code) = place.run(&["doctor", &issuer.server(), "--json"]);
        let report = told.split_once("\n{").map_or(told.as_str(), |(report, _)| report);
        let end = report.rfind('}').map_or(report.len(), |end| end + 1);
        let report: serde_json::Value = serde_json::from_str(&report[..end]).unwrap_or_default();
        let checks = report["findings"].as_array().cloned().unwrap_or_default();
        let checks: Vec<_> =
            checks.iter().map(|found| found["check"].as_str().unwrap_or("").to_owned()).collect();
        (checks.join(" "), code, told)
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
        let (checks, code, told) = findings(state);
        assert_eq!((checks.as_str(), code), (expected, Some(exit)), "{told}");
    }
    let (checks, code, told) = findings(State::default());
    assert_eq!((checks.as_str(), code), ("", Some(7)), "{told}");
}

#[test]
fn logging_out_of_all_servers_reports_each_record() {
    let (place, issuer) = (Place::new(), issuer());
    log_in(&place, &issuer, &[]);
    log_in(&place, &issuer, &["--account", "work"]);
    let (told, code) = place.run(&["logout", "--all", "--json"]);
    assert_eq!(code, Some(0), "{told}");
    let told: serde_json::Value = serde_json::from_str(&told).expect("it is JSON");
    let outcomes: Vec<_> = told.as_array().expect("it is a list").iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["revoked", "revoked"]);
    assert_eq!(stored(&place), Vec::<String>::new());
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
        get(&consent(&visited));
        let (code, told) = login.end();
        assert_eq!(code, Some(0), "{told}");
        seen += &told;
        let (told, _) = place.run(&["call", "notes", "read", "--trace", "--record", "call.txtar"]);
        seen += &told;
        seen += &place.get("here/call.txtar");
    }
    let gateway = ["gateway", "--stdio", "--log", "trace"];
    let (logged, code) =
        place.run(&[&["call", "notes__read", "--trace", "--", "bowline"][..], &gateway].concat());
    assert_eq!(code, Some(0), "{logged}");
    assert!(logged.contains("TRACE") || logged.contains("DEBUG"), "{logged}");
    seen += &logged;
    issuer.expire();
    let server = "notes";
    for words in [
        &["ping", server, "--trace", "--record", "ping.txtar"][..],
        &["whoami"],
        &["whoami", "--json"],
        &["logout", server, "--trace"],
        &["ping", server, "--json"],
    ] {
        let mut command = place.program(&[words, &REVISION].concat());
        command.env("BOWLINE_LOG", "trace").env("RUST_LOG", "trace");
        seen += &place.output(command).0;
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
    let mut command = place.program(&["call", "notes", "read", "--trace"]);
    command.env("BOWLINE_LOG", "trace").env("RUST_LOG", "trace");
    let (told, code) = place.output(command);
    assert_eq!(code, Some(0), "{told}");
    seen += &told;
    assert!(!seen.contains(CANARY), "{seen}");
}
