//! Makes names safe to use as label values.

/// The maximum length of a name.
const LONGEST: usize = 128;

/// Shortens a name and replaces unprintable characters by `\u{fffd}`.
pub(super) fn sanitize(name: &str) -> String {
    let tamed = name.chars().take(LONGEST).map(|char| if is_forbidden(char) { '\u{fffd}' } else { char });
    tamed.collect()
}

fn is_forbidden(char: char) -> bool {
    char.is_control() || matches!(char, '\u{2028}' | '\u{2029}')
}

/// Escapes a label value for Prometheus, without quotes.
pub(super) fn escape(value: &str, out: &mut String) {
    for char in value.chars() {
        match char {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            _ => out.push(char),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_on_one_line_and_short() {
        assert_eq!(
            sanitize("a\nb\r\u{0}\u{1b}c\u{85}\u{2028}"),
            "a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}c\u{fffd}\u{fffd}"
        );
        assert_eq!(sanitize(&"é".repeat(500)).chars().count(), LONGEST);
        assert_eq!(sanitize("github"), "github");
    }

    #[test]
    fn values_are_escaped() {
        let mut out = String::new();
        escape("a\\b\"c\nd", &mut out);
        assert_eq!(out, r#"a\\b\"c\nd"#);
    }
}
