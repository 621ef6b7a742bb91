//! Formats PostgreSQL dates and times, which count from 2000, as ISO 8601.

use std::fmt::Write as _;

/// From 1970-01-01 to 2000-01-01.
const EPOCH_DAYS: i64 = 10_957;
const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Formats a date from the days since 2000-01-01.
pub(super) fn date(days: i32) -> String {
    match days {
        i32::MAX => "infinity".into(),
        i32::MIN => "-infinity".into(),
        _ => civil(i64::from(days)),
    }
}

/// Formats a time of day from microseconds; `None` if it is out of range.
pub(super) fn time(microseconds: i64) -> Option<String> {
    // PostgreSQL allows 24:00.
    if !(0..=DAY).contains(&microseconds) {
        return None;
    }
    let (seconds, fraction) = (microseconds / SECOND, microseconds % SECOND);
    let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    Some(if fraction == 0 {
        clock
    } else {
        format!("{clock}.{}", format!("{fraction:06}").trim_end_matches('0'))
    })
}

/// Formats a time of day with a time zone, from microseconds and the seconds west of UTC.
pub(super) fn time_with_zone(microseconds: i64, west: i32) -> Option<String> {
    let east = west.checked_neg()?;
    let sign = if east < 0 { '-' } else { '+' };
    let minutes = east.unsigned_abs() / 60;
    Some(format!("{}{sign}{:02}:{:02}", time(microseconds)?, minutes / 60, minutes % 60))
}

/// Formats a timestamp from the microseconds since 2000.
pub(super) fn timestamp(microseconds: i64) -> Option<String> {
    match microseconds {
        i64::MAX => Some("infinity".into()),
        i64::MIN => Some("-infinity".into()),
        _ => {
            let day = civil(microseconds.div_euclid(DAY));
            Some(format!("{day}T{}", time(microseconds.rem_euclid(DAY))?))
        }
    }
}

/// Formats a timestamp in UTC.
pub(super) fn timestamp_with_zone(microseconds: i64) -> Option<String> {
    let timestamp = timestamp(microseconds)?;
    Some(if timestamp.ends_with("infinity") { timestamp } else { format!("{timestamp}Z") })
}

/// Formats an interval of months, days and microseconds.
pub(super) fn interval(microseconds: i64, days: i32, months: i32) -> String {
    // Writing to a string does not fail.
    let mut text = String::from("P");
    for (count, unit) in [(months / 12, 'Y'), (months % 12, 'M'), (days, 'D')] {
        if count != 0 {
            let _ = write!(text, "{count}{unit}");
        }
    }
    if microseconds != 0 {
        let sign = if microseconds < 0 { "-" } else { "" };
        let (seconds, fraction) =
            (microseconds.unsigned_abs() / 1_000_000, microseconds.unsigned_abs() % 1_000_000);
        let fraction = format!(".{fraction:06}");
        let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
        let _ = write!(text, "T{sign}{seconds}{fraction}S");
    }
    if text == "P" { "PT0S".into() } else { text }
}

/// Converts days since 2000-01-01 to a Gregorian date, by counting eras of 400 years from the first of March.
fn civil(days: i64) -> String {
    let days = days + EPOCH_DAYS + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    if year < 0 {
        format!("-{:04}-{month:02}-{day:02}", -year)
    } else {
        format!("{year:04}-{month:02}-{day:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_counted_from_2000() {
        for (days, expected) in [
            (0, "2000-01-01"),
            (59, "2000-02-29"),
            (-1, "1999-12-31"),
            (-10_957, "1970-01-01"),
            (9_709, "2026-08-01"),
            (i32::MAX, "infinity"),
            (i32::MIN, "-infinity"),
        ] {
            assert_eq!(date(days), expected);
        }
        assert!(date(i32::MIN + 1).starts_with('-'));
    }

    #[test]
    fn times_have_as_many_digits_as_they_need() {
        assert_eq!(time(0).unwrap(), "00:00:00");
        assert_eq!(time(DAY - 1).unwrap(), "23:59:59.999999");
        assert_eq!(time(DAY).unwrap(), "24:00:00");
        assert_eq!(time(DAY + 1), None);
        assert_eq!(time(-1), None);
        assert_eq!(time_with_zone(1_500_000, -5400).unwrap(), "00:00:01.5+01:30");
        assert_eq!(time_with_zone(0, i32::MIN), None);
        assert_eq!(timestamp(-1).unwrap(), "1999-12-31T23:59:59.999999");
        assert_eq!(timestamp_with_zone(SECOND).unwrap(), "2000-01-01T00:00:01Z");
        assert_eq!(timestamp_with_zone(i64::MAX).unwrap(), "infinity");
        assert!(timestamp(i64::MIN + 1).is_some());
    }

    #[test]
    fn intervals_keep_their_parts() {
        assert_eq!(interval(0, 0, 0), "PT0S");
        assert_eq!(interval(-1_500_000, 3, 14), "P1Y2M3DT-1.5S");
        assert_eq!(interval(60_000_000, 0, 0), "PT60S");
        assert_eq!(
            interval(i64::MIN, i32::MIN, i32::MIN),
            "P-178956970Y-8M-2147483648DT-9223372036854.775808S"
        );
    }
}
