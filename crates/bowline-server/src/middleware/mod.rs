//! Ready middleware.

mod function;
mod limit;
mod rate;
mod timeout;
#[cfg(feature = "tracing")]
mod trace;

pub use function::{FromFn, from_fn};
pub use limit::ConcurrencyLimit;
pub use rate::RateLimit;
pub use timeout::Timeout;
#[cfg(feature = "tracing")]
pub use trace::Trace;
