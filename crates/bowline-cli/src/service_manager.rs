//! What a service manager passes to a process and receives from it: sockets (`LISTEN_FDS`) and states (`NOTIFY_SOCKET`).

use std::io;
use tokio::net::TcpListener;

/// Returns the socket that systemd opened for this process, if it did.
#[cfg(unix)]
pub(crate) fn socket() -> io::Result<Option<TcpListener>> {
    let Some(listener) = listenfd::ListenFd::from_env().take_tcp_listener(0)? else { return Ok(None) };
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener).map(Some)
}

/// Returns nothing: this platform has no such sockets.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "same signature as on Unix")]
pub(crate) fn socket() -> io::Result<Option<TcpListener>> {
    Ok(None)
}

/// Tells the service manager about the state of this process, such as `READY=1`. Does nothing if there is none.
#[cfg(unix)]
pub(crate) fn notify(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, state, "cannot notify the service manager");
    }
}

#[cfg(unix)]
fn send(socket: &std::ffi::OsStr, state: &str) -> io::Result<()> {
    use std::os::unix::{
        ffi::OsStrExt,
        net::{SocketAddr, UnixDatagram},
    };
    let datagram = UnixDatagram::unbound()?;
    let address = match socket.as_bytes().strip_prefix(b"@") {
        #[cfg(target_os = "linux")]
        Some(name) => {
            use std::os::linux::net::SocketAddrExt;
            SocketAddr::from_abstract_name(name)?
        }
        _ => SocketAddr::from_pathname(socket)?,
    };
    datagram.send_to_addr(state.as_bytes(), &address).map(drop)
}

/// Does nothing: this platform has no such service manager.
#[cfg(not(unix))]
pub(crate) fn notify(_: &str) {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn a_state_reaches_the_socket_of_the_manager() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let manager = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        let mut buffer = [0; 32];
        let length = manager.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"READY=1");
        assert!(send(folder.path().join("missing").as_os_str(), "READY=1").is_err());
    }
}
