//! Extracts the main content of a page, without menus, sidebars, banners and footers.
//!
//! The main content is marked by the author (`article`, `main`), or it is the element with most paragraph text outside of links. If
//! the result is unclear, the whole page is used.

use html2text::{Comment, Document, Element, Handle};
use std::{collections::HashSet, rc::Rc};

/// The minimum size of the main content in bytes. Shorter elements are cards or notices.
const MIN_TEXT: usize = 200;
/// The minimum length of a paragraph that counts.
const MIN_PARAGRAPH: usize = 25;

/// Elements without visible text.
const INVISIBLE: [&str; 7] = ["head", "script", "style", "template", "noscript", "svg", "iframe"];
/// Elements that are never the main content.
const BESIDE: [&str; 6] = ["nav", "aside", "footer", "menu", "dialog", "button"];
/// ARIA roles with the same meaning.
const ROLES: [&str; 7] =
    ["navigation", "banner", "contentinfo", "complementary", "search", "dialog", "alertdialog"];
/// Words in `class` and `id` that mark boilerplate.
const WORDS: [&str; 35] = [
    "ad",
    "ads",
    "advert",
    "advertisement",
    "banner",
    "breadcrumb",
    "breadcrumbs",
    "comments",
    "consent",
    "cookie",
    "cookies",
    "footer",
    "gdpr",
    "masthead",
    "menu",
    "modal",
    "nav",
    "navbar",
    "navigation",
    "newsletter",
    "pagination",
    "popup",
    "promo",
    "recommended",
    "related",
    "share",
    "sharing",
    "sidebar",
    "skip",
    "social",
    "sponsor",
    "sponsored",
    "subscribe",
    "toc",
    "toolbar",
];

/// A node of the page. Nodes are in document order: parents come before children.
struct Part {
    node: Handle,
    parent: Option<usize>,
    name: Option<String>,
    is_text: bool,
    /// The size of its text, and of its text in links.
    text: usize,
    linked: usize,
    commas: usize,
    /// Whether it is inside an `article` or `main`.
    inside: bool,
    /// Whether it or a parent is boilerplate.
    beside: bool,
}

/// Reduces the page to its main content. Returns false and leaves the page unchanged if there is no clear main content.
pub(super) fn reduce(document: &Handle) -> bool {
    let mut parts = parts(document);
    add_up(&mut parts);
    let total = parts.first().map_or(0, |part| part.text);
    mark(&mut parts, total);
    add_up(&mut parts);
    let Some(main) = find(&parts) else { return false };
    let Some(body) = parts.iter().position(|part| part.name.as_deref() == Some("body")) else { return false };
    prune(&parts);
    let (Some(main), Some(body)) = (parts.get(main), parts.get(body)) else { return false };
    if !Rc::ptr_eq(&main.node, &body.node) {
        // Dropping a node empties everything below it, so detach the main content first.
        if let Some(parent) = main.parent.and_then(|parent| parts.get(parent)) {
            parent.node.children.borrow_mut().retain(|child| !Rc::ptr_eq(child, &main.node));
        }
        *body.node.children.borrow_mut() = vec![Rc::clone(&main.node)];
    }
    true
}

/// Returns all visible nodes.
fn parts(document: &Handle) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut left = vec![(Handle::clone(document), None, false)];
    while let Some((node, parent, inside)) = left.pop() {
        let name = node.element_name();
        let is_text = name.is_none() && !matches!(node.data, Comment { .. } | Document);
        if name.as_deref().is_some_and(|name| INVISIBLE.contains(&name)) {
            continue;
        }
        let (text, commas) = if is_text { measure(&node) } else { (0, 0) };
        let inside = inside || matches!(name.as_deref(), Some("article" | "main"));
        let index = parts.len();
        let children = node
            .children
            .borrow()
            .iter()
            .rev()
            .map(|child| (Rc::clone(child), Some(index), inside))
            .collect::<Vec<_>>();
        left.extend(children);
        parts.push(Part { node, parent, name, is_text, text, linked: 0, commas, inside, beside: false });
    }
    parts
}

/// Counts the bytes of a text without white space, and its commas.
fn measure(node: &Handle) -> (usize, usize) {
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = node.serialize(&mut text);
    let blanks = text.iter().filter(|byte| byte.is_ascii_whitespace()).count();
    (text.len() - blanks, text.split(|byte| *byte == b',').count() - 1)
}

/// Adds the counts of each node to its parent. Boilerplate does not count.
fn add_up(parts: &mut [Part]) {
    for part in parts.iter_mut().filter(|part| !part.is_text) {
        (part.text, part.linked, part.commas) = (0, 0, 0);
    }
    for index in (0..parts.len()).rev() {
        let Some(part) = parts.get_mut(index) else { continue };
        if part.name.as_deref() == Some("a") {
            part.linked = part.text;
        }
        let (text, linked, commas, beside, parent) =
            (part.text, part.linked, part.commas, part.beside, part.parent);
        if let Some(parent) = parent.and_then(|parent| parts.get_mut(parent)).filter(|_| !beside) {
            parent.text += text;
            parent.linked += linked;
            parent.commas += commas;
        }
    }
}

/// Marks boilerplate and everything inside it.
fn mark(parts: &mut [Part], total: usize) {
    for index in 0..parts.len() {
        let Some(part) = parts.get(index) else { continue };
        let around = part.parent.and_then(|parent| parts.get(parent)).is_some_and(|parent| parent.beside);
        let beside = around || is_beside(part, total);
        if let Some(part) = parts.get_mut(index) {
            part.beside = beside;
        }
    }
}

fn is_beside(part: &Part, total: usize) -> bool {
    let Some(name) = part.name.as_deref() else { return false };
    if matches!(name, "html" | "body" | "article" | "main") {
        return false;
    }
    let roles = attribute(&part.node, "role").unwrap_or_default();
    if BESIDE.contains(&name)
        || (name == "header" && !part.inside)
        || ROLES.contains(&roles.as_str())
        || attribute(&part.node, "hidden").is_some()
        || attribute(&part.node, "aria-hidden").is_some_and(|hidden| hidden == "true")
    {
        return true;
    }
    // A class such as `content-with-sidebar` can wrap the whole page, so only small parts are marked.
    if part.text.saturating_mul(2) > total {
        return false;
    }
    ["class", "id"].into_iter().filter_map(|name| attribute(&part.node, name)).any(|value| {
        value
            .to_ascii_lowercase()
            .split(|character: char| !character.is_alphanumeric())
            .any(|word| WORDS.contains(&word))
    })
}

pub(super) fn attribute(node: &Handle, wanted: &str) -> Option<String> {
    let Element { attrs, .. } = &node.data else { return None };
    let attributes = attrs.borrow();
    let found = attributes.iter().find(|attribute| &*attribute.name.local == wanted)?;
    Some(found.value.to_string())
}

/// Finds the node with the main content.
fn find(parts: &[Part]) -> Option<usize> {
    let kept = || parts.iter().enumerate().filter(|(_, part)| !part.beside && part.text >= MIN_TEXT);
    let longest =
        |is: &dyn Fn(&Part) -> bool| kept().filter(|(_, part)| is(part)).max_by_key(|(_, part)| part.text);
    let marked =
        |part: &Part| attribute(&part.node, "itemprop").is_some_and(|property| property == "articleBody");
    if let Some((index, _)) = longest(&marked) {
        return Some(index);
    }
    // A single article, not a list of articles.
    let is_article = |part: &Part| part.name.as_deref() == Some("article");
    let outermost = |part: &&Part| {
        is_article(part)
            && !part
                .parent
                .and_then(|parent| parts.get(parent))
                .is_some_and(|parent| parent_is_article(parts, parent))
    };
    let all: usize = parts.iter().filter(|part| !part.beside).filter(outermost).map(|part| part.text).sum();
    if let Some((index, part)) = longest(&is_article)
        && part.text.saturating_mul(10) >= all.saturating_mul(6)
    {
        return Some(index);
    }
    let is_main = |part: &Part| {
        part.name.as_deref() == Some("main")
            || attribute(&part.node, "role").is_some_and(|role| role == "main")
    };
    if let Some((index, _)) = longest(&is_main) {
        return Some(index);
    }
    by_paragraphs(parts)
}

/// Returns whether a node is an article or inside one.
fn parent_is_article(parts: &[Part], part: &Part) -> bool {
    let mut part = Some(part);
    while let Some(around) = part {
        if around.name.as_deref() == Some("article") {
            return true;
        }
        part = around.parent.and_then(|parent| parts.get(parent));
    }
    false
}

/// Finds the node with most paragraph text outside of links. A paragraph counts for its parent, and half for its grandparent.
fn by_paragraphs(parts: &[Part]) -> Option<usize> {
    let mut scores = vec![0_usize; parts.len()];
    for part in parts.iter().filter(|part| !part.beside && part.text >= MIN_PARAGRAPH) {
        if !matches!(part.name.as_deref(), Some("p" | "pre" | "blockquote" | "h2" | "h3" | "li" | "td")) {
            continue;
        }
        let unlinked = part.text.saturating_sub(part.linked);
        // Length counts per 100 bytes, up to 300. Commas indicate prose.
        let points = (10 + part.commas * 10 + (part.text / 10).min(30)) * unlinked / part.text.max(1);
        let parent = part.parent;
        let grandparent = parent.and_then(|parent| parts.get(parent)).and_then(|parent| parent.parent);
        for (index, points) in [(parent, points), (grandparent, points / 2)] {
            if let Some(score) = index.and_then(|index| scores.get_mut(index)) {
                *score += points;
            }
        }
    }
    let holds = |part: &Part| matches!(part.name.as_deref(), Some("div" | "section" | "body" | "td"));
    let total = parts.first().map_or(0, |part| part.text);
    let found = parts.iter().zip(&scores).enumerate().filter(|(_, (part, score))| {
        **score > 0
            && !part.beside
            && holds(part)
            && part.text >= MIN_TEXT
            && part.text.saturating_mul(10) >= total.saturating_mul(4)
    });
    let score =
        |part: &Part, score: usize| score * (part.text.saturating_sub(part.linked)) / part.text.max(1);
    found.max_by_key(|(_, (part, points))| score(part, **points)).map(|(index, _)| index)
}

/// Removes boilerplate from the page.
fn prune(parts: &[Part]) {
    let beside: HashSet<_> =
        parts.iter().filter(|part| part.beside).map(|part| Rc::as_ptr(&part.node)).collect();
    for part in parts.iter().filter(|part| !part.beside) {
        part.node.children.borrow_mut().retain(|child| !beside.contains(&Rc::as_ptr(child)));
    }
}
