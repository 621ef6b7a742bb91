//! Arguments of a call: words, JSON, files and standard input.

use super::*;

#[test]
fn arguments_can_be_sent_unchecked() {
    let place = Place::new();
    // The error comes from the server, not from the program.
    for words in [
        &["sum", "numbers=many"][..],
        &["sum"],
        &["echo", "mesage=hi"],
        &["wait", r#"{"seconds": "long"}"#],
        &["no_such_tool", "a=1"],
    ] {
        let (checked, code) = place.run(&[&["call", "everything"], words].concat());
        assert_eq!(code, Some(2), "{checked}");
        let (printed, code) = place.run(&[&["call", "everything", "--unchecked"], words].concat());
        assert!(code == Some(1) || code == Some(5), "{code:?} {printed}");
    }
    // Valid values are still converted by the schema.
    assert_eq!(
        place.run(&["call", "everything", "--unchecked", "echo", "message=5"]),
        ("5\n".to_owned(), Some(0))
    );
}

#[test]
fn arguments_come_from_words_json_files_and_standard_input() {
    let place = Place::new();
    place.put("here/all.json", r#"{"numbers": [1, 2]}"#);
    place.put("here/text", "from a file");
    let sum = |words: &[&str]| place.run(&[&["call", "everything", "sum"], words].concat()).0;
    let three = "{\"count\":2,\"sum\":3.0}\n";
    assert_eq!(sum(&["numbers=1", "numbers=2"]), three);
    assert_eq!(sum(&["numbers=[1, 2]"]), three);
    assert_eq!(sum(&["numbers:=[1, 2]"]), three);
    assert_eq!(sum(&["--args", r#"{"numbers": [1, 2]}"#]), three);
    assert_eq!(sum(&["@all.json"]), three);
    place.check(
        &["call", "everything", "echo", "message=@text"],
        0,
        &expect![[r"
        from a file
    "]],
    );
    let mut child = place
        .program(&["call", "everything", "sum", "@-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut input = child.stdin.take().expect("it is a pipe");
    input.write_all(br#"{"numbers": [1, 2]}"#).expect("it is read");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), three);
}

#[test]
fn arguments_that_violate_the_schema_are_not_sent() {
    let place = Place::new();
    place.check(
        &["call", "everything", "ecko", "message=hi"],
        2,
        &expect![[r"
        error: the server has no tool `ecko`
          did you mean `echo`?
    "]],
    );
    place.check(
        &["call", "everything", "echo", "mesage=hi"],
        2,
        &expect![[r#"
            error: echo: unknown argument `mesage`; did you mean `message`?
        "#]],
    );
    place.check(
        &["call", "everything", "echo"],
        2,
        &expect![[r#"
            error: echo: missing required argument `message`
              run `bowline tools everything echo` to see its arguments
        "#]],
    );
    place.check(
        &["call", "everything", "wait", "seconds=long"],
        2,
        &expect![[r"
        error: wait: seconds: expected integer, 1 to 3600, got `long`
    "]],
    );
    place.check(
        &["call", "everything", "echo", "hi"],
        2,
        &expect![[r#"
            error: echo: expected `name=value`, got `hi`
        "#]],
    );
    place.check(
        &["call", "everything"],
        2,
        &expect![[r#"
            error: missing tool name
              run `bowline tools everything` to list the tools
        "#]],
    );
}
