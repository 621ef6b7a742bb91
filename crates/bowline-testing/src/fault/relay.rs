//! Passes the bytes of one connection from each side to the other.

use super::{
    Shared,
    meter::Meter,
    plan::{Action, Direction},
};
use std::{
    io,
    sync::{Mutex, PoisonError, atomic::Ordering},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    time::sleep,
};

/// The ways a fault ends a connection.
enum End {
    Fin,
    Rst,
}

impl From<io::Error> for End {
    /// An IO error means that one side reset the connection, so the other side is reset too.
    fn from(_: io::Error) -> Self {
        Self::Rst
    }
}

/// Copies bytes in both directions until both sides have ended, or a fault ends the connection.
pub(super) async fn relay(mut client: TcpStream, mut server: TcpStream, number: u64, shared: &Shared) {
    // Disable Nagle's algorithm, so that bytes are passed on at once.
    drop((client.set_nodelay(true), server.set_nodelay(true)));
    let meter = Mutex::new(Meter::new(number));
    let ended = {
        let (from_client, to_client) = client.split();
        let (from_server, to_server) = server.split();
        tokio::try_join!(
            pump(Direction::Request, from_client, to_server, &meter, shared),
            pump(Direction::Reply, from_server, to_client, &meter, shared),
        )
    };
    match ended {
        Ok(((), ())) => {}
        Err(End::Rst) => drop((client.set_zero_linger(), server.set_zero_linger())),
        Err(End::Fin) => {
            for socket in [&mut client, &mut server] {
                drop(socket.shutdown().await);
                // A socket that is closed with unread bytes resets its connection.
                let mut left = [0; 4096];
                while socket.try_read(&mut left).is_ok_and(|length| length > 0) {}
            }
        }
    }
}

/// Copies bytes in one direction until they end.
async fn pump(
    direction: Direction,
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    meter: &Mutex<Meter>,
    shared: &Shared,
) -> Result<(), End> {
    let passed = match direction {
        Direction::Request => &shared.requested,
        Direction::Reply => &shared.replied,
    };
    let mut buffer = vec![0; 64 * 1024];
    let mut stalled = false;
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            // The other direction stays open.
            drop(to.shutdown().await);
            return Ok(());
        }
        let mut rest = buffer.get(..length).unwrap_or_default();
        let lock = || meter.lock().unwrap_or_else(PoisonError::into_inner);
        lock().receive(direction, rest);
        while !stalled {
            let fault = lock().next_fault(direction, rest.len(), &mut shared.faults());
            let Some((ahead, action)) = fault else { break };
            let (before, behind) = rest.split_at(ahead.min(rest.len()));
            to.write_all(before).await?;
            lock().pass(direction, before.len());
            passed.fetch_add(before.len() as u64, Ordering::Relaxed);
            rest = behind;
            shared.triggered.send_modify(|triggered| *triggered += 1);
            match action {
                Action::Fin => return Err(End::Fin),
                Action::Rst => return Err(End::Rst),
                Action::Stall => stalled = true,
                Action::Delay(time) => sleep(time).await,
                Action::Garbage(bytes) => to.write_all(&bytes).await?,
            }
        }
        // A stalled direction is still read, so that its end is noticed.
        if !stalled {
            to.write_all(rest).await?;
            lock().pass(direction, rest.len());
            passed.fetch_add(rest.len() as u64, Ordering::Relaxed);
        }
    }
}
