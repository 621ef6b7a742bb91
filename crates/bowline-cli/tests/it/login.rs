//! `bowline login`, `logout` and `whoami`, and commands that need a login.

mod doctor;

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
pub(crate) const REVISION: [&str; 2] = ["--revision", "2025-11-25"];

pub(crate) fn issuer() -> Issuer {
    Issuer::start(State { first_lifetime: 3600, ..State::default() })
}

/// Puts a program `xdg-open` on the path. It passes its argument to the test.
pub(crate) fn with_browser(place: &Place, mut command: Command) -> Command {
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
pub(crate) fn opened(place: &Place) -> String {
    let seen = place.get("visited");
    let url = seen.strip_prefix("1|").expect("the URL is one argument");
    url.to_owned()
}

/// Logs in with a browser.
pub(crate) fn log_in(place: &Place, issuer: &Issuer, words: &[&str]) -> String {
    let server = issuer.server();
    let command = place.program(&[&["login", &server], words].concat());
    let login = Background::start(with_browser(place, command));
    let (status, _, page) = get(&consent(&opened(place)));
    assert_eq!(status, 200, "{page}");
    let (code, printed) = login.end();
    assert_eq!(code, Some(0), "{printed}");
    printed
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
    let printed = log_in(&place, &issuer, &[]);
    // The URL is always printed too.
    assert!(printed.contains(&format!("{}/authorize?", issuer.url)), "{printed}");
    let (printed, code) = ping(&place, &issuer);
    assert_eq!(code, Some(0), "{printed}");
    let (printed, code) = place.run(&["whoami"]);
    assert_eq!(code, Some(0), "{printed}");
    for expected in [
        &issuer.server(),
        &issuer.url,
        "client-1 (registered by this login)",
        "notes:read",
        "renewed when needed",
    ] {
        assert!(printed.contains(expected), "{expected} in {printed}");
    }
    let (printed, _) = place.run(&["whoami", &issuer.server(), "--json"]);
    let printed: serde_json::Value = serde_json::from_str(&printed).expect("it is JSON");
    assert_eq!(
        (&printed[0]["issuer"], &printed[0]["renewable"]),
        (&issuer.url.as_str().into(), &true.into())
    );
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
    let (printed, code) = ping(&place, &issuer);
    assert_eq!(code, Some(7), "{printed}");
    assert!(printed.contains(&format!("run `bowline login {}`", issuer.server())), "{printed}");
    let (printed, code) = place.run(&["whoami", &issuer.server()]);
    assert_eq!(code, Some(7), "{printed}");
    assert!(printed.contains("not logged in"), "{printed}");
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
    let (code, printed) = login.end();
    assert_eq!(code, Some(0), "{printed}");
    let (printed, _) = place.run(&["whoami"]);
    assert!(printed.contains("work"), "{printed}");
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
    let (code, printed) = login.end();
    assert_eq!(code, Some(0), "{printed}");
    assert!(!printed.contains(CANARY), "{printed}");
    let (printed, code) = ping(&place, &issuer);
    assert_eq!(code, Some(0), "{printed}");
    // Refreshes need the exception, too.
    let (printed, _) = place.run(&["whoami"]);
    assert!(printed.contains("allowed  issuer-slash"), "{printed}");
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
    let (printed, code) = place.run(&["ping", "notes"]);
    assert_eq!(code, Some(7), "{printed}");
    assert!(printed.contains("run `bowline login notes`"), "{printed}");
    let gateway = ["call", "notes__read", "--", "bowline", "gateway", "--stdio"];
    let (printed, code) = place.run(&gateway);
    assert_ne!(code, Some(0), "{printed}");
    let login = Background::start(with_browser(&place, place.program(&["login", "notes"])));
    get(&consent(&opened(&place)));
    let (code, printed) = login.end();
    assert_eq!(code, Some(0), "{printed}");
    let (printed, _) = place.run(&["whoami", "notes"]);
    assert!(printed.contains("by-hand (configured)"), "{printed}");
    assert_eq!(issuer.with(|state| state.registrations.len()), 0);
    assert_eq!(place.run(&["call", "notes", "read"]), ("milk\n".to_owned(), Some(0)));
    let (printed, code) = place.run(&gateway);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("milk"), "{printed}");
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
    let (code, printed) = login.end();
    assert_eq!(code, Some(0), "{printed}");
    let file = place.path("user/.local/state/bowline/credentials").join(&stored(&place)[0]);
    let text = fs::read_to_string(file).expect("it is there");
    assert!(!text.contains(CANARY) && text.contains("\"sealed\""), "{text}");

    let ping = |variable: &str, value: &str| {
        place.output(with_key(&["ping", &server, REVISION[0], REVISION[1]], variable, value))
    };
    let (printed, code) = ping("BOWLINE_LOGIN_KEY", &key);
    assert_eq!(code, Some(0), "{printed}");
    // The same key, in a file.
    place.put("key", &format!("{key}\n"));
    let path = place.path("key");
    let path = path.to_str().expect("it is text");
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("it is ours");
    let (printed, code) = ping("BOWLINE_LOGIN_KEY_FILE", path);
    assert_ne!(code, Some(0), "{printed}");
    assert!(printed.contains("readable by others"), "{printed}");
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    let (printed, code) = ping("BOWLINE_LOGIN_KEY_FILE", path);
    assert_eq!(code, Some(0), "{printed}");
    for (value, reason) in [
        ("22".repeat(32).as_str(), "another key"),
        ("short-secret", "is not a key"),
        ("keyring", "cannot use the keyring"),
        ("", "there is no key to open it"),
    ] {
        let (printed, code) = ping("BOWLINE_LOGIN_KEY", value);
        assert_ne!(code, Some(0), "{printed}");
        assert!(printed.contains(reason) && !printed.contains("short-secret"), "{reason} in {printed}");
    }
}

#[test]
fn logging_out_revokes_and_deletes_the_tokens() {
    let (place, issuer) = (Place::new(), issuer());
    log_in(&place, &issuer, &[]);
    let (printed, code) = place.run(&["logout", &issuer.server()]);
    assert_eq!((printed, code), (format!("{}: revoked\n", issuer.server()), Some(0)));
    assert_eq!(issuer.with(|state| state.revoked.clone()), [format!("{CANARY}-refresh-1")]);
    assert_eq!(stored(&place), Vec::<String>::new());
    assert_eq!(ping(&place, &issuer).1, Some(7));
    let (printed, _) = place.run(&["logout", &issuer.server()]);
    assert!(printed.contains("not logged in"), "{printed}");
    log_in(&place, &issuer, &[]);
    log_in(&place, &issuer, &["--account", "work"]);
    let (printed, code) = place.run(&["logout", "--all"]);
    assert_eq!((printed.lines().count(), code), (2, Some(0)), "{printed}");
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
    let (printed, code) = ping(&place, &issuer);
    assert_eq!(code, Some(7), "{printed}");
    assert!(printed.contains("interrupted"), "{printed}");
    assert!(printed.contains("bowline login"), "{printed}");
    let (printed, code) = ping(&place, &issuer);
    assert_eq!(code, Some(7), "{printed}");
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
    let (code, printed) = login.end();
    assert_eq!(code, Some(0), "{printed}");
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
        let (printed, code) = place.output(command);
        assert_ne!(code, Some(0), "{page}: {printed}");
        assert!(!place.path("here/opened").exists(), "{page}: {printed}");
        assert_eq!(issuer.with(|state| state.requests.get("/register").copied()), None, "{page}: {printed}");
    }
}

#[test]
fn v64_a_busy_callback_port_is_refused_and_named() {
    let (place, issuer) = (Place::new(), issuer());
    let taken = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let words = ["login", &issuer.server(), "--client-id", "fixed", "--callback-port", &port];
    let (printed, code) = place.run(&words);
    assert_ne!(code, Some(0), "{printed}");
    assert!(printed.contains(&format!("port {port}")), "{printed}");
    assert_eq!(issuer.with(|state| state.requests.get("/authorize").copied()), None);
}

#[test]
fn an_account_is_chosen_by_its_name() {
    let (place, issuer) = (Place::new(), issuer());
    log_in(&place, &issuer, &["--account", "work"]);
    let (printed, code) = ping(&place, &issuer);
    assert_eq!(code, Some(7), "{printed}");
    let server = issuer.server();
    let with = |account: &str| place.run(&["ping", &server, "--account", account, REVISION[0], REVISION[1]]);
    assert_eq!(with("work").1, Some(0));
    let (printed, code) = with("home");
    assert_eq!(code, Some(7), "{printed}");
    assert!(printed.contains(&format!("bowline login {server} --account home`")), "{printed}");
    let (printed, code) = place.run(&["ping", "everything", "--account", "work"]);
    assert_eq!(code, Some(2), "{printed}");
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
    let (code, printed) = login.end();
    assert_eq!(code, Some(0), "{printed}");
    let (printed, _) = place.run(&["whoami"]);
    assert!(printed.contains("confidential (configured, its secret is stored)"), "{printed}");
    // The variable is not set any more, and the token has expired.
    issuer.expire();
    let (printed, code) = ping(&place, &issuer);
    assert_eq!((code, issuer.with(|state| state.refreshes)), (Some(0), 1), "{printed}");
}

#[test]
fn exceptions_are_named_allowed_shown_and_kept_for_refreshes() {
    let place = Place::new();
    let issuer = Issuer::start(State { breaks_rules: true, ..State::default() });
    let (printed, code) = place.run(&["login", &issuer.server(), "--no-browser"]);
    assert_ne!(code, Some(0), "{printed}");
    assert!(printed.contains("`unannounced-pkce`"), "{printed}");
    let (printed, code) = place.run(&["login", &issuer.server(), "--allow-exception", "everything"]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("no-resource-parameter"), "{printed}");
    let exceptions = ["--allow-exception", "unannounced-pkce", "--allow-exception", "no-resource-parameter"];
    log_in(&place, &issuer, &exceptions);
    let (printed, _) = place.run(&["whoami"]);
    assert!(printed.contains("allowed  unannounced-pkce, no-resource-parameter"), "{printed}");
    issuer.expire();
    let (printed, code) = ping(&place, &issuer);
    assert_eq!((code, issuer.with(|state| state.refreshes)), (Some(0), 1), "{printed}");
    let (printed, _) = place.run(&["whoami", "--json"]);
    let printed: serde_json::Value = serde_json::from_str(&printed).expect("it is JSON");
    assert_eq!(printed[0]["exceptions"][0], "unannounced-pkce");
}

/// Writes the configuration of a server with settings for its login.
pub(crate) fn configure(place: &Place, issuer: &Issuer, settings: &str) {
    let (server, origin) = (issuer.server(), &issuer.url);
    let file = format!("[[rules]]\neffect = \"allow\"\n[servers.notes]\nurl = \"{server}\"\n{settings}\n");
    place.put("user/.config/bowline/bowline.toml", &file.replace("ORIGIN", origin));
}

pub(crate) const GATEWAY: [&str; 6] = ["call", "notes__read", "--", "bowline", "gateway", "--stdio"];

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
    let (code, printed) = login.end();
    assert_eq!(code, Some(0), "{printed}");
    let asked = issuer.with(|state| state.authorization.clone());
    assert_eq!(asked["audience"], "notes");
    assert_eq!(asked["resource"], format!("{}/other", issuer.url));
    assert_eq!(place.run(&["call", "notes", "read"]), ("milk\n".to_owned(), Some(0)));
    let (printed, code) = place.run(&GATEWAY);
    assert_eq!(code, Some(0), "{printed}");
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
        let (printed, code) = place.run(&GATEWAY);
        assert_eq!(code, Some(0), "{printed}");
        assert_eq!(issuer.with(|state| state.requests.get("/authorize").copied()), None);
    }
}

#[test]
fn a_server_without_a_login_is_used_without_tokens() {
    let (place, issuer) = (Place::new(), issuer());
    log_in(&place, &issuer, &[]);
    for settings in ["oauth = false", "auth = \"none\""] {
        configure(&place, &issuer, settings);
        let (printed, code) = place.run(&["call", "notes", "read"]);
        assert_ne!(code, Some(0), "{settings}: {printed}");
        let (printed, code) = place.run(&["login", "notes"]);
        assert_eq!(code, Some(2), "{settings}: {printed}");
        assert!(printed.contains("auth = \"none\""), "{printed}");
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
    let (code, printed) = call.end();
    assert_eq!(code, Some(0), "{printed}");
    signal(up.id(), Signal::INT);
    let (code, screen) = up.finish();
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn logging_out_of_all_servers_reports_each_record() {
    let (place, issuer) = (Place::new(), issuer());
    log_in(&place, &issuer, &[]);
    log_in(&place, &issuer, &["--account", "work"]);
    let (printed, code) = place.run(&["logout", "--all", "--json"]);
    assert_eq!(code, Some(0), "{printed}");
    let printed: serde_json::Value = serde_json::from_str(&printed).expect("it is JSON");
    let outcomes: Vec<_> =
        printed.as_array().expect("it is a list").iter().map(|one| &one["outcome"]).collect();
    assert_eq!(outcomes, ["revoked", "revoked"]);
    assert_eq!(stored(&place), Vec::<String>::new());
}

/// An issuer whose tool needs another scope than a login gets.
fn stepping_up() -> Issuer {
    let needed_scope = Some("notes:write".to_owned());
    Issuer::start(State { first_lifetime: 3600, needed_scope, ..State::default() })
}

#[test]
fn a_call_at_a_terminal_offers_a_login_for_the_scope_of_its_tool() {
    let (place, issuer) = (Place::new(), stepping_up());
    let server = issuer.server();
    log_in(&place, &issuer, &[]);
    let start = || {
        let mut command = place.program(&["call", &server, "read", REVISION[0], REVISION[1]]);
        command.env("TERM", "xterm");
        Pty::sized(with_browser(&place, command), 40, 200)
    };
    let mut pty = start();
    pty.expect("Log in now? [y/n]");
    let screen = pty.screen();
    assert!(
        screen.contains(&format!("needs a login at {} for notes:read notes:write", issuer.url)),
        "{screen}"
    );
    pty.enter("n");
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(7), "{screen}");
    assert!(screen.contains("you declined it") && !screen.contains("milk"), "{screen}");
    assert_eq!(issuer.with(|state| state.requests["/authorize"]), 1, "that of the login");
    let mut pty = start();
    pty.expect("Log in now? [y/n]").enter("y");
    get(&consent(&opened(&place)));
    let (code, screen) = pty.finish();
    assert_eq!(code, Some(0), "{screen}");
    // The call is repeated with the new token, and the scopes of the login are kept.
    assert!(screen.contains("milk"), "{screen}");
    assert_eq!(issuer.with(|state| state.authorization["scope"].clone()), "notes:read notes:write");
    let (output, code) = place.run(&["call", &server, "read", REVISION[0], REVISION[1]]);
    assert_eq!((output.as_str(), code), ("milk\n", Some(0)));
    assert_eq!(issuer.with(|state| state.requests["/authorize"]), 2);
}

#[test]
fn without_a_terminal_the_missing_scope_is_named_with_the_command_that_gets_it() {
    let (place, issuer) = (Place::new(), stepping_up());
    let server = issuer.server();
    log_in(&place, &issuer, &[]);
    let call = ["call", &server, "read", REVISION[0], REVISION[1]];
    let (output, code) = place.run(&call);
    assert_eq!(code, Some(7), "{output}");
    let advice =
        output.lines().find_map(|line| line.trim().strip_prefix("run `bowline ")).expect("it advises");
    let words: Vec<&str> = advice.trim_end_matches('`').split(' ').collect();
    assert_eq!(words[..2], ["login", &server], "{output}");
    assert!(words.contains(&"notes:write"), "{output}");
    // The advice works as it is printed.
    let login = Background::start(with_browser(&place, place.program(&words)));
    get(&consent(&opened(&place)));
    let (code, output) = login.end();
    assert_eq!(code, Some(0), "{output}");
    assert_eq!(place.run(&call), ("milk\n".to_owned(), Some(0)));
    let (output, _) = place.run(&["whoami"]);
    assert!(output.contains("notes:read notes:write"), "{output}");
}
