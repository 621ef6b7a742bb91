//! Resources: one with a fixed URI, a family of them behind a template, and a client that hears of changes.
//!
//! Try it: `cargo run -p bowline-examples --bin resources`. Server and client are in one process here.

#![expect(clippy::print_stdout, reason = "the program shows what it does")]

use bowline::{client::memory, prelude::*, types::SubscriptionFilter};
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
struct Board(Mutex<Vec<String>>);

#[tools]
impl Board {
    /// Put a note on the board.
    #[tool]
    fn add(&self, ctx: Ctx, note: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(note);
        ctx.resource_updated("board://notes");
    }

    /// All notes.
    #[resource("board://notes", mime_type = "text/plain")]
    fn notes(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// One note, counted from zero.
    #[resource("board://notes/{number}", mime_type = "text/plain")]
    fn note(&self, number: usize) -> Result<String> {
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes
            .get(number)
            .cloned()
            .ok_or_else(|| Error::resource_not_found(&format!("board://notes/{number}")))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> bowline::Result {
    let (near, far) = memory();
    tokio::spawn(Server::new("board").with(Board::default()).serve(far.read, far.write));
    let client = Client::connect(near).await?;

    let filter = SubscriptionFilter::new().resource_subscriptions(vec!["board://notes".into()]);
    let mut changes = client.listen(filter).await?;
    for note in ["buy milk", "feed the cat"] {
        client.call("add", json!({ "note": note })).await?;
        println!("changed: {:?}", changes.next().await);
    }
    for uri in ["board://notes", "board://notes/1", "board://notes/2"] {
        match client.read(uri).await {
            Ok(read) => println!("{}", json!(read.contents)),
            Err(error) => println!("{error}"),
        }
    }
    client.close().await;
    Ok(())
}
