//! Calls that become tasks: their records, the processes that run them, and the methods that ask for them.
//!
//! A task runs the ordinary handler. Asking already works by replay; a task keeps the log in a store instead of in the client.
//! `submit` creates tasks, `runner` claims them and renews the claims, `attempt` is the work under one claim, `steps` what a
//! handler records, `job` work that another system does, `methods` answers `tasks/*`, and `watch` notifies waiters and subscribers of changes.

mod attempt;
mod clock;
mod job;
mod methods;
mod runner;
mod settings;
mod steps;
mod submit;
mod table;
mod watch;

pub(crate) use attempt::{Attempt, Loaded};
pub(crate) use job::CancelJob;
pub use job::{Job, JobProgress, JobStatus};
pub(crate) use methods::is_task_method;
pub(crate) use settings::When;
pub use settings::{Task, Tasks};
pub(crate) use submit::{Admission, Submission};
pub(crate) use table::Table;
pub(crate) use watch::Follower;
