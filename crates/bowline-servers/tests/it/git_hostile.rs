//! Hostile repositories and callers: no program runs, nothing outside is read or written.
#![cfg(unix)]

use crate::support::{Folder, alone, connect, git, has_git, names, refused, repository};
use bowline::{client::Client, prelude::*};
use bowline_servers::Git;
use serde_json::Value;
use std::{path::Path, time::Duration};

fn server(folder: &Folder) -> Server {
    Git::at(&folder.top).unwrap().writable(true).server()
}

/// Calls of every tool, in order.
fn calls() -> Vec<(&'static str, Value)> {
    vec![
        ("git_status", json!({})),
        ("git_log", json!({})),
        ("git_log", json!({ "paths": ["a.txt"] })),
        ("git_diff", json!({})),
        ("git_diff", json!({ "staged": true })),
        ("git_diff", json!({ "from": "HEAD" })),
        ("git_show", json!({})),
        ("git_show", json!({ "path": "a.txt" })),
        ("git_blame", json!({ "path": "a.txt" })),
        ("git_blame", json!({ "path": "a.txt", "revision": "HEAD" })),
        ("git_branches", json!({})),
        ("git_create_branch", json!({ "name": "topic" })),
        ("git_switch", json!({ "name": "topic" })),
        ("git_add", json!({ "paths": ["a.txt"] })),
        ("git_unstage", json!({ "paths": ["a.txt"] })),
        ("git_commit", json!({ "message": "Second", "paths": ["b.txt"] })),
    ]
}

/// Makes all calls, and returns the errors.
async fn call_all(client: &Client) -> Vec<String> {
    let mut failed = Vec::new();
    for (tool, arguments) in calls() {
        let called = client.call(tool, arguments).await.unwrap();
        if called.is_error() {
            failed.push(format!("{tool}: {}", called.text()));
        }
    }
    failed
}

/// A program that creates a file when it runs.
fn marker(folder: &Folder) -> (String, impl Fn() -> bool) {
    use std::os::unix::fs::PermissionsExt as _;
    let (mark, program) = (folder.outside.join("mark"), folder.outside.join("program"));
    std::fs::write(&program, format!("#!/bin/sh\necho ran >> '{}'\nexec cat\n", mark.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    (program.to_str().unwrap().to_owned(), move || mark.exists())
}

// V-91
#[tokio::test]
async fn programs_named_by_the_repository_are_not_run() {
    if !has_git() {
        return;
    }
    let folder = repository();
    folder.write(".gitattributes", "* diff=evil filter=evil merge=evil\nb.txt filter=x=y\n");
    git(&folder.top, &["add", "."]);
    git(&folder.top, &["commit", "-q", "-m", "Attributes"]);
    let (program, ran) = marker(&folder);
    for name in [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "core.askPass",
        "core.gitProxy",
        "core.alternateRefsCommand",
        "credential.helper",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.process",
        "gpg.program",
        "gpg.ssh.program",
        "interactive.diffFilter",
        "merge.evil.driver",
        "pager.log",
        "pager.diff",
        "sequence.editor",
        "uploadpack.packObjectsHook",
        "alias.status",
    ] {
        git(&folder.top, &["config", name, &program]);
    }
    // A name that `-c name=value` could not pass.
    for name in ["filter.evil", "filter.x=y"] {
        for end in ["clean", "smudge"] {
            git(&folder.top, &["config", &format!("{name}.{end}"), &program]);
        }
        git(&folder.top, &["config", &format!("{name}.required"), "true"]);
    }
    for (name, value) in
        [("commit.gpgSign", "true"), ("log.showSignature", "true"), ("diff.evil.cachetextconv", "true")]
    {
        git(&folder.top, &["config", name, value]);
    }
    let hooks = folder.top.join(".git/hooks");
    for hook in [
        "pre-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-commit",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "fsmonitor-watchman",
        "pre-auto-gc",
    ] {
        std::fs::copy(&program, hooks.join(hook)).unwrap();
    }
    folder.write("a.txt", "one\nchanged\n");
    folder.write("b.txt", "b");
    let client = connect(server(&folder), Revision::V2026_07_28).await;
    let failed = call_all(&client).await;
    assert!(!ran(), "a program ran");
    // Only files that need filters are refused.
    assert_eq!(failed.len(), 3, "{failed:#?}");
    for told in failed {
        assert!(told.contains("programs of a repository are not run here"), "{told}");
    }

    // Without filters everything works, and no program runs.
    for name in ["filter.evil", "filter.x=y"] {
        git(&folder.top, &["config", "--remove-section", name]);
    }
    let client = connect(server(&folder), Revision::V2026_07_28).await;
    git(
        &folder.top,
        &["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "branch", "-D", "topic"],
    );
    assert_eq!(call_all(&client).await, [""; 0]);
    assert!(!ran(), "a program ran");
}

#[test]
fn the_hostile_programs_of_these_tests_do_run_in_plain_git() {
    if !has_git() {
        return;
    }
    for (name, command) in [
        ("core.fsmonitor", &["status"][..]),
        ("diff.external", &["diff"]),
        ("diff.evil.command", &["diff"]),
        ("diff.evil.textconv", &["diff"]),
        ("filter.evil.clean", &["add", "a.txt"]),
        ("filter.evil.smudge", &["checkout", "a.txt"]),
        ("filter.x=y.clean", &["add", "b.txt"]),
        ("pre-commit", &["commit", "--allow-empty", "-m", "x"]),
    ] {
        let folder = repository();
        let (program, ran) = marker(&folder);
        folder.write(".gitattributes", "* diff=evil filter=evil\nb.txt filter=x=y\n");
        folder.write("a.txt", "changed\n");
        folder.write("b.txt", "b\n");
        if name == "pre-commit" {
            std::fs::copy(&program, folder.top.join(".git/hooks/pre-commit")).unwrap();
        } else {
            git(&folder.top, &["config", name, &program]);
        }
        assert!(!ran(), "{name}");
        git(&folder.top, command);
        assert!(ran(), "{name}");
    }
}

/// A filter of the user, such as git-lfs, reads settings from the repository, so it must not run for an untrusted repository.
// V-91
#[test]
fn filters_of_the_user_are_not_run() {
    if !has_git() {
        return;
    }
    let home = Folder::new();
    let (program, _) = marker(&home);
    let mut settings = String::from("[user]\nname = Ann\nemail = ann@example.com\n[filter \"global\"]\n");
    for name in ["clean", "smudge", "process"] {
        settings.extend([name, " = ", &program, "\n"]);
    }
    settings += "required = true\n";
    home.write(".gitconfig", &settings);
    let environment = [("HOME", home.top.as_path()), ("XDG_CONFIG_HOME", home.top.as_path())];
    if !alone("git_hostile::filters_of_the_user_are_not_run", &environment) {
        return;
    }
    let mark = Path::new(&std::env::var_os("HOME").unwrap()).with_file_name("root-evil").join("mark");
    let folder = repository();
    folder.write(".gitattributes", "a.txt filter=global\n");
    git(&folder.top, &["add", ".gitattributes"]);
    git(&folder.top, &["commit", "-q", "-m", "Attributes"]);
    folder.write("a.txt", "one\nTWO\n");
    folder.write("b.txt", "b");
    // Plain git runs it.
    let status = std::process::Command::new("git").arg("status").current_dir(&folder.top).output().unwrap();
    assert!(mark.exists(), "{status:?}");
    std::fs::remove_file(&mark).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = connect(server(&folder), Revision::V2026_07_28).await;
        let failed = call_all(&client).await;
        assert!(!mark.exists(), "the filter ran");
        // Only files that need the filter are refused.
        assert_eq!(
            failed,
            ["git_add: `a.txt` uses the filter `global`, and filters are not run here; use git directly"]
        );
        let status = client.call("git_status", json!({})).await.unwrap().json::<Value>().unwrap();
        assert_eq!(status["files"][0]["path"], "a.txt");
        // A branch whose files need the filter is not checked out.
        git(&folder.top, &["add", "."]);
        git(&folder.top, &["commit", "-q", "-m", "Other"]);
        let told = refused(&client, "git_switch", json!({ "name": "main" })).await;
        assert!(told.contains("`a.txt` uses the filter `global`"), "{told}");
        assert!(!mark.exists(), "the filter ran");
    });
}

// V-91
#[tokio::test]
async fn a_hanging_git_times_out() {
    if !has_git() {
        return;
    }
    let folder = repository();
    let git_server = Git::at(&folder.top).unwrap().time(Duration::from_millis(300));
    let pipe = folder.outside.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success());
    assert!(made, "`mkfifo` makes a pipe");
    git(&folder.top, &["config", "include.path", pipe.to_str().unwrap()]);
    let client = connect(git_server.server(), Revision::V2026_07_28).await;
    let told = refused(&client, "git_status", json!({})).await;
    assert!(told.contains("git timed out after 300ms"), "{told}");
}

// V-91
#[tokio::test]
async fn a_git_program_in_the_work_tree_is_not_run() {
    if !has_git() {
        return;
    }
    let folder = repository();
    let (program, ran) = marker(&folder);
    std::fs::copy(program, folder.top.join("git")).unwrap();
    let client = connect(server(&folder), Revision::V2026_07_28).await;
    assert!(!client.call("git_status", json!({})).await.unwrap().is_error());
    assert!(!ran());
}

// V-91
#[tokio::test]
async fn arguments_are_never_parsed_as_options() {
    if !has_git() {
        return;
    }
    let folder = repository();
    let (program, ran) = marker(&folder);
    let before = names(&folder.outside);
    let target = folder.outside.join("written");
    let client = connect(server(&folder), Revision::V2026_07_28).await;
    let options = [
        format!("--output={}", target.display()),
        format!("-O{}", target.display()),
        format!("--upload-pack={program}"),
        format!("--exec={program}"),
        format!("--ext-diff={program}"),
        format!("-ccore.pager={program}"),
        "-c".into(),
        "--no-index".into(),
        "--git-dir=/".into(),
        "--work-tree=/".into(),
        "--force".into(),
        "-D".into(),
        "--all".into(),
        "--edit".into(),
        "--amend".into(),
        format!("--pathspec-from-file={}", folder.outside.join("secret.txt").display()),
        format!("--contents={}", folder.outside.join("secret.txt").display()),
        format!("HEAD..--output={}", target.display()),
        "--".into(),
        "-".into(),
    ];
    let head = git(&folder.top, &["rev-parse", "HEAD"]);
    for option in &options {
        for (tool, arguments) in [
            ("git_log", json!({ "revision": option })),
            ("git_diff", json!({ "from": option })),
            ("git_diff", json!({ "from": "HEAD", "to": option })),
            ("git_show", json!({ "revision": option })),
            ("git_show", json!({ "path": option })),
            ("git_blame", json!({ "path": option })),
            ("git_blame", json!({ "path": "a.txt", "revision": option })),
            ("git_create_branch", json!({ "name": option })),
            ("git_create_branch", json!({ "name": "x", "start": option })),
            ("git_switch", json!({ "name": option })),
            ("git_add", json!({ "paths": [option] })),
            ("git_commit", json!({ "message": "x", "paths": [option] })),
        ] {
            let told = refused(&client, tool, arguments).await;
            assert!(!told.contains("outside-content"), "{tool} {option}: {told}");
        }
        // It is interpreted literally as a path or name, which does not exist.
        for (tool, arguments) in [
            ("git_log", json!({ "paths": [option] })),
            ("git_log", json!({ "author": option })),
            ("git_diff", json!({ "paths": [option] })),
        ] {
            let called = client.call(tool, arguments).await.unwrap();
            assert!(
                called.is_error() || !called.text().contains("First"),
                "{tool} {option}: {}",
                called.text()
            );
        }
    }
    assert!(!ran() && !target.exists());
    assert_eq!(names(&folder.outside), before);
    assert_eq!(names(&folder.top), [".git", "a.txt"]);
    assert_eq!(git(&folder.top, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&folder.top, &["branch", "--list"]).trim(), "* main");
    // The message is passed on standard input, not as an argument.
    folder.write("b.txt", "b");
    let commit = json!({ "message": options[0], "paths": ["b.txt"] });
    assert!(!client.call("git_commit", commit).await.unwrap().is_error());
    assert!(!target.exists());
}

// V-91
#[tokio::test]
async fn paths_outside_of_the_repository_are_refused() {
    if !has_git() {
        return;
    }
    let folder = repository();
    std::os::unix::fs::symlink(&folder.outside, folder.top.join("link")).unwrap();
    let secret = folder.outside.join("secret.txt").to_str().unwrap().to_owned();
    let client = connect(server(&folder), Revision::V2026_07_28).await;
    for path in [
        secret.as_str(),
        "../root-evil/secret.txt",
        "x/../../root-evil/secret.txt",
        "/etc/passwd",
        "link/secret.txt",
        "",
    ] {
        for (tool, arguments) in [
            ("git_blame", json!({ "path": path })),
            ("git_show", json!({ "path": path })),
            ("git_add", json!({ "paths": [path] })),
            ("git_commit", json!({ "message": "x", "paths": [path] })),
        ] {
            let told = refused(&client, tool, arguments).await;
            assert!(!told.contains("outside-content"), "{tool} {path}: {told}");
        }
        if path != "link/secret.txt" {
            refused(&client, "git_log", json!({ "paths": [path] })).await;
            // Git would compare two paths if one of them is outside.
            refused(&client, "git_diff", json!({ "paths": ["a.txt", path] })).await;
        }
    }
    assert_eq!(git(&folder.top, &["ls-files"]), "a.txt\n");
    // Patterns are interpreted literally.
    for pattern in ["*", ":/", ":(top)", ":!a.txt", "a.???"] {
        refused(&client, "git_add", json!({ "paths": [pattern] })).await;
    }
}

fn refused_at(folder: &Path) -> String {
    Git::at(folder).unwrap_err().to_string()
}

// V-91
#[test]
fn a_directory_cannot_expose_another_repository() {
    if !has_git() {
        return;
    }
    let (victim, thief) = (repository(), Folder::new());
    let git_dir = victim.top.join(".git");
    thief.write(".git", format!("gitdir: {}\n", git_dir.display()));
    assert!(refused_at(&thief.top).contains("which does not refer back to it"));
    // A repository that claims another directory is not served from there.
    let liar = repository();
    git(&liar.top, &["config", "core.worktree", victim.top.to_str().unwrap()]);
    assert!(refused_at(&liar.top).contains("the top of its repository is"));
    // Nor from its parent directory.
    let around = Folder::new();
    around.write("liar/secret", "");
    let within = around.top.join("liar");
    git(&within, &["init", "-q"]);
    git(&within, &["config", "core.worktree", around.top.to_str().unwrap()]);
    assert!(refused_at(&within).contains("not a git repository"));
}

#[tokio::test]
async fn a_linked_work_tree_is_served() {
    if !has_git() {
        return;
    }
    let folder = repository();
    let linked = folder.outside.join("linked");
    git(&folder.top, &["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let client = connect(Git::at(&linked).unwrap().server(), Revision::V2026_07_28).await;
    let status = client.call("git_status", json!({})).await.unwrap().json::<Value>().unwrap();
    assert_eq!(status["branch"], "side");
}

// V-91
#[tokio::test]
async fn a_submodule_with_programs_of_its_own_runs_none() {
    if !has_git() {
        return;
    }
    let (folder, inner) = (repository(), repository());
    let (program, ran) = marker(&folder);
    let inner_path = inner.top.to_str().unwrap();
    git(&folder.top, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner_path, "sub"]);
    git(&folder.top, &["commit", "-q", "-m", "Submodule"]);
    let sub = folder.top.join("sub");
    std::fs::write(sub.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
    for name in
        ["core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.external"]
    {
        git(&sub, &["config", name, &program]);
    }
    std::fs::write(sub.join("a.txt"), "other\n").unwrap();
    folder.write("b.txt", "b");
    let client = connect(server(&folder), Revision::V2026_07_28).await;
    assert_eq!(call_all(&client).await, [""; 0]);
    assert!(!ran(), "a program ran");
    // The submodule itself can be served.
    assert!(Git::at(&sub).is_ok());
}
