//! Ready middleware.

mod function;
mod limit;
#[cfg(feature = "tracing")]
mod log_events;
mod rate;
mod timeout;
#[cfg(feature = "tracing")]
mod trace;

pub use function::{FromFn, from_fn};
pub use limit::ConcurrencyLimit;
#[cfg(feature = "tracing")]
pub use log_events::LogEvents;
pub use rate::RateLimit;
pub use timeout::Timeout;
#[cfg(feature = "tracing")]
pub use trace::Trace;
