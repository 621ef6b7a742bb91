//! Formats and parses RFC 3339 timestamps in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: u64 = 86_400;

/// Formats a time in UTC with milliseconds, such as `2026-07-28T12:00:00.000Z`. Times before 1970 become its start.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = date_of(since.as_secs() / DAY);
    let second = since.as_secs() % DAY;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis()
    )
}

/// Parses a time in UTC, with or without a fraction, as [`rfc3339`] formats it. `None` before 1970.
pub fn parse_rfc3339(text: &str) -> Option<SystemTime> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 60
    {
        return None;
    }
    let days = days_before(year) + (1..month).map(|month| days_of(year, month)).sum::<u64>();
    if !(1..=days_of(year, month)).contains(&day) {
        return None;
    }
    let seconds = (days + day - 1) * DAY + hour * 3600 + minute * 60 + second;
    let nanoseconds = format!("{fraction:0<9}").parse().ok()?;
    UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds))
}

fn numbers<const N: usize>(text: &str, separator: char, lengths: [usize; N]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(separator);
    for (number, length) in numbers.iter_mut().zip(lengths) {
        let part = parts.next()?;
        if part.len() != length || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *number = part.parse().ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// Returns the number of days from 1970 to the start of a year.
fn days_before(year: u64) -> u64 {
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let before = year.saturating_sub(1);
    (year - 1970) * 365 + leap_days(before) - leap_days(1969)
}

fn days_of(year: u64, month: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn date_of(days: u64) -> (u64, u64, u64) {
    // A year has at least 365 days, so the estimate is at most a few years too late.
    let mut year = 1970 + days / 365;
    while days_before(year) > days {
        year -= 1;
    }
    let mut rest = days - days_before(year);
    let mut month = 1;
    while rest >= days_of(year, month) {
        rest -= days_of(year, month);
        month += 1;
    }
    (year, month, rest + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_and_parsed() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_785_240_000, "2026-07-28T12:00:00.000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000Z"),
            (253_402_300_799, "9999-12-31T23:59:59.000Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(rfc3339(time), text);
            assert_eq!(parse_rfc3339(text), Some(time), "{text}");
        }
        assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(1)), "1970-01-01T00:00:00.001Z");
        assert_eq!(parse_rfc3339("2026-07-28T12:00:00Z"), parse_rfc3339("2026-07-28T12:00:00.0Z"));
    }

    #[test]
    fn invalid_times_are_refused() {
        for text in [
            "",
            "2026-07-28",
            "2026-07-28T12:00:00",
            "2026-07-28T12:00:00+02:00",
            "2026-02-29T12:00:00Z",
            "2026-13-01T12:00:00Z",
            "2026-00-01T12:00:00Z",
            "2026-07-28T24:00:00Z",
            "2026-7-28T12:00:00Z",
            "2026-07-28T12:00:00.Z",
            "+026-07-28T12:00:00Z",
        ] {
            assert_eq!(parse_rfc3339(text), None, "{text}");
        }
    }
}
