//! Tests of the client through its public interface.

mod answering;
mod end_to_end;
mod lists;
mod logs;
mod noise;
mod opening;
#[cfg(unix)]
mod process;
mod reconnect;
mod relay;
mod relayed;
mod requests;
#[cfg(unix)]
mod restart;
mod rounds;
mod subscriptions;
mod support;
mod tasks;
mod tasks_2025;
mod tasks_end_to_end;
mod transport;
mod typed;
