//! Help, lists, JSON output, and errors of the commands that inspect a server.

use crate::{place::Place, program};
use expect_test::{expect, expect_file};
use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

/// The commands that address one server.
const COMMANDS: [&str; 19] = [
    "call",
    "complete",
    "completions",
    "config",
    "gateway",
    "info",
    "man",
    "ping",
    "prompt",
    "prompts",
    "read",
    "repl",
    "request",
    "resources",
    "serve",
    "templates",
    "tools",
    "up",
    "watch",
];

#[test]
fn positional_arguments_are_documented() {
    for command in ["call", "request", "tools"] {
        let output = program(&[command, "--help"]).output().expect("the program can be started");
        assert_eq!(output.status.code(), Some(0), "{command}");
        expect_file![format!("help/{command}.txt")].assert_eq(&String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn help_is_also_a_command() {
    let place = Place::new();
    assert_eq!(place.run(&["help"]), place.run(&["--help"]));
    assert_eq!(place.run(&["help", "call"]), place.run(&["call", "--help"]));
}

#[test]
fn the_exit_codes_are_documented_in_the_help() {
    for words in [["--help"].as_slice(), &["man"]] {
        let output = program(words).output().expect("the program can be started");
        let text = String::from_utf8_lossy(&output.stdout).replace("\\-", "-");
        assert!(
            text.contains("the server cannot be started or reached, or the connection was lost"),
            "{text}"
        );
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let place = Place::new();
    place.check(&["man", "pages"], 0, &expect![[""]]);
    for command in COMMANDS {
        assert!(place.get(&format!("here/pages/bowline-{command}.1")).contains("SYNOPSIS"), "{command}");
    }
    assert!(!place.path("here/pages/bowline-__complete.1").exists());
}

/// Masks times and versions.
fn untimed(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(" ms") {
        Some((before, after)) => {
            let kept = before.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
            format!("{kept}* ms{after}")
        }
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n").replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

#[test]
fn info_describes_a_server() {
    let place = Place::new();
    let (printed, code) = place.run(&["info", "everything"]);
    expect![[r#"
        server        everything VERSION (Everything)
        description   Demonstrates every feature of every protocol revision
        website       https://github.com/bowline-mcp/bowline
        revision      2026-07-28 (modern)
        capabilities  tools (list changes), resources (list changes, subscriptions), prompts (list changes), completions, logging, io.modelcontextprotocol/tasks
        connected in  * ms

        Demonstrates every feature of the protocol. Start with `echo` and `sum`; `wait` reports progress, `sign_in` and `test_elicitation` ask the user, `letters` uses the client's model."#]].assert_eq(&untimed(&printed));
    assert_eq!(code, Some(0));
    let (printed, code) = place.run(&["ping", "everything"]);
    expect!["response after * ms, revision 2026-07-28"].assert_eq(&untimed(&printed));
    assert_eq!(code, Some(0));
}

#[test]
fn info_and_ping_have_stable_json() {
    let place = Place::new();
    let read = |words: &[&str]| -> serde_json::Value {
        let (printed, code) = place.run(words);
        assert_eq!(code, Some(0), "{printed}");
        serde_json::from_str(&printed).expect("it is JSON")
    };
    let members = |value: &serde_json::Value| {
        let mut names: Vec<String> = value.as_object().expect("it is an object").keys().cloned().collect();
        names.sort();
        names
    };
    let info = read(&["info", "everything", "--json"]);
    assert_eq!(members(&info), ["capabilities", "era", "instructions", "milliseconds", "revision", "server"]);
    assert_eq!(info["server"]["name"], "everything");
    let ping = read(&["ping", "everything", "--json", "--revision", "2025-06-18"]);
    assert_eq!(members(&ping), ["milliseconds", "revision"]);
    assert_eq!(ping["revision"], "2025-06-18");
}

#[test]
fn lists_are_printed() {
    let place = Place::new();
    let (printed, _) = place.run(&["tools", "everything"]);
    assert!(
        printed.lines().any(|line| line.starts_with("echo  ") && line.ends_with("  Return the message.")),
        "{printed}"
    );
    place.check(
        &["resources", "everything"],
        0,
        &expect![[r#"
            test://static-text       static_text (text/plain): A static text resource.
            test://static-binary     static_binary (image/png): A static image resource.
            test://watched-resource  watched_resource (text/plain): A resource to subscribe to.
            test://rules             The rules (text/plain)
            test://planets/mercury   mercury (text/plain)
            test://planets/venus     venus (text/plain)
            test://planets/earth     earth (text/plain)
        "#]],
    );
    place.check(
        &["templates", "everything"],
        0,
        &expect![[r#"
            test://template/{id}/data  template: A row of data by id.
        "#]],
    );
    place.check(&["prompts", "everything"], 0, &expect![[r#"
        test_input_required_result_prompt   A prompt that asks the user for context.
        test_simple_prompt                  A prompt without arguments.
        test_prompt_with_arguments          arg1= arg2= A prompt with two arguments.
        test_prompt_with_embedded_resource  resourceUri= A prompt with an embedded resource.
        test_prompt_with_image              A prompt with an image.
        travel                              country= [city=] Plan a trip. The completion of the city depends on the country.
    "#]]);
    place.check(
        &["templates", "everything", "--json"],
        0,
        &expect![[r#"
            {
              "resourceTemplates": [
                {
                  "uriTemplate": "test://template/{id}/data",
                  "name": "template",
                  "description": "A row of data by id."
                }
              ]
            }
        "#]],
    );
}

#[test]
fn lists_in_json_use_the_protocol_format() {
    let place = Place::new();
    for (command, member) in [
        ("tools", "tools"),
        ("resources", "resources"),
        ("templates", "resourceTemplates"),
        ("prompts", "prompts"),
    ] {
        let (printed, code) = place.run(&[command, "everything", "--json"]);
        assert_eq!(code, Some(0), "{printed}");
        let listed: serde_json::Value = serde_json::from_str(&printed).expect("it is JSON");
        assert!(listed[member].as_array().is_some_and(|listed| !listed.is_empty()), "{printed}");
    }
}

#[test]
fn a_tool_is_described_with_arguments_and_result() {
    let place = Place::new();
    place.check(
        &["tools", "everything", "sum"],
        0,
        &expect![[r#"
            sum
            Sum

            Add numbers and return the sum as structured content.

            Hints: read-only, idempotent, closed world

            Arguments
              numbers  array of number, 1 to 1000, required
                  The numbers to add.

            Result
              count  integer, at least 0, required
                  How many numbers were added.
              sum  number, required
                  The sum.
        "#]],
    );
    place.check(
        &["tools", "everything", "wait"],
        0,
        &expect![[r#"
            wait
            Wait

            Wait for some seconds and report progress. Can be cancelled.

            Hints: read-only, closed world

            Arguments
              seconds  integer, 1 to 3600, required
                  How long to wait, in seconds.
        "#]],
    );
    place.check(
        &["tools", "everything", "smu"],
        2,
        &expect![[r"
        error: the server has no tool `smu`
          did you mean `sum`?
    "]],
    );
}

#[test]
fn nested_arguments_are_indented() {
    let place = Place::new();
    place.check(
        &["tools", "edit_file", "--", "bowline", "serve", "files", "--write"],
        0,
        &expect![[r#"
            edit_file
            Edit a file

            Replace exact text in a file and return a diff.

            Hints: destructive, closed world

            Arguments
              path  string, required
                  The path of the file.
              edits  array of object, required
                  The edits, applied in order.
                old_text  string, required
                    The text to replace, exactly as it is in the file.
                new_text  string, required
                    The replacement.
                replace_all  boolean, default false
                    Replace all occurrences. Otherwise the text must occur exactly once.
              dry_run  boolean, default false
                  Only return the diff, without writing the file.

            Result
              path  string, required
                  The path of the file.
              diff  string, required
                  The changes as a unified diff.
              written  boolean, required
                  Whether the file was written.
        "#]],
    );
}

#[test]
fn resources_prompts_and_completions_are_shown() {
    let place = Place::new();
    place.check(
        &["read", "everything", "test://planets/earth"],
        0,
        &expect![[r"
        earth has readers
    "]],
    );
    place.check(
        &["read", "everything", "test://planets/earth", "--json"],
        0,
        &expect![[r#"
        {
          "contents": [
            {
              "uri": "test://planets/earth",
              "mimeType": "text/plain",
              "text": "earth has readers"
            }
          ]
        }
    "#]],
    );
    place.check(
        &["read", "everything", "test://planets/pluto"],
        5,
        &expect![[r"
        error: the server returned an error: resource not found: test://planets/pluto (-32602)
    "]],
    );
    place.check(
        &["read", "everything"],
        2,
        &expect![[r#"
            error: missing resource URI
              run `bowline resources everything` to list the resources
        "#]],
    );
    place.check(
        &["prompt", "everything", "travel", "country=Italy", "city=Rome"],
        0,
        &expect![[r"
        [user]
        Plan a weekend in Rome, Italy.

        [assistant]
        Gladly. What do you like to see?
    "]],
    );
    place.check(
        &["prompt", "everything", "travel", "country=Italy", "--json"],
        0,
        &expect![[r#"
            {
              "description": "Plan a trip. The completion of the city depends on the country.",
              "messages": [
                {
                  "role": "user",
                  "content": {
                    "type": "text",
                    "text": "Plan a weekend in Italy."
                  }
                },
                {
                  "role": "assistant",
                  "content": {
                    "type": "text",
                    "text": "Gladly. What do you like to see?"
                  }
                }
              ]
            }
        "#]],
    );
    place.check(
        &["prompt", "everything", "travel", "land=Italy"],
        2,
        &expect![[r#"
            error: travel: unknown argument `land`; known arguments: country, city
        "#]],
    );
    place.check(
        &["prompt", "everything", "travel"],
        2,
        &expect![[r#"
            error: travel: missing required argument `country`
              run `bowline prompts everything` to see its arguments
        "#]],
    );
    place.check(&["prompt", "everything", "journey"], 2, &expect![[r#"
        error: the server has no prompt `journey`
          available: test_input_required_result_prompt, test_simple_prompt, test_prompt_with_arguments, test_prompt_with_embedded_resource, test_prompt_with_image, travel
    "#]]);
    place.check(
        &["complete", "everything", "travel", "city=P", "country=Italy"],
        0,
        &expect![[r"
        Pisa
    "]],
    );
    place.check(
        &["complete", "everything", "travel", "city=P", "--json"],
        0,
        &expect![[r#"
        {
          "values": [
            "Paris",
            "Pisa"
          ],
          "total": null,
          "hasMore": null
        }
    "#]],
    );
    place.check(
        &["complete", "everything", "travel"],
        2,
        &expect![[r#"
        error: expected a prompt or URI template and the argument to complete, such as `code language=py`
    "#]],
    );
}

#[test]
fn a_blob_is_saved_and_reported() {
    let place = Place::new();
    place.check(
        &["read", "everything", "test://static-binary", "-o", "files"],
        0,
        &expect![[r"
        saved files/static-binary.png (image/png, 69 bytes)
    "]],
    );
    place.check(
        &["read", "everything", "test://static-binary", "-o", "files"],
        0,
        &expect![[r"
        saved files/static-binary-2.png (image/png, 69 bytes)
    "]],
    );
    assert!(place.path("here/files/static-binary.png").exists());
}

#[test]
fn unknown_and_unreachable_servers_get_hints() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", "[servers.notes]\ncommand = \"/no/such/program\"\n");
    place.check(
        &["tools", "note"],
        3,
        &expect![[r#"
            error: unknown server `note`
              did you mean `notes`?
              configured servers: notes
              built-in servers: files, git, database, web, everything
              to start a program, put it after `--`: `bowline tools -- note`
        "#]],
    );
    for address in ["localhost:7337", "ftp://example.com"] {
        let (printed, code) = place.run(&["tools", address]);
        assert!(printed.ends_with("\n  URLs start with http:// or https://\n"), "{printed}");
        assert_eq!(code, Some(3));
    }
    place.check(
        &["tools", "notes"],
        4,
        &expect![[r"
        error: program `/no/such/program` not found
    "]],
    );
    place.check(
        &["tools", "notes", "--header", "X=1"],
        2,
        &expect![[r"
        error: `--header` and `--bearer-env` need a server with a URL, but `notes` is not one
    "]],
    );
    place.check(
        &["tools", "http://127.0.0.1:1/mcp", "--bearer-env", "TOKEN"],
        2,
        &expect![[r"
        error: environment variable `TOKEN` is not set; expected a token
    "]],
    );
    let (printed, code) = place.run(&["tools", "http://127.0.0.1:1/mcp"]);
    assert!(printed.starts_with("error: http://127.0.0.1:1/mcp: the server cannot be reached"), "{printed}");
    assert_eq!(code, Some(4));
}

#[test]
fn changes_of_a_server_are_watched() {
    let place = Place::new();
    let mut server = place
        .program(&["serve", "everything", "--http", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut url = String::new();
    let stdout = server.stdout.take().expect("it is a pipe");
    BufReader::new(stdout).read_line(&mut url).expect("it prints its URL");
    let watch = place
        .program(&["watch", url.trim(), "--count", "1", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut watch = watch.expect("the program can be started");
    // The start of the watch is not observable, so events are sent until it ends.
    while watch.try_wait().expect("it is our child").is_none() {
        let (printed, code) = place.run(&["call", url.trim(), "test_trigger_tool_change"]);
        assert_eq!(code, Some(0), "{printed}");
    }
    let output = watch.wait_with_output().expect("it has ended");
    let line = String::from_utf8_lossy(&output.stdout);
    let mut news: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
    let time = news["time"].take();
    assert!(time.as_str().is_some_and(|time| time.starts_with("20") && time.ends_with('Z')), "{line}");
    assert_eq!(
        news,
        serde_json::json!({
            "time": null, "method": "notifications/tools/list_changed", "params": {},
        })
    );
    server.kill().expect("it is our child");
    server.wait().expect("it is our child");
}

#[test]
fn watch_stops_after_the_given_count() {
    let place = Place::new();
    place.check(
        &["watch", "everything", "--for", "1ms"],
        0,
        &expect![[r#"
            watching `everything`; press Ctrl-C to stop
        "#]],
    );
    place.check(
        &["watch", "everything", "--count", "0", "--json"],
        0,
        &expect![[r#"
            watching `everything`; press Ctrl-C to stop
        "#]],
    );
    place.check(&["watch", "everything", "--level", "loud"], 2, &expect![[r"
        error: invalid value 'loud' for '--level <LEVEL>': expected a level from `debug` to `emergency`, got `loud`

        For more information, try '--help'.
    "]]);
}
