//! Tasks: starting, showing, waiting, answering and cancelling.

use crate::place::Place;
use expect_test::{Expect, expect};
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/servers/tasks.sh");

#[expect(clippy::needless_pass_by_value, reason = "a snapshot is written where it is used")]
fn check(words: &[&str], code: i32, expected: Expect) {
    let place = Place::new();
    place.put("here/answers.json", r#"{"elicitation": [{"action": "accept", "content": {"name": "Ann"}}]}"#);
    let words: Vec<&str> = words.iter().copied().chain(["--", "/bin/sh", SERVER]).collect();
    let (output, exit) = place.run(&words);
    expected.assert_eq(&output);
    assert_eq!(exit, Some(code), "{words:?}");
}

#[test]
fn a_call_waits_for_its_task() {
    check(
        &["call", "build"],
        0,
        expect![[r"
        built
    "]],
    );
}

#[test]
fn a_call_can_be_detached() {
    check(
        &["call", "build", "--detach"],
        0,
        expect![[r"
        t-done
        warning: the server ends with this command; the task goes on only if the server stores its tasks
        run `bowline tasks wait t-done -- /bin/sh …` for the result
    "]],
    );
    check(
        &["call", "build", "--detach", "--json"],
        0,
        expect![[r#"
        {
          "task": {
            "taskId": "t-done",
            "status": "working",
            "statusMessage": null,
            "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:01Z",
            "ttlMs": 60000,
            "pollIntervalMs": 50
          }
        }
        warning: the server ends with this command; the task goes on only if the server stores its tasks
        run `bowline tasks wait t-done -- /bin/sh …` for the result
    "#]],
    );
}

#[test]
fn a_task_is_shown_with_its_questions() {
    check(
        &["tasks", "show", "t-work"],
        0,
        expect![[r"
        task     t-work
        status   working: half way
        created  2026-01-01T00:00:00Z
        changed  2026-01-01T00:00:01Z
        kept     for 60 s after its creation
    "]],
    );
    check(
        &["tasks", "show", "t-ask"],
        0,
        expect![[r"
        task     t-ask
        status   input_required
        created  2026-01-01T00:00:00Z
        changed  2026-01-01T00:00:01Z
        kept     for 60 s after its creation
        question q1: Your name?
        run `bowline tasks answer t-ask -- /bin/sh …` to answer
    "]],
    );
    check(
        &["tasks", "show", "t-ask", "--json"],
        0,
        expect![[r#"
        {
          "task": {
            "taskId": "t-ask",
            "status": "input_required",
            "statusMessage": null,
            "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:01Z",
            "ttlMs": 60000,
            "pollIntervalMs": 50
          },
          "questions": {
            "q1": {
              "method": "elicitation/create",
              "params": {
                "message": "Your name?",
                "requestedSchema": {
                  "type": "object",
                  "properties": {
                    "name": {
                      "type": "string"
                    }
                  },
                  "required": [
                    "name"
                  ]
                }
              }
            }
          }
        }
    "#]],
    );
    check(
        &["tasks", "show", "t-none"],
        5,
        expect![[r"
        error: the server does not know task `t-none`, or it has expired: no such task
    "]],
    );
}

#[test]
fn the_result_of_a_task_is_the_result_of_the_call() {
    check(
        &["tasks", "wait", "t-done"],
        0,
        expect![[r"
        built
    "]],
    );
    check(
        &["tasks", "wait", "t-done", "--json"],
        0,
        expect![[r#"
        {
          "content": [
            {
              "type": "text",
              "text": "built"
            }
          ],
          "isError": false
        }
    "#]],
    );
    check(
        &["tasks", "wait", "t-bad"],
        1,
        expect![[r"
        no disk
        error: the tool returned an error
    "]],
    );
    check(
        &["tasks", "wait", "t-failed"],
        5,
        expect![[r"
        error: the server returned an error: crashed (-32050)
    "]],
    );
    check(
        &["tasks", "wait", "t-cancelled"],
        1,
        expect![[r"
        error: task `t-cancelled` was cancelled
    "]],
    );
    check(
        &["tasks", "wait", "t-none"],
        5,
        expect![[r"
        error: the server does not know task `t-none`, or it has expired: no such task
    "]],
    );
    check(
        &["tasks", "wait", "t-ask"],
        7,
        expect![[r"
        error: the server requested input that this client cannot provide: method not found: elicitation/create (-32601) (task `t-ask`)
          the task asks for input: run the command in a terminal, or pass `--answers FILE`
    "]],
    );
    check(
        &["tasks", "result", "t-done"],
        0,
        expect![[r"
        built
    "]],
    );
    check(
        &["tasks", "result", "t-work"],
        1,
        expect![[r"
        error: the task has not ended: working: half way
          run `bowline tasks wait t-work -- /bin/sh …` to wait for it
    "]],
    );
}

#[test]
fn questions_of_a_task_are_answered() {
    check(
        &["tasks", "answer", "t-ask", "--answers", "answers.json"],
        0,
        expect![[r"
        answered 1 question
    "]],
    );
    check(
        &["tasks", "answer", "t-ask", "--answers", "answers.json", "--json"],
        0,
        expect![[r#"
        {
          "answered": 1
        }
    "#]],
    );
    check(
        &["tasks", "answer", "t-work"],
        0,
        expect![[r"
        the task has no open questions
    "]],
    );
}

#[test]
fn tasks_are_cancelled_and_listed() {
    check(
        &["tasks", "cancel", "t-work"],
        0,
        expect![[r"
        the server was asked to cancel the task
    "]],
    );
    check(
        &["tasks", "list"],
        5,
        expect![[r"
        error: the server does not support `tasks/list`
          only servers of 2025-11-25 list tasks; use an id that `bowline call --detach` printed
    "]],
    );
    check(
        &["tasks", "list", "--revision", "2025-11-25"],
        0,
        expect![[r"
        t-1  working: half way
        t-2  completed
    "]],
    );
    check(
        &["tasks", "list", "--revision", "2025-11-25", "--json"],
        0,
        expect![[r#"
        {
          "tasks": [
            {
              "taskId": "t-1",
              "status": "working",
              "statusMessage": "half way",
              "createdAt": "2026-01-01T00:00:00Z",
              "lastUpdatedAt": "2026-01-01T00:00:01Z",
              "ttlMs": 60000,
              "pollIntervalMs": null
            },
            {
              "taskId": "t-2",
              "status": "completed",
              "statusMessage": null,
              "createdAt": "2026-01-01T00:00:00Z",
              "lastUpdatedAt": "2026-01-01T00:00:01Z",
              "ttlMs": null,
              "pollIntervalMs": null
            }
          ]
        }
    "#]],
    );
    check(
        &["tasks", "show"],
        2,
        expect![[r"
        error: missing task id
          `bowline call --detach` prints the id of the task that it starts
    "]],
    );
}

#[test]
fn an_interrupted_wait_says_how_to_continue() {
    let place = Place::new();
    let words = ["tasks", "wait", "t-work", "--trace", "--", "/bin/sh", SERVER];
    let mut command = place.program(&words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let asked = lines.by_ref().any(|line| line.contains("tasks/get"));
    assert!(asked, "the task is asked for");
    let killed = Command::new("/bin/sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(killed.success());
    // How much was traced and reported before the signal arrived differs.
    let is_early = |line: &String| line.contains("jsonrpc") || line.starts_with("progress: ");
    let end: Vec<String> = lines.filter(|line| !is_early(line)).collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    expect![[r"
        error: interrupted; the task goes on
          run `bowline tasks wait t-work -- /bin/sh …` to continue
          run `bowline tasks cancel t-work -- /bin/sh …` to cancel it
    "]]
    .assert_eq(&place.masked(&format!("{}\n", end.join("\n"))));
}

#[test]
fn a_question_of_a_task_is_trusted_as_little_as_a_direct_one() {
    // proves: TASKX-58
    let place = Place::new();
    place.put("here/accept.json", r#"{"elicitation": [{"action": "accept", "content": {"confirm": true}}]}"#);
    place.put("here/decline.json", r#"{"elicitation": [{"action": "decline"}]}"#);
    // In 2025-06-18 the server asks in a request of its own, in 2026-07-28 in the state of a task.
    let called = |revision: &str, options: &[&str]| {
        let mut words =
            vec!["call", "everything", "confirm_delete", "filename=a.txt", "--revision", revision];
        words.extend(options);
        place.run(&words)
    };
    for (file, result) in [("accept.json", "deleted a.txt"), ("decline.json", "kept a.txt")] {
        let direct = called("2025-06-18", &["--answers", file]);
        assert_eq!(called("2026-07-28", &["--answers", file]), direct, "{file}");
        assert!(direct.0.contains(result), "{file}: {direct:?}");
    }
    // Without a terminal and without answers, nobody agrees for the user.
    for revision in ["2025-06-18", "2026-07-28"] {
        let (output, code) = called(revision, &[]);
        assert!(code != Some(0) && !output.contains("deleted"), "{revision}: {code:?} {output}");
    }
}
