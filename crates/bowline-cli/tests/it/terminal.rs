//! The program at a terminal: questions, progress, approval.

use crate::{
    place::{Place, signal},
    pty::Pty,
};
use expect_test::expect;

fn start(place: &Place, words: &[&str]) -> Pty {
    let mut command = place.program(words);
    command.env("TERM", "xterm").env("NO_COLOR", "1");
    Pty::start(command)
}

#[test]
fn a_form_is_filled_in_field_by_field() {
    let place = Place::new();
    let mut pty = start(&place, &["call", "everything", "test_elicitation", "message=Who are you?"]);
    pty.expect("name.\neverything>").enter("");
    pty.expect("required\neverything>").enter("ann");
    pty.expect("address.\neverything>").enter("nobody");
    pty.expect("`nobody`\neverything>").enter("ann@example.com");
    pty.expect("cancel\neverything>").enter("s");
    let (code, screen) = pty.finish();
    expect![[r#"

        [everything] The server asks you to fill in a form.
          | Who are you?
          (Enter: default or skip; "": empty text; :decline: decline; :cancel: cancel)

          1/2 username: text, required
          | User's name.
        everything>
          ! this field is required
        everything> ann

          2/2 email: email address, required
          | User's email address.
        everything> nobody
          ! expected an email address, got `nobody`
        everything> ann@example.com

          This is what `everything` will get:
          | username: "ann"
          | email: "ann@example.com"
        [s] send  [e] fill in again  [n] no  [c] cancel
        everything> s
        User response: accept Account { username: "ann", email: "ann@example.com" }"#]]
    .assert_eq(&screen);
    assert_eq!(code, Some(0));
}

#[test]
fn a_question_can_be_declined() {
    let place = Place::new();
    let mut pty = start(&place, &["call", "everything", "test_elicitation", "message=Who are you?"]);
    pty.expect("everything>").enter(":decline");
    let (code, screen) = pty.finish();
    assert!(screen.contains("decline"), "{screen}");
    assert_eq!(code, Some(0));
}

#[test]
fn a_url_is_shown_with_its_host_and_needs_consent() {
    // proves: ELIF-26, ELIU-19, ELIU-22, ELIU-24
    // V-103
    let place = Place::new();
    let mut pty = start(&place, &["call", "everything", "sign_in"]);
    pty.expect("everything>").enter("n");
    let (code, screen) = pty.finish();
    expect![[r#"

        [everything] The server asks you to open a URL. Open it?
          | Please sign in.
          host: example.com
          the whole URL: https://example.com/sign-in
        [y] yes  [n] no  [c] cancel
        everything> n
        the user declined"#]]
    .assert_eq(&screen);
    assert_eq!(code, Some(0));
}

#[test]
fn missing_arguments_are_prompted_for() {
    let place = Place::new();
    let mut pty = start(&place, &["call", "everything", "wait"]);
    pty.expect("seconds (").enter("soon").expect("expected integer").enter("1");
    let (code, screen) = pty.finish();
    assert!(screen.ends_with("waited 1 s"), "{screen}");
    assert_eq!(code, Some(0));
}

#[test]
fn a_call_can_be_interrupted_during_progress() {
    use rustix::process::{Pid, Signal, kill_process};

    let place = Place::new();
    let mut pty = start(&place, &["call", "everything", "wait", "seconds=3600"]);
    pty.expect("0% 1 s elapsed");
    let id = i32::try_from(pty.id()).ok().and_then(Pid::from_raw).expect("it runs");
    kill_process(id, Signal::INT).expect("it is our child");
    let (code, screen) = pty.finish();
    expect!["error: interrupted"].assert_eq(&screen);
    assert_eq!(code, Some(130));
}

#[test]
fn the_startup_time_of_a_server_is_shown() {
    let place = Place::new();
    let mut pty = start(&place, &["tools", "--", "sleep", "600"]);
    pty.expect("starting sleep 600 (1 s), Ctrl-C to stop").expect("starting sleep 600 (2 s)");
    signal(pty.id(), rustix::process::Signal::INT);
    let (code, screen) = pty.finish();
    assert_eq!((code, screen.as_str()), (Some(130), "error: interrupted"));
    // The line disappears when the server responds.
    let slow = format!("sleep 2; exec {} serve everything", env!("CARGO_BIN_EXE_bowline"));
    let mut pty = start(&place, &["ping", "--", "/bin/sh", "-c", &slow]);
    pty.expect("starting /bin/sh -c sleep 2; exec");
    let (code, screen) = pty.finish();
    assert!(screen.starts_with("response after "), "{screen}");
    assert_eq!(code, Some(0));
}

#[test]
fn an_unsupported_list_fails_the_same_at_a_terminal() {
    let place = Place::new();
    for (tool, advice) in [
        ("test_input_required_result_sampling", "[sampling]"),
        ("test_input_required_result_list_roots", "--root DIR"),
    ] {
        let (code, screen) = start(&place, &["call", "everything", tool]).finish();
        assert!(screen.contains(advice), "{screen}");
        assert_eq!(code, Some(7));
    }
}

#[test]
fn no_input_disables_prompts_at_a_terminal() {
    let place = Place::new();
    let pty = start(&place, &["--no-input", "call", "everything", "wait"]);
    let (code, screen) = pty.finish();
    assert!(screen.contains("missing required argument `seconds`"), "{screen}");
    assert_eq!(code, Some(2));
}

#[test]
fn a_stdio_server_at_a_terminal_prints_a_hint() {
    let place = Place::new();
    let mut pty = start(&place, &["serve", "everything"]);
    pty.expect("serving MCP on standard input and output");
    pty.enter("\u{4}");
    assert_eq!(pty.finish().0, Some(0));
}

#[test]
fn json_results_are_formatted_at_a_terminal() {
    let place = Place::new();
    let (_, screen) = start(&place, &["call", "everything", "sum", "numbers=1"]).finish();
    expect![[r#"
        {
          "count": 1,
          "sum": 1.0
        }"#]]
    .assert_eq(&screen);
}

#[test]
fn lists_of_objects_are_shown_as_tables() {
    let place = Place::new();
    let rows = r#"[{"id":1,"name":"Ann","note":"likes\nlong walks and much else that does not fit into a narrow terminal"},{"id":20,"name":"Bo"}]"#;
    place.put("here/rows.json", rows);
    let words = ["call", "files", "read_file", "path=rows.json"];
    let (_, screen) = start(&place, &words).finish();
    expect![[r#"
        id  name  note
        1   Ann   likes long walks and much else that does not fit into a narrow termin…
        20  Bo"#]]
    .assert_eq(&screen);
    // Without a terminal the text is unchanged.
    assert_eq!(place.run(&words).0.trim_end(), rows);
}

#[test]
fn markdown_and_json_are_colored_unless_no_color_is_set() {
    let place = Place::new();
    place.put("here/notes.md", "# Plan\n\n- see [the docs](https://example.com) and **wait**\n");
    place.put("here/data.json", r#"{"a": [1, "x\u009b2J"]}"#);
    let colored = |path: &str| {
        let mut command = place.program(&["call", "files", "read_file", path]);
        command.env("TERM", "xterm").env_remove("NO_COLOR");
        Pty::start(command).finish_with_colors()
    };
    let (screen, colors) = colored("path=notes.md");
    expect![[r#"
        Plan

        • see the docs (https://example.com) and wait"#]]
    .assert_eq(&screen);
    assert!(colors.contains("\u{1b}["), "{colors:?}");
    let (screen, colors) = colored("path=data.json");
    expect![[r#"
        {
          "a": [
            1,
            "x\u009b2J"
          ]
        }"#]]
    .assert_eq(&screen);
    assert!(colors.contains("\u{1b}[36m\"a\""), "{colors:?}");
    let (_, screen) = start(&place, &["call", "files", "read_file", "path=notes.md"]).finish();
    expect![[r#"
        # Plan

        - see [the docs](https://example.com) and **wait**"#]]
    .assert_eq(&screen);
}

#[test]
fn tables_fit_the_terminal() {
    let place = Place::new();
    let (_, screen) = start(&place, &["prompts", "everything"]).finish();
    expect![[r#"
        test_input_required_result_prompt   A prompt that asks the user for context.
        test_simple_prompt                  A prompt without arguments.
        test_prompt_with_arguments          arg1= arg2= A prompt with two arguments.
        test_prompt_with_embedded_resource  resourceUri= A prompt with an embedded reso…
        test_prompt_with_image              A prompt with an image.
        travel                              country= [city=] Plan a trip. The completio…"#]]
    .assert_eq(&screen);
}

#[test]
fn a_server_of_the_project_runs_only_after_approval() {
    // proves: SEC-28, SEC-30
    // V-70
    let place = Place::new();
    let entry = format!(
        "[servers.theirs]\ncommand = {:?}\nargs = [\"serve\", \"everything\"]\n",
        env!("CARGO_BIN_EXE_bowline")
    );
    place.put("here/bowline.toml", &entry);
    let words = ["call", "theirs", "echo", "message=hi"];
    let (printed, code) = place.run(&words);
    assert!(printed.contains("not approved"), "{printed}");
    assert_eq!(code, Some(7));
    let mut pty = start(&place, &words);
    pty.expect("[n] no").enter("n");
    let (code, screen) = pty.finish();
    assert!(screen.contains("was not approved"), "{screen}");
    assert_eq!(code, Some(7));
    // The user can also leave it undecided; nothing counts as an answer.
    for keys in ["\nc\n", "\u{4}"] {
        let mut pty = start(&place, &words);
        pty.expect("[c] cancel").keys(keys);
        let (code, screen) = pty.finish();
        assert!(screen.contains("its approval was cancelled"), "{screen}");
        assert_eq!(code, Some(7));
    }
    let mut pty = start(&place, &words);
    pty.expect("[y] yes").enter("y");
    let (code, screen) = pty.finish();
    assert!(screen.ends_with("\nhi"), "{screen}");
    assert_eq!(code, Some(0));
    assert_eq!(place.run(&words), ("hi\n".to_owned(), Some(0)));
    place.put("here/bowline.toml", &entry.replace("\"everything\"", "\"everything\", \"--log\", \"error\""));
    assert_eq!(place.run(&words).1, Some(7));
}

#[test]
fn the_repl_completes_names_and_values() {
    let place = Place::new();
    let mut pty = start(&place, &["repl", "everything"]);
    pty.expect("everything>").enter("call ec\tmessage=hi").expect("\nhi");
    pty.enter("prompt trav\tcountry=It\t").expect("weekend in Italy");
    pty.enter("quit");
    assert_eq!(pty.finish().0, Some(0));
    assert!(place.get("user/.local/state/bowline/history").contains("country=Italy"));
}
