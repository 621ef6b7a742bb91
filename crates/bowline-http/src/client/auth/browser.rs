//! Logs in with a browser on this machine, or with one elsewhere by pasting the redirected URL.

use super::{
    Login,
    loopback::{CallbackHost, Loopback},
};
use bowline_auth::{BoxFuture, Error, Redirect, UserAgent, Visit};
use bowline_client::{Opener, ShownUrl, SystemOpener};
use std::{
    fmt,
    io::{self, Write as _},
    sync::Arc,
    time::Duration,
};

/// How long the user may take to log in.
const TIMEOUT: Duration = Duration::from_secs(300);

type Show = Arc<dyn Fn(&str) + Send + Sync>;
type Paste = Arc<dyn Fn() -> BoxFuture<'static, io::Result<String>> + Send + Sync>;

impl Login {
    /// Logs in with the browser of this machine.
    ///
    /// The URL to visit is also printed to standard error. The redirect is received on a loopback address. See [`Browser`] for
    /// other settings, such as a fixed port.
    pub fn browser() -> Self {
        Self::agent(Browser::new())
    }
}

/// Opens the authorization page in a browser, and waits for the redirect on a loopback address; for [`Login::agent`].
#[derive(Clone)]
#[must_use]
pub struct Browser {
    host: Option<CallbackHost>,
    port: Option<u16>,
    timeout: Duration,
    opener: Option<Arc<dyn Opener>>,
    show: Show,
    paste: Option<Paste>,
}

impl Default for Browser {
    fn default() -> Self {
        Self::new()
    }
}

impl Browser {
    /// Uses the browser of this machine, and a free port.
    pub fn new() -> Self {
        Self {
            host: None,
            port: None,
            timeout: TIMEOUT,
            opener: Some(Arc::new(SystemOpener)),
            show: Arc::new(|text| drop(writeln!(io::stderr(), "{text}"))),
            paste: None,
        }
    }

    /// Receives the redirect on this port, for a client whose redirect URI is registered with it.
    pub fn callback_port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Sets the host of the redirect URI.
    pub fn callback_host(mut self, host: CallbackHost) -> Self {
        self.host = Some(host);
        self
    }

    /// Limits the time to log in. Default: 5 min.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Opens pages with something else than the program of the desktop.
    pub fn opener(mut self, opener: impl Opener + 'static) -> Self {
        self.opener = Some(Arc::new(opener));
        self
    }

    /// Opens no browser: the user opens the URL, on this machine or elsewhere.
    pub fn without_opening(mut self) -> Self {
        self.opener = None;
        self
    }

    /// Shows messages for the user, with the URL to visit, instead of printing them to standard error.
    pub fn on_message(mut self, show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.show = Arc::new(show);
        self
    }

    /// Reads a line from the user if no browser can be opened: the redirected URL, pasted from a browser on another machine.
    pub fn paste<F, Fut>(mut self, read_line: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = io::Result<String>> + Send + 'static,
    {
        self.paste = Some(Arc::new(move || Box::pin(read_line())));
        self
    }

    async fn listen(&self, bound: Option<&str>) -> io::Result<Loopback> {
        let bound = bound.and_then(Loopback::address_of);
        let host = self.host.or_else(|| bound.map(|(host, _)| host)).unwrap_or_default();
        match (self.port, bound) {
            (Some(port), _) => Loopback::bind(host, Some(port)).await.map_err(|error| {
                let message = format!("cannot receive the redirect on port {port}: {error}");
                io::Error::new(error.kind(), message)
            }),
            (None, Some((_, port))) => match Loopback::bind(host, Some(port)).await {
                // The client is then registered again, with the new port.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => Loopback::bind(host, None).await,
                bound => bound,
            },
            (None, None) => Loopback::bind(host, None).await,
        }
    }
}

impl UserAgent for Browser {
    fn prepare<'a>(&'a self, bound: Option<&'a str>) -> BoxFuture<'a, Result<Box<dyn Redirect>, Error>> {
        Box::pin(async move {
            let loopback = self.listen(bound).await.map_err(|error| Error::misuse(error.to_string()))?;
            let redirect_uri = loopback.redirect_uri();
            let waiting = Waiting { loopback, redirect_uri, browser: self.clone() };
            Ok(Box::new(waiting) as Box<dyn Redirect>)
        })
    }
}

impl fmt::Debug for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Browser")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("timeout", &self.timeout)
            .field("opens", &self.opener.is_some())
            .field("pastes", &self.paste.is_some())
            .finish_non_exhaustive()
    }
}

/// A listener that waits for the redirect of one login.
struct Waiting {
    loopback: Loopback,
    redirect_uri: String,
    browser: Browser,
}

impl Redirect for Waiting {
    fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    fn visit(self: Box<Self>, visit: Visit) -> BoxFuture<'static, Result<String, Error>> {
        Box::pin(async move {
            // The URL comes from the metadata of a server. Whatever a browser or a desktop could read as something else is refused.
            let url = ShownUrl::parse(visit.url()).map_err(|error| {
                Error::untrusted(format!("the authorization page is not safe to open: {error}"))
            })?;
            let Self { loopback, redirect_uri, browser } = *self;
            (browser.show)(&format!(
                "To log in at {}, open this URL in a browser:\n\n  {url}\n",
                visit.issuer()
            ));
            let response = visit.clone();
            let redirected = loopback.wait(move |target| response.is_response(target), browser.timeout);
            tokio::select! {
                redirected = redirected => redirected.map_err(|error| Error::visit(error.to_string())),
                pasted = open_or_paste(&browser, &url, &redirect_uri, &visit) => Ok(pasted),
            }
        })
    }
}

/// Opens the browser. If there is none, reads the redirected URL from the user; otherwise it never completes.
async fn open_or_paste(browser: &Browser, url: &ShownUrl, redirect_uri: &str, visit: &Visit) -> String {
    let has_opened = match &browser.opener {
        Some(opener) => match opener.open(url).await {
            Ok(()) => true,
            Err(error) => {
                (browser.show)(&format!("cannot open a browser: {error}"));
                false
            }
        },
        None => false,
    };
    let Some(paste) = browser.paste.as_ref().filter(|_| !has_opened) else {
        return std::future::pending().await;
    };
    (browser.show)(&format!(
        "If the browser runs on another machine, the login ends at a page that cannot be loaded. Paste the address of that page, \
         which starts with {redirect_uri}"
    ));
    loop {
        // Without input, the redirect can still arrive.
        let Ok(line) = paste().await else { return std::future::pending().await };
        let line = line.trim();
        if line.starts_with("http") && visit.is_response(line) {
            return line.to_owned();
        }
        if !line.is_empty() {
            (browser.show)(&format!(
                "this is not the address that this login was redirected to; it starts with {redirect_uri}? and contains \
                 `state`; a code alone is not accepted"
            ));
        }
    }
}
