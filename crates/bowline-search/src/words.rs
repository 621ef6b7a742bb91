//! Splits prose and tool names into words.
//!
//! Names in `snake_case`, `kebab-case` and `camelCase` and names like `HTTPServer` are split. The unsplit name is kept
//! as well, so that `GitHub` is found by `github`, and `oauth2` by `oauth`.

use super::stem::stem;

/// The maximum length of a word; the rest is ignored.
const LONGEST: usize = 40;

/// Calls `word` with every word of `text`, in lower case and without its ending.
pub(super) fn each_word(text: &str, mut word: impl FnMut(&str)) {
    let mut lower = String::new();
    for run in text.split(|char: char| !char.is_alphanumeric() && char != '\'' && char != '\u{2019}') {
        // `don't` and `user's` are one word each.
        let run = run.trim_matches(['\'', '\u{2019}']);
        let run = run.strip_suffix("'s").or_else(|| run.strip_suffix("\u{2019}s")).unwrap_or(run);
        if !run.is_empty() {
            each_part(run, &mut lower, &mut word);
        }
    }
}

/// Calls `word` with a sequence of letters and digits, and with its parts if there are several.
fn each_part(run: &str, lower: &mut String, word: &mut impl FnMut(&str)) {
    if run.chars().any(is_ideograph) {
        // In scripts without spaces, every character is a word.
        for char in run.chars() {
            emit(char.encode_utf8(&mut [0; 4]), lower, word);
        }
        return;
    }
    emit(run, lower, word);
    let mut rest = run;
    while let Some(end) = first_boundary(rest) {
        let (part, after) = rest.split_at(end);
        emit_part(part, lower, word);
        rest = after;
    }
    if rest.len() < run.len() {
        emit_part(rest, lower, word);
    }
    let letters = run.trim_end_matches(|char: char| char.is_ascii_digit());
    if letters.len() < run.len() && letters.chars().count() >= 3 && first_boundary(letters).is_none() {
        emit(letters, lower, word);
    }
}

/// A part with a single letter, as in `iPhone`, is ignored.
fn emit_part(part: &str, lower: &mut String, word: &mut impl FnMut(&str)) {
    if part.len() > 1 {
        emit(part, lower, word);
    }
}

fn emit(text: &str, lower: &mut String, word: &mut impl FnMut(&str)) {
    lower.clear();
    lower.extend(text.chars().flat_map(char::to_lowercase).take(LONGEST));
    stem(lower);
    word(lower);
}

/// Returns where the first part of a sequence ends: `create|Issue`, `HTTP|Server`. Digits belong to the letters before
/// them.
fn first_boundary(run: &str) -> Option<usize> {
    let mut before: Option<char> = None;
    let mut chars = run.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        if let Some(before) = before
            && char.is_uppercase()
        {
            let ends_acronym =
                before.is_uppercase() && chars.peek().is_some_and(|(_, next)| next.is_lowercase());
            if before.is_lowercase() || before.is_numeric() || ends_acronym {
                return Some(at);
            }
        }
        before = Some(char);
    }
    None
}

fn is_ideograph(char: char) -> bool {
    matches!(char, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Returns whether a word of a query has no meaning of its own.
pub(super) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Sorted, after [`stem`].
const STOP_WORDS: [&str; 99] = [
    "a", "about", "all", "am", "an", "and", "any", "anyth", "are", "as", "at", "be", "been", "but", "by",
    "can", "could", "did", "do", "doe", "don't", "for", "from", "had", "has", "hav", "he", "help", "her",
    "hey", "hi", "him", "his", "how", "i", "i'd", "i'm", "i'v", "if", "in", "into", "is", "it", "its",
    "just", "let", "lik", "me", "my", "need", "no", "now", "of", "off", "on", "one", "or", "our", "out",
    "pleas", "she", "should", "so", "som", "someth", "somewher", "than", "that", "the", "their", "them",
    "then", "ther", "thes", "they", "thing", "this", "thos", "to", "up", "us", "use", "using", "want", "was",
    "we", "wer", "what", "when", "wher", "which", "who", "whos", "why", "will", "with", "would", "you",
    "your",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn names_are_split_where_their_writers_would() {
        for (name, expected) in [
            ("create_issue", vec!["create", "issue"]),
            ("create-issue", vec!["create", "issue"]),
            ("createIssue", vec!["createissue", "create", "issue"]),
            ("HTTPServer", vec!["httpserver", "http", "server"]),
            ("GitHub", vec!["github", "git", "hub"]),
            ("oauth2", vec!["oauth2", "oauth"]),
            ("s3", vec!["s3"]),
            ("listS3Buckets", vec!["lists3bucket", "list", "s3", "bucket"]),
            ("github__pull.request", vec!["github", "pull", "request"]),
            ("", vec![]),
            ("__", vec![]),
        ] {
            let expected: Vec<String> = expected
                .into_iter()
                .map(|word| {
                    let mut word = word.to_owned();
                    stem(&mut word);
                    word
                })
                .collect();
            assert_eq!(words(name), expected, "{name}");
        }
    }

    #[test]
    fn apostrophes_belong_to_words_but_not_the_possessive() {
        assert_eq!(words("the user's 'list'"), ["the", "user", "list"]);
        assert_eq!(words("don\u{2019}t"), ["don\u{2019}t"]);
    }

    #[test]
    fn scripts_without_spaces_are_split_by_character() {
        assert_eq!(words("天気を取得"), ["天", "気", "を", "取", "得"]);
        assert_eq!(words("Überweisung"), ["überweisung"]);
    }

    #[test]
    fn a_word_has_a_bounded_length() {
        assert_eq!(words(&"a".repeat(5_000)), ["a".repeat(LONGEST)]);
    }

    #[test]
    fn filler_words_are_known_in_stemmed_form() {
        assert!(STOP_WORDS.is_sorted());
        let question = "Hi, could you please help me with these things? I'd like to have all of those that they were using";
        assert_eq!(words(question).iter().find(|word| !is_stop_word(word)), None);
        assert!(!is_stop_word("issue") && !is_stop_word("list"));
    }
}
