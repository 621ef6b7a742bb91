//! Parses lines of raw sections, which can contain arbitrary bytes.

/// Returns the bytes of a line, including its line break unless the line excludes it.
pub(super) fn bytes_of(line: &str) -> Result<Vec<u8>, String> {
    let (line, newline) = match line.strip_suffix("<no newline>") {
        Some(line) => (line, false),
        None => (line, true),
    };
    let mut bytes = Vec::with_capacity(line.len() + 1);
    expand(line, &mut bytes)?;
    if newline {
        bytes.push(b'\n');
    }
    Ok(bytes)
}

fn expand(mut rest: &str, bytes: &mut Vec<u8>) -> Result<(), String> {
    while let Some(position) = rest.find(['\\', '<']) {
        let (plain, special) = rest.split_at(position);
        bytes.extend_from_slice(plain.as_bytes());
        if let Some(digits) = special.strip_prefix("\\x") {
            let digits = digits.get(..2).ok_or("`\\x` needs two hexadecimal digits")?;
            bytes.push(
                u8::from_str_radix(digits, 16).map_err(|_| format!("`\\x{digits}` is not hexadecimal"))?,
            );
            rest = special.get(4..).unwrap_or_default();
        } else if let Some(repeat) = special.strip_prefix("<repeat:") {
            let (count, text) = repeat.split_once(':').ok_or("expected `<repeat:N:text>`")?;
            let count: usize =
                count.parse().map_err(|_| format!("expected a number of repetitions, got `{count}`"))?;
            let (text, behind) = text.split_once('>').ok_or("`<repeat:` is not closed")?;
            let mut once = Vec::new();
            expand(text, &mut once)?;
            bytes.extend(once.repeat(count));
            rest = behind;
        } else {
            let mut characters = special.chars();
            bytes.extend(characters.next().map(|special| u8::try_from(special).unwrap_or_default()));
            rest = characters.as_str();
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::bytes_of;

    #[test]
    fn escapes_repetitions_and_open_ends_are_expanded() {
        assert_eq!(bytes_of(r#"{"a":"\u00e9 \xff"}"#).unwrap(), b"{\"a\":\"\\u00e9 \xff\"}\n");
        assert_eq!(bytes_of("<repeat:3:[\\x20>]<no newline>").unwrap(), b"[ [ [ ]");
        assert_eq!(bytes_of("a<b\\c").unwrap(), b"a<b\\c\n");
    }

    #[test]
    fn mistakes_are_reported() {
        for (line, reason) in [
            ("\\x4", "two hexadecimal digits"),
            ("\\xzz", "hexadecimal"),
            ("<repeat:x:y>", "number of repetitions"),
            ("<repeat:2:y", "closed"),
        ] {
            assert!(bytes_of(line).unwrap_err().contains(reason), "{line}");
        }
    }
}
