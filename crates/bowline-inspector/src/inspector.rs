//! The inspector of one host: what it shares between requests, and how it is configured.

use crate::{
    actions::PageState,
    assets::Assets,
    buffer::{Recorder, now},
    checks::{Checker, Checks},
    control::ControlRequests,
    inbox::{Beside, Questions},
    keep::{self, Keeper},
    keys::{self, Code, Keys},
    query::{ConnectHint, Grade, Mode, TryCall},
    service::InspectorService,
    stream::Streams,
};
use bowline_host::{Gateway, Host, Tap};
use bowline_policy::{Gate, audit::Redactor};
use bowline_server::ServerHandle;
use std::{
    fmt,
    future::Future,
    io,
    path::Path,
    sync::{Arc, OnceLock},
};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};

/// How many request bodies are read at a time. Each has at most 4 MiB.
const MAX_BODIES: usize = 8;

/// The options of an inspector.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[must_use = "it does nothing until an inspector is created with it"]
pub struct InspectorOptions {
    /// Which command runs the host.
    pub mode: Mode,
    /// How many bytes the buffer may take. Default: 32 MiB.
    pub memory: usize,
    /// Whether bodies of messages are kept. Default: yes.
    pub bodies: bool,
    /// What links of [`Inspector::link`] with no other grade, such as those of `bowline open`, give. Default: view.
    pub links: Grade,
    /// Values that are masked wherever they occur.
    pub secrets: Vec<String>,
    /// The version of the program.
    pub version: String,
    /// How to connect clients to the gateway.
    pub connect: Vec<ConnectHint>,
    /// The call that Home suggests. If it is not set, the inspector chooses one.
    pub try_call: Option<TryCall>,
}

impl InspectorOptions {
    /// Creates the default options for a command.
    pub fn new(mode: Mode) -> Self {
        let memory = match mode {
            Mode::Inspect => 128 * 1024 * 1024,
            // All of a folder is shown.
            Mode::Folder => 1024 * 1024 * 1024,
            Mode::Up | Mode::Gateway => 32 * 1024 * 1024,
        };
        Self {
            mode,
            memory,
            bodies: true,
            links: Grade::View,
            secrets: Vec::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            connect: Vec::new(),
            try_call: None,
        }
    }
}

/// The inspector of a host. Clones share everything.
///
/// Create it before the host, so that the host can report all messages to it with [`tap`](Self::tap); then
/// [`attach`](Self::attach) the host and [`serve`](Self::serve) the page.
#[derive(Clone)]
pub struct Inspector {
    shared: Arc<Shared>,
}

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) run: String,
    pub(crate) keys: Keys,
    secret: String,
    pub(crate) recorder: Recorder,
    pub(crate) redactor: Redactor,
    pub(crate) questions: Questions,
    pub(crate) options: InspectorOptions,
    pub(crate) connect: OnceLock<(Vec<ConnectHint>, Option<TryCall>)>,
    pub(crate) assets: Assets,
    pub(crate) started: f64,
    pub(crate) attached: OnceLock<Attached>,
    pub(crate) page: PageState,
    /// The terminal that grants control, if there is one.
    pub(crate) terminal: OnceLock<Arc<dyn Gate>>,
    pub(crate) control: ControlRequests,
    pub(crate) checker: OnceLock<Arc<dyn Checker>>,
    pub(crate) checks: Checks,
    pub(crate) streams: Arc<Streams>,
    pub(crate) bodies: Semaphore,
    /// One search runs at a time.
    pub(crate) searches: Arc<Semaphore>,
    pub(crate) ending: watch::Sender<bool>,
}

/// The host that is shown.
pub(crate) struct Attached {
    pub(crate) host: Host,
    pub(crate) handle: ServerHandle,
    pub(crate) gateway: Option<Gateway>,
}

impl Inspector {
    /// Creates an inspector. Fails if the system provides no random numbers.
    pub fn new(options: InspectorOptions) -> io::Result<Self> {
        let no_randomness = || io::Error::other("the system provides no random numbers");
        let (keys, secret) = Keys::new().map_err(|_| no_randomness())?;
        let run = keys::random(8).map_err(|_| no_randomness())?;
        let redactor = Redactor::new(options.secrets.clone());
        let recorder = Recorder::new(options.memory, options.bodies, redactor.clone());
        let questions = Questions::new(recorder.clone(), redactor.clone());
        Ok(Self {
            shared: Arc::new(Shared {
                run,
                keys,
                secret,
                recorder,
                redactor,
                questions,
                options,
                connect: OnceLock::new(),
                assets: Assets::new(),
                started: now(),
                attached: OnceLock::new(),
                page: PageState::default(),
                terminal: OnceLock::new(),
                control: ControlRequests::default(),
                checker: OnceLock::new(),
                checks: Checks::default(),
                streams: Arc::default(),
                bodies: Semaphore::new(MAX_BODIES),
                searches: Arc::new(Semaphore::new(1)),
                ending: watch::Sender::new(false),
            }),
        })
    }

    /// Returns what the host shows everything to; for [`HostBuilder::tap`](bowline_host::HostBuilder::tap).
    pub fn tap(&self) -> Arc<dyn Tap> {
        Arc::new(self.shared.recorder.clone())
    }

    /// Returns a gate that asks in the page, and in the terminal if there is one. The first answer counts. A terminal is also
    /// asked to give control to browsers that only look.
    pub fn gate(&self, terminal: Option<Arc<dyn Gate>>) -> Arc<dyn Gate> {
        let questions = self.shared.questions.clone();
        match terminal {
            Some(terminal) => {
                let _ = self.shared.terminal.set(Arc::clone(&terminal));
                Arc::new(Beside { terminal, questions })
            }
            None => Arc::new(questions),
        }
    }

    /// Masks these values, too.
    pub fn add_secrets(&self, secrets: impl IntoIterator<Item = String>) {
        self.shared.redactor.learn(secrets);
    }

    /// Returns what masks secrets, so that others can teach it some; for
    /// [`GatewayBuilder::redactor`](bowline_host::gateway::GatewayBuilder::redactor).
    pub fn redactor(&self) -> Redactor {
        self.shared.redactor.clone()
    }

    /// Writes all messages to a folder, without secrets, until `end` completes. The folder must not contain kept messages already.
    ///
    /// The returned future fails if the folder cannot be written, or if it has reached 1 GiB.
    pub fn keep<E>(
        &self,
        folder: &Path,
        end: E,
    ) -> io::Result<impl Future<Output = io::Result<()>> + Send + 'static + use<E>>
    where
        E: Future<Output = ()> + Send + 'static,
    {
        let keeper = Keeper::new(folder, self.shared.redactor.clone())?;
        Ok(keeper.run(self.shared.recorder.clone(), end))
    }

    /// Returns whether a folder has messages that [`keep`](Self::keep) wrote.
    pub fn is_kept(folder: &Path) -> bool {
        keep::is_kept(folder)
    }

    /// Shows the messages of a folder that [`keep`](Self::keep) wrote, instead of a host. Blocks. Returns how many lines cannot be
    /// read.
    pub fn open_folder(&self, folder: &Path) -> io::Result<usize> {
        keep::load(folder, &self.shared.recorder)
    }

    /// Sets what checks servers. Only the first call has an effect; without one, the page cannot check servers.
    pub fn set_checker(&self, checker: Arc<dyn Checker>) {
        let _ = self.shared.checker.set(checker);
    }

    /// Sets how clients connect to the gateway, and the call that Home offers, once the address is known.
    pub fn set_hints(&self, connect: Vec<ConnectHint>, try_call: Option<TryCall>) {
        let _ = self.shared.connect.set((connect, try_call));
    }

    /// Shows a gateway. Only the first call has an effect.
    pub fn attach(&self, gateway: &Gateway) -> Result<(), bowline_server::BuildError> {
        let handle = gateway.open()?;
        let attached = Attached { host: gateway.host().clone(), handle, gateway: Some(gateway.clone()) };
        let _ = self.shared.attached.set(attached);
        Ok(())
    }

    /// Shows a host that is served by `handle`. Only the first call has an effect.
    pub fn attach_host(&self, host: &Host, handle: &ServerHandle) {
        let attached = Attached { host: host.clone(), handle: handle.clone(), gateway: None };
        let _ = self.shared.attached.set(attached);
    }

    /// Returns a one-time code that gives a key of this grade. The link is `http://ADDRESS/open#CODE`.
    ///
    /// Fails if the system provides no random numbers.
    pub fn link(&self, grade: Grade) -> io::Result<Code> {
        self.shared.keys.code(grade).map_err(|_| io::Error::other("the system provides no random numbers"))
    }

    /// Returns the secret of this launch, with which `POST /api/link` makes a new link. Only the user of the host may know it.
    pub fn launch_secret(&self) -> &str {
        &self.shared.secret
    }

    /// Returns the page as a tower service.
    pub fn service(&self) -> InspectorService {
        InspectorService::new(Arc::clone(&self.shared))
    }

    /// Serves the page until `end` completes. Refuses an address that is not of this machine alone.
    pub async fn serve(&self, listener: TcpListener, end: impl Future<Output = ()>) -> io::Result<()> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            let reason = format!("the inspector is served on a loopback address only, not on {address}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let end = async {
            end.await;
            self.shared.ending.send_replace(true);
        };
        bowline_http::serve(listener, self.service(), end).await
    }
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector").field("run", &self.shared.run).finish_non_exhaustive()
    }
}
