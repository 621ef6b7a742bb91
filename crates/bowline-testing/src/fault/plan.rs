//! Describes a fault: what happens, at which byte, and on which connection.

use std::time::Duration;

/// A fault at one byte of a connection.
///
/// `Fault::reply(17)` lets 17 bytes of the reply pass and then closes the connection. The other methods choose another
/// action or a certain connection. A fault happens once, unless it is set to happen [`always`](Self::always).
///
/// ```
/// use bowline_testing::fault::Fault;
/// use std::time::Duration;
///
/// let reset_by_peer = Fault::reply(17).rst();
/// let third_connection_hangs = Fault::request(0).stall().on_connection(2);
/// let calls_are_slow = Fault::reply(0).delay(Duration::from_millis(50)).containing("tools/call").always();
/// # let _ = (reset_by_peer, third_connection_hangs, calls_are_slow);
/// ```
#[derive(Clone, Debug)]
pub struct Fault {
    pub(super) direction: Direction,
    pub(super) at: u64,
    pub(super) action: Action,
    pub(super) connection: Option<u64>,
    pub(super) text: Option<Box<[u8]>>,
    pub(super) always: bool,
}

/// The direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Reply,
}

/// The action of a fault.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Fin,
    Rst,
    Stall,
    Delay(Duration),
    Garbage(Box<[u8]>),
}

impl Fault {
    /// Closes a connection after this many bytes of the client.
    pub fn request(bytes: u64) -> Self {
        Self::new(Direction::Request, bytes)
    }

    /// Closes a connection after this many bytes of the server. With 0, closes it when the reply begins.
    pub fn reply(bytes: u64) -> Self {
        Self::new(Direction::Reply, bytes)
    }

    fn new(direction: Direction, at: u64) -> Self {
        Self { direction, at, action: Action::Fin, connection: None, text: None, always: false }
    }

    /// Closes the connection with FIN in both directions, like a program that exits. This is the default.
    #[must_use]
    pub fn fin(self) -> Self {
        self.with(Action::Fin)
    }

    /// Resets the connection in both directions, like a machine that was restarted.
    #[must_use]
    pub fn rst(self) -> Self {
        self.with(Action::Rst)
    }

    /// Stops passing on bytes in this direction and keeps the connection open.
    #[must_use]
    pub fn stall(self) -> Self {
        self.with(Action::Stall)
    }

    /// Delays the following bytes.
    #[must_use]
    pub fn delay(self, time: Duration) -> Self {
        self.with(Action::Delay(time))
    }

    /// Inserts these bytes.
    #[must_use]
    pub fn garbage(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.with(Action::Garbage(bytes.into().into()))
    }

    /// Restricts the fault to the connection with this number. The first one has the number 0.
    #[must_use]
    pub fn on_connection(mut self, number: u64) -> Self {
        self.connection = Some(number);
        self
    }

    /// Restricts the fault to requests that contain this text. Bytes are then counted from the start of that request or
    /// its reply, instead of the start of the connection.
    ///
    /// A request is all bytes of the client until the server replies. The text must arrive before the byte of the
    /// fault, or together with it. This always holds for a client that writes each request in one piece.
    #[must_use]
    pub fn containing(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into().into_bytes().into());
        self
    }

    /// Repeats the fault every time its conditions are met.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.always = true;
        self
    }

    fn with(mut self, action: Action) -> Self {
        self.action = action;
        self
    }
}
