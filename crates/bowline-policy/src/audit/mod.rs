//! The audit log: every decision and every call, one JSON line each.
//!
//! Writing never holds up a call: entries go into a bounded queue, and one thread writes them. When the queue is full an
//! entry is dropped and counted, and the count is written as soon as there is room. Several processes may share a file:
//! they take turns by a lock (`.name.lock` beside it), so no line is torn and no rotation loses one. Dropping the last
//! handle writes what is queued.
//!
//! ```
//! use bowline_policy::audit::{Audit, AuditSettings, Entry, Event};
//! use std::time::SystemTime;
//!
//! let path = std::env::temp_dir().join(format!("bowline-doc-audit-{}.jsonl", std::process::id()));
//! let audit = Audit::open(AuditSettings::new(&path))?;
//! audit.write(Entry::new(SystemTime::UNIX_EPOCH, Event::Decision, "files", "tools/call"));
//! drop(audit);
//! let line = std::fs::read_to_string(&path)?;
//! assert!(line.starts_with(r#"{"time":"1970-01-01T00:00:00.000Z","event":"decision","server":"files","#));
//! # std::fs::remove_file(path)?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod entry;
mod file;
mod redact;
mod settings;
mod writer;

pub use entry::{Entry, Event};
pub use settings::{AuditArguments, AuditSettings};
pub use writer::Audit;
