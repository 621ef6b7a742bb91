//! Holds a server next to itself behind the host: everything it shows to a client it shows through the host, and calls give
//! the same results. `everything PROGRAM ARGUMENTS…` starts the server once alone, once behind the host, then twice behind it.
#![expect(clippy::print_stdout, reason = "the results are its output")]

use bowline::{
    Error, Result,
    client::{Answer, Client, ClientBuilder, Stream, command},
};
use bowline_host::{Host, Start, Upstream, exposed_name};
use bowline_policy::{Action, Guard, Policy, Rule};
use bowline_server::Server;
use bowline_types::{
    ContentBlock, CreateMessageResult, Prompt, RawJson, Resource, Revision, Role, Root, Tool,
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, process::ExitCode, time::Duration};

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((program, arguments)) = words.split_first() else {
        println!("usage: everything PROGRAM ARGUMENTS…");
        return ExitCode::from(2);
    };
    match compare(program, arguments).await {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// A client that answers whatever it is asked, the same each time.
fn able() -> ClientBuilder {
    Client::builder()
        .name("everything")
        .timeout(Duration::from_secs(60))
        .on_ask(|question| async move {
            let fields = question.schema.properties.iter();
            let filled: Map<_, _> = fields
                .filter_map(|(name, field)| {
                    let schema = serde_json::to_value(field).ok()?;
                    Some((name.to_owned(), example(&schema)))
                })
                .collect();
            Answer::Accept(Value::Object(filled).into())
        })
        .on_url(|_| async { Answer::Accept(()) })
        .on_sample(|_| async {
            CreateMessageResult::new(Role::Assistant, ContentBlock::text("a model's words"), "model")
        })
        .roots([Root::new("file:///")])
}

/// A value that fits a schema.
fn example(schema: &Value) -> Value {
    if let Some(first) = schema.get("default").or_else(|| schema.pointer("/enum/0")) {
        return first.clone();
    }
    if let Some(first) = schema.pointer("/oneOf/0/const") {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("string") => match schema["format"].as_str() {
            Some("email") => "ada@example.com".into(),
            Some("uri") => "https://example.com/".into(),
            Some("date") => "2026-01-01".into(),
            Some("date-time") => "2026-01-01T00:00:00Z".into(),
            _ => "a few words".into(),
        },
        Some("number" | "integer") => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        Some("array") => json!([]),
        Some("object") => arguments(schema),
        _ => Value::Null,
    }
}

/// Arguments that fit a schema of arguments: what has to be given.
fn arguments(schema: &Value) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Value::Object(required.map(|name| (name.to_owned(), example(&schema["properties"][name]))).collect())
}

/// What a server shows.
struct Shown {
    tools: BTreeMap<String, Tool>,
    prompts: BTreeMap<String, Prompt>,
    resources: BTreeMap<String, Resource>,
    templates: usize,
}

async fn shown(client: &Client) -> Result<Shown> {
    Ok(Shown {
        tools: client.tools().await?.into_iter().map(|tool| (tool.name.clone(), tool)).collect(),
        prompts: client.prompts().await?.into_iter().map(|prompt| (prompt.name.clone(), prompt)).collect(),
        resources: client.resources().await?.into_iter().map(|found| (found.uri.clone(), found)).collect(),
        templates: client.templates().await?.len(),
    })
}

/// How many differences there are.
async fn compare(program: &str, words: &[String]) -> Result<usize> {
    let case = |names: &'static [&'static str], revision| async move {
        // The host requests tasks for tools that run only as tasks, so the other client does, too.
        let alone = able().tasks().connect(command(program, words)).await?;
        let found = behind(&alone, program, words, names, revision).await?;
        alone.close().await;
        Ok::<_, Error>((names.len(), revision, found))
    };
    // The calls of this server take long because they wait, so all cases run at the same time. Revisions before these lack
    // some of what it shows.
    let found = tokio::try_join!(
        case(&["one"], Revision::V2025_11_25),
        case(&["one"], Revision::V2026_07_28),
        case(&["one", "two"], Revision::V2025_11_25),
        case(&["one", "two"], Revision::V2026_07_28),
    )?;
    let found = <[_; 4]>::from(found);
    for (count, revision, found) in &found {
        println!("{count} of the server behind the host, {revision}: {found}");
    }
    let differences = found.iter().map(|(_, _, found)| found.wrong).sum();
    println!("{differences} differences");
    Ok(differences)
}

/// What a comparison came to.
#[derive(Default)]
struct Found {
    shown: usize,
    equal: usize,
    volatile: usize,
    wrong: usize,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { shown, equal, volatile, wrong } = self;
        write!(f, "{shown} shown alike, {equal} results equal, {volatile} different each time, {wrong} wrong")
    }
}

async fn behind(
    alone: &Client,
    program: &str,
    words: &[String],
    names: &[&str],
    revision: Revision,
) -> Result<Found> {
    let rules = [Action::Call, Action::Read, Action::Prompt, Action::Roots]
        .map(|action| Rule::allow().action(action));
    let guard = Guard::builder().policy(Policy::new(rules)).build();
    let host = names.iter().fold(Host::builder().guard(guard), |host, name| {
        // It asks for its folders as soon as it has started, when nobody calls.
        let upstream = Upstream::from(command(program, words)).roots([Root::new("file:///")]);
        host.add(*name, upstream.start(Start::Eager))
    });
    let host = host.build();
    let server = host.open(Server::new("gateway"))?;
    // A list waits for its servers a while only, and what is compared is all of it.
    while !host.is_ready() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let (near, far) = tokio::io::duplex(1 << 20);
    let serving = tokio::spawn(async move {
        let (read, write) = tokio::io::split(far);
        drop(server.serve(read, write).await);
    });
    let (read, write) = tokio::io::split(near);
    let through = able().revisions([revision]).connect(Stream::new(read, write)).await?;
    let found = differences(alone, &through, names).await?;
    through.close().await;
    host.close().await;
    serving.abort();
    Ok(found)
}

async fn differences(alone: &Client, through: &Client, names: &[&str]) -> Result<Found> {
    let (direct, gathered) = (shown(alone).await?, shown(through).await?);
    let mut found = Found::default();
    let mut hold = |what: String, is: bool| {
        found.shown += usize::from(is);
        if !is {
            println!("  {what}: is not shown as it is");
            found.wrong += 1;
        }
    };
    for name in names {
        for (tool, definition) in &direct.tools {
            let known = gathered.tools.get(&exposed_name(name, tool));
            let same = known.is_some_and(|known| {
                known.title == definition.title && known.description == definition.description
            });
            hold(format!("tool {tool} of {name}"), same);
        }
        for prompt in direct.prompts.keys() {
            hold(
                format!("prompt {prompt} of {name}"),
                gathered.prompts.contains_key(&exposed_name(name, prompt)),
            );
        }
    }
    // What both servers have is shown with the name of each.
    let shown_as = |name: &str, uri: &str| match names {
        [_] => uri.to_owned(),
        _ => format!("{name}+{uri}"),
    };
    for name in names {
        for uri in direct.resources.keys() {
            let known = gathered.resources.contains_key(&shown_as(name, uri));
            hold(format!("resource {uri} of {name}"), known);
        }
    }
    hold("the number of resources".into(), gathered.resources.len() == direct.resources.len() * names.len());
    hold("the number of templates".into(), gathered.templates == direct.templates * names.len());
    for name in names {
        for (tool, definition) in &direct.tools {
            let given = arguments(&definition.input_schema.to_value().unwrap_or_default());
            let call = |client: &Client, name: &str| {
                client.request("tools/call", json!({ "name": name, "arguments": given }))
            };
            let exposed = exposed_name(name, tool);
            let (one, two, other) =
                tokio::join!(call(alone, tool), call(alone, tool), call(through, &exposed));
            settle(&mut found, &format!("tool {tool} of {name}"), &one, &two, &other);
        }
        for (prompt, definition) in &direct.prompts {
            let given: Map<_, _> = definition
                .arguments
                .iter()
                .filter(|argument| argument.required == Some(true))
                .map(|argument| (argument.name.clone(), "words".into()))
                .collect();
            let get = |client: &Client, name: &str| {
                client.request("prompts/get", json!({ "name": name, "arguments": given }))
            };
            let (one, two) = (get(alone, prompt).await, get(alone, prompt).await);
            let other = get(through, &exposed_name(name, prompt)).await;
            settle(&mut found, &format!("prompt {prompt} of {name}"), &one, &two, &other);
        }
    }
    for name in names {
        for uri in direct.resources.keys().take(10) {
            let read = |client: &Client, uri: &str| client.request("resources/read", json!({ "uri": uri }));
            let (one, two) = (read(alone, uri).await, read(alone, uri).await);
            let other = read(through, &shown_as(name, uri)).await;
            settle(&mut found, &format!("resource {uri} of {name}"), &one, &two, &other);
        }
    }
    Ok(found)
}

fn settle(
    found: &mut Found,
    what: &str,
    one: &Result<RawJson, bowline::client::Error>,
    two: &Result<RawJson, bowline::client::Error>,
    other: &Result<RawJson, bowline::client::Error>,
) {
    let (one, two, mut other) = (plain(one), plain(two), plain(other));
    // URIs that both servers have are shown with the name of each.
    let unnamed = other.to_string().replace("\"one+", "\"").replace("\"two+", "\"");
    if let Ok(same) = serde_json::from_str(&unnamed) {
        other = same;
    }
    if one == other {
        found.equal += 1;
    } else if one != two {
        found.volatile += 1;
    } else {
        println!("  {what}:\n    alone   {one}\n    through {other}");
        found.wrong += 1;
    }
}

/// A result without what only some revisions have.
fn plain(result: &Result<RawJson, bowline::client::Error>) -> Value {
    let mut value = match result {
        Ok(result) => result.to_value().unwrap_or_default(),
        Err(error) => return format!("error: {error}").into(),
    };
    strip(&mut value);
    value
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for own in ["resultType", "ttlMs", "cacheScope", "_meta", "structuredContent", "isError"] {
                members.remove(own);
            }
            members.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}
