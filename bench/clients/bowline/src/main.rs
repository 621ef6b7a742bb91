//! Bowline's client in a closed loop: see `bench-drive` for the arguments.

use bench_drive::{Arguments, drive};
use bowline::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let arguments = Arguments::read();
    let builder = Client::builder().name("bench").revisions([arguments.revision.parse::<Revision>()?]);
    let client = match arguments.target.as_slice() {
        [url] if url.starts_with("http:") => builder.connect(http(url.as_str())).await?,
        [program, words @ ..] => builder.connect(command(program, words)).await?,
        [] => unreachable!("the arguments name a target"),
    };
    let (caller, message) = (client.clone(), Arguments::message());
    drive(&arguments, move || {
        let (client, message) = (caller.clone(), message.clone());
        async move {
            let called = client.call("echo", json!({ "message": message })).await;
            let called = called.map_err(|error| error.to_string())?;
            if called.text() == message { Ok(()) } else { Err(format!("{called:?}")) }
        }
    })
    .await;
    client.close().await;
    Ok(())
}
