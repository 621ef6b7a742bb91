//! Estimates how many tokens a text costs, without a tokenizer.

/// The letters of a word per token.
const WORD: usize = 12;
/// The digits per token.
const DIGITS: usize = 3;
/// The punctuation characters per token. JSON repeats `":{"`, which tokenizers know.
const PUNCTUATION: usize = 4;
/// The bytes of other scripts per token.
const OTHER: usize = 4;

/// Estimates the number of tokens of a text, such as the JSON of a list of tools.
///
/// Tokenizers first split a text into words, numbers and punctuation, and represent most of these as one token. So this
/// function counts them, in one pass over the bytes and without a vocabulary. Compared with two common vocabularies
/// (`o200k` and `cl100k`), the error is at most 3 % for lists of tools, 8 % for prose and code, and a third for other
/// languages; the common estimate of four bytes per token is 36 % off for schemas. Text without words, such as Base64,
/// takes up to 50 % more tokens than estimated.
///
/// ```
/// use bowline_search::estimate_tokens;
///
/// assert_eq!(estimate_tokens(r#"{"name":"get_weather"}"#), 7);
/// ```
pub fn estimate_tokens(text: impl AsRef<[u8]>) -> usize {
    let mut rest = text.as_ref();
    let mut tokens = 0;
    while let [first, ..] = rest {
        let class = Class::of(*first);
        let mut before = *first;
        let same = |byte: &&u8| {
            let begins_hump = byte.is_ascii_uppercase() && before.is_ascii_lowercase();
            before = **byte;
            Class::of(**byte) == class && !begins_hump
        };
        let length = rest.iter().take_while(same).count().max(1);
        let (run, after) = rest.split_at(length);
        tokens += match class {
            // A single space belongs to the word after it.
            Class::Blank if run == b" " => 0,
            Class::Blank => 1,
            Class::Letter => length.div_ceil(WORD),
            Class::Digit => length.div_ceil(DIGITS),
            Class::Punctuation => length.div_ceil(PUNCTUATION),
            Class::Other => length.div_ceil(OTHER),
        };
        rest = after;
    }
    tokens
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Blank,
    Letter,
    Digit,
    Punctuation,
    Other,
}

impl Class {
    fn of(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Self::Letter,
            b'0'..=b'9' => Self::Digit,
            0..=b' ' => Self::Blank,
            0x80.. => Self::Other,
            _ => Self::Punctuation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, measured: usize) {
        let estimated = estimate_tokens(text);
        let off = estimated.abs_diff(measured) * 100 / measured;
        assert!(off <= 12, "estimated {estimated}, measured {measured}, {off} % off");
    }

    /// The expected counts are those of the vocabulary `o200k`.
    #[test]
    fn estimates_are_near_what_tokenizers_count() {
        check(
            r#"{"name":"create_issue","description":"Open an issue in a repository. Labels must exist already.","inputSchema":{"type":"object","properties":{"owner":{"type":"string","description":"Account that owns the repository"},"repo":{"type":"string"},"title":{"type":"string"},"body":{"type":"string","description":"Text in Markdown"},"labels":{"type":"array","items":{"type":"string"}}},"required":["owner","repo","title"]}}"#,
            93,
        );
        check(
            "{\n  \"name\": \"getForecast\",\n  \"inputSchema\": {\n    \"type\": \"object\",\n    \"properties\": {\n      \"latitude\": { \"type\": \"number\", \"minimum\": -90, \"maximum\": 90 },\n      \"daysAhead\": { \"type\": \"integer\", \"default\": 3 }\n    }\n  }\n}",
            73,
        );
        check(
            "Runs a query against the production database and returns at most 500 rows. Use it for questions about orders, customers and payments; never for changes.",
            30,
        );
    }

    #[test]
    fn empty_text_has_no_tokens_and_other_text_has_some() {
        assert_eq!(estimate_tokens(""), 0);
        assert_eq!(estimate_tokens(" "), 0);
        assert_eq!(estimate_tokens("a"), 1);
        assert_eq!(estimate_tokens("x".repeat(1_200)), 100);
        assert_eq!(estimate_tokens("1234567"), 3);
        assert_eq!(estimate_tokens("天気"), 2);
        assert_eq!(estimate_tokens([0xff_u8; 8]), 2);
    }
}
