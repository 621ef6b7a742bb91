//! Turns a call into text to paste elsewhere. Secrets are masked.

mod quote;

use crate::{
    events::{Direction, Head, Kind, Leg},
    inspector::Shared,
    queries::{json_of, not_kept},
    query::{Copied, CopyForm},
    service::Failure,
};
pub(crate) use quote::quote;
use serde_json::Value;

/// Copies the call of a message.
pub(crate) fn copy(shared: &Shared, seq: u64, form: CopyForm) -> Result<Copied, Failure> {
    let head = |seq| shared.recorder.with_ring(|ring| ring.get(seq).map(|stored| stored.head.clone()));
    let chosen = head(seq).ok_or_else(|| not_kept(seq))?;
    let request = chosen.call.and_then(head).unwrap_or_else(|| chosen.clone());
    match form {
        CopyForm::Json => {
            let (text, masked) = text_of(shared, chosen.seq)?;
            Ok(Copied { text, note: note(masked) })
        }
        CopyForm::Command => command(shared, &request),
        CopyForm::Curl => curl(shared, &request),
        CopyForm::Transcript => transcript(shared, &request),
    }
}

fn note(masked: usize) -> Option<String> {
    (masked > 0).then(|| format!("{masked} values are masked as ***"))
}

/// Returns the masked text of a message.
fn text_of(shared: &Shared, seq: u64) -> Result<(String, usize), Failure> {
    let bytes = shared.recorder.with_ring(|ring| Some(ring.get(seq)?.body.as_ref()?.bytes.to_vec()));
    let bytes = bytes.ok_or_else(|| Failure::not_found("the body of this message is not kept"))?;
    Ok(shared.redactor.message(&String::from_utf8_lossy(&bytes)))
}

fn command(shared: &Shared, request: &Head) -> Result<Copied, Failure> {
    let (_, masked) = text_of(shared, request.seq)?;
    let message = json_of(shared, request.seq).ok_or_else(|| not_kept(request.seq))?;
    let params = message.get("params").cloned().unwrap_or_default();
    let text = |member: &str| params.get(member).and_then(Value::as_str).unwrap_or_default().to_owned();
    let target = if request.leg == Leg::Server { request.peer.clone() } else { "up".to_owned() };
    let arguments = params.get("arguments").map_or_else(|| "{}".to_owned(), Value::to_string);
    let words: Vec<String> = match request.method.as_deref() {
        Some("tools/call") => vec!["call".into(), target, text("name"), arguments],
        Some("resources/read") => vec!["read".into(), target, text("uri")],
        Some("prompts/get") => vec!["prompt".into(), target, text("name"), arguments],
        Some(method) => {
            let mut params = params;
            if let Some(members) = params.as_object_mut() {
                members.remove("_meta");
            }
            vec!["request".into(), target, method.to_owned(), params.to_string()]
        }
        None => return Err(Failure::invalid("this is not a request")),
    };
    let words: Vec<_> = words.iter().map(|word| quote(word)).collect();
    Ok(Copied { text: format!("bowline {}", words.join(" ")), note: note(masked) })
}

fn curl(shared: &Shared, request: &Head) -> Result<Copied, Failure> {
    if request.kind != Kind::Request {
        return Err(Failure::invalid("this is not a request"));
    }
    let (text, masked) = text_of(shared, request.seq)?;
    let url = shared.connect.get().and_then(|(hints, _)| hints.iter().find_map(|hint| url_in(&hint.text)));
    let url = url.unwrap_or_else(|| "http://127.0.0.1:7337/mcp".to_owned());
    let header = |name: &str, value: &str| format!("-H {}", quote(&format!("{name}: {value}")));
    let mut parts = vec![
        "curl -sS".to_owned(),
        quote(&url),
        header("Content-Type", "application/json"),
        header("Accept", "application/json, text/event-stream"),
        "-H \"Authorization: Bearer $BOWLINE_TOKEN\"".to_owned(),
    ];
    let revision = request.revision.as_deref().unwrap_or("2026-07-28");
    parts.push(header("MCP-Protocol-Version", revision));
    if revision == "2026-07-28" {
        parts.push(header("Mcp-Method", request.method.as_deref().unwrap_or_default()));
        if let Some(name) = request.name.as_deref().filter(|name| name.is_ascii()) {
            parts.push(header("Mcp-Name", name));
        }
    }
    parts.push(format!("--data-raw {}", quote(&text)));
    let mut notes = vec!["set BOWLINE_TOKEN to the output of `bowline token`".to_owned()];
    notes.extend(note(masked));
    if revision != "2026-07-28" {
        notes.push(format!("{revision} needs the `Mcp-Session-Id` of an open session"));
    }
    Ok(Copied { text: parts.join(" "), note: Some(notes.join("; ")) })
}

/// Returns the URL in a hint.
fn url_in(text: &str) -> Option<String> {
    let start = text.find("http://")?;
    let url: String = text
        .get(start..)?
        .chars()
        .take_while(|character| !character.is_whitespace() && !"\"'".contains(*character))
        .collect();
    Some(url)
}

/// Writes the messages of a call as `bowline replay` reads them.
fn transcript(shared: &Shared, request: &Head) -> Result<Copied, Failure> {
    let seqs: Vec<(u64, Direction)> = shared.recorder.with_ring(|ring| {
        let of_call = ring.after(request.seq.saturating_sub(1)).filter(|stored| {
            stored.head.connection == request.connection && stored.head.call == Some(request.seq)
        });
        of_call.map(|stored| (stored.head.seq, stored.head.direction)).collect()
    });
    let (mut text, mut count) = (String::new(), 0);
    for (seq, direction) in seqs {
        let Ok((line, masked)) = text_of(shared, seq) else { continue };
        count += masked;
        // Seen from the client of this leg: the host at a server, the peer at the gateway.
        let is_sent = (request.leg == Leg::Server) == (direction == Direction::Out);
        text.push_str(if is_sent { "> " } else { "< " });
        text.push_str(&line.replace(['\n', '\r'], " "));
        text.push('\n');
    }
    if text.is_empty() {
        return Err(not_kept(request.seq));
    }
    Ok(Copied { text, note: note(count) })
}
