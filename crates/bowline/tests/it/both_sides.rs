//! A client and a server of the same program, through the prelude alone.

use bowline::{client, prelude::*};

#[data]
#[derive(PartialEq)]
struct Sum {
    value: i64,
}

#[data]
struct Confirm {
    /// Go on?
    sure: bool,
}

/// Add two numbers, if that is what is wanted.
#[tool]
async fn add(ctx: Ctx, a: i64, b: i64) -> Result<Json<Sum>> {
    let answer: Confirm = ctx.ask(format!("Add {a} and {b}?")).await?.accepted()?;
    if answer.sure { Ok(Json(Sum { value: a + b })) } else { Err(Error::tool("not wanted")) }
}

async fn check(revision: Revision, sure: bool) -> client::Result<Sum> {
    let (near, far) = client::memory();
    let served = tokio::spawn(Server::new("t").tool(add::tool()).serve(far.read, far.write));
    let answering = Client::builder()
        .revisions([revision])
        .on_ask(move |_| async move { client::Answer::accept(Confirm { sure }) });
    let peer = answering.connect(near).await?;
    let sum = peer.call_as::<Sum>("add", json!({ "a": 2, "b": 3 })).await;
    peer.close().await;
    served.await.expect("the server does not panic").expect("the server ends well");
    sum
}

#[tokio::test]
async fn derived_types_work_for_input_and_output() {
    for revision in [Revision::V2025_06_18, Revision::V2026_07_28] {
        assert_eq!(check(revision, true).await.expect("the user agreed"), Sum { value: 5 });
        let refused = check(revision, false).await.expect_err("the user did not agree");
        assert!(refused.to_string().contains("not wanted"), "{refused}");
    }
}

#[tokio::test]
async fn a_client_connects_to_a_server_in_the_same_process() {
    for revision in bowline::types::Revision::ALL {
        let server = Server::new("inside").tool(Tool::new("hello").handler(|| "hello"));
        let client = Client::builder().revisions([revision]).connect(server).await.unwrap();
        assert_eq!(client.call("hello", ()).await.unwrap().text(), "hello", "{revision}");
        client.close().await;
    }
    // A handle can be connected to more than once.
    let server = Server::new("inside").tool(Tool::new("hello").handler(|| "hello")).build().unwrap();
    for _ in 0..2 {
        let client = Client::connect(server.clone()).await.unwrap();
        assert_eq!(client.call("hello", ()).await.unwrap().text(), "hello");
    }
    let broken = Server::new("broken").tool(Tool::new("no name")).build().map(drop);
    assert!(broken.is_err());
    let refused = Client::connect(Server::new("broken").tool(Tool::new("no name"))).await.unwrap_err();
    assert!(refused.to_string().contains("no name"), "{refused}");
}
