//! Runs a program as a server, one process per connection.

use super::{Connect, Inbox, Transport, lines::Lines};
use crate::{Command, Error, Restart, Result};
use bowline_proto::service::BoxFuture;
use std::sync::Arc;
use tokio::sync::Mutex;

impl Connect for Command {
    fn connect(&self, inbox: Inbox) -> BoxFuture<'_, Result<Box<dyn Transport>>> {
        Box::pin(async move {
            let mut child = self.spawn()?;
            let (Some(read), Some(write)) = (child.take_stdout(), child.take_stdin()) else {
                return Err(Error::closed("the program was started without pipes"));
            };
            let stderr = child.stderr().clone();
            let lines = Lines::start(inbox, read, write, Some(Arc::new(Mutex::new(child))));
            Ok(Box::new(lines.with_stderr(stderr)) as _)
        })
    }

    fn restart(&self) -> Restart {
        self.restart_policy().clone()
    }
}
