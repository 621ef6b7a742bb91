//! The pages that people see: consent and refusals.

use super::{client::Client, reply};
use crate::{Scopes, url::Url};
use http::{Response, StatusCode};
use std::fmt::Write as _;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:34em;margin:3em auto;padding:0 1em}\
    button{font:inherit;padding:.4em 1.4em;margin-right:.5em}code{overflow-wrap:anywhere}.note{color:#555}";

/// What a consent page shows.
#[derive(Debug)]
pub(super) struct Consent<'a> {
    /// Where the form is posted.
    pub(super) action: &'a str,
    /// The key of the pending request.
    pub(super) request: &'a str,
    pub(super) client: &'a Client,
    pub(super) redirect_uri: &'a str,
    pub(super) resource: &'a str,
    pub(super) scopes: &'a Scopes,
    pub(super) user: &'a str,
}

/// Creates the page that asks for consent.
pub(super) fn consent(consent: &Consent<'_>) -> Response<Vec<u8>> {
    let mut body = String::new();
    let client = escape_html(&consent.client.name);
    let _ =
        write!(body, "<p><b>{client}</b> wants to use <code>{}</code>.</p>", escape_html(consent.resource));
    if consent.client.id.starts_with("https://") {
        let _ = write!(body, "<p>It is described at <code>{}</code>.</p>", escape_html(&consent.client.id));
    } else {
        body.push_str("<p class=\"note\">The name was chosen by the program and is not verified.</p>");
    }
    if consent.scopes.is_empty() {
        body.push_str("<p>It asks for no particular scopes.</p>");
    } else {
        body.push_str("<p>It asks for:</p><ul>");
        for scope in consent.scopes.iter() {
            let _ = write!(body, "<li><code>{}</code></li>", escape_html(scope));
        }
        body.push_str("</ul>");
    }
    let _ = write!(
        body,
        "<p>The result is sent to <b><code>{}</code></b>.</p>",
        escape_html(redirect_host(consent.redirect_uri))
    );
    if is_loopback(consent.redirect_uri) {
        body.push_str(
            "<p><b>This is a program on this computer.</b> Any program here can use this name. Continue only if you have \
             just started a login.</p>",
        );
    }
    let _ = write!(
        body,
        "<form method=\"post\" action=\"{}\"><input type=\"hidden\" name=\"request\" value=\"{}\">\
         <p><label>Log in as <input name=\"user\" value=\"{}\" maxlength=\"64\" required></label></p>\
         <button name=\"decision\" value=\"allow\">Allow</button>\
         <button name=\"decision\" value=\"deny\">Deny</button></form>\
         <p class=\"note\">This authorization server is for development. It knows no passwords.</p>",
        escape_html(consent.action),
        escape_html(consent.request),
        escape_html(consent.user),
    );
    reply::html(StatusCode::OK, document("Allow access?", &body))
}

/// Creates a page that says why a request is refused, without a link.
pub(super) fn refusal(status: StatusCode, reason: &str) -> Response<Vec<u8>> {
    reply::html(status, document("Request refused", &format!("<p>{}</p>", escape_html(reason))))
}

/// Creates a page that says why a request is refused, with a link that reports the error to the client.
pub(super) fn refusal_with_link(reason: &str, redirect_uri: &str, url: &str) -> Response<Vec<u8>> {
    let body = format!(
        "<p>{}</p><p><a href=\"{}\" rel=\"noreferrer\">Return to <code>{}</code></a></p>",
        escape_html(reason),
        escape_html(url),
        escape_html(redirect_host(redirect_uri))
    );
    reply::html(StatusCode::BAD_REQUEST, document("Request refused", &body))
}

fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>{body}\
         </body></html>"
    )
}

/// Returns where a redirect leads: the host and port, or the private scheme of an application.
fn redirect_host(uri: &str) -> &str {
    Url::split(uri).map_or_else(|_| uri.split(':').next().unwrap_or_default(), |url| url.authority)
}

/// Returns whether a redirect leads to a program on this machine.
pub(super) fn is_loopback(uri: &str) -> bool {
    Url::split(uri).is_ok_and(|url| url.is_loopback())
}

/// Escapes text for elements and quoted attributes of HTML, and removes control characters.
pub fn escape_html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Characters that change the direction of text make a name look like another.
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            _ if character.is_control() => {}
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v65_text_of_clients_cannot_leave_its_element() {
        assert_eq!(
            escape_html("<b onx='1' y=\"2\">&\u{202e}\n"),
            "&lt;b onx=&#39;1&#39; y=&quot;2&quot;&gt;&amp;"
        );
    }

    #[test]
    fn the_place_of_a_redirect_is_its_host_or_its_scheme() {
        assert_eq!(redirect_host("https://app.example:8443/cb?x"), "app.example:8443");
        assert_eq!(redirect_host("com.example.app:/cb"), "com.example.app");
    }
}
