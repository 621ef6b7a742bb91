//! Reads Markdown into a tree. HTML stays source, and images are never fetched.

use super::{Align, Block, Inline, LinkTarget, Shown, text::visible_text};
use bowline_client::ShownUrl;
use pulldown_cmark::{Alignment, CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag};

/// How deep blocks and inlines nest at most. Deeper ones are flattened.
const MAX_DEPTH: usize = 24;
/// How many events are read at most.
const MAX_EVENTS: usize = 100_000;

/// Reads a text.
pub(crate) fn markdown(text: &str) -> Vec<Block> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut reader = Reader { events: Parser::new_ext(text, options).take(MAX_EVENTS), depth: 0 };
    reader.blocks()
}

struct Reader<I> {
    events: I,
    depth: usize,
}

fn shown(text: &str) -> String {
    visible_text(text).0
}

impl<'a, I: Iterator<Item = Event<'a>>> Reader<I> {
    /// Reads blocks up to the end of the enclosing element.
    fn blocks(&mut self) -> Vec<Block> {
        let mut blocks = Vec::new();
        // Items of tight lists have text without a paragraph.
        let mut loose = Vec::new();
        let flush = |loose: &mut Vec<Inline>, blocks: &mut Vec<Block>| {
            if !loose.is_empty() {
                blocks.push(Block::Paragraph { inlines: std::mem::take(loose) });
            }
        };
        while let Some(event) = self.events.next() {
            match event {
                Event::Start(tag) if is_block(&tag) => {
                    flush(&mut loose, &mut blocks);
                    self.block(tag, &mut blocks);
                }
                Event::End(_) => break,
                Event::Rule => {
                    flush(&mut loose, &mut blocks);
                    blocks.push(Block::Rule);
                }
                other => self.inline(other, &mut loose),
            }
        }
        flush(&mut loose, &mut blocks);
        blocks
    }

    fn block(&mut self, tag: Tag<'a>, blocks: &mut Vec<Block>) {
        self.depth += 1;
        match tag {
            _ if self.depth > MAX_DEPTH => {
                let text = self.flat();
                if !text.is_empty() {
                    blocks.push(Block::Paragraph { inlines: vec![Inline::Text { text }] });
                }
            }
            Tag::Heading { level, .. } => {
                blocks.push(Block::Heading { level: number(level), inlines: self.inlines() });
            }
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) if !language.is_empty() => {
                        Some(Shown::line(&language).text)
                    }
                    CodeBlockKind::Fenced(_) | CodeBlockKind::Indented => None,
                };
                blocks.push(Block::Code { language, text: self.source() });
            }
            Tag::HtmlBlock | Tag::MetadataBlock(_) => {
                blocks.push(Block::Code { language: Some("html".into()), text: self.source() });
            }
            Tag::BlockQuote(_) => blocks.push(Block::Quote { blocks: self.blocks() }),
            Tag::List(start) => {
                let mut items = Vec::new();
                while let Some(event) = self.events.next() {
                    match event {
                        Event::Start(Tag::Item) => items.push(self.blocks()),
                        Event::End(_) => break,
                        _ => {}
                    }
                }
                blocks.push(Block::List { start, items });
            }
            Tag::Table(align) => {
                let (head, rows) = self.table();
                let align = align.into_iter().map(|align| match align {
                    Alignment::None => Align::None,
                    Alignment::Left => Align::Left,
                    Alignment::Center => Align::Center,
                    Alignment::Right => Align::Right,
                });
                blocks.push(Block::Table { align: align.collect(), head, rows });
            }
            Tag::Paragraph => blocks.push(Block::Paragraph { inlines: self.inlines() }),
            // Of an extension that is not enabled: its content without the frame.
            _ => blocks.append(&mut self.blocks()),
        }
        self.depth -= 1;
    }

    fn table(&mut self) -> (Vec<Vec<Inline>>, Vec<Vec<Vec<Inline>>>) {
        let (mut head, mut rows) = (Vec::new(), Vec::new());
        while let Some(event) = self.events.next() {
            match event {
                Event::Start(Tag::TableHead) => head = self.cells(),
                Event::Start(Tag::TableRow) => rows.push(self.cells()),
                Event::End(_) => break,
                _ => {}
            }
        }
        (head, rows)
    }

    fn cells(&mut self) -> Vec<Vec<Inline>> {
        let mut cells = Vec::new();
        while let Some(event) = self.events.next() {
            match event {
                Event::Start(Tag::TableCell) => cells.push(self.inlines()),
                Event::End(_) => break,
                _ => {}
            }
        }
        cells
    }

    /// Reads text up to the end of the enclosing element.
    fn inlines(&mut self) -> Vec<Inline> {
        let mut inlines = Vec::new();
        while let Some(event) = self.events.next() {
            if matches!(event, Event::End(_)) {
                break;
            }
            self.inline(event, &mut inlines);
        }
        inlines
    }

    fn inline(&mut self, event: Event<'a>, inlines: &mut Vec<Inline>) {
        match event {
            Event::Text(text) => match inlines.last_mut() {
                Some(Inline::Text { text: last }) => last.push_str(&shown(&text)),
                _ => inlines.push(Inline::Text { text: shown(&text) }),
            },
            Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                inlines.push(Inline::Code { text: shown(&text) });
            }
            Event::Html(text) | Event::InlineHtml(text) => inlines.push(Inline::Code { text: shown(&text) }),
            Event::SoftBreak => inlines.push(Inline::Text { text: " ".into() }),
            Event::HardBreak | Event::Rule => inlines.push(Inline::Break),
            Event::TaskListMarker(done) => {
                inlines.push(Inline::Text { text: if done { "[x] ".into() } else { "[ ] ".into() } });
            }
            Event::FootnoteReference(name) => inlines.push(Inline::Text { text: shown(&name) }),
            Event::Start(tag) => {
                self.depth += 1;
                match tag {
                    _ if self.depth > MAX_DEPTH => inlines.push(Inline::Text { text: self.flat() }),
                    Tag::Strong => inlines.push(Inline::Strong { inlines: self.inlines() }),
                    Tag::Emphasis => inlines.push(Inline::Emphasis { inlines: self.inlines() }),
                    Tag::Strikethrough => inlines.push(Inline::Strike { inlines: self.inlines() }),
                    Tag::Link { dest_url, .. } => {
                        let target = link_target(&dest_url);
                        inlines.push(Inline::Link { inlines: self.inlines(), target });
                    }
                    Tag::Image { dest_url, .. } => {
                        let target = link_target(&dest_url);
                        inlines.push(Inline::Image { alt: plain(&self.inlines()), target });
                    }
                    _ => inlines.append(&mut self.inlines()),
                }
                self.depth -= 1;
            }
            Event::End(_) => {}
        }
    }

    /// Reads the text of an element that is nested too deeply, without following its structure.
    fn flat(&mut self) -> String {
        let (mut text, mut open) = (String::new(), 1);
        for event in self.events.by_ref() {
            match event {
                Event::Start(_) => open += 1,
                Event::End(_) => open -= 1,
                Event::Text(part) | Event::Code(part) | Event::Html(part) | Event::InlineHtml(part) => {
                    text.push_str(&part);
                }
                Event::SoftBreak | Event::HardBreak => text.push(' '),
                _ => {}
            }
            if open == 0 {
                break;
            }
        }
        shown(&text)
    }

    /// Reads the text of code or HTML.
    fn source(&mut self) -> String {
        let mut source = String::new();
        for event in self.events.by_ref() {
            match event {
                Event::Text(text) | Event::Html(text) => source.push_str(&text),
                Event::End(_) => break,
                _ => {}
            }
        }
        shown(&source)
    }
}

fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(
        tag,
        Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Link { .. }
            | Tag::Image { .. }
            | Tag::Superscript
            | Tag::Subscript
    )
}

fn number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// Returns the text of inlines without their form.
fn plain(inlines: &[Inline]) -> String {
    let text = inlines.iter().map(|inline| match inline {
        Inline::Text { text } | Inline::Code { text } => text.clone(),
        Inline::Strong { inlines }
        | Inline::Emphasis { inlines }
        | Inline::Strike { inlines }
        | Inline::Link { inlines, .. } => plain(inlines),
        Inline::Image { alt, .. } => alt.clone(),
        Inline::Break => " ".into(),
    });
    text.collect()
}

/// Describes where a link leads. Only `http` and `https` can be opened.
pub(crate) fn link_target(url: &str) -> LinkTarget {
    let text = Shown::line(url);
    match ShownUrl::parse(url) {
        Ok(parsed) => LinkTarget {
            text,
            url: Some(parsed.as_str().to_owned()),
            host: Some(parsed.host().to_owned()),
            warnings: parsed.warnings().iter().map(ToString::to_string).collect(),
        },
        Err(error) => LinkTarget { text, url: None, host: None, warnings: vec![error.to_string()] },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "calls with literals are easier to read")]
    fn check(text: &str, expected: expect_test::Expect) {
        let blocks: Vec<_> =
            markdown(text).iter().map(|block| serde_json::to_string(block).unwrap()).collect();
        expected.assert_eq(&blocks.join("\n"));
    }

    #[test]
    fn markdown_becomes_a_tree() {
        check(
            "# A *b*\n\ntext `c`  \nmore\n\n1. one\n2. two\n   - deep\n\n> q\n\n```rust\nfn x() {}\n```\n\n| a | b |\n|--|-:|\n| 1 | 2 |\n\n---",
            expect_test::expect![[r#"
                {"kind":"heading","level":1,"inlines":[{"kind":"text","text":"A "},{"kind":"emphasis","inlines":[{"kind":"text","text":"b"}]}]}
                {"kind":"paragraph","inlines":[{"kind":"text","text":"text "},{"kind":"code","text":"c"},{"kind":"break"},{"kind":"text","text":"more"}]}
                {"kind":"list","start":1,"items":[[{"kind":"paragraph","inlines":[{"kind":"text","text":"one"}]}],[{"kind":"paragraph","inlines":[{"kind":"text","text":"two"}]},{"kind":"list","items":[[{"kind":"paragraph","inlines":[{"kind":"text","text":"deep"}]}]]}]]}
                {"kind":"quote","blocks":[{"kind":"paragraph","inlines":[{"kind":"text","text":"q"}]}]}
                {"kind":"code","language":"rust","text":"fn x() {}\n"}
                {"kind":"table","align":["none","right"],"head":[[{"kind":"text","text":"a"}],[{"kind":"text","text":"b"}]],"rows":[[[{"kind":"text","text":"1"}],[{"kind":"text","text":"2"}]]]}
                {"kind":"rule"}"#]],
        );
    }

    #[test]
    fn html_is_source_and_links_have_two_schemes() {
        check(
            "<script>alert(1)</script>\n\na <b onclick=x>b</b> [x](javascript:alert(1)) ![i](http://evil.example/i.png) [y](https://a.example/p)",
            expect_test::expect![[r#"
                {"kind":"code","language":"html","text":"<script>alert(1)</script>\n"}
                {"kind":"paragraph","inlines":[{"kind":"text","text":"a "},{"kind":"code","text":"<b onclick=x>"},{"kind":"text","text":"b"},{"kind":"code","text":"</b>"},{"kind":"text","text":" "},{"kind":"link","inlines":[{"kind":"text","text":"x"}],"target":{"text":{"text":"javascript:alert(1)"},"warnings":["expected an http or https URL, got `javascript:alert(1)`"]}},{"kind":"text","text":" "},{"kind":"image","alt":"i","target":{"text":{"text":"http://evil.example/i.png"},"warnings":["expected an https URL, or http on a loopback address, got `http://evil.example/i.png`"]}},{"kind":"text","text":" "},{"kind":"link","inlines":[{"kind":"text","text":"y"}],"target":{"text":{"text":"https://a.example/p"},"url":"https://a.example/p","host":"a.example","warnings":[]}}]}"#]],
        );
    }

    #[test]
    fn deep_nesting_is_flattened() {
        let blocks = markdown(&"> ".repeat(5000));
        assert!(serde_json::to_string(&blocks).unwrap().len() < 5000);
        let text = format!("{}x{}", "**a ".repeat(2000), "**".repeat(2000));
        assert!(!markdown(&text).is_empty());
    }
}
