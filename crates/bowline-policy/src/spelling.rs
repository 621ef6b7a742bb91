//! The different spellings of a URI or path, so that a rule applies however a caller writes it.
//!
//! `file:///srv/secret`, `FILE://localhost/srv//%73ecret`, `file:/srv/./secret/` and `/srv/secret` name the same file.
//! A rule that restricts is compared with every interpretation that some server could use; a rule that allows must
//! match both the text and its normal form.

use std::{
    borrow::Cow,
    net::{Ipv4Addr, Ipv6Addr},
};

/// The number of times that percent-encoding is decoded, because some servers decode twice.
const MAX_DECODINGS: usize = 4;
/// Whether `Secret` and `secret` usually name the same file on this system.
pub(super) const FILES_IGNORE_CASE: bool = cfg!(any(windows, target_os = "macos"));

/// Returns whether a text is or may be a URI or a path. Only those have several spellings.
fn has_spellings(text: &str) -> bool {
    text.contains(['/', '\\', '%', ':']) || text.trim() != text || text.ends_with('.')
}

/// Returns all possible interpretations of a text, starting with the text itself. Paths and `file` URIs are
/// interpretations of each other.
pub(crate) fn forms(text: &str) -> Vec<String> {
    let mut forms = Forms(vec![text.to_owned()]);
    if !has_spellings(text) {
        return forms.0;
    }
    // URL parsers of browsers ignore spaces at the ends, and line breaks and tabs anywhere.
    let trimmed: String = text
        .trim_matches(|character: char| character <= ' ')
        .chars()
        .filter(|character| !is_ignored(*character))
        .collect();
    match Uri::split(&trimmed) {
        Some(uri) if uri.scheme == "file" => {
            for path in uri.path_forms() {
                forms.add_file(&path);
            }
        }
        Some(uri) => {
            let authority = uri.authority.as_deref().map(|host| plain_authority(&uri.scheme, host));
            for path in uri.path_forms() {
                forms.add(join(&uri.scheme, authority.as_deref(), &path));
            }
        }
        None => {
            for decoded in decodings(&trimmed) {
                for path in path_forms(&decoded) {
                    forms.add_file(&path);
                }
            }
        }
    }
    forms.0
}

/// Returns a text and its normal form in the same notation: without differences in encoding, case of scheme and host,
/// and empty and `.` segments.
pub(crate) fn same_notation(text: &str) -> Vec<String> {
    let mut forms = Forms(vec![text.to_owned()]);
    if !has_spellings(text) {
        return forms.0;
    }
    match Uri::split(text) {
        Some(uri) if uri.scheme == "file" => {
            let path = clean(&decode(&uri.path));
            let slash = if path.starts_with('/') { "" } else { "/" };
            let host = uri.authority.as_deref().filter(|host| !is_local(host));
            forms.add(format!("file://{}{slash}{path}{}", host.unwrap_or_default(), decode(&uri.tail)));
        }
        Some(uri) => {
            let authority = uri.authority.as_deref().map(|host| plain_authority(&uri.scheme, host));
            let path = format!("{}{}", clean(&decode(&uri.path)), decode(&uri.tail));
            forms.add(join(&uri.scheme, authority.as_deref(), &path));
        }
        None => {
            forms.add(clean(text));
            forms.add(clean(&decode(text)));
        }
    }
    forms.0
}

/// Returns why a URI may name different things for different parsers, if it does.
pub fn ambiguity(uri: &str) -> Option<&'static str> {
    if uri.chars().any(char::is_control) || decodings(uri).any(|form| form.chars().any(char::is_control)) {
        return Some("it has a control character");
    }
    if !is_well_encoded(uri) {
        return Some("its percent-encoding is not valid");
    }
    let path = Uri::split(uri).map_or_else(|| uri.to_owned(), |uri| uri.path);
    // If a directory is a symbolic link, its parent is not the one in the text.
    decodings(&path).any(|form| has_parent_step(&form)).then_some("it contains a `..` segment")
}

/// Returns whether a path has a `..` segment, with either kind of slash.
pub(crate) fn has_parent_step(path: &str) -> bool {
    path.split(['/', '\\']).any(|step| step == "..")
}

/// Like [`has_parent_step`], for a text that may be encoded, also repeatedly, or contain line breaks that URL parsers
/// ignore.
pub(crate) fn may_have_parent_step(text: &str) -> bool {
    if !text.contains(['.', '%']) {
        return false;
    }
    let joined = |form: &str| form.chars().filter(|character| !is_ignored(*character)).collect::<String>();
    decodings(&joined(text)).any(|form| has_parent_step(&form) || has_parent_step(&joined(&form)))
}

/// Returns whether URL parsers of browsers ignore this character everywhere.
fn is_ignored(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r')
}

/// Returns the literal parts of a pattern, normalized like [`forms`] and [`same_notation`].
pub(crate) fn plain_pieces(pieces: &[String]) -> Vec<String> {
    let count = pieces.len();
    let mut plain = Vec::with_capacity(count);
    for (place, piece) in pieces.iter().enumerate() {
        let start = (place == 0).then(|| Start::of(piece, count == 1)).flatten();
        let (start, rest) = match &start {
            Some(start) => (start.plain.as_str(), start.rest),
            None => ("", piece.as_str()),
        };
        let mut text = format!("{start}{}", collapse(&decode(rest)));
        if count == 1 && text.len() > start.len() + 1 && text.ends_with('/') {
            text.pop();
        }
        plain.push(text);
    }
    plain
}

/// The scheme and authority at the start of a pattern.
struct Start<'a> {
    plain: String,
    rest: &'a str,
}

impl<'a> Start<'a> {
    fn of(piece: &'a str, is_whole: bool) -> Option<Self> {
        let (scheme, rest) = split_scheme(piece)?;
        let scheme = scheme.to_ascii_lowercase();
        let Some(behind) = rest.strip_prefix("//") else {
            let slashes = if scheme == "file" && rest.starts_with('/') { "//" } else { "" };
            return Some(Self { plain: format!("{scheme}:{slashes}"), rest });
        };
        let end = behind.find(['/', '?', '#']);
        let (authority, rest) = behind.split_at(end.unwrap_or(behind.len()));
        // A star may be part of the host.
        let authority = match end {
            None if !is_whole => authority.to_lowercase(),
            _ if scheme == "file" && is_local(authority) => String::new(),
            _ => plain_authority(&scheme, authority),
        };
        Some(Self { plain: format!("{scheme}://{authority}"), rest })
    }
}

struct Forms(Vec<String>);

impl Forms {
    fn add(&mut self, form: String) {
        if !self.0.contains(&form) {
            self.0.push(form);
        }
    }

    /// Adds a path, and its `file` URI if it is absolute.
    fn add_file(&mut self, path: &str) {
        self.add(path.to_owned());
        let drive = path.strip_prefix('/').filter(|rest| is_drive(rest));
        if let Some(drive) = drive {
            self.add(drive.to_owned());
        }
        if is_drive(path) {
            self.add(format!("file:///{path}"));
        } else if path.starts_with('/') {
            self.add(format!("file://{path}"));
        }
    }
}

/// The parts of a URI.
struct Uri {
    scheme: String,
    authority: Option<String>,
    path: String,
    /// Query and fragment.
    tail: String,
}

impl Uri {
    fn split(text: &str) -> Option<Self> {
        let (scheme, rest) = split_scheme(text)?;
        let scheme = scheme.to_ascii_lowercase();
        let is_slash = |character: char| character == '/' || (character == '\\' && has_backslashes(&scheme));
        let behind = if has_backslashes(&scheme) && scheme != "file" {
            // Browsers read `http:host/path` and `http:///host/path` as `http://host/path`.
            Some(rest.trim_start_matches(is_slash))
        } else {
            rest.strip_prefix(is_slash).and_then(|rest| rest.strip_prefix(is_slash))
        };
        let end = |text: &str| text.find(|character| is_slash(character) || matches!(character, '?' | '#'));
        let (authority, rest) = match behind {
            Some(behind) => {
                let (authority, rest) = behind.split_at(end(behind).unwrap_or(behind.len()));
                (Some(authority.to_owned()), rest)
            }
            None => (None, rest),
        };
        let (path, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        Some(Self { scheme, authority, path: path.to_owned(), tail: tail.to_owned() })
    }

    /// Returns the possible paths: some parsers ignore the query, others treat it as part of the name.
    fn path_forms(&self) -> Vec<String> {
        let mut forms = Forms(Vec::new());
        let mut wholes = vec![self.path.clone()];
        if !self.tail.is_empty() {
            wholes.push(format!("{}{}", self.path, self.tail));
        }
        for whole in wholes {
            for decoded in decodings(&whole) {
                for path in path_forms(&decoded) {
                    if self.scheme == "file" {
                        self.add_local(&mut forms, path);
                    } else {
                        forms.add(path);
                    }
                }
            }
        }
        forms.0
    }

    /// Adds a path of a `file` URI, with its host if that is not this machine.
    fn add_local(&self, forms: &mut Forms, path: String) {
        match self.authority.as_deref().filter(|host| !is_local(host)) {
            Some(host) => {
                let host = decode(host).to_lowercase();
                forms.add(format!("//{host}{path}"));
                // `file://srv/secret`: parsers that ignore hosts treat it as a directory.
                forms.add(format!("/{host}{path}"));
                forms.add(path);
            }
            // `file:srv/secret` is absolute for some parsers.
            None if !path.starts_with('/') => {
                forms.add(format!("/{path}"));
                forms.add(path);
            }
            None => forms.add(path),
        }
    }
}

/// Returns a path unchanged, with its segments resolved, and as on systems that ignore dots and spaces at the end of
/// names.
fn path_forms(path: &str) -> Vec<String> {
    // A program in C ends the path at the first NUL.
    if let Some((before, behind)) = path.split_once('\0') {
        let mut forms = path_forms(before);
        forms.extend(path_forms(&format!("{before}{}", behind.replace('\0', ""))));
        return forms;
    }
    let mut forms = Forms(vec![path.to_owned()]);
    let clean = clean(path);
    let trimmed = clean.trim_end_matches('/');
    forms.add(if trimmed.is_empty() { clean.clone() } else { trimmed.to_owned() });
    let steps: Vec<_> = trimmed.split('/').map(|step| step.trim_end_matches(['.', ' '])).collect();
    forms.add(collapse(&steps.join("/")).into_owned());
    let drive = trimmed.replacen('|', ":", 1);
    if is_drive(drive.trim_start_matches('/')) {
        forms.add(drive);
    }
    forms.add(clean);
    forms.0
}

/// Removes empty and `.` segments, and resolves `..`.
fn clean(path: &str) -> String {
    let path = path.replace('\\', "/");
    let (is_absolute, is_folder) = (path.starts_with('/'), path.ends_with('/'));
    let mut steps: Vec<&str> = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." if steps.last().is_some_and(|last| *last != "..") => drop(steps.pop()),
            ".." if is_absolute => {}
            step => steps.push(step),
        }
    }
    let start = if is_absolute { "/" } else { "" };
    let end = if is_folder && !steps.is_empty() { "/" } else { "" };
    format!("{start}{}{end}", steps.join("/"))
}

/// Removes empty and `.` segments, for parts of a pattern, whose segments may continue after a star.
fn collapse(text: &str) -> Cow<'_, str> {
    if !text.contains("//") && !text.contains("/./") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let behind = rest.get(character.len_utf8()..).unwrap_or_default();
        if character == '/' && (behind.starts_with('/') || behind.starts_with("./")) {
            rest = behind.strip_prefix('.').unwrap_or(behind);
            continue;
        }
        out.push(character);
        rest = behind;
    }
    Cow::Owned(out)
}

fn join(scheme: &str, authority: Option<&str>, path: &str) -> String {
    match authority {
        Some(host) => {
            let slash = if path.starts_with(['/', '?', '#']) || path.is_empty() { "" } else { "/" };
            let path = if path.is_empty() { "/" } else { path };
            format!("{scheme}://{host}{slash}{path}")
        }
        None => format!("{scheme}:{path}"),
    }
}

/// Returns the authority in lower case, without user, default port and trailing dot.
fn plain_authority(scheme: &str, authority: &str) -> String {
    let authority = decode(authority).to_lowercase();
    let host = authority.rsplit_once('@').map_or(authority.as_str(), |(_, host)| host);
    let usual = match scheme {
        "http" | "ws" => "80",
        "https" | "wss" => "443",
        "ftp" => "21",
        _ => "",
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let (name, port) = match host.rsplit_once(':').filter(|(_, port)| is_port(port)) {
        Some((name, port)) if usual.is_empty() => (name, port),
        Some((name, port)) => (name, port.trim_start_matches('0')),
        None => (host, ""),
    };
    let name = name.trim_end_matches('.');
    let name = match plain_address(name).filter(|_| has_backslashes(scheme)) {
        Some(address) => Cow::Owned(address.to_string()),
        None => Cow::Borrowed(name),
    };
    if port == usual || port.is_empty() { name.into_owned() } else { format!("{name}:{port}") }
}

/// Returns the IPv4 address that URL parsers read from a host: `127.1`, `2130706433`, `0x7f.1` and `[::ffff:127.0.0.1]`
/// all mean `127.0.0.1`.
fn plain_address(host: &str) -> Option<Ipv4Addr> {
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.parse::<Ipv6Addr>().ok()?.to_ipv4_mapped();
    }
    let number = |part: &str| match part.strip_prefix("0x") {
        Some("") => Some(0),
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None if part.len() > 1 && part.starts_with('0') => u64::from_str_radix(part, 8).ok(),
        None => part.parse().ok(),
    };
    let parts: Vec<u64> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    if first.len() > 3 || first.iter().any(|part| *part > 255) {
        return None;
    }
    // The last number fills the remaining bytes.
    let room = 8 * (4 - first.len());
    let high = first.iter().fold(0, |sum, part| sum << 8 | part) << room;
    (*last < 1 << room).then(|| u32::try_from(high | last).ok().map(Ipv4Addr::from))?
}

/// Returns whether the host of a `file` URI is this machine.
fn is_local(host: &str) -> bool {
    let host = decode(host);
    let host = host.trim_end_matches('.');
    host.is_empty()
        || ["localhost", "127.0.0.1", "[::1]"].iter().any(|local| host.eq_ignore_ascii_case(local))
}

/// Returns whether parsers of this scheme treat a backslash as a slash.
fn has_backslashes(scheme: &str) -> bool {
    matches!(scheme, "file" | "http" | "https" | "ws" | "wss" | "ftp")
}

fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    is_scheme.then_some((scheme, rest))
}

/// `C:` or `C:/...`
fn is_drive(path: &str) -> bool {
    let mut bytes = path.bytes();
    matches!((bytes.next(), bytes.next(), bytes.next()), (Some(letter), Some(b':'), None | Some(b'/')) if letter.is_ascii_alphabetic())
}

/// Returns a text undecoded, decoded once, decoded twice and so on.
fn decodings(text: &str) -> impl Iterator<Item = String> {
    let mut next = Some(text.to_owned());
    std::iter::from_fn(move || {
        let current = next.take()?;
        let decoded = decode(&current);
        next = (decoded != current).then(|| decoded.into_owned());
        Some(current)
    })
    .take(MAX_DECODINGS + 1)
}

/// Decodes percent-encoding once. Invalid encodings stay unchanged.
fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        if let Some(byte) = encoded_byte(rest) {
            out.push(byte);
            rest = rest.get(3..).unwrap_or_default();
        } else {
            out.push(first);
            rest = behind;
        }
    }
    match String::from_utf8(out) {
        Ok(decoded) => Cow::Owned(decoded),
        // Decodes only what all parsers decode to the same character.
        Err(_) => Cow::Owned(decode_ascii(text)),
    }
}

fn decode_ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if let Some(byte) = encoded_byte(rest.as_bytes()).filter(u8::is_ascii) {
            out.push(char::from(byte));
            rest = rest.get(3..).unwrap_or_default();
        } else {
            out.push(character);
            rest = rest.get(character.len_utf8()..).unwrap_or_default();
        }
    }
    out
}

/// Returns the byte that is encoded at the start of a text.
fn encoded_byte(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

/// Returns whether all `%` start valid encodings and the result is UTF-8.
fn is_well_encoded(text: &str) -> bool {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        if first == b'%' {
            let Some(byte) = encoded_byte(rest) else { return false };
            bytes.push(byte);
            rest = rest.get(3..).unwrap_or_default();
        } else {
            bytes.push(first);
            rest = behind;
        }
    }
    std::str::from_utf8(&bytes).is_ok()
}

#[cfg(test)]
#[path = "spelling_tests.rs"]
mod tests;
