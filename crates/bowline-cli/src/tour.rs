//! The tour: one server, a client of each revision, and what each of them sees.

use crate::{
    Error,
    arguments::Frames,
    table,
    wire::{Incoming, Outgoing, Record},
};
use bowline_client::{Answer, Client, Command, Stream};
use bowline_types::{ResourceContents, Revision};
use serde_json::json;
use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

const HEAD: [&str; 8] =
    ["revision", "opened by", "tools", "add 2 3", "\"Which color?\"", "progress", "resource", "prompt"];

/// What a client saw.
struct Sight {
    cells: [String; HEAD.len()],
    /// Why the user could not be asked, in the words of the tool.
    loss: Option<String>,
}

/// Starts the demo server for each revision in turn, and writes what its clients see.
pub(crate) async fn run(frames: Frames, out: &mut impl Write) -> Result<(), Error> {
    writeln!(out, "One server, `bowline serve demo`, and a client of each revision of the protocol.\n")?;
    let mut rows = Vec::new();
    let mut losses = Vec::new();
    for revision in Revision::ALL {
        let record = Record::default();
        let seen = visit(revision, &record).await;
        if frames == Frames::Shown {
            writeln!(out, "{revision}")?;
            record.write(out)?;
            writeln!(out)?;
        }
        let Sight { cells, loss } =
            seen.map_err(|error| format!("a client of {revision} failed: {error}"))?;
        rows.push(cells);
        losses.extend(loss.map(|loss| format!("In {revision} the model reads: {loss}")));
    }
    table::write(out, HEAD, &rows)?;
    writeln!(
        out,
        "\nRevisions before 2025-06-18 have no way to ask the user, so a tool that has to ask fails there."
    )?;
    for loss in losses {
        writeln!(out, "{loss}")?;
    }
    Ok(out.flush()?)
}

/// Connects a client that speaks nothing but `revision` to a server of its own, and looks around.
async fn visit(revision: Revision, record: &Record) -> Result<Sight, Error> {
    let mut child = Command::new(std::env::current_exe()?).args(["serve", "demo"]).spawn()?;
    let (Some(read), Some(write)) = (child.take_stdout(), child.take_stdin()) else {
        return Err("the server was started without pipes".into());
    };
    let client = Client::builder()
        .name("bowline-tour")
        .revisions([revision])
        .on_ask(|_| async { Answer::accept(json!({ "color": "green" })) })
        .connect(Stream::new(Incoming(read, record.clone()), Outgoing(write, record.clone())))
        .await?;
    let sight = look(&client).await;
    client.close().await;
    child.shutdown().await;
    Ok(sight?)
}

async fn look(client: &Client) -> bowline_client::Result<Sight> {
    let tools: Vec<String> = client.tools().await?.into_iter().map(|tool| tool.name).collect();
    let sum = client.call("add", json!({ "a": 2, "b": 3 })).await?.text();

    let painted = client.call("paint", ()).await?;
    let (asked, loss) = if painted.is_error() {
        ("cannot ask".to_owned(), Some(painted.text()))
    } else {
        (painted.text(), None)
    };

    let steps = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&steps);
    let counted = client.call("count", json!({ "to": 3 }));
    let note = move |_| {
        counter.fetch_add(1, Ordering::Relaxed);
    };
    counted.progress(note).await?;

    let read = client.read("demo://greeting").await?;
    let greeting = read.contents.iter().find_map(|contents| match contents {
        ResourceContents::Text(text) => Some(text.text.clone()),
        ResourceContents::Blob(_) => None,
    });
    let prompt = client.prompt("greet", json!({ "name": "Ann" })).await?;
    let message = prompt.messages.iter().find_map(|message| message.content.as_text().map(str::to_owned));

    let revision = client.revision();
    let opened = if revision.is_modern() { "server/discover" } else { "initialize" };
    let cells = [
        revision.to_string(),
        opened.to_owned(),
        tools.join(" "),
        sum,
        asked,
        format!("{} steps", steps.load(Ordering::Relaxed)),
        greeting.unwrap_or_default(),
        message.unwrap_or_default(),
    ];
    Ok(Sight { cells, loss })
}
