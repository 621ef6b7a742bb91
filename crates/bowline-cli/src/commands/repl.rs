//! `bowline repl`: one connection, and as many commands as one likes.

mod line;

use super::{call, complete, info, ping, prompt, prompts, read, request, resources, tools, watch};
use crate::{
    cache::Names,
    context::Context,
    failure::{Code, Failure},
    offers::{COMMANDS, split},
    session::Session,
    target::{Interaction, RequestOptions, TargetArguments},
};
use bowline_client::{ClientBuilder, Notification};
use bowline_text::{nearest, visible};
use clap::Args;
use line::{Asked, Reader};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;
use watch::News;

/// How much news may wait to be shown before some is left out.
const WAITING: usize = 1000;

const HELP: &str = "\
tools [TOOL]                    list the tools, or show one in full
call TOOL [name=value]...       call a tool
resources, templates            list what there is to read
read URI                        read a resource
prompts                         list the prompts
prompt PROMPT [name=value]...   fill in a prompt
complete PROMPT|TEMPLATE argument=start
                                ask what the server proposes
request METHOD [JSON]           send any request
info, ping                      who the server is, and whether it answers
help, quit                      this, and the end; so are Ctrl-D and the end of the input";

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
    #[command(flatten)]
    interaction: Interaction,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let target = arguments.interaction.apply(arguments.target.target(context)?)?.lasting();
    let (sender, mut news) = mpsc::channel(WAITING);
    let logs = sender.clone();
    let hear = move |builder: ClientBuilder| {
        builder
            .on_log(move |message| drop(logs.try_send(News::Log(message))))
            .on_notification(move |told| drop(sender.try_send(News::Notification(told))))
    };
    let session = Session::open(target, context, hear).await?;
    let names = Arc::new(Mutex::new(Names::default()));
    learn(&session, &names).await;
    let history = context.surroundings.state_folder().map(|folder| folder.join("history"));
    let mut reader = Reader::start(format!("{}> ", visible(&session.name)), history, Arc::clone(&names))?;
    if context.interactive() {
        context.screen.aside("`help` shows the commands; Tab completes; Ctrl-D ends");
    }
    let ended = converse(&session, &names, &mut reader, &mut news).await;
    session.client.close().await;
    ended
}

async fn converse(
    session: &Session<'_>,
    names: &Mutex<Names>,
    reader: &mut Reader,
    news: &mut mpsc::Receiver<News>,
) -> Result<(), Failure> {
    let screen = session.context.screen;
    reader.next();
    loop {
        tokio::select! {
            biased;
            told = news.recv() => {
                let Some(told) = told else { break };
                reader.print(&watch::line(screen, &told));
                let changed = matches!(
                    told,
                    News::Notification(
                        Notification::ToolsChanged | Notification::PromptsChanged | Notification::ResourcesChanged
                    )
                );
                if changed {
                    learn(session, names).await;
                }
            }
            lost = session.client.closed() => return Err(lost.into()),
            asked = reader.asked() => match asked {
                None => break,
                Some(Asked::Values { prompt, argument, start, known, reply }) => {
                    let reference = complete::reference_to(&prompt);
                    let proposed = session.client.complete(reference, argument, start, known).await;
                    // Nobody waits any longer when it took too long.
                    let _ = reply.send(proposed.map(|proposed| proposed.values).unwrap_or_default());
                }
                Some(Asked::Line(line)) => {
                    let mut words = split(&line);
                    words.retain(|word| !word.is_empty());
                    if matches!(words.first().map(String::as_str), Some("quit" | "exit")) {
                        break;
                    }
                    if let Err(failure) = obey(session, &words).await {
                        if failure.silent {
                            return Err(failure);
                        }
                        screen.tell_failure(&failure);
                    }
                    reader.next();
                }
            },
        }
    }
    Ok(())
}

/// Does what a line says, until Ctrl-C is pressed.
async fn obey(session: &Session<'_>, words: &[String]) -> Result<(), Failure> {
    tokio::select! {
        biased;
        done = act(session, words) => done,
        pressed = tokio::signal::ctrl_c() => {
            pressed?;
            Err(Failure::new(Code::Interrupted, "interrupted"))
        }
    }
}

async fn act(session: &Session<'_>, words: &[String]) -> Result<(), Failure> {
    let Some((command, words)) = words.split_first() else { return Ok(()) };
    match (command.as_str(), words) {
        ("help" | "?", _) => session.context.screen.line(HELP),
        ("info", []) => info::show(session),
        ("ping", []) => ping::ping(session).await,
        ("tools", words) => tools::show(session, words).await,
        ("call", [tool, words @ ..]) => call::call(session, tool, words, &call::Options::default()).await,
        ("resources", []) => resources::resources(session).await,
        ("templates", []) => resources::templates(session).await,
        ("read", [uri]) => read::read(session, uri, None, &RequestOptions::default()).await,
        ("prompts", []) => prompts::show(session).await,
        ("prompt", [name, words @ ..]) => {
            prompt::fill(session, name, words, None, &RequestOptions::default()).await
        }
        ("request", words @ ([_] | [_, _])) => {
            request::request(session, words, &RequestOptions::default()).await
        }
        ("complete", words) => complete::complete(session, words).await,
        (known, _) if COMMANDS.contains(&known) => {
            Err(Failure::misused(format!("`{known}` wants other words")).advise("`help` shows which"))
        }
        (unknown, _) => {
            let failure = Failure::misused(format!("there is no command `{unknown}`"));
            Err(match nearest(unknown, COMMANDS) {
                Some(near) => failure.advise(format!("did you mean `{near}`?")),
                None => failure.advise("`help` shows which there are"),
            })
        }
    }
}

/// Asks the server for all that may be completed. What it does not tell is not completed.
async fn learn(session: &Session<'_>, names: &Mutex<Names>) {
    let mut known = Names::default();
    if let Ok(tools) = tools::list(session).await {
        known.set_tools(&tools);
    }
    if let Ok(prompts) = prompts::list(session).await {
        known.set_prompts(&prompts);
    }
    if let Ok(resources) = session.client.resources().await {
        known.set_resources(resources.iter().map(|resource| resource.uri.as_str()));
    }
    *names.lock().unwrap_or_else(PoisonError::into_inner) = known;
}
