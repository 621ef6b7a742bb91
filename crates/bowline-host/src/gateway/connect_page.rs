//! What a browser shows while its user connects an account.

use bowline_auth::issuer::escape_html;
use bowline_http::Body;
use http::{HeaderValue, Response, StatusCode, header};

const STYLE: &str = ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:34em;margin:4em auto;\
    padding:0 1.2em}h1{font-size:1.4em}a.go{display:inline-block;padding:.5em 1.6em;border:1px solid;border-radius:.4em;\
    color:inherit;text-decoration:none;font-weight:600}code{overflow-wrap:anywhere}.note{opacity:.75}";

/// Says what is about to happen, with the link that starts it.
pub(super) fn intro(gateway: &str, server: &str, user: &str, key: &str) -> Response<Body> {
    let body = format!(
        "<p>A program of <b>{user}</b> uses the server <b>{server}</b> through the gateway <b>{gateway}</b>. The server \
         needs your account.</p>\
         <p>You sign in at the gateway first, so that nobody else can connect your account. Then you log in at the server.</p>\
         <p><a class=\"go\" href=\"{key}/start\">Continue</a></p>\
         <p class=\"note\">Continue only if you asked for this just now.</p>",
        user = escape(user),
        server = escape(server),
        gateway = escape(gateway),
        key = escape(key),
    );
    html(StatusCode::OK, "Connect your account", &body)
}

/// Says that the account is connected.
pub(super) fn done(gateway: &str, server: &str) -> Response<Body> {
    let (gateway, server) = (escape(gateway), escape(server));
    let body = format!(
        "<p>The gateway <b>{gateway}</b> now uses your account at the server <b>{server}</b> for your calls, and for nobody \
         else's. You can close this page.</p>"
    );
    html(StatusCode::OK, "Your account is connected", &body)
}

/// Says that a link cannot be used.
pub(super) fn expired() -> Response<Body> {
    let body = "<p>This link was used, or is too old. Call again to get a new one.</p>";
    html(StatusCode::NOT_FOUND, "This link cannot be used", body)
}

/// Says that a link belongs to another process.
pub(super) fn of_other_process() -> Response<Body> {
    let body = "<p>This process of the gateway did not make this link: the gateway was restarted, or several processes share this \
                address. Call again to get a new one.</p>\
                <p class=\"note\">If this happens again, the balancer has to send all requests below <code>/connect/</code> of one \
                browser to the same process.</p>";
    html(StatusCode::NOT_FOUND, "This link cannot be used", body)
}

/// Says why the account is not connected.
pub(super) fn failed(status: StatusCode, reason: &str) -> Response<Body> {
    html(status, "Your account is not connected", &format!("<p>{}</p>", escape(reason)))
}

/// Returns a response without content that no other site can use.
pub(super) fn plain(status: StatusCode) -> Response<Body> {
    response(status, String::new())
}

fn html(status: StatusCode, title: &str, body: &str) -> Response<Body> {
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style><h1>{title}</h1>{body}</html>"
    );
    response(status, page)
}

fn response(status: StatusCode, page: String) -> Response<Body> {
    let mut response = Response::new(Body::from(page));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Escapes text, and shows the characters in it that are not visible.
fn escape(text: &str) -> String {
    escape_html(&bowline_text::visible(text))
}
