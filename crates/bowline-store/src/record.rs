//! What is read from a store.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::{Group, Key, Queue};

/// A point in time of the store's clock, in milliseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The latest time. Engines that count in double precision can still represent it.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// A time from milliseconds since the Unix epoch, at most [`Time::MAX`].
    pub const fn from_millis(millis: u64) -> Self {
        if millis < Self::MAX.0 { Self(millis) } else { Self::MAX }
    }

    /// The milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// The time after a duration, which is rounded up to milliseconds.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        let millis = duration.as_nanos().div_ceil(1_000_000);
        let millis = u64::try_from(millis).unwrap_or(u64::MAX);
        Self::from_millis(self.0.saturating_add(millis))
    }

    /// The duration since an earlier time; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// Changes with every write and every claim of a record.
///
/// A version has a counter and random bits. After a failover that lost writes, a counter alone could repeat, and a writer
/// from before the failover would match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version(u64);

impl Version {
    /// The version of a new record.
    pub fn first() -> Self {
        Self::of(1)
    }

    /// The version after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self::of((self.0 >> 32).wrapping_add(1))
    }

    fn of(count: u64) -> Self {
        Self((count << 32) | u64::from(fastrand::u32(..)))
    }

    /// A version that an engine has kept.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// What an engine keeps.
    pub const fn bits(self) -> u64 {
        self.0
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u64);

        impl $name {
            /// A new random id.
            pub fn random() -> Self {
                Self(fastrand::u64(..))
            }

            /// An id that an engine has kept.
            pub const fn from_bits(bits: u64) -> Self {
                Self(bits)
            }

            /// What an engine keeps.
            pub const fn bits(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:016x}", self.0)
            }
        }
    )* };
}

ids! {
    /// One process that uses a store.
    NodeId;
    /// One claim of one record. A later claim of the same record by the same node has another id.
    ClaimId;
}

/// Who holds a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The process.
    pub node: NodeId,
    /// Its claim.
    pub claim: ClaimId,
}

/// A record as it was at [`Record::read_at`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// Its name.
    pub key: Key,
    /// Its content.
    pub value: Bytes,
    /// Its version.
    pub version: Version,
    /// Who holds it. The lease may have ended; until another claim the record is still held.
    pub owner: Option<Owner>,
    /// How many claims ended because nobody renewed their lease.
    pub lapses: u32,
    /// When it can be claimed. For a held record this is the end of the lease.
    pub due: Option<Time>,
    /// Where it waits to be claimed.
    pub queue: Option<Queue>,
    /// What it is listed by.
    pub group: Option<Group>,
    /// From this time on it counts as absent.
    pub expires: Time,
    /// The time of the store's clock when it was read.
    pub read_at: Time,
}

impl Record {
    /// A record without owner, due time, queue and group. Engines set those fields.
    pub fn new(key: Key, value: Bytes, version: Version, expires: Time, read_at: Time) -> Self {
        Self {
            key,
            value,
            version,
            owner: None,
            lapses: 0,
            due: None,
            queue: None,
            group: None,
            expires,
            read_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Time, Version};
    use std::time::Duration;

    #[test]
    fn times_saturate_and_round_up() {
        let time = Time::from_millis(1_000);
        assert_eq!(time.after(Duration::from_micros(1)), Time::from_millis(1_001));
        assert_eq!(time.after(Duration::MAX), Time::MAX);
        assert_eq!(Time::from_millis(u64::MAX), Time::MAX);
        assert_eq!(time.since(Time::from_millis(400)), Duration::from_millis(600));
        assert_eq!(time.since(Time::MAX), Duration::ZERO);
    }

    #[test]
    fn versions_count_and_wrap() {
        let first = Version::first();
        assert_eq!(first.bits() >> 32, 1);
        assert_eq!(first.next().bits() >> 32, 2);
        assert_eq!(Version::from_bits(u64::MAX).next().bits() >> 32, 0);
    }
}
