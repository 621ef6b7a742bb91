//! Our client, whose user is another program.

use bowline::{
    Client,
    auth::{FileStore, LoggedOut, Login, Visit},
    http::{HttpTarget, http},
    prelude::*,
};
use serde_json::{Value, json};
use std::io::BufRead as _;

/// Takes `URL STORE [--stored] [--allow EXCEPTION] [--client ID SECRET] [--machine ID SECRET] STEP…`. Steps are `login`, `call:TOOL`, `account` and
/// `logout`. Prints one JSON object per step, and stops at the first that fails.
///
/// To log in, it prints `{"visit": URL}` and reads the redirected URL from standard input.
pub(crate) async fn run(arguments: &[&str]) -> Result<()> {
    let [url, folder, options @ ..] = arguments else {
        return Err(Error::tool("expected URL STORE"));
    };
    let mut login = Login::with(visit).redirect_uri("http://127.0.0.1:33418/callback");
    let mut exceptions = Vec::new();
    let mut steps = Vec::new();
    let mut rest = options.iter();
    while let Some(&option) = rest.next() {
        let mut value = || rest.next().copied().ok_or_else(|| Error::tool(format!("{option} needs a value")));
        match option {
            "--stored" => login = Login::stored(),
            "--machine" => login = Login::machine(value()?, value()?).trust_first_issuer(),
            "--client" => login = login.client(value()?, value()?),
            "--allow" => exceptions.push(value()?.parse().map_err(Error::tool)?),
            step => steps.push(step),
        }
    }
    let login = exceptions.into_iter().fold(login, Login::lenient);
    let target = http(*url).login(login.store(FileStore::at(*folder)?));
    let mut client = None;
    for step in steps {
        let mut line = match take(&target, &mut client, step).await {
            Ok(line) => line,
            Err(error) => json!({ "error": error.to_string() }),
        };
        line["step"] = step.into();
        println!("{line}");
        if line.get("error").is_some() {
            break;
        }
    }
    if let Some(client) = client {
        client.close().await;
    }
    Ok(())
}

async fn take(
    target: &HttpTarget,
    client: &mut Option<Client>,
    step: &str,
) -> bowline::client::Result<Value> {
    Ok(match step {
        "login" => json!({ "issuer": target.log_in().await?.issuer.as_str() }),
        "logout" => json!({ "ended": match target.log_out().await? {
            LoggedOut::Revoked => "Revoked",
            LoggedOut::Deleted => "Deleted",
            _ => "NotLoggedIn",
        } }),
        "account" => {
            let account = target.account().await?;
            json!({ "renewable": account.map(|account| account.is_renewable) })
        }
        call => {
            if client.is_none() {
                *client = Some(Client::connect(target.clone()).await?);
            }
            let tool = call.trim_start_matches("call:");
            let called = client.as_ref().expect("it is connected").call(tool, ()).await?;
            json!({ "text": called.text() })
        }
    })
}

async fn visit(visit: Visit) -> std::io::Result<String> {
    println!("{}", json!({ "visit": visit.url() }));
    let read = || {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        Ok(line.trim().to_owned())
    };
    tokio::task::spawn_blocking(read).await?
}
