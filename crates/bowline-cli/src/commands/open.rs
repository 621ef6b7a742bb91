//! `bowline open`: opens the inspector of a running gateway in the browser.

use crate::{
    context::Context,
    failure::{Code, Failure},
    inspector_setup::{InspectorAccess, open_browser},
    running_gateway::RunningGateway,
    target,
};
use clap::Args;
use serde::Deserialize;
use serde_json::json;
use std::{io, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The port of the gateway [default: 7337 if a gateway runs there, otherwise the gateway started last]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Print the link instead of opening it; it works once
    #[arg(long)]
    print: bool,
}

#[derive(Deserialize)]
struct Link {
    path: String,
    grade: String,
}

pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), Failure> {
    let running = match arguments.port {
        Some(port) => RunningGateway::at(&context.environment, port),
        None => RunningGateway::find(&context.environment),
    };
    let running = running.ok_or_else(target::not_running)?;
    let access = running.inspector.as_ref().ok_or_else(|| {
        Failure::new(Code::Failed, format!("the gateway at {} has no inspector", running.url))
            .advise("start it with `bowline up`, or with `bowline gateway --inspector`")
    })?;
    let Link { path, grade } = request(access).await?;
    let link = format!("{}{path}", access.url);
    if context.json() {
        return context.screen.json(&json!({ "url": access.url, "link": link, "grade": grade }));
    }
    if arguments.print {
        context.screen.line(&link)?;
    } else if let Err(reason) = open_browser(&link).await {
        context.screen.note(&format!("{reason}; open this link, which works once:"));
        context.screen.line(&link)?;
    }
    if grade == "view" {
        context.screen.note("this link is read-only; to run tools, ask for control in the page and confirm in the terminal of `bowline up`");
    }
    Ok(())
}

/// Asks the running inspector for a link. The secret goes to a process that holds the lock of its file, so to nobody else.
async fn request(access: &InspectorAccess) -> Result<Link, Failure> {
    let failed =
        |reason: String| Failure::new(Code::Failed, format!("the inspector at {} {reason}", access.url));
    let authority = access.url.strip_prefix("http://").unwrap_or(&access.url);
    let exchange = async {
        let mut stream = TcpStream::connect(authority).await?;
        let head = format!(
            "POST /api/link HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}",
            access.secret
        );
        stream.write_all(head.as_bytes()).await?;
        let mut reply = String::new();
        stream.take(16 * 1024).read_to_string(&mut reply).await?;
        Ok::<_, io::Error>(reply)
    };
    let reply = tokio::time::timeout(Duration::from_secs(5), exchange).await;
    let reply = reply.map_err(|_| failed("does not answer".into()))?;
    let reply = reply.map_err(|error| failed(format!("cannot be reached: {error}")))?;
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_default();
    if !head.starts_with("HTTP/1.1 200 ") {
        let status = head.lines().next().unwrap_or("nothing");
        return Err(failed(format!("answered `{}`", bowline_text::visible(status))));
    }
    serde_json::from_str(body).map_err(|error| failed(format!("sent an invalid answer: {error}")))
}
