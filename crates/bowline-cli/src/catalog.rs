//! Lists and looks up tools and prompts, for the commands that share this.

use crate::{
    cache,
    failure::{Code, Failure},
    session::Session,
};
use bowline_search::MetaTool;
use bowline_text::{nearest, visible};
use bowline_types::{Prompt, Tool};
use serde_json::json;

/// The maximum number of names listed for an unknown name.
const SHOWN: usize = 12;

/// Lists the tools and caches their names for completion.
pub(crate) async fn tools(session: &Session<'_>) -> Result<Vec<Tool>, Failure> {
    let tools = session.client.tools().await?;
    cache::remember(session.context, &session.name, |names| names.set_tools(&tools));
    Ok(tools)
}

/// Lists the prompts and caches their names for completion.
pub(crate) async fn prompts(session: &Session<'_>) -> Result<Vec<Prompt>, Failure> {
    let prompts = session.client.prompts().await?;
    cache::remember(session.context, &session.name, |names| names.set_prompts(&prompts));
    Ok(prompts)
}

/// Finds a tool by name. A gateway that lists only its search tools is asked to describe it.
pub(crate) async fn find_tool(session: &Session<'_>, name: &str) -> Result<Tool, Failure> {
    let tools = tools(session).await?;
    if let Some(found) = tools.iter().find(|tool| tool.name == name) {
        return Ok(found.clone());
    }
    let is_listed = |wanted: &MetaTool| tools.iter().any(|tool| tool.name == wanted.name());
    let hides_tools = MetaTool::ALL.iter().all(is_listed);
    let unknown = || unknown(session, "tool", name, tools.iter().map(|tool| tool.name.as_str()));
    // The user's gateway can also describe tools of servers that are still starting.
    let may_be_starting = session.is_gateway() && name.contains("__");
    if !hides_tools && !may_be_starting {
        return Err(unknown());
    }
    let described = session.client.call(MetaTool::Describe.name(), json!({ "name": name })).await;
    match described {
        Ok(described) if !described.is_error() => described.json().map_err(Failure::from),
        Ok(described) if hides_tools => Err(Failure::misused(described.text())),
        _ => Err(unknown()),
    }
}

/// Returns the failure for an unknown name, with suggestions.
pub(crate) fn unknown<'a>(
    session: &Session<'_>,
    what: &str,
    name: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Failure {
    let names: Vec<&str> = names.into_iter().collect();
    let failure = Failure::new(Code::Misused, format!("the server has no {what} `{}`", visible(name)));
    match nearest(name, names.iter().copied()) {
        Some(near) => failure.advise(format!("did you mean `{}`?", visible(near))),
        None if names.is_empty() => failure.advise(format!("it has no {what}s")),
        None if names.len() > SHOWN => {
            let look = session.inspect_command(&format!("{what}s"), "");
            failure.advise(format!("run `{look}` to list them"))
        }
        None => failure.advise(format!("available: {}", visible(&names.join(", ")))),
    }
}
