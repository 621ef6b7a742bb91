//! Sets up the inspector of `up`, `inspect` and `gateway`: its socket, its links, and what it masks.

use crate::failure::{Code, Failure};
use bowline_config::InspectorConfig;
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
    path::Path,
    time::Duration,
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

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
    /// What links give that no terminal shows.
    links: Grade,
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
    ///
    /// `is_attended` says that a person at the terminal can grant control.
    pub(crate) async fn new(
        mode: Mode,
        config: &InspectorConfig,
        is_attended: bool,
    ) -> Result<Self, Failure> {
        let failed =
            |error: io::Error| Failure::new(Code::Failed, format!("cannot serve the inspector: {error}"));
        let inspector = Inspector::new(options(mode, config, is_attended)).map_err(failed)?;
        // Bound by its number: a name could lead elsewhere.
        let listener = match TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).await {
            Ok(listener) => listener,
            Err(_) => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?,
        };
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { inspector, listener, address, links: links(config, is_attended) })
    }

    /// Returns the address of the page.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the link that a command gives: without a person at the terminal it cannot act, whoever gets it, unless the
    /// user's configuration says so.
    pub(crate) fn own_link(&self, is_attended: bool) -> Result<String, Failure> {
        self.link(if is_attended { Grade::Control } else { self.links })
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

    /// Serves the page until the returned value is ended or dropped. Keeps messages in a folder, if one is given.
    pub(crate) fn serve(self, keep: Option<&Path>) -> Result<Serving, Failure> {
        let Self { inspector, listener, .. } = self;
        let (end, ended) = oneshot::channel();
        let keeping = match keep {
            Some(folder) => {
                let ended = async move { drop(ended.await) };
                let failed = |error: io::Error| {
                    let sentence = format!("cannot keep messages in `{}`: {error}", folder.display());
                    Failure::new(Code::Failed, sentence).advise("choose another directory with `--keep`")
                };
                Some(inspector.keep(folder, ended).map_err(failed)?)
            }
            None => None,
        };
        let keeping = keeping.map(|keeping| {
            tokio::spawn(async move {
                if let Err(error) = keeping.await {
                    tracing::warn!(%error, "cannot save messages any more; `--keep` stops here");
                }
            })
        });
        let serving = tokio::spawn(async move {
            if let Err(error) = inspector.serve(listener, std::future::pending()).await {
                tracing::warn!(%error, "the inspector has stopped");
            }
        });
        Ok(Serving { page: serving, keeping, end: Some(end) })
    }
}

/// Returns the options of the inspector for a command and a configuration.
fn options(mode: Mode, config: &InspectorConfig, is_attended: bool) -> InspectorOptions {
    let mut options = InspectorOptions::new(mode);
    env!("CARGO_PKG_VERSION").clone_into(&mut options.version);
    options.secrets = secrets();
    options.links = links(config, is_attended);
    if mode == Mode::Folder {
        // What was kept is shown whole.
        return options;
    }
    if let Some(memory) = config.memory {
        options.memory = usize::try_from(memory).unwrap_or(usize::MAX);
    }
    // Payloads belong to the users of the gateway, not to whoever operates it.
    options.bodies = config.bodies.unwrap_or(mode != Mode::Gateway);
    options
}

/// Returns what links give that no terminal shows. Where a terminal can be asked, it grants control.
fn links(config: &InspectorConfig, is_attended: bool) -> Grade {
    if config.control && !is_attended { Grade::Control } else { Grade::View }
}

/// How long the last messages may take to be written.
const LAST: Duration = Duration::from_secs(5);

/// A page that is served. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct Serving {
    page: JoinHandle<()>,
    keeping: Option<JoinHandle<()>>,
    end: Option<oneshot::Sender<()>>,
}

impl Serving {
    /// Writes the last messages, if they are kept.
    pub(crate) async fn end(mut self) {
        drop(self.end.take());
        if let Some(keeping) = &mut self.keeping {
            let _ = tokio::time::timeout(LAST, keeping).await;
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.page.abort();
        if let Some(keeping) = &self.keeping {
            keeping.abort();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_decides_about_memory_bodies_and_links() {
        let mut config = InspectorConfig::default();
        let of = |mode, config: &InspectorConfig, is_attended| {
            let options = options(mode, config, is_attended);
            (options.memory >> 20, options.bodies, options.links)
        };
        assert_eq!(of(Mode::Up, &config, true), (32, true, Grade::View));
        assert_eq!(of(Mode::Inspect, &config, true), (128, true, Grade::View));
        assert_eq!(of(Mode::Gateway, &config, false), (32, false, Grade::View));
        (config.memory, config.bodies, config.control) = (Some(64 << 20), Some(true), true);
        assert_eq!(of(Mode::Gateway, &config, false), (64, true, Grade::Control));
        // The terminal is asked instead.
        assert_eq!(of(Mode::Up, &config, true), (64, true, Grade::View));
        config.bodies = Some(false);
        assert_eq!(of(Mode::Folder, &config, true), (1024, true, Grade::View));
        assert_eq!(of(Mode::Inspect, &config, true), (64, false, Grade::View));
    }
}
