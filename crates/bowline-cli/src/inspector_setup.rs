//! Sets up the inspector of `up`, `inspect` and `gateway`: its socket, its links, and what it masks.

use crate::failure::{Code, Failure};
use bowline_inspector::{
    Inspector, InspectorOptions,
    query::{Grade, Mode},
};
use bowline_policy::{Opener as _, ShownUrl, SystemOpener};
use bowline_text::is_secret_name;
use serde::{Deserialize, Serialize};
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};
use tokio::{net::TcpListener, task::JoinHandle};

/// The default port.
pub(crate) const PORT: u16 = 7338;

/// The shortest value of a variable that is masked. Shorter ones would match everywhere.
const SHORTEST: usize = 6;

/// An inspector and its socket.
#[derive(Debug)]
pub(crate) struct InspectorSetup {
    pub(crate) inspector: Inspector,
    listener: TcpListener,
    address: SocketAddr,
}

/// How other commands of the same user get a link. It is stored in the private file of the running gateway.
#[derive(Clone, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct InspectorAccess {
    /// The address of the page.
    pub(crate) url: String,
    /// The secret of the launch, which makes links.
    pub(crate) secret: String,
}

impl std::fmt::Debug for InspectorAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InspectorAccess").field("url", &self.url).finish_non_exhaustive()
    }
}

impl InspectorSetup {
    /// Creates the inspector and takes a port of this machine: the default one, or a free one.
    pub(crate) async fn new(
        mode: Mode,
        change: impl FnOnce(InspectorOptions) -> InspectorOptions,
    ) -> Result<Self, Failure> {
        let failed =
            |error: io::Error| Failure::new(Code::Failed, format!("cannot serve the inspector: {error}"));
        let mut options = InspectorOptions::new(mode);
        env!("CARGO_PKG_VERSION").clone_into(&mut options.version);
        options.secrets = secrets();
        let inspector = Inspector::new(change(options)).map_err(failed)?;
        // Bound by its number: a name could lead elsewhere.
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?,
        };
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { inspector, listener, address })
    }

    /// Returns the address of the page.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the link that a command gives: without a person at the terminal it cannot act, whoever gets it.
    pub(crate) fn own_link(&self, is_attended: bool) -> Result<String, Failure> {
        self.link(if is_attended { Grade::Control } else { Grade::View })
    }

    /// Returns a link that works once. Print it to a terminal only.
    fn link(&self, grade: Grade) -> Result<String, Failure> {
        let code = self.inspector.link(grade)?;
        Ok(format!("{}/open#{}", self.url(), code.expose()))
    }

    /// Returns how other commands of this user get a link.
    pub(crate) fn access(&self) -> InspectorAccess {
        InspectorAccess { url: self.url(), secret: self.inspector.launch_secret().to_owned() }
    }

    /// Serves the page until the returned value is dropped.
    pub(crate) fn serve(self) -> Serving {
        let Self { inspector, listener, .. } = self;
        Serving(tokio::spawn(async move {
            if let Err(error) = inspector.serve(listener, std::future::pending()).await {
                tracing::warn!(%error, "the inspector has stopped");
            }
        }))
    }
}

/// A page that is served. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct Serving(JoinHandle<()>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Opens a link in the browser of the user.
pub(crate) async fn open_browser(link: &str) -> Result<(), String> {
    let url = ShownUrl::parse(link).map_err(|error| error.to_string())?;
    SystemOpener.open(&url).await.map_err(|error| format!("cannot open a browser: {error}"))
}

/// Returns the values of variables that are named like secrets.
fn secrets() -> Vec<String> {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let secrets = variables.filter(|(name, value)| is_secret_name(name) && value.len() >= SHORTEST);
    secrets.map(|(_, value)| value).collect()
}
