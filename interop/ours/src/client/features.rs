//! What each feature of the contract has to do, from a client's side.

use bowline::{
    client::BoxFuture,
    prelude::*,
    types::{RawJson, Reference, ResourceContents},
};
use serde_json::Value;
use std::{collections::BTreeSet, fmt::Debug, time::Duration};
use tokio::{
    sync::mpsc::{self, Receiver},
    time::sleep,
};

/// A server, and what it has told so far.
pub(crate) struct Demo {
    pub(crate) client: Client,
    pub(crate) logged: Receiver<RawJson>,
    pub(crate) updated: Receiver<String>,
}

type Found = Result<(), Box<dyn std::error::Error + Send + Sync>>;
type Check = for<'a> fn(&'a mut Demo) -> BoxFuture<'a, Found>;

/// The tools of the contract.
const TOOLS: [&str; 10] =
    ["add", "ask", "bump", "cancelled", "echo", "fail", "log", "slow", "think", "where"];

/// Every feature by name.
pub(crate) const FEATURES: [(&str, Check); 15] = [
    ("list", |demo| Box::pin(demo.list())),
    ("call", |demo| Box::pin(demo.call())),
    ("structured", |demo| Box::pin(demo.structured())),
    ("error", |demo| Box::pin(demo.error())),
    ("progress", |demo| Box::pin(demo.progress())),
    ("cancel", |demo| Box::pin(demo.cancel())),
    ("log", |demo| Box::pin(demo.log())),
    ("resources", |demo| Box::pin(demo.resources())),
    ("templates", |demo| Box::pin(demo.templates())),
    ("subscribe", |demo| Box::pin(demo.subscribe())),
    ("prompts", |demo| Box::pin(demo.prompts())),
    ("completion", |demo| Box::pin(demo.completion())),
    ("sampling", |demo| Box::pin(demo.sampling())),
    ("elicitation", |demo| Box::pin(demo.elicitation())),
    ("roots", |demo| Box::pin(demo.roots())),
];

impl Demo {
    async fn list(&mut self) -> Found {
        let tools = self.client.tools().await?;
        let names: BTreeSet<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
        same(&names, &TOOLS.into_iter().collect())
    }

    async fn call(&mut self) -> Found {
        same(&self.text("echo", json!({ "message": "hé, 世界" })).await?.as_str(), &"hé, 世界")
    }

    /// Revisions before 2025-06-18 have the same as text.
    async fn structured(&mut self) -> Found {
        let called = self.client.call("add", json!({ "a": 2, "b": 3 })).await?;
        let is_known = self.client.revision() >= Revision::V2025_06_18;
        if is_known && called.structured.is_none() {
            return Err("there is no structured content".into());
        }
        same(&called.json::<Value>()?, &json!({ "sum": 5 }))
    }

    async fn error(&mut self) -> Found {
        let called = self.client.call("fail", ()).await?;
        same(&called.is_error(), &true)?;
        if !called.text().contains("it failed") {
            return Err(format!("the tool does not say why: `{}`", called.text()).into());
        }
        let error = self.client.read("demo://nothing").await.err();
        same(&error.is_some_and(|error| error.is_rpc()), &true)
    }

    async fn progress(&mut self) -> Found {
        let (step, mut steps) = mpsc::channel(16);
        let slow = self.client.call("slow", json!({ "steps": 3 }));
        let slow = slow.progress(move |at| _ = step.try_send((at.progress, at.total)));
        let called = slow.await?;
        same(&called.text().as_str(), &"done")?;
        let mut heard = Vec::new();
        while let Ok((progress, total)) = steps.try_recv() {
            heard.push(json!([progress, total]));
        }
        same(&json!(heard), &json!([[1.0, 3.0], [2.0, 3.0], [3.0, 3.0]]))
    }

    async fn cancel(&mut self) -> Found {
        let before: u32 = self.text("cancelled", json!({})).await?.parse()?;
        let (step, mut steps) = mpsc::channel(16);
        let slow = self.client.call("slow", json!({ "steps": 1, "hold": true }));
        let slow = slow.progress(move |_| _ = step.try_send(()));
        tokio::select! {
            called = slow => return Err(format!("it was not to end: {called:?}").into()),
            _ = steps.recv() => {}
        }
        // It was dropped above. The server has the time limit of this feature to notice.
        while self.text("cancelled", json!({})).await?.parse::<u32>()? != before + 1 {
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn log(&mut self) -> Found {
        self.client.set_level(LoggingLevel::Info).await?;
        same(&self.text("log", json!({})).await?.as_str(), &"logged")?;
        let data = self.logged.recv().await.unwrap_or_default();
        same(&data.to_value()?, &json!("a word"))
    }

    async fn resources(&mut self) -> Found {
        let known = self.client.resources().await?;
        let uris: BTreeSet<_> = known.iter().map(|resource| resource.uri.as_str()).collect();
        same(&uris, &["demo://counter", "demo://text"].into_iter().collect())?;
        self.reads("demo://text", "Hello, resource!").await
    }

    async fn templates(&mut self) -> Found {
        let known = self.client.templates().await?;
        let templates: Vec<_> = known.iter().map(|template| template.uri_template.as_str()).collect();
        same(&templates, &vec!["demo://item/{id}"])?;
        self.reads("demo://item/7", "item 7").await
    }

    async fn subscribe(&mut self) -> Found {
        self.client.subscribe("demo://counter").await?;
        let counter = self.text("bump", json!({})).await?;
        same(&self.updated.recv().await.as_deref(), &Some("demo://counter"))?;
        self.reads("demo://counter", &counter).await?;
        Ok(self.client.unsubscribe("demo://counter").await?)
    }

    async fn prompts(&mut self) -> Found {
        let known = self.client.prompts().await?;
        let names: Vec<_> = known.iter().map(|prompt| prompt.name.as_str()).collect();
        same(&names, &vec!["greet"])?;
        let filled = self.client.prompt("greet", json!({ "name": "Ada" })).await?;
        let texts: Vec<_> = filled.messages.iter().filter_map(|message| message.content.as_text()).collect();
        same(&texts, &vec!["Hello, Ada!"])
    }

    async fn completion(&mut self) -> Found {
        let proposals = self.client.complete(Reference::prompt("greet"), "name", "A").await?;
        same(&proposals.values, &vec!["Ada".to_owned(), "Alan".to_owned()])
    }

    async fn sampling(&mut self) -> Found {
        same(&self.text("think", json!({})).await?.as_str(), &"deep-thought: 42")
    }

    async fn elicitation(&mut self) -> Found {
        same(&self.text("ask", json!({})).await?.as_str(), &"accept Ada")
    }

    async fn roots(&mut self) -> Found {
        same(&self.text("where", json!({})).await?.trim_end_matches('/'), &"file:///tmp")
    }

    async fn text(&self, tool: &str, arguments: Value) -> bowline::client::Result<String> {
        Ok(self.client.call(tool, arguments).await?.ok()?.text())
    }

    async fn reads(&self, uri: &str, text: &str) -> Found {
        let read = self.client.read(uri).await?;
        match read.contents.as_slice() {
            [ResourceContents::Text(contents)] => same(&contents.text.as_str(), &text),
            other => Err(format!("expected one text, got {other:?}").into()),
        }
    }
}

fn same<T: PartialEq + Debug>(found: &T, expected: &T) -> Found {
    if found == expected { Ok(()) } else { Err(format!("expected {expected:?}, got {found:?}").into()) }
}
