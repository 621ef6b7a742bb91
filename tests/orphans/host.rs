//! The host whose end is looked at.

use crate::{MARK, Result, server::Temper};
use bowline::{
    client::{Client, Command, command, memory},
    prelude::Server,
};
use bowline_host::{Host, Start, Upstream, exposed_name};
use bowline_policy::{Guard, Policy, Rule};
use std::{
    io::{self, Write},
    process::ExitCode,
    time::Duration,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::oneshot,
};

/// How long a server has for each step of an orderly end.
const GRACE: Duration = Duration::from_millis(300);

/// Runs a host with this many servers, prints the process ids of the servers, and ends as it is told.
pub(crate) async fn run(count: usize) -> Result<ExitCode> {
    let mut terminated = signal(SignalKind::terminate())?;
    let guard = Guard::builder().policy(Policy::new([Rule::allow()])).build();
    let mut builder = Host::builder().guard(guard);
    let names: Vec<_> = (0..count).map(|number| format!("s{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let temper = if number % 2 == 0 { Temper::Gentle } else { Temper::Stubborn };
        builder = builder.add(name.clone(), Upstream::from(tree(temper)?).start(Start::Eager));
    }
    let host = builder.build();
    let handle = host.open(Server::new("gateway")).map_err(|error| error.to_string())?;
    let (near, far) = memory();
    // It ends with the client, which holds the other ends.
    tokio::spawn(async move { handle.serve(far.read, far.write).await });
    let client = Client::connect(near).await?;
    let mut ids = Vec::new();
    for name in &names {
        ids.push(client.call(exposed_name(name, "id"), ()).await?.text());
    }
    writeln!(io::stdout(), "{}", ids.join(" "))?;

    let (tell, told) = oneshot::channel();
    // A thread of its own, which nobody waits for.
    std::thread::spawn(move || {
        let mut word = String::new();
        drop(io::stdin().read_line(&mut word));
        drop(tell.send(word));
    });
    let word = tokio::select! {
        _ = terminated.recv() => String::new(),
        word = told => word?,
    };
    match word.trim_end() {
        "panic" => panic!("on purpose"),
        "abort" => abort_beside().await,
        _ => {
            host.close().await;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A shell that starts a shell that starts the server. None of them heeds SIGTERM, nor does what they start: what a shell
/// ignores, its children ignore. The colons keep the shells from making way for their last command.
fn tree(temper: Temper) -> Result<Command> {
    let inner = r#"trap '' TERM; "$1" server "$2"; :"#;
    let outer = r#"trap '' TERM; sh -c "$3" sh "$1" "$2"; :"#;
    let program = std::env::current_exe()?;
    let program = program.to_str().ok_or("the path of this program is no text")?;
    let command = command("sh", ["-c", outer, "sh", program, temper.as_str(), inner]);
    Ok(command.env(MARK, std::env::var(MARK)?).grace(GRACE).terminate_grace(GRACE))
}

/// Panics in a thread of its own, with the consequence that `panic = "abort"` has.
async fn abort_beside() -> Result<ExitCode> {
    std::panic::set_hook(Box::new(|_| std::process::abort()));
    drop(std::thread::spawn(|| panic!("on purpose")));
    std::future::pending().await
}
