//! Converts HTML pages to readable text.

use super::article;
use bowline::unstable::http::Reference;
use html2text::{Element, Handle, RcDom, config};
use std::{io, time::Instant};

/// The line width. Models can read long lines.
const WIDTH: usize = 120;
/// The maximum nesting of elements. Rendering is recursive.
const MAX_DEPTH: usize = 256;
/// The maximum number of nodes.
const MAX_NODES: usize = 200_000;
/// The number of bytes parsed between two checks of the clock.
const CHUNK: usize = 1024;
/// The maximum nesting of tables. Each table is rendered once per enclosing table.
const MAX_TABLES: usize = 8;

/// The text of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) title: Option<String>,
    pub(super) text: String,
    /// Whether this is only the main content.
    pub(super) reduced: bool,
}

/// Which part of a page to convert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The whole page.
    Whole,
    /// The main content, if it can be determined.
    Main,
}

/// Whether to include links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    Shown,
    Hidden,
}

/// A reader that stops at a deadline. Parsing nested elements takes quadratic time, and the nesting is not known in advance.
struct DeadlineReader<'a> {
    rest: &'a [u8],
    until: Instant,
}

impl io::Read for DeadlineReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if Instant::now() >= self.until {
            return Err(io::Error::other("parsing timed out; use `raw` for the source"));
        }
        let wanted = buffer.len().min(CHUNK);
        self.rest.read(buffer.get_mut(..wanted).unwrap_or_default())
    }
}

/// Converts the page at `url` before the deadline. CPU-bound: call it on a blocking thread.
pub(super) fn read(
    html: &str,
    url: &str,
    links: Links,
    extent: Extent,
    until: Instant,
) -> Result<Page, String> {
    let config = config::plain().no_table_borders().no_link_wrapping().allow_width_overflow();
    let unreadable = |error: html2text::Error| format!("cannot parse the page: {error}");
    let dom = config.parse_html(DeadlineReader { rest: html.as_bytes(), until }).map_err(unreadable)?;
    let title = look_over(&dom, url, links)?;
    let reduced = extent == Extent::Main && article::reduce(&dom.document);
    let tree = config.dom_to_render_tree(&dom).map_err(unreadable)?;
    let text = config.render_to_string(tree, WIDTH).map_err(unreadable)?;
    Ok(Page { title, text: text.trim().to_owned(), reduced })
}

/// Resolves the links, finds the title and removes hidden elements. Fails if the page is too deep or too large.
fn look_over(dom: &RcDom, url: &str, links: Links) -> Result<Option<String>, String> {
    let mut title = None;
    let mut left = vec![(Handle::clone(&dom.document), 0, 0)];
    let mut seen = 0;
    while let Some((node, depth, mut tables)) = left.pop() {
        seen += 1;
        match node.element_name().as_deref() {
            Some("title") if title.is_none() => {
                title = Some(text_of(&node)).filter(|title| !title.is_empty());
            }
            Some("a") => see_to(&node, url, links),
            Some("table") => tables += 1,
            _ => {}
        }
        if depth > MAX_DEPTH || seen > MAX_NODES || tables > MAX_TABLES {
            return Err(format!(
                "the page has more than {MAX_NODES} elements, or they are nested more than {MAX_DEPTH} deep, tables more than {MAX_TABLES} \
                 deep; use `raw` for the source"
            ));
        }
        node.children.borrow_mut().retain(|child| !is_hidden(child));
        left.extend(
            node.children.borrow().iter().rev().map(|child| (Handle::clone(child), depth + 1, tables)),
        );
    }
    Ok(title)
}

/// Returns whether browsers do not show an element, as far as its own attributes say.
fn is_hidden(node: &Handle) -> bool {
    if article::attribute(node, "hidden").is_some_and(|value| !value.eq_ignore_ascii_case("until-found")) {
        return true;
    }
    let mut style = article::attribute(node, "style").unwrap_or_default().to_ascii_lowercase();
    style.retain(|character| !character.is_whitespace());
    style.split(';').any(|rule| {
        matches!(
            rule.trim_end_matches("!important"),
            "display:none"
                | "visibility:hidden"
                | "visibility:collapse"
                | "opacity:0"
                | "font-size:0"
                | "font-size:0px"
        )
    })
}

/// Resolves a link to an absolute URL, or removes it.
fn see_to(anchor: &Handle, url: &str, links: Links) {
    let Element { attrs, .. } = &anchor.data else { return };
    attrs.borrow_mut().retain_mut(|attribute| {
        if &*attribute.name.local != "href" {
            return true;
        }
        // Links without a page, such as `mailto:`, become text.
        match Reference::resolve(url, &attribute.value) {
            Ok(to) if links == Links::Shown && !attribute.value.starts_with('#') => {
                attribute.value = to.url.into();
                true
            }
            Ok(_) | Err(_) => false,
        }
    });
}

/// Returns the text of an element by serializing and parsing it.
fn text_of(node: &Handle) -> String {
    let mut source = Vec::new();
    // Writing to memory does not fail.
    let _ = node.serialize(&mut source);
    let source = String::from_utf8_lossy(&source);
    let inner =
        source.split_once('>').and_then(|(_, rest)| rest.rsplit_once("</")).map_or("", |(inner, _)| inner);
    let text = config::plain_no_decorate().string_from_read(format!("<p>{inner}</p>").as_bytes(), WIDTH);
    text.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use std::time::Duration;

    fn read(html: &str, links: Links) -> Result<Page, String> {
        let until = Instant::now() + Duration::from_secs(600);
        super::read(html, "https://example.com/a/", links, Extent::Main, until)
    }

    const HTML: &str = "<!doctype html><html><head><title> A \n page &amp; more </title><style>p { color: red }</style>
        <script>alert(1)</script></head><body><h1>Knots</h1><p>The <em>bowline</em> <a href='../b?x=1'>holds</a>.
        <a href='mailto:a@b'>Write</a>, <a href='#top'>up</a>.</p><ul><li>one</li><li>two</li></ul>
        <pre>a\n  b</pre><table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>";

    #[test]
    fn a_page_is_formatted_like_markdown() {
        let page = read(HTML, Links::Shown).unwrap();
        assert_eq!(page.title.as_deref(), Some("A page & more"));
        expect![[r"
            # Knots

            The *bowline* [holds][1]. Write, up.
            * one
            * two

            a
              b

            k v
            1 2

            [1]: https://example.com/b?x=1"]]
        .assert_eq(&page.text);
        let page = read(HTML, Links::Hidden).unwrap();
        assert!(page.text.contains("The *bowline* holds. Write"), "{}", page.text);
        assert!(!page.text.contains("example.com"), "{}", page.text);
    }

    const PROSE: &str = "<p>A bowline makes a fixed loop at the end of a rope, which holds under load and is easy to untie.</p>
        <p>It is used at sea, in climbing, and in rescue, because it neither slips nor jams when it is tied well.</p>
        <p>Pass the end up through a small loop, around the standing part, and back down through the loop.</p>";

    fn check_main(html: &str, wanted: &[&str], unwanted: &[&str]) {
        let page = read(html, Links::Hidden).unwrap();
        assert!(page.reduced, "{}", page.text);
        for text in wanted {
            assert!(page.text.contains(text), "{text} in {}", page.text);
        }
        for text in unwanted {
            assert!(!page.text.contains(text), "{text} in {}", page.text);
        }
        let until = Instant::now() + Duration::from_secs(600);
        let whole = super::read(html, "https://example.com/", Links::Hidden, Extent::Whole, until).unwrap();
        assert!(!whole.reduced);
        for text in wanted.iter().chain(unwanted) {
            assert!(whole.text.contains(text), "{text} in {}", whole.text);
        }
    }

    #[test]
    fn the_main_content_is_detected() {
        let around = |main: &str| {
            format!(
                "<title>Knots</title><body><header><a href=/>Home</a> Site name</header>
                 <nav><ul><li><a href=/1>Menu one</a><li><a href=/2>Menu two</a></ul></nav>{main}
                 <aside>Popular now</aside><div class='site-footer'>Imprint</div><footer>All rights</footer></body>"
            )
        };
        let noise = ["Site name", "Menu one", "Popular now", "Imprint", "All rights"];
        let article = format!(
            "<article><header><h1>Bowline</h1></header>{PROSE}<div class=share>Share this</div></article>"
        );
        check_main(
            &around(&article),
            &["# Bowline", "slips nor jams"],
            &[&noise[..], &["Share this"]].concat(),
        );
        check_main(
            &around(&format!("<main><h1>Bowline</h1>{PROSE}</main>")),
            &["# Bowline", "at sea"],
            &noise,
        );
        check_main(
            &around(&format!(
                "<div id=page><div class=box><h1>Bowline</h1>{PROSE}</div><div class=sidebar>Links</div></div>"
            )),
            &["# Bowline", "standing part"],
            &[&noise[..], &["Links"]].concat(),
        );
        check_main(&around(PROSE), &["fixed loop"], &noise);
        // Of several articles, the list is what is wanted.
        let list = format!(
            "<main><h1>News</h1><article>First {PROSE}</article><article>Second {PROSE}</article></main>"
        );
        check_main(&around(&list), &["# News", "First", "Second"], &noise);
        // A name that says `sidebar` and is around everything says nothing.
        check_main(&around(&format!("<div class=with-sidebar>{PROSE}</div>")), &["fixed loop"], &noise);
    }

    #[test]
    fn a_page_without_main_content_is_unchanged() {
        for html in [
            "<nav><a href=/1>One</a></nav><p>Short.",
            "<article>Short</article><footer>End</footer>",
            "<ul><li><a href=/1>One</a><li><a href=/2>Two</a></ul>",
            "",
        ] {
            let page = read(html, Links::Hidden).unwrap();
            assert!(!page.reduced, "{}", page.text);
        }
        assert!(read("<nav><a href=/1>One</a></nav><p>Short.", Links::Hidden).unwrap().text.contains("One"));
    }

    // proves: TOOL-48
    #[test]
    fn elements_that_browsers_do_not_show_are_removed() {
        for hidden in [
            "<p hidden>SECRET</p>",
            "<p style='display: none'>SECRET</p>",
            "<div style='color:red; VISIBILITY:hidden !important'><p>SECRET</p></div>",
            "<span style=opacity:0>SECRET</span>",
            "<span style='font-size: 0px;'>SECRET</span>",
            "<script>SECRET</script><style>SECRET</style><!-- SECRET -->",
        ] {
            let html = format!(
                "<body><p>Shown.</p>{hidden}<p style='color:red' hidden=until-found>Found.</p></body>"
            );
            for extent in [Extent::Whole, Extent::Main] {
                let until = Instant::now() + Duration::from_secs(600);
                let page = super::read(&html, "https://example.com/", Links::Shown, extent, until).unwrap();
                assert!(!page.text.contains("SECRET"), "{hidden}: {}", page.text);
                assert!(page.text.contains("Shown.") && page.text.contains("Found."), "{}", page.text);
            }
        }
    }

    #[test]
    fn hostile_pages_are_rejected_or_limited() {
        for element in ["div", "blockquote", "ul><li", "b", "table><tr><td", "font", "svg"] {
            let deep = format!("<{element}>").repeat(100_000);
            let soon = Instant::now() + Duration::from_millis(100);
            assert!(super::read(&deep, "http://h/", Links::Shown, Extent::Main, soon).is_err(), "{element}");
            let nested = format!("{}x", format!("<{element}>").repeat(60));
            drop(read(&nested, Links::Shown));
        }
        let wide = "<p>x</p>".repeat(MAX_NODES);
        assert!(read(&wide, Links::Shown).is_err());
        let cells = format!("<table><tr>{}</tr></table>", "<td>x".repeat(500));
        assert!(read(&cells, Links::Shown).is_ok());
        let spans = "<table><tr><td colspan=1000000000 rowspan=1000000000>x</table>";
        assert!(read(spans, Links::Shown).is_ok());
        for html in
            ["", "\0", "<", "<!--", "<![CDATA[", "&#xffffffff;", "<title>", "<a href=\"http://[\">x</a>"]
        {
            assert!(read(html, Links::Shown).is_ok(), "{html}");
        }
    }
}
