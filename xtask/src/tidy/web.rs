//! What the files of the inspector's page must not contain: ways for text to become markup or code, and other hosts.

use std::path::Path;

use crate::files::{self, TextFile};
use crate::finding::Finding;

const FOLDER: &str = "crates/bowline-inspector/web";

/// Sinks and calls that turn text into markup or code.
const SINKS: [&str; 11] = [
    ".innerHTML",
    ".outerHTML",
    ".insertAdjacentHTML",
    "document.write",
    "createContextualFragment",
    "DOMParser",
    ".srcdoc",
    "srcdoc=",
    "eval(",
    "new Function(",
    "setHTMLUnsafe",
];

/// Names of schemas and formats look like addresses and are never requested.
const NAMES: [&str; 1] = ["http://www.w3.org/2000/svg"];

pub(super) fn findings(root: &Path) -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for extension in ["js", "css", "html"] {
        for file in files::below(root, &[FOLDER], extension)? {
            findings.extend(of_file(&file, extension));
        }
    }
    Ok(findings)
}

fn of_file(file: &TextFile, extension: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, text) in (1..).zip(file.text.lines()) {
        let code = text.trim_start();
        if extension == "js" && (code.starts_with("//") || code.starts_with('*') || code.starts_with("/*")) {
            continue;
        }
        let mut tell = |sentence: String| findings.push(Finding::new(&file.path, line, sentence));
        for sink in SINKS {
            if text.contains(sink) {
                tell(format!("`{sink}` makes markup or code of text"));
            }
        }
        if extension == "html" {
            for attribute in text.split_whitespace().filter_map(|word| word.split_once('=')) {
                let name = attribute.0;
                if name == "style"
                    || (name.starts_with("on") && name.bytes().all(|byte| byte.is_ascii_lowercase()))
                {
                    tell(format!("the attribute `{name}` is refused by the content security policy"));
                }
            }
        }
        if is_foreign(text) {
            tell("the page requests nothing from other hosts".to_owned());
        }
    }
    findings
}

/// Returns whether a line has an address with a host. A scheme alone, to compare with, is none.
fn is_foreign(text: &str) -> bool {
    let mut text = text.to_owned();
    for name in NAMES {
        text = text.replace(name, "");
    }
    ["http://", "https://"].iter().any(|scheme| {
        text.match_indices(scheme).any(|(place, _)| {
            let after = text.get(place + scheme.len()..).and_then(|rest| rest.chars().next());
            after.is_some_and(char::is_alphanumeric)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Tree;

    #[test]
    fn sinks_and_other_hosts_are_found() {
        let script = "// a comment about .innerHTML\nnode.innerHTML = x;\nif (url.startsWith(\"https://\")) {}\nfetch(\"https://evil.example\");\nconst svg = \"http://www.w3.org/2000/svg\";\n";
        let page = "<p style=\"x\">\n<a onclick=\"x\" href=\"#\">\n";
        let tree = Tree::new(&[
            ("crates/bowline-inspector/web/a.js", script),
            ("crates/bowline-inspector/web/b.html", page),
        ]);
        let found: Vec<_> = findings(tree.root()).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "crates/bowline-inspector/web/a.js:2: `.innerHTML` makes markup or code of text",
                "crates/bowline-inspector/web/a.js:4: the page requests nothing from other hosts",
                "crates/bowline-inspector/web/b.html:1: the attribute `style` is refused by the content security policy",
                "crates/bowline-inspector/web/b.html:2: the attribute `onclick` is refused by the content security policy",
            ]
        );
    }
}
