//! Formats times in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

/// Formats the time of day, such as `14:02:07.120Z`.
pub(crate) fn time_of_day(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let second = since.as_secs() % 86_400;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// Formats date and time, such as `2026-07-28T14:02:07.120Z`.
pub(crate) fn rfc3339(time: SystemTime) -> String {
    let days = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 86_400;
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{}", time_of_day(time))
}

/// Converts days since 1970-01-01 to a date.
fn date(days: u64) -> (u64, u64, u64) {
    // Years start in March here, so that the leap day comes last; eras are 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_formatted_in_utc() {
        let check =
            |moment, expected| assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(moment)), expected);
        check(0, "1970-01-01T00:00:00.000Z");
        check(951_782_399_999, "2000-02-28T23:59:59.999Z");
        check(951_782_400_000, "2000-02-29T00:00:00.000Z");
        check(951_868_800_000, "2000-03-01T00:00:00.000Z");
        check(1_785_247_327_120, "2026-07-28T14:02:07.120Z");
        check(4_102_444_800_000, "2100-01-01T00:00:00.000Z");
    }
}
