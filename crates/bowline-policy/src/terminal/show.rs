//! Formats questions for the terminal.

use bowline_types::{ContentBlock, RawJson, ToolAnnotations};

use crate::gate::{Covers, Question, Scope};
use crate::rules::Action;
use crate::tree::{Layout, Tree};
use bowline_text::{hidden_characters, visible, visible_lines};

/// The number of characters that are shown from the start and from the end of a long text.
const HALF: usize = 8 << 10;
const HALF_LINES: usize = 200;

/// Lines of output.
#[derive(Debug, Default)]
pub(super) struct Shown(String);

impl Shown {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Adds a line of our own.
    pub(super) fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    /// Adds the first line of a question, which names the server.
    pub(super) fn head(&mut self, server: &str, what: &str) {
        self.line("");
        self.line(&format!("[{}] {what}", visible(server)));
    }

    /// Adds a short foreign text on one line.
    pub(super) fn field(&mut self, name: &str, value: &str) {
        let value = visible(value);
        let shown = match halves(&value) {
            (whole, None) => whole.to_owned(),
            (start, Some((missing, end))) => format!("{start} <{missing} characters are not shown> {end}"),
        };
        self.line(&format!("  {name}: {shown}"));
    }

    /// Adds a foreign text, with a bar before every line.
    pub(super) fn block(&mut self, text: &str) {
        let (start, rest) = halves(text);
        self.bars(start);
        if let Some((missing, end)) = rest {
            self.line(&format!("  ! {missing} characters are not shown here"));
            self.bars(end);
        }
        self.report_hidden(text);
    }

    /// Like [`block`](Self::block), but shows the text in full, however long it is.
    pub(super) fn whole_block(&mut self, text: &str) {
        self.bars(text);
        self.report_hidden(text);
    }

    fn report_hidden(&mut self, text: &str) {
        let hidden = hidden_characters(text);
        if hidden > 0 {
            let plural = if hidden == 1 { "" } else { "s" };
            self.line(&format!(
                "  ! this text contains {hidden} invisible character{plural}, shown as <U+...>"
            ));
        }
    }

    fn bars(&mut self, text: &str) {
        for line in visible_lines(text) {
            self.line(format!("  | {line}").trim_end());
        }
    }

    pub(super) fn named_block(&mut self, name: &str, text: &str) {
        self.line(&format!("  {name}:"));
        self.block(text);
    }

    pub(super) fn content(&mut self, block: &ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.block(&text.text),
            ContentBlock::Image(image) => {
                self.block(&format!("(a picture, {}, {} characters)", image.mime_type, image.data.len()));
            }
            ContentBlock::Audio(audio) => {
                self.block(&format!("(a recording, {}, {} characters)", audio.mime_type, audio.data.len()));
            }
            _ => {
                let json = RawJson::of(block).unwrap_or_default();
                self.block(&Tree::of(&json).to_text(Layout::Pretty));
            }
        }
    }
}

/// Returns a text; or, if it is too long, its start, the number of omitted characters, and its end.
fn halves(text: &str) -> (&str, Option<(usize, &str)>) {
    let count = text.chars().count();
    if count <= 2 * HALF && text.lines().count() <= 2 * HALF_LINES {
        return (text, None);
    }
    // Stops at the maximum number of characters or lines, whichever comes first.
    let reached = |characters: &mut dyn Iterator<Item = (usize, char)>| {
        let mut lines = 0;
        let within = characters.take(HALF).take_while(|(_, character)| {
            lines += usize::from(*character == '\n');
            lines < HALF_LINES
        });
        within.last().map(|(place, character)| (place, place + character.len_utf8()))
    };
    let head = reached(&mut text.char_indices()).map_or(0, |(_, end)| end);
    let tail = reached(&mut text.char_indices().rev()).map_or(text.len(), |(start, _)| start).max(head);
    let (start, end) = (text.get(..head).unwrap_or(text), text.get(tail..).unwrap_or_default());
    let shown = start.chars().count() + end.chars().count();
    if shown >= count {
        return (text, None);
    }
    (start, Some((count - shown, end)))
}

/// Describes the annotations of a tool.
pub fn hints(annotations: Option<&ToolAnnotations>) -> String {
    let Some(hints) = annotations else { return "none".to_owned() };
    let hints_given = [
        (hints.read_only_hint, "read-only", "not read-only"),
        (hints.destructive_hint, "destructive", "not destructive"),
        (hints.idempotent_hint, "idempotent", "not idempotent"),
        (hints.open_world_hint, "open world", "closed world"),
    ];
    let hints_given: Vec<&str> = hints_given
        .iter()
        .filter_map(|(hint, yes, no)| hint.map(|hint| if hint { *yes } else { *no }))
        .collect();
    if hints_given.is_empty() { "none".to_owned() } else { hints_given.join(", ") }
}

/// Formats a question that is answered with one letter. Also returns the scopes and coverage that an answer may have.
pub(super) fn question(question: &Question) -> (Shown, Vec<Scope>, Vec<Covers>) {
    let mut shown = Shown::default();
    let mut covered = Vec::new();
    let mut allowed = vec![Scope::Once];
    match question {
        Question::Call { server, tool, title, arguments, annotations, client, why, scopes, covers } => {
            shown.head(server, "Allow this tool call?");
            if let Some(client) = client {
                shown.field("client", client);
            }
            shown.field("tool", tool);
            if let Some(title) = title {
                shown.field("title", title);
            }
            shown.field("hints of the server", &hints(annotations.as_ref()));
            shown.named_block("arguments", &Tree::of(arguments).to_text(Layout::Pretty));
            shown.field("reason", why);
            allowed.clone_from(scopes);
            covered.clone_from(covers);
        }
        Question::Start { server, origin, description } => {
            shown.head(server, "This server is defined by the project. Allow it to run?");
            shown.field("configured in", origin);
            // An omitted part could be the harmful one, so everything is shown.
            shown.line("  what would be used:");
            shown.whole_block(&description.join("\n"));
        }
        Question::Control { key, digits } => {
            shown.head(
                question.server(),
                "A browser asks to run tools and answer questions. Allow it until this program ends?",
            );
            shown.line(&format!("  browser: {key}; its page shows the number {}", visible(digits)));
            shown.line(
                "  ! answer no unless you just asked for this in your browser, and it shows the same number",
            );
        }
        Question::Access { server, action, name, client, why, scopes } => {
            let (what, kind) = match action {
                Action::Prompt => ("Allow fetching this prompt?", "prompt"),
                Action::Call => ("Allow this method call?", "method"),
                _ => ("Allow reading this resource?", "resource"),
            };
            shown.head(server, what);
            if let Some(client) = client {
                shown.field("client", client);
            }
            shown.field(kind, name);
            shown.field("reason", why);
            allowed.clone_from(scopes);
        }
        Question::Changed { server, tool, diff } => {
            shown.head(
                server,
                "The definition of this tool changed since it was approved. Allow the new definition?",
            );
            shown.field("tool", tool);
            shown.named_block("what has changed", diff.trim_end());
        }
        Question::New { server, tool, definition } => {
            shown.head(server, "This tool is new. Allow it?");
            shown.field("tool", tool);
            shown.named_block("what the server says about it", definition);
        }
        Question::Visit { server, message, url } => {
            shown.head(server, "The server asks you to open a URL. Open it?");
            shown.block(message);
            shown.field("host", url.host());
            shown.field("the whole URL", url.as_str());
            for warning in url.warnings() {
                shown.line(&format!("  ! {warning}"));
            }
        }
        Question::Roots { server, roots, why, scopes } => {
            shown.head(server, "Allow the server to see these folders?");
            for root in roots {
                shown.block(&root.uri);
            }
            shown.field("reason", why);
            allowed.clone_from(scopes);
        }
        Question::Form { .. } | Question::Sample { .. } | Question::SampleResult { .. } => {
            unreachable!("these have dialogs of their own")
        }
    }
    (shown, allowed, covered)
}
