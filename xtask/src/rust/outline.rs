//! Where the functions, the attributes and the tests of a Rust file are.

use std::ops::RangeInclusive;

use super::{Source, is_identifier, word_offsets};

/// The parts of a file that the checks ask for. Lines count from one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outline {
    /// In the order of the file; a function within another comes after it.
    pub(crate) functions: Vec<Function>,
    pub(crate) attributes: Vec<Attribute>,
    /// Modules in files of their own that are compiled for tests only.
    pub(crate) test_modules: Vec<String>,
    /// Items that are compiled for tests only.
    test_lines: Vec<RangeInclusive<usize>>,
}

/// One function, with or without a body.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// From the first attribute to the closing brace.
    pub(crate) lines: RangeInclusive<usize>,
    pub(crate) is_test: bool,
    pub(crate) is_ignored: bool,
}

/// The text between the brackets of `#[…]` or `#![…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Outline {
    pub(crate) fn new(source: &Source) -> Self {
        Scanner::new(&source.code).run()
    }

    /// Returns whether `line` belongs to an item that only tests compile.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.test_lines.iter().any(|lines| lines.contains(&line))
            || self.functions.iter().any(|function| function.is_test && function.lines.contains(&line))
    }
}

impl Attribute {
    /// Returns whether it is `test`, or a path that ends in it, such as `tokio::test`.
    fn is_test(&self) -> bool {
        let last = self.path().rsplit("::").next().unwrap_or_default();
        matches!(last, "test" | "rstest" | "test_case" | "wasm_bindgen_test")
    }

    fn is_cfg_test(&self) -> bool {
        self.path() == "cfg"
            && word_offsets(&self.text, "test").next().is_some()
            && !self.text.contains("not(test")
    }

    /// Returns whether the attribute is `name`, alone or behind a condition.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.path() == name || (self.path() == "cfg_attr" && word_offsets(&self.text, name).next().is_some())
    }

    fn path(&self) -> &str {
        self.text.split(|next| !is_identifier(next) && next != ':').next().unwrap_or_default()
    }
}

struct Scanner<'a> {
    code: &'a str,
    /// Where each line begins.
    starts: Vec<usize>,
    outline: Outline,
}

impl<'a> Scanner<'a> {
    fn new(code: &'a str) -> Self {
        let starts =
            std::iter::once(0).chain(code.match_indices('\n').map(|(offset, _)| offset + 1)).collect();
        Self { code, starts, outline: Outline::default() }
    }

    fn run(mut self) -> Outline {
        let mut offset = 0;
        // Functions whose attributes were read already are not read again at their `fn`.
        let mut known_functions = 0;
        while let Some(next) = self.code[offset..].chars().next() {
            let rest = &self.code[offset..];
            if rest.starts_with("#![") {
                let attribute = self.attribute(offset, "#![".len());
                if attribute.is_cfg_test() {
                    self.outline.test_lines.push(1..=usize::MAX);
                }
                self.outline.attributes.push(attribute);
                offset += "#![".len();
            } else if rest.starts_with("#[") {
                let (attributes, header) = self.attributes(offset);
                known_functions = self.item(offset, header, &attributes).max(known_functions);
                self.outline.attributes.extend(attributes);
                offset = header;
            } else if is_identifier(next) {
                let length = rest.find(|other| !is_identifier(other)).unwrap_or(rest.len());
                if &rest[..length] == "fn" && offset >= known_functions {
                    self.item(offset, offset, &[]);
                }
                offset += length;
            } else {
                offset += next.len_utf8();
            }
        }
        self.outline.functions.sort_by_key(|function| *function.lines.start());
        self.outline
    }

    /// Returns the attribute at `offset`, whose opening takes `opening` bytes.
    fn attribute(&self, offset: usize, opening: usize) -> Attribute {
        let end = end_of_group(self.code, offset + opening);
        let inner = &self.code[offset + opening..end];
        let text = inner.strip_suffix(']').unwrap_or(inner).trim().to_owned();
        Attribute { line: self.line(offset), text }
    }

    /// Returns the attributes that follow each other from `offset` on, and where the item they belong to begins.
    fn attributes(&self, mut offset: usize) -> (Vec<Attribute>, usize) {
        let mut attributes = Vec::new();
        while self.code[offset..].starts_with("#[") {
            attributes.push(self.attribute(offset, "#[".len()));
            offset = end_of_group(self.code, offset + "#[".len());
            offset += self.code[offset..].len() - self.code[offset..].trim_start().len();
        }
        (attributes, offset)
    }

    /// Notes what the item between `start` (its attributes) and `header` means. Returns where the part in front of its
    /// body ends if it is a function.
    fn item(&mut self, start: usize, header: usize, attributes: &[Attribute]) -> usize {
        let body = start_of_body(self.code, header);
        let opens = self.code[body..].starts_with('{');
        let end = if opens { end_of_group(self.code, body + 1) } else { body };
        let lines = self.line(start)..=self.line(end.saturating_sub(1).max(start));
        let words = &self.code[header..body];

        if attributes.iter().any(Attribute::is_cfg_test) {
            if let (false, Some(module)) = (opens, name_after(words, "mod")) {
                self.outline.test_modules.push(module);
            }
            self.outline.test_lines.push(lines.clone());
        }
        let Some(name) = name_after(words, "fn") else { return 0 };
        self.outline.functions.push(Function {
            name,
            lines,
            is_test: attributes.iter().any(Attribute::is_test),
            is_ignored: attributes.iter().any(|attribute| attribute.is("ignore")),
        });
        body
    }

    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset)
    }
}

/// Returns the identifier that follows the first `keyword` of an item's header, for the keyword that makes the item:
/// what comes before it may only be visibility and qualifiers.
fn name_after(header: &str, keyword: &str) -> Option<String> {
    let offset = word_offsets(header, keyword).next()?;
    let qualifies = |word: &str| {
        matches!(word, "pub" | "crate" | "super" | "self" | "in" | "async" | "const" | "unsafe" | "extern")
    };
    let mut before = header[..offset].split(|next| !is_identifier(next)).filter(|word| !word.is_empty());
    if !before.all(qualifies) {
        return None;
    }
    let after = header[offset + keyword.len()..].trim_start();
    let length = after.find(|next| !is_identifier(next)).unwrap_or(after.len());
    (length > 0).then(|| after[..length].to_owned())
}

/// Returns where the body of the item at `offset` opens or, without one, where the item ends.
fn start_of_body(code: &str, offset: usize) -> usize {
    let mut depth = 0_usize;
    for (position, next) in code[offset..].char_indices() {
        match next {
            '(' | '[' => depth += 1,
            ')' | ']' | '{' | '}' | ';' if depth == 0 => return offset + position,
            ')' | ']' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

/// Returns where the group ends whose opening bracket is right before `offset`: after its closing bracket.
fn end_of_group(code: &str, offset: usize) -> usize {
    let mut depth = 1_usize;
    for (position, next) in code[offset..].char_indices() {
        match next {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return offset + position + next.len_utf8();
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::{Outline, Source};

    fn outline(text: &str) -> Outline {
        Outline::new(&Source::new(text))
    }

    /// Checks name, first line, last line and whether it is a test, per function.
    fn check(text: &str, expected: &[(&str, usize, usize, bool)]) {
        let outline = outline(text);
        let found: Vec<_> = outline
            .functions
            .iter()
            .map(|found| (found.name.as_str(), *found.lines.start(), *found.lines.end(), found.is_test))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn functions_reach_from_their_attributes_to_their_brace() {
        check(
            "pub(crate) fn plain(x: [u8; 2]) -> u8 {\n  x[0]\n}\n\n#[test]\n/// Doc.\n#[cfg(unix)]\nfn tested() {\n  let f: fn(u8) = g;\n  \"}\";\n}\n",
            &[("plain", 1, 3, false), ("tested", 5, 11, true)],
        );
    }

    #[test]
    fn tests_of_other_crates_are_tests() {
        check(
            "#[tokio::test(flavor = \"current_thread\")]\nasync fn one() {}\n#[test_case(1)]\nfn two(x: u8) {}\n#[testing]\nfn three() {}",
            &[("one", 1, 2, true), ("two", 3, 4, true), ("three", 5, 6, false)],
        );
        check(
            "proptest! {\n  #[test]\n  fn holds(x in \"{\") {\n  }\n}\nfn after() {}",
            &[("holds", 2, 4, true), ("after", 6, 6, false)],
        );
    }

    #[test]
    fn functions_within_functions_and_traits_are_found() {
        check(
            "trait T {\n  fn open();\n}\n#[test]\nfn outer() {\n  fn inner() {}\n}",
            &[("open", 2, 2, false), ("outer", 4, 7, true), ("inner", 6, 6, false)],
        );
    }

    #[test]
    fn macro_patterns_are_not_functions() {
        check("macro_rules! m { ($(#[$meta:meta])* fn $name:ident) => { $(#[$meta])* fn $name() {} } }", &[]);
    }

    #[test]
    fn test_only_files_are_recognized() {
        let outline = outline(
            "#[cfg(test)]\nmod apart;\n#[cfg(test)]\nuse a::b;\nfn f() {}\n#[cfg(not(test))]\nfn g() {}\n#[cfg(all(test, unix))]\nmod tests {\n  fn h() {}\n}\nfn i() {}",
        );
        assert_eq!(outline.test_modules, ["apart"]);
        let lines: Vec<usize> = (1..=12).filter(|&line| outline.is_test_line(line)).collect();
        assert_eq!(lines, [1, 2, 3, 4, 8, 9, 10, 11]);
        assert!(self::outline("//! Top.\n#![cfg(test)]\nfn f() {}").is_test_line(3));
    }

    #[test]
    fn ignored_tests_are_known() {
        let outline = outline(
            "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n#[test]\n#[cfg_attr(unix, ignore)]\nfn b() {}\n#[test]\nfn c() {}",
        );
        let ignored: Vec<bool> = outline.functions.iter().map(|function| function.is_ignored).collect();
        assert_eq!(ignored, [true, true, false]);
    }
}
