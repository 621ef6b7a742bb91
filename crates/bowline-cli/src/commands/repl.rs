//! `bowline repl`: runs several commands over one connection.

mod line_editor;

use super::{call, complete, info, ping, prompt, prompts, read, request, resources, tools};
use crate::{
    cache::Names,
    completion::{COMMANDS, split},
    context::Context,
    events::{self, ServerEvent},
    failure::{Code, Failure},
    session::Session,
    target::{Interaction, RequestOptions, TargetArguments},
};
use bowline_client::{ClientBuilder, Notification};
use bowline_text::{nearest, visible};
use clap::Args;
use line_editor::{Reader, ReaderRequest};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// The maximum number of queued events. Further events are dropped.
const MAX_QUEUED_EVENTS: usize = 1000;

const HELP: &str = "\
tools [TOOL]                    list the tools, or describe one
call TOOL [name=value]...       call a tool
resources, templates            list the resources or resource templates
read URI                        read a resource
prompts                         list the prompts
prompt PROMPT [name=value]...   get a prompt
complete PROMPT|TEMPLATE argument=prefix
                                complete an argument
request METHOD [JSON]           send any request
info, ping                      show or ping the server
help                            show this help
quit                            exit; so does Ctrl-D";

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: TargetArguments,
    #[command(flatten)]
    interaction: Interaction,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let target = arguments.interaction.apply(arguments.target.target(context)?)?.long_lived();
    let (sender, mut received) = mpsc::channel(MAX_QUEUED_EVENTS);
    let logs = sender.clone();
    let add_handlers = move |builder: ClientBuilder| {
        builder
            .tasks()
            .on_log(move |message| drop(logs.try_send(ServerEvent::Log(message))))
            .on_notification(move |event| drop(sender.try_send(ServerEvent::Notification(event))))
    };
    let session = Session::open(target, context, add_handlers).await?;
    let names = Arc::new(Mutex::new(Names::default()));
    refresh_names(&session, &names).await;
    let history = context.environment.state_dir().map(|folder| folder.join("history"));
    let mut reader = Reader::start(format!("{}> ", visible(&session.name)), history, Arc::clone(&names))?;
    if context.interactive() {
        context.screen.note("type `help` for a list of commands, Tab to complete, Ctrl-D to exit");
    }
    let ended = run_lines(&session, &names, &mut reader, &mut received).await;
    session.client.close().await;
    ended
}

async fn run_lines(
    session: &Session<'_>,
    names: &Mutex<Names>,
    reader: &mut Reader,
    received: &mut mpsc::Receiver<ServerEvent>,
) -> Result<(), Failure> {
    let screen = session.context.screen;
    reader.next();
    loop {
        tokio::select! {
            biased;
            event = received.recv() => {
                let Some(event) = event else { break };
                reader.print(&events::line(screen, &event));
                let changed = matches!(
                    event,
                    ServerEvent::Notification(
                        Notification::ToolsChanged | Notification::PromptsChanged | Notification::ResourcesChanged
                    )
                );
                if changed {
                    refresh_names(session, names).await;
                }
            }
            lost = session.client.closed() => return Err(lost.into()),
            asked = reader.asked() => match asked {
                None => break,
                Some(ReaderRequest::Values { prompt, argument, start, known, reply }) => {
                    let reference = complete::reference_to(&prompt);
                    let proposed = session.client.complete_with(reference, argument, start, known).await;
                    // The receiver is gone if the completion timed out.
                    let _ = reply.send(proposed.map(|proposed| proposed.values).unwrap_or_default());
                }
                Some(ReaderRequest::Line(line)) => {
                    let mut words = split(&line);
                    words.retain(|word| !word.is_empty());
                    if matches!(words.first().map(String::as_str), Some("quit" | "exit")) {
                        break;
                    }
                    if let Err(failure) = run_line(session, &words).await {
                        if failure.silent {
                            return Err(failure);
                        }
                        screen.print_failure(&failure);
                    }
                    reader.next();
                }
            },
        }
    }
    Ok(())
}

/// Runs a line until Ctrl-C is pressed.
async fn run_line(session: &Session<'_>, words: &[String]) -> Result<(), Failure> {
    tokio::select! {
        biased;
        done = dispatch(session, words) => done,
        pressed = tokio::signal::ctrl_c() => {
            pressed?;
            Err(session.how_to_continue(Failure::new(Code::Interrupted, "interrupted")))
        }
    }
}

async fn dispatch(session: &Session<'_>, words: &[String]) -> Result<(), Failure> {
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
            Err(Failure::misused(format!("wrong arguments for `{known}`"))
                .advise("type `help` for a list of commands"))
        }
        (unknown, _) => {
            let failure = Failure::misused(format!("unknown command `{unknown}`"));
            Err(match nearest(unknown, COMMANDS) {
                Some(near) => failure.advise(format!("did you mean `{near}`?")),
                None => failure.advise("type `help` for a list of commands"),
            })
        }
    }
}

/// Fetches the names for completion from the server. Lists that fail are not completed.
async fn refresh_names(session: &Session<'_>, names: &Mutex<Names>) {
    let mut known = Names::default();
    if let Ok(tools) = session.tools().await {
        known.set_tools(&tools);
    }
    if let Ok(prompts) = session.prompts().await {
        known.set_prompts(&prompts);
    }
    if let Ok(resources) = session.client.resources().await {
        known.set_resources(resources.iter().map(|resource| resource.uri.as_str()));
    }
    *names.lock().unwrap_or_else(PoisonError::into_inner) = known;
}
