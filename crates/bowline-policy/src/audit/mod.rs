//! The audit log: every decision and every call, one JSON line each.
//!
//! Writing never blocks a call: entries go into a bounded queue, and one thread writes them. If the queue is full, an
//! entry is dropped, and the number of dropped entries is logged as soon as there is space. Several processes can share
//! a file. They use a lock file (`.name.lock` beside it), so no line is torn and rotation loses none. Dropping the last
//! handle writes the queued entries.
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
mod tail;
mod writer;

pub use entry::{Entry, Event};
pub use redact::Redactor;
pub use settings::{AuditArguments, AuditSettings};
pub use tail::{TailLine, read_tail};
pub use writer::Audit;
