//! `--auth`: requires clients to log in, without an identity provider.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use std::net::SocketAddr;

/// Options for logins of clients.
#[derive(Args, Debug, Default)]
pub(crate) struct AuthArguments {
    /// Require clients to log in: `dev` issues tokens itself, on a loopback address only
    #[arg(long, global = true, value_name = "MODE")]
    auth: Option<AuthMode>,
    /// With `--auth`, require this scope for every request; can be repeated
    #[arg(long, global = true, value_name = "SCOPE")]
    auth_scope: Vec<String>,
}

/// Who issues the tokens of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AuthMode {
    /// An authorization server for development, on the same address
    Dev,
}

impl AuthArguments {
    /// Returns the scopes that `--auth dev` requires; `None` without it. Fails if options contradict each other.
    ///
    /// `address` is that of the HTTP socket, and `option` the option that sets it.
    pub(crate) fn check(
        &self,
        address: Option<SocketAddr>,
        option: &str,
        no_token: bool,
    ) -> Result<Option<&[String]>, Failure> {
        let Some(AuthMode::Dev) = self.auth else {
            if self.auth_scope.is_empty() {
                return Ok(None);
            }
            return Err(Failure::misused("`--auth-scope` needs `--auth dev`"));
        };
        if no_token {
            return Err(Failure::misused("`--no-token` conflicts with `--auth dev`")
                .advise("remove `--no-token`: with `--auth`, clients need no static token"));
        }
        match address {
            None => Err(Failure::misused(format!("`--auth dev` needs `{option}`")).advise(format!(
                "add `{option} PORT`; a client that starts the server over stdio needs no login"
            ))),
            Some(address) if !address.ip().is_loopback() => {
                let sentence = format!("`--auth dev` works only on a loopback address, not on {address}");
                Err(Failure::misused(sentence).advise("use 127.0.0.1"))
            }
            Some(_) => Ok(Some(&self.auth_scope)),
        }
    }
}

/// Returns the message that says how clients get a token.
pub(crate) fn notice(url: &str) -> String {
    format!("clients must log in, such as with `bowline login {url}`; anyone on this machine can")
}
