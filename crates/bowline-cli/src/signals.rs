//! Shutdown signals: the first Ctrl-C or SIGTERM requests a graceful shutdown, the second an immediate exit.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::watch;

/// Counts shutdown signals. Clones share the count.
#[derive(Clone, Debug)]
pub(crate) struct ShutdownSignals {
    count: watch::Receiver<u32>,
    terminated: Arc<AtomicBool>,
}

impl ShutdownSignals {
    /// Installs the signal handlers. From now on, signals no longer terminate the process by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        let (sender, count) = watch::channel(0_u32);
        let mut signals = SignalStream::new()?;
        let terminated = Arc::new(AtomicBool::new(false));
        let by_supervisor = Arc::clone(&terminated);
        tokio::spawn(async move {
            loop {
                let is_interrupt = signals.next().await == Signal::Interrupt;
                by_supervisor.fetch_or(!is_interrupt, Ordering::Relaxed);
                sender.send_modify(|count| *count = count.saturating_add(1));
            }
        });
        Ok(Self { count, terminated })
    }

    /// Returns whether SIGTERM was received, which supervisors send.
    pub(crate) fn is_terminated(&self) -> bool {
        self.terminated.load(Ordering::Relaxed)
    }

    /// Completes when this many signals were received.
    pub(crate) async fn received(&self, count: u32) {
        let mut so_far = self.count.clone();
        if so_far.wait_for(|so_far| *so_far >= count).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The signal that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Interrupt,
    #[cfg(unix)]
    Terminate,
}

#[cfg(unix)]
struct SignalStream {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl SignalStream {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

#[cfg(not(unix))]
struct SignalStream;

#[cfg(not(unix))]
impl SignalStream {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal::Interrupt
    }
}
