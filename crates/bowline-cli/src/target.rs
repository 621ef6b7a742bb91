//! Which server a command is about: a name of the configuration, a URL, or a program to start.

use crate::{
    context::Context,
    failure::{Code, Failure},
};
use bowline_client::{Client, ClientBuilder, Command, Connect};
use clap::Args;
use std::{ffi::OsString, sync::Arc};

/// A target on the command line.
#[derive(Args, Debug)]
pub(crate) struct TargetArguments {
    /// The server: a name of the configuration or a URL
    #[arg(value_name = "TARGET", required_unless_present = "program")]
    target: Option<String>,
    /// Or a program to start, with its arguments
    #[arg(last = true, value_name = "PROGRAM", conflicts_with = "target")]
    program: Vec<OsString>,
}

/// A server that can be reached.
pub(crate) struct Target {
    /// What the user calls it.
    pub(crate) name: String,
    connect: Arc<dyn Connect>,
    /// The program, if the server is one.
    pub(crate) program: Option<Command>,
    /// The URL, if the server has one.
    pub(crate) url: Option<String>,
}

impl TargetArguments {
    pub(crate) fn target(&self, context: &Context) -> Result<Target, Failure> {
        if let Some((program, arguments)) = self.program.split_first() {
            let command = bowline_client::command(program, arguments);
            return Ok(Target {
                name: program.to_string_lossy().into_owned(),
                connect: Arc::new(command.clone()),
                program: Some(command),
                url: None,
            });
        }
        let name = self.target.as_deref().unwrap_or_default();
        if name.starts_with("http://") || name.starts_with("https://") {
            return Ok(Target {
                name: name.to_owned(),
                connect: Arc::new(bowline_http::http(name)),
                program: None,
                url: Some(name.to_owned()),
            });
        }
        let config = context.surroundings.config();
        let known: Vec<&str> = config.upstreams.iter().map(|entry| entry.name.as_str()).collect();
        let known = if known.is_empty() {
            "it names none".to_owned()
        } else {
            format!("it has {}", known.join(", "))
        };
        Err(Failure::new(Code::Config, format!("the configuration has no server `{name}`; {known}")))
    }
}

impl Target {
    pub(crate) async fn connect(&self, context: &Context, builder: ClientBuilder) -> Result<Client, Failure> {
        let _ = context;
        Ok(builder.connect(Arc::clone(&self.connect)).await?)
    }
}
