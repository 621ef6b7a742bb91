//! Files that cannot be read as what they are, and what is said about them.

use bowline_config::Scope;
use expect_test::expect;

use super::{check, load};

#[test]
fn broken_json() {
    for (text, expected) in [
        (
            "",
            expect![[r#"
            mcp.json:1:1: expected a JSON object, got an empty file; write `{ "mcpServers": {} }`
        "#]],
        ),
        (
            "[]",
            expect![[r#"
            mcp.json:1:1: expected an object, got an array; write `{ "mcpServers": {} }`
        "#]],
        ),
        (
            "{ \"mcpServers\": { \"a\": { \"command\": \"x\" }",
            expect![[r#"
            mcp.json:1:17: expected `}` to close the object that begins here; close it with `}`
        "#]],
        ),
        (
            "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"x\" \"args\": [] }\n  }\n}",
            expect![[r#"
            mcp.json:3:26: expected `,` between members; add a comma after the previous member
        "#]],
        ),
        (
            "{ 'mcpServers': {} }",
            expect![[r#"
            mcp.json:1:3: expected double quotes, got single quotes; write `"…"`
        "#]],
        ),
        (
            "{ mcpServers: {} }",
            expect![[r#"
            mcp.json:1:3: expected a name or text in double quotes; put it in `"…"`
        "#]],
        ),
        (
            "{ \"mcpServers\" {} }",
            expect![[r#"
            mcp.json:1:16: expected `:` after the name; write `"name": value`
        "#]],
        ),
        (
            "{ \"mcpServers\": }",
            expect![[r#"
            mcp.json:1:17: expected a value, got `}`; check the braces before it
        "#]],
        ),
        (
            "{ \"mcpServers\": {} } {}",
            expect![[r#"
            mcp.json:1:22: expected the end of the file after the closing `}`; keep one object in the file
        "#]],
        ),
        (
            "{ \"mcpServers\": { \"ä\": { \"command\": \"C:\\dir\" } } }",
            expect![[r#"
                mcp.json:1:40: invalid escape sequence; write a backslash as `\\`
            "#]],
        ),
        (
            "{ \"mcpServers\": {} /* }",
            expect![[r#"
            mcp.json:1:20: expected `*/` before the end; close the comment with `*/`
        "#]],
        ),
        (
            "{ \"mcpServers\": { \"a\": { \"command\": \"open } } }",
            expect![[r#"
                mcp.json:1:37: expected `"` before the end of the line; close the quotes that begin here
            "#]],
        ),
    ] {
        check("mcp.json", text, &expected);
    }
}

#[test]
fn deep_json_is_refused() {
    // V-15
    let text = format!("{}1{}", "[".repeat(400), "]".repeat(400));
    check(
        "mcp.json",
        &text,
        &expect![[r#"
        mcp.json:1:130: expected at most 128 levels of nesting
    "#]],
    );
}

#[test]
fn names_twice_are_refused() {
    // V-11
    let text =
        "{ \"mcpServers\": {\n  \"a\": { \"command\": \"good\" },\n  \"a\": { \"command\": \"evil\" }\n} }";
    check(
        "mcp.json",
        text,
        &expect![[r#"
            mcp.json:3:3: mcpServers.a: duplicate key, first defined at line 2; keep one of them
        "#]],
    );
}

#[test]
fn broken_yaml() {
    for (text, expected) in [
        (
            "",
            expect![[r#"
            config.yaml:1:1: expected a YAML mapping, got an empty file; write `extensions: {}`
        "#]],
        ),
        (
            "extensions:\n  a: b: c\n",
            expect![[r#"
            config.yaml:2:7: expected YAML: mapping values are not allowed in this context; check the indentation and quote text that contains `: ` or `#`
        "#]],
        ),
        (
            "extensions:\n  a:\n   type: stdio\n  \tcmd: x\n",
            expect![[r#"
            config.yaml:3:10: expected YAML: while scanning a plain scalar, found a tab; check the indentation and quote text that contains `: ` or `#`
        "#]],
        ),
        (
            "a: 1\n---\nb: 2\n",
            expect![[r#"
            config.yaml:2:1: the file contains more than one document; remove the second `---` and everything after it
        "#]],
        ),
        (
            "extensions: [1, 2\n",
            expect![[r#"
            config.yaml:2:1: expected YAML: while parsing a flow sequence, expected ',' or ']'; check the indentation and quote text that contains `: ` or `#`
        "#]],
        ),
        (
            "extensions:\n  a: { type: stdio, type: sse }\n",
            expect![[r#"
                config.yaml:2:21: extensions.a.type: duplicate key, first defined at line 2; keep one of them
            "#]],
        ),
        (
            "extensions:\n  a: *missing\n",
            expect![[r#"
            config.yaml:2:6: expected YAML: while parsing node, found unknown anchor; check the indentation and quote text that contains `: ` or `#`
        "#]],
        ),
    ] {
        check("config.yaml", text, &expected);
    }
}

#[test]
fn yaml_aliases_cannot_grow_without_bound() {
    // V-15
    let wide = (1..10).map(|level| {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        format!("a{level}: &a{level} [{aliases}]\n")
    });
    let text = format!("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n{}", wide.collect::<Vec<_>>().concat());
    check(
        "config.yaml",
        &text,
        &expect![[r#"
        config.yaml:5:45: more than 100000 values with aliases expanded
    "#]],
    );
    let (open, close) = ("[".repeat(100), "]".repeat(100));
    let deep = (1..200).map(|level| format!("a{level}: &a{level} {open}*a{}{close}\n", level - 1));
    let text = format!("a0: &a0 {open}1{close}\n{}", deep.collect::<Vec<_>>().concat());
    check(
        "config.yaml",
        &text,
        &expect![[r#"
        config.yaml:2:109: expected at most 128 levels of nesting
    "#]],
    );
}

#[test]
fn broken_toml() {
    for (text, expected) in [
        (
            "[servers.a\ncommand = \"x\"\n",
            expect![[r#"
            bowline.toml:1:11: unclosed table, expected `]`
        "#]],
        ),
        (
            "[servers.a]\ncommand = x\nargs = [1\n",
            expect![[r#"
            bowline.toml:2:11: string values must be quoted, expected literal string
            bowline.toml:3:10: unclosed array, expected `]`
        "#]],
        ),
        (
            "[servers.a]\ncommand = \"x\"\ncommand = \"y\"\n",
            expect![[r#"
            bowline.toml:3:1: duplicate key
        "#]],
        ),
        (
            "[servers.a]\ncommand = 'x'\nstartup_timeout = inf\n",
            expect![[r#"
            bowline.toml:3:19: expected a finite number, got `inf`
        "#]],
        ),
    ] {
        check("bowline.toml", text, &expected);
    }
}

#[test]
fn no_root() {
    check(
        "mcp.json",
        r#"{ "mcp_servers": {} }"#,
        &expect![[r#"
        mcp.json:1:3: expected one of `mcpServers`, `servers`, `context_servers`, `extensions`, `packages` or `remotes`; `mcp_servers` is here; did you mean `mcpServers`?
    "#]],
    );
    check(
        "mcp.json",
        r#"{ "theme": "dark" }"#,
        &expect![[r#"
        mcp.json:1:1: expected one of `mcpServers`, `servers`, `context_servers`, `extensions`, `packages` or `remotes`; write the servers below `mcpServers`
    "#]],
    );
    check(
        "mcp.json",
        r#"{ "mcpServers": [] }"#,
        &expect![[r#"
        mcp.json:1:17: mcpServers: expected an object with an entry for each server, got an array; write `"my-server": { "command": "npx" }`
    "#]],
    );
}

#[test]
fn files_that_are_not_there_or_too_long() {
    check(
        "bowline.toml",
        "include = [\"nowhere.json\", \"bowline.toml\", 3]\n",
        &expect![[r#"
        bowline.toml:1:12: include: there is no file `nowhere.json`
        bowline.toml:1:28: include: `bowline.toml` includes itself
        bowline.toml:1:44: include[2]: expected a path, got `3`; write `".mcp.json"`
    "#]],
    );
    let long = format!("{{ \"mcpServers\": {{}} }}{}", " ".repeat(5 << 20));
    check(
        "mcp.json",
        &long,
        &expect![[r#"
        mcp.json:1:1: `mcp.json` is longer than 4194304 bytes
    "#]],
    );
}

#[test]
fn a_truncated_file_does_not_panic() {
    // V-20
    for (path, text) in [
        ("bowline.toml", include_str!("../fixtures/bowline.toml")),
        (".claude.json", include_str!("../fixtures/claude_code.json")),
        (".mcp.json", include_str!("../fixtures/project_mcp.json")),
        (".vscode/mcp.json", include_str!("../fixtures/vscode_mcp.json")),
        ("settings.json", include_str!("../fixtures/zed_settings.json")),
        ("config.yaml", include_str!("../fixtures/goose_config.yaml")),
        ("server.json", include_str!("../fixtures/server_oci.json")),
    ] {
        for end in (0..text.len()).step_by(5) {
            let start = text.get(..end).unwrap_or_default();
            // What is cut out of the middle keeps the file closed, so that more of it is read.
            let gap = format!("{start}{}", text.get(end + 3..).unwrap_or_default());
            for text in [start, &gap] {
                let config = load(&[(path, Scope::User, text)]);
                assert!(config.errors.iter().all(|error| error.origin.line > 0));
            }
        }
    }
}

#[test]
fn a_file_of_many_names_on_one_line_is_read() {
    // V-66
    let names: Vec<String> = (0..100_000).map(|number| format!("\"name-{number}\": {number}")).collect();
    let rest = names.join(", ");
    let text = format!(r#"{{ "mcpServers": {{ "a": {{ "command": "x" }} }}, {rest}, "name-7": 1 }}"#);
    let config = load(&[("mcp.json", Scope::User, &text)]);
    assert_eq!((config.upstreams.len(), config.errors.len()), (1, 0));
}
