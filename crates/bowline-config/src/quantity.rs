//! Parses and formats durations and sizes.

use std::time::Duration;

/// Parses a duration such as `30`, `1.5s`, `250ms`, `5m` or `2h`. A number without a unit is seconds. Returns
/// `None` for zero and for invalid text.
///
/// ```
/// use bowline_config::parse_duration;
/// use std::time::Duration;
///
/// assert_eq!(parse_duration("1.5s"), Some(Duration::from_millis(1500)));
/// assert_eq!(parse_duration("soon"), None);
/// ```
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "" | "s" | "sec" | "seconds" => number,
        "ms" => number / 1000.0,
        "m" | "min" | "minutes" => number * 60.0,
        "h" | "hours" => number * 3600.0,
        "d" | "days" => number * 86_400.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero())
}

/// Parses `4096`, `64k`, `512MiB`, `2GB`. Units with an `i` are powers of 1024, the others of 1000.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let factor: u32 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "k" | "kib" => 1 << 10,
        "mb" => 1_000_000,
        "m" | "mib" => 1 << 20,
        "gb" => 1_000_000_000,
        "g" | "gib" => 1 << 30,
        _ => return None,
    };
    if number.fract() == 0.0 {
        // Integers stay exact.
        return text
            .trim_end_matches(|c: char| !c.is_ascii_digit())
            .split('.')
            .next()?
            .parse::<u64>()
            .ok()?
            .checked_mul(u64::from(factor));
    }
    let scaled = Duration::try_from_secs_f64(number * f64::from(factor)).ok()?;
    Some(scaled.as_secs())
}

/// Formats a size the way [`bytes`] parses it.
pub(crate) fn show_bytes(count: u64) -> String {
    for (factor, unit) in [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")] {
        if count >= factor && count.is_multiple_of(factor) {
            return format!("{}{unit}", count / factor);
        }
    }
    count.to_string()
}

/// Formats a duration the way [`parse_duration`] parses it.
pub(crate) fn show_duration(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    match milliseconds {
        0 => "0s".to_owned(),
        _ if milliseconds.is_multiple_of(3_600_000) => format!("{}h", milliseconds / 3_600_000),
        _ if milliseconds.is_multiple_of(60_000) => format!("{}m", milliseconds / 60_000),
        _ if milliseconds.is_multiple_of(1000) => format!("{}s", milliseconds / 1000),
        _ => format!("{milliseconds}ms"),
    }
}

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    Some((number.parse().ok()?, unit.trim()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{bytes, parse_duration, show_bytes, show_duration};

    #[test]
    fn durations_have_units_and_bare_numbers_are_seconds() {
        for (text, milliseconds) in [
            ("30", 30_000),
            ("1.5s", 1_500),
            ("250ms", 250),
            ("5m", 300_000),
            ("2 h", 7_200_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(parse_duration(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in ["", "soon", "-1s", "5 weeks", "0", "1e3", "99999999999999999999999h"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, count) in [
            ("0", 0),
            ("4096", 4096),
            ("64k", 65_536),
            ("512MiB", 536_870_912),
            ("2GB", 2_000_000_000),
            ("1.5KiB", 1536),
        ] {
            assert_eq!(bytes(text), Some(count), "{text}");
        }
        for text in ["", "much", "-5", "1TB", "99999999999999999999", "18446744073709551615k"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    #[test]
    fn quantities_are_readable() {
        for text in ["90s", "5m", "2h", "250ms"] {
            assert_eq!(parse_duration(text).map(show_duration).as_deref(), Some(text));
        }
        for text in ["512MiB", "3GiB", "1KiB", "1000"] {
            assert_eq!(bytes(text).map(show_bytes).as_deref(), Some(text));
        }
    }
}
