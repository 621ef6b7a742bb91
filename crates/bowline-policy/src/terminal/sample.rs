//! Sampling in a terminal: shows requests and responses of the model to be edited and approved.

use bowline_types::{ContentBlock, CreateMessageParams, CreateMessageResult, OneOrMany, SamplingMessage};
use std::io;
use tokio::io::{AsyncBufRead, AsyncWrite};

use super::console::Console;
use super::show::Shown;
use super::{menu, read_choice};
use crate::gate::{Edit, Scope, Verdict};

pub(super) async fn request<R, W>(
    console: &mut Console<R, W>,
    server: &str,
    mut request: CreateMessageParams,
    why: &str,
    scopes: &[Scope],
) -> io::Result<Verdict>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let mut edited = false;
    loop {
        let mut shown = Shown::default();
        shown.head(server, "Allow sending this to the model?");
        show_request(&mut shown, &request);
        shown.field("reason", why);
        let scopes = if edited { &[Scope::Once] } else { scopes };
        match choose(console, shown, scopes).await? {
            None => edited |= edit_request(console, &mut request).await?,
            Some(Verdict::Allow(_)) if edited => {
                return Ok(Verdict::edited(Edit::Request(Box::new(request))));
            }
            Some(verdict) => return Ok(verdict),
        }
    }
}

pub(super) async fn result<R, W>(
    console: &mut Console<R, W>,
    server: &str,
    mut result: CreateMessageResult,
) -> io::Result<Verdict>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let mut edited = false;
    loop {
        let mut shown = Shown::default();
        shown.head(server, "Allow sending this answer of the model to the server?");
        shown.field("model", &result.model);
        for block in &result.content {
            shown.content(block);
        }
        match choose(console, shown, &[Scope::Once]).await? {
            None => {
                result.content = new_text(console).await?;
                edited = true;
            }
            Some(Verdict::Allow(_)) if edited => {
                return Ok(Verdict::edited(Edit::Result(Box::new(result))));
            }
            Some(verdict) => return Ok(verdict),
        }
    }
}

/// Shows a question with its menu and reads the choice; `None` to edit what is shown.
async fn choose<R, W>(
    console: &mut Console<R, W>,
    mut shown: Shown,
    scopes: &[Scope],
) -> io::Result<Option<Verdict>>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    shown.line(&format!("{}  [e] edit", menu(scopes)));
    console.show(&shown).await?;
    loop {
        let answer = console.prompt().await?;
        if answer.eq_ignore_ascii_case("e") {
            return Ok(None);
        }
        match read_choice(&answer, scopes, &[]) {
            Ok(verdict) => return Ok(Some(verdict)),
            Err(reason) => console.show_error(&reason).await?,
        }
    }
}

fn show_request(shown: &mut Shown, request: &CreateMessageParams) {
    if let Some(prompt) = &request.system_prompt {
        shown.named_block("system prompt", prompt);
    }
    for (place, message) in request.messages.iter().enumerate() {
        shown.field(&format!("message {}", place + 1), message.role.as_str());
        for block in &message.content {
            shown.content(block);
        }
    }
    for tool in request.tools.iter().flatten() {
        shown.field("with the tool", &tool.name);
    }
    if let Some(context) = &request.include_context {
        shown.field("with the context of", context.as_str());
    }
    shown.field("at most", &format!("{} tokens", request.max_tokens));
}

/// Replaces one part of a request. Returns whether it was changed.
async fn edit_request<R, W>(
    console: &mut Console<R, W>,
    request: &mut CreateMessageParams,
) -> io::Result<bool>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let mut shown = Shown::default();
    shown.line("  which? (the number of a message, or s for the system prompt)");
    console.show(&shown).await?;
    let answer = console.prompt().await?;
    if answer.eq_ignore_ascii_case("s") {
        let text = text(console).await?;
        request.system_prompt = (!text.is_empty()).then_some(text);
        return Ok(true);
    }
    let place = answer.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let Some(place) = place.filter(|place| *place < request.messages.len()) else {
        console.show_error("there is no such message").await?;
        return Ok(false);
    };
    let content = new_text(console).await?;
    if let Some(message) = request.messages.get_mut(place) {
        *message = SamplingMessage::new(message.role.clone(), content);
    }
    Ok(true)
}

async fn new_text<R, W>(console: &mut Console<R, W>) -> io::Result<OneOrMany<ContentBlock>>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    Ok(OneOrMany::One(ContentBlock::text(text(console).await?)))
}

async fn text<R, W>(console: &mut Console<R, W>) -> io::Result<String>
where
    R: AsyncBufRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let mut shown = Shown::default();
    shown.line("  (enter the new text; end with a line that contains only a dot)");
    console.show(&shown).await?;
    console.text().await
}
