//! What an error of Redis says about a command.

use bowline_store::StoreError;
use redis::{ErrorKind, RedisError};

/// The server refused the command before it did anything.
const REFUSED: [&str; 11] = [
    "READONLY",
    "LOADING",
    "MASTERDOWN",
    "OOM",
    "BUSY",
    "MISCONF",
    "NOREPLICAS",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "NOSCRIPT",
    "UNBLOCKED",
];

/// Repeating the command does not help.
const WRONG: [&str; 6] = ["NOPERM", "NOAUTH", "WRONGPASS", "MOVED", "ASK", "CROSSSLOT"];

pub(crate) fn connecting(error: RedisError, to: &str) -> StoreError {
    let message = format!("cannot connect to Redis at {to}: {error}");
    let wrong = error.kind() == ErrorKind::AuthenticationFailed
        || error.code().is_some_and(|code| WRONG.contains(&code));
    let failed = if wrong { StoreError::invalid(message) } else { StoreError::unavailable(message) };
    failed.with_source(error)
}

pub(crate) fn of_read(error: RedisError) -> StoreError {
    let message = described(&error);
    if error.code().is_some_and(|code| WRONG.contains(&code)) {
        return StoreError::invalid(message).with_source(error);
    }
    StoreError::unavailable(message).with_source(error)
}

pub(crate) fn of_write(error: RedisError) -> StoreError {
    match error.code() {
        Some(code) if REFUSED.contains(&code) || WRONG.contains(&code) => of_read(error),
        // The connection broke, or a script stopped on its way.
        _ => StoreError::unknown(described(&error)).with_source(error),
    }
}

fn described(error: &RedisError) -> String {
    match error.code() {
        Some("MOVED" | "ASK" | "CROSSSLOT") => {
            format!("Redis: {error}; a cluster is not supported, name a server that is not part of one")
        }
        Some("OOM") => format!("Redis: {error}; raise `maxmemory`"),
        _ => format!("Redis: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use bowline_store::ErrorKind as Kind;
    use redis::{RedisError, Value, parse_redis_value};

    use super::{of_read, of_write};

    fn error(line: &str) -> RedisError {
        let Ok(Value::ServerError(error)) = parse_redis_value(format!("-{line}\r\n").as_bytes()) else {
            panic!("{line} is not an error")
        };
        error.into()
    }

    #[test]
    fn a_refused_write_was_not_applied() {
        for line in [
            "READONLY You can't write against a read only replica.",
            "LOADING Redis is loading the dataset in memory",
            "MASTERDOWN Link with MASTER is down",
            "OOM command not allowed when used memory > 'maxmemory'.",
            "BUSY Redis is busy running a script.",
            "MISCONF Redis is configured to save RDB snapshots",
        ] {
            assert_eq!(of_write(error(line)).kind(), Kind::Unavailable, "{line}");
        }
        assert_eq!(of_write(error("NOPERM this user has no permissions")).kind(), Kind::Invalid);
        assert_eq!(of_write(error("ERR something in the middle of a script")).kind(), Kind::Unknown);
        let broken = || RedisError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert_eq!(of_write(broken()).kind(), Kind::Unknown);
        assert_eq!(of_read(broken()).kind(), Kind::Unavailable);
    }
}
