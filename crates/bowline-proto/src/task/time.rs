//! Timestamps of the wire format.

/// Returns milliseconds since the Unix epoch as a timestamp of RFC 3339 in UTC, such as `2026-07-28T09:30:00.125Z`.
///
/// Years after 9999 have five digits or more, which no clock reaches.
pub fn rfc3339(millis: u64) -> String {
    let (seconds, fraction) = (millis / 1000, millis % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Counts from 0000-03-01, so that a leap day is the last day of its year (Howard Hinnant, `civil_from_days`).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}.{fraction:03}Z", second % 60)
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn timestamps_are_utc_and_know_leap_years() {
        // proves: TASK-21
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_399_999), "2000-02-28T23:59:59.999Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
        assert_eq!(rfc3339(1_785_231_000_125), "2026-07-28T09:30:00.125Z");
        assert!(rfc3339(u64::MAX).ends_with('Z'));
    }
}
