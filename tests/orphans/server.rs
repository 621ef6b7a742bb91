//! A server that has started a program of its own.

use crate::Result;
use bowline::prelude::{Server, Tool};
use std::{
    process::{ExitCode, Stdio},
    str::FromStr,
};
use tokio::process::Command;

/// What a server does at the end of its input.
#[derive(Clone, Copy)]
pub(crate) enum Temper {
    /// It ends, and leaves the program it started.
    Gentle,
    /// It stays.
    Stubborn,
}

impl Temper {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Gentle => "gentle",
            Self::Stubborn => "stubborn",
        }
    }
}

impl FromStr for Temper {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "gentle" => Ok(Self::Gentle),
            "stubborn" => Ok(Self::Stubborn),
            _ => Err(format!("expected `gentle` or `stubborn`, got `{word}`")),
        }
    }
}

/// Serves until its input ends, or longer.
pub(crate) async fn run(temper: Temper) -> Result<ExitCode> {
    // It has the output of the server, so that the pipe does not end with the server.
    let _program = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn()?;
    let id = Tool::new("id").handler(|| std::process::id().to_string());
    Server::new("tree").tool(id).serve_stdio().await.map_err(|error| error.to_string())?;
    match temper {
        Temper::Gentle => Ok(ExitCode::SUCCESS),
        Temper::Stubborn => std::future::pending().await,
    }
}
