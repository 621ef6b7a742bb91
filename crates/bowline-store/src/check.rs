//! What operators read about a store.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{Key, Put, PutError, Records, StoreError, Time};

/// How good a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Level {
    /// As it should be.
    Ok,
    /// The store works, but less well or less safely than it could.
    Warning,
    /// The store cannot be used like this.
    Error,
}

impl Level {
    /// `ok`, `warning` or `error`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One fact about a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What it is about, such as `durability`.
    pub name: &'static str,
    /// What was found.
    pub value: String,
    /// How good that is.
    pub level: Level,
    /// What to do about it.
    pub advice: Option<String>,
}

impl Finding {
    /// As it should be.
    pub fn ok(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into(), level: Level::Ok, advice: None }
    }

    /// Works, but not well.
    pub fn warning(name: &'static str, value: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::ok(name, value) }
    }

    /// Does not work.
    pub fn error(name: &'static str, value: impl Into<String>) -> Self {
        Self { level: Level::Error, ..Self::ok(name, value) }
    }

    /// Adds what to do.
    #[must_use]
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// How many times each operation is measured.
const ROUNDS: usize = 20;

/// A median above this makes every step of a task noticeably slow.
const SLOW: Duration = Duration::from_millis(50);

/// Leases are compared with the clock of the store, so a difference is harmless; a large one confuses people.
const OFFSET: Duration = Duration::from_secs(1);

/// Writes, reads and removes a record several times, and reports how long that took and how far the clocks are apart.
pub async fn measure(records: &dyn Records) -> Result<Vec<Finding>, StoreError> {
    let (mut writes, mut reads, mut offsets) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let name = format!("check/{:016x}", fastrand::u64(..));
        let key = [Key::new(name).expect("hexadecimal digits are a key")];
        let started = Instant::now();
        records.put(Put::create(key[0].clone(), "check", Duration::from_secs(60))).await.map_err(
            |error| match error {
                PutError::Store(error) => error,
                PutError::Conflict | PutError::ClaimLost => {
                    StoreError::invalid(format!("a new record was refused: {error}"))
                }
            },
        )?;
        writes.push(started.elapsed());
        let (before, started) = (wall_clock(), Instant::now());
        let read = records.get(&key).await?;
        reads.push(started.elapsed());
        let record = read.into_iter().flatten().next();
        let record =
            record.ok_or_else(|| StoreError::invalid("a record was acknowledged and cannot be read"))?;
        // The clock was read somewhere between; the middle is the best guess.
        let local = before.after(started.elapsed() / 2);
        let offset = i128::from(record.read_at.as_millis()) - i128::from(local.as_millis());
        offsets.push(offset);
        records.remove(&key).await?;
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2]
    };
    let latency = |name, time: Duration| {
        let value = format!("{:.1} ms", time.as_secs_f64() * 1000.0);
        if time > SLOW {
            Finding::warning(name, value)
                .advice("every step of a task waits this long; place the store nearer")
        } else {
            Finding::ok(name, value)
        }
    };
    offsets.sort_unstable();
    let offset = offsets[offsets.len() / 2];
    let value = format!("{offset:+} ms");
    let clock = if offset.unsigned_abs() > OFFSET.as_millis() {
        Finding::warning("clock offset", value).advice("synchronize the clocks of this machine and the store")
    } else {
        Finding::ok("clock offset", value)
    };
    Ok(vec![latency("write", median(&mut writes)), latency("read", median(&mut reads)), clock])
}

fn wall_clock() -> Time {
    Time::default().after(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{Level, measure};
    use crate::{Memory, Records};

    #[tokio::test]
    async fn a_check_leaves_nothing_behind() {
        let store = Memory::new();
        let findings = measure(&store).await.unwrap();
        assert_eq!(
            findings.iter().map(|finding| finding.name).collect::<Vec<_>>(),
            ["write", "read", "clock offset"]
        );
        assert!(findings.iter().all(|finding| finding.level == Level::Ok), "{findings:?}");
        tokio::time::pause();
        tokio::time::advance(std::time::Duration::from_secs(120)).await;
        assert_eq!(store.sweep(100).await.unwrap(), 0);
    }
}
