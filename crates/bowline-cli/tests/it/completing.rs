//! Completion candidates and their sources.

use crate::place::Place;
use expect_test::expect;

#[test]
fn commands_options_and_servers_are_completed() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", "[servers.notes]\ncommand = \"notes\"\n");
    place.check(
        &["__complete", "--", "too"],
        0,
        &expect![[r"
        tools
    "]],
    );
    place.check(
        &["__complete", "--", "tools", "--js"],
        0,
        &expect![[r"
        --json
    "]],
    );
    place.check(
        &["__complete", "--", "tools", "n"],
        0,
        &expect![[r"
        notes
    "]],
    );
    place.check(
        &["__complete", "--", "tools", "--color", "a"],
        0,
        &expect![[r"
        auto
        always
    "]],
    );
    place.check(
        &["__complete", "--", "completions", ""],
        0,
        &expect![[r"
        bash
        elvish
        fish
        powershell
        zsh
    "]],
    );
    place.check(
        &["__complete", "--", "config", "c"],
        0,
        &expect![[r"
        check
    "]],
    );
    place.check(&["__complete", "--", "tools", "--", ""], 0, &expect![[""]]);
}

#[test]
fn only_cached_names_are_completed() {
    let place = Place::new();
    let words = ["__complete", "--", "call", "everything", "su"];
    // The names of the server are not cached, and completion does not fetch them.
    place.check(&words, 0, &expect![[""]]);
    assert_eq!(place.run(&["tools", "everything"]).1, Some(0));
    assert_eq!(place.run(&["prompts", "everything"]).1, Some(0));
    assert_eq!(place.run(&["resources", "everything"]).1, Some(0));
    place.check(
        &words,
        0,
        &expect![[r"
        sum
    "]],
    );
    place.check(
        &["__complete", "--", "call", "everything", "sum", ""],
        0,
        &expect![[r"
        numbers=
    "]],
    );
    place.check(
        &["__complete", "--", "prompt", "everything", "travel", "country=x", ""],
        0,
        &expect![[r"
        city=
    "]],
    );
    place.check(
        &["__complete", "--", "read", "everything", "test://planets/e"],
        0,
        &expect![[r"
        test://planets/earth
    "]],
    );
    // Bash replaces only the part after the last break character.
    place.check(
        &["__complete", "--line", "bowline read everything test://planets/e"],
        0,
        &expect![[r"
        //planets/earth
    "]],
    );
}

#[test]
fn each_shell_has_a_script_that_asks_the_program() {
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (script, code) = place.run(&["completions", shell]);
        assert!(script.contains("bowline __complete "), "{script}");
        assert_eq!(code, Some(0));
    }
    let (printed, code) = place.run(&["completions", "cmd"]);
    assert!(printed.contains("possible values: bash, elvish, fish, powershell, zsh"), "{printed}");
    assert_eq!(code, Some(2));
}
