//! Parses the machine-readable output of git.

use super::reading::{BlameLine, Branch, ChangedFile, Commit, Status};

/// Parses `status --porcelain=v2 -z --branch`.
pub(super) fn status(text: &str) -> Status {
    let mut status = Status::default();
    let mut records = text.split_terminator('\0');
    while let Some(record) = records.next() {
        let (kind, rest) = record.split_once(' ').unwrap_or((record, ""));
        match kind {
            "#" => header(&mut status, rest),
            "1" => status.files.extend(changed(rest, 8, None)),
            "2" => {
                let before = records.next().map(str::to_owned);
                status.files.extend(changed(rest, 9, before));
            }
            "u" => status.files.extend(changed(rest, 10, None).map(|file| ChangedFile {
                staged: None,
                unstaged: Some("unmerged".into()),
                ..file
            })),
            "?" => status.files.push(ChangedFile {
                path: rest.to_owned(),
                before: None,
                staged: None,
                unstaged: Some("untracked".into()),
            }),
            _ => {}
        }
    }
    status
}

fn header(status: &mut Status, rest: &str) {
    let Some((name, value)) = rest.split_once(' ') else { return };
    match name {
        "branch.oid" if value != "(initial)" => status.commit = Some(value.to_owned()),
        "branch.head" if value != "(detached)" => status.branch = Some(value.to_owned()),
        "branch.upstream" => status.upstream = Some(value.to_owned()),
        "branch.ab" => {
            let mut counts =
                value.split(' ').map(|count| count.get(1..).and_then(|count| count.parse().ok()));
            status.ahead = counts.next().flatten();
            status.behind = counts.next().flatten();
        }
        _ => {}
    }
}

/// Parses a changed file: two letters, some ignored fields, and the path, which can contain spaces.
fn changed(rest: &str, fields: usize, before: Option<String>) -> Option<ChangedFile> {
    let mut words = rest.splitn(fields, ' ');
    let mut letters = words.next()?.chars();
    let (staged, unstaged) = (letters.next().and_then(word), letters.next().and_then(word));
    Some(ChangedFile { path: words.last()?.to_owned(), before, staged, unstaged })
}

fn word(letter: char) -> Option<String> {
    let word = match letter {
        'M' => "modified",
        'T' => "type changed",
        'A' => "added",
        'D' => "deleted",
        'R' => "renamed",
        'C' => "copied",
        'U' => "unmerged",
        _ => return None,
    };
    Some(word.to_owned())
}

/// The format that [`commits`] parses.
pub(super) const COMMIT_FORMAT: &str = "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%at%x00%B";

/// Parses `log -z` in that format.
pub(super) fn commits(text: &str) -> Vec<Commit> {
    let fields: Vec<_> = text.split_terminator('\0').collect();
    let commits = fields.chunks_exact(6).filter_map(|fields| {
        let [hash, parents, author, email, time, message] = fields else { return None };
        Some(Commit {
            hash: (*hash).to_owned(),
            parents: parents.split_whitespace().map(str::to_owned).collect(),
            author: (*author).to_owned(),
            email: (*email).to_owned(),
            time: time.parse().unwrap_or_default(),
            message: message.trim_end().to_owned(),
        })
    });
    commits.collect()
}

/// The format that [`branches`] parses.
pub(super) const BRANCH_FORMAT: &str =
    "--format=%(HEAD)%00%(refname)%00%(objectname)%00%(upstream:short)%00%(contents:subject)";

/// Parses `for-each-ref` in that format.
pub(super) fn branches(text: &str) -> Vec<Branch> {
    let branches = text.lines().filter_map(|line| {
        let fields: Vec<_> = line.split('\0').collect();
        let [head, name, commit, upstream, subject] = fields.as_slice() else { return None };
        let local = name.strip_prefix("refs/heads/");
        Some(Branch {
            name: local.or_else(|| name.strip_prefix("refs/remotes/"))?.to_owned(),
            remote: local.is_none(),
            current: *head == "*",
            commit: (*commit).to_owned(),
            upstream: Some((*upstream).to_owned()).filter(|upstream| !upstream.is_empty()),
            subject: (*subject).to_owned(),
        })
    });
    branches.collect()
}

/// Parses `blame --line-porcelain`.
pub(super) fn blame(text: &str) -> Vec<BlameLine> {
    let mut lines = Vec::new();
    let (mut commit, mut number, mut author, mut time) = (String::new(), 0, String::new(), 0);
    for line in text.split('\n') {
        if let Some(text) = line.strip_prefix('\t') {
            let (commit, author) = (commit.clone(), author.clone());
            lines.push(BlameLine { line: number, commit, author, time, text: text.to_owned() });
            // The text ends a record; the next one starts with a hash.
            number = 0;
            continue;
        }
        let Some((name, value)) = line.split_once(' ') else { continue };
        match name {
            "author" => value.clone_into(&mut author),
            "author-time" => time = value.parse().unwrap_or_default(),
            // The first line of a record: hash, old line number, new line number.
            hash if number == 0 && hash.len() >= 40 => {
                hash.clone_into(&mut commit);
                number = value.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or_default();
            }
            _ => {}
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn json(value: &impl serde::Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn a_status_is_parsed() {
        let text = "# branch.oid abc\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -1\0\
            1 M. N... 100644 100644 100644 aa bb a b.txt\0\
            2 R. N... 100644 100644 100644 aa bb R100 new.txt\0old.txt\0\
            u UU N... 100644 100644 100644 100644 aa bb cc both.txt\0? new file\0";
        expect![[r#"{"branch":"main","commit":"abc","upstream":"origin/main","ahead":2,"behind":1,"files":[{"path":"a b.txt","before":null,"staged":"modified","unstaged":null},{"path":"new.txt","before":"old.txt","staged":"renamed","unstaged":null},{"path":"both.txt","before":null,"staged":null,"unstaged":"unmerged"},{"path":"new file","before":null,"staged":null,"unstaged":"untracked"}],"more":false}"#]]
            .assert_eq(&json(&status(text)));
        expect![[r#"{"branch":"main","commit":null,"upstream":null,"ahead":null,"behind":null,"files":[],"more":false}"#]]
            .assert_eq(&json(&status("# branch.oid (initial)\0# branch.head main\0")));
    }

    #[test]
    fn commits_are_parsed() {
        let text = "aa\0bb cc\0Ann\0ann@example.com\x0012\0Subject\n\nBody\n\0dd\0\0Bo\0bo@example.com\x003\0First\n\0";
        expect![[r#"[{"hash":"aa","parents":["bb","cc"],"author":"Ann","email":"ann@example.com","time":12,"message":"Subject\n\nBody"},{"hash":"dd","parents":[],"author":"Bo","email":"bo@example.com","time":3,"message":"First"}]"#]]
            .assert_eq(&json(&commits(text)));
        assert!(commits("").is_empty());
        assert!(commits("aa\0\0Ann\0ann@example.com\x0012\0").is_empty(), "the message was cut off");
    }

    #[test]
    fn branches_are_parsed() {
        let text = "*\0refs/heads/main\0aa\0origin/main\0Fix\n \0refs/remotes/origin/main\0bb\0\0Fix\n";
        expect![[r#"[{"name":"main","remote":false,"current":true,"commit":"aa","upstream":"origin/main","subject":"Fix"},{"name":"origin/main","remote":true,"current":false,"commit":"bb","upstream":null,"subject":"Fix"}]"#]]
            .assert_eq(&json(&branches(text)));
    }

    #[test]
    fn blame_is_parsed() {
        let hash = "e".repeat(40);
        let text = format!(
            "{hash} 3 1 1\nauthor Ann\nauthor-time 12\nsummary {hash} 9 9\nfilename a.txt\n\tone\n{hash} 4 2\nauthor Bo\nauthor-time 13\n\t\ttwo\n"
        );
        let lines = blame(&text);
        let read: Vec<_> =
            lines.iter().map(|line| (line.line, line.author.as_str(), line.text.as_str())).collect();
        assert_eq!(read, [(1, "Ann", "one"), (2, "Bo", "\ttwo")]);
    }
}
