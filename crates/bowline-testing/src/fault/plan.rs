//! What goes wrong, where, and on which connection.

use std::time::Duration;

/// Something that goes wrong at one byte of a connection.
///
/// `Fault::reply(17)` lets 17 bytes of the reply pass and then closes the connection; the other methods say what
/// happens instead, and to which connection. It happens once, unless it is to happen [`always`](Self::always).
///
/// ```
/// use bowline_testing::fault::Fault;
/// use std::time::Duration;
///
/// let reset_by_peer = Fault::reply(17).rst();
/// let third_connection_hangs = Fault::request(0).stall().on_connection(2);
/// let calls_are_slow = Fault::reply(0).delay(Duration::from_millis(50)).carrying("tools/call").always();
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

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Reply,
}

/// What happens.
#[derive(Clone, Debug)]
pub(super) enum Action {
    Fin,
    Rst,
    Stall,
    Delay(Duration),
    Garbage(Box<[u8]>),
}

impl Fault {
    /// Closes a connection after this many bytes from the client.
    pub fn request(bytes: u64) -> Self {
        Self::new(Direction::Request, bytes)
    }

    /// Closes a connection after this many bytes from the server. With 0, as soon as there is a reply.
    pub fn reply(bytes: u64) -> Self {
        Self::new(Direction::Reply, bytes)
    }

    fn new(direction: Direction, at: u64) -> Self {
        Self { direction, at, action: Action::Fin, connection: None, text: None, always: false }
    }

    /// Closes the connection in good order, both ways, as a program does that ends. This is what happens by default.
    pub fn fin(self) -> Self {
        self.with(Action::Fin)
    }

    /// Resets the connection, both ways, as a machine does that has lost its memory of it.
    pub fn rst(self) -> Self {
        self.with(Action::Rst)
    }

    /// Passes nothing more on in this direction, and keeps the connection open.
    pub fn stall(self) -> Self {
        self.with(Action::Stall)
    }

    /// Holds back what follows for this long.
    pub fn delay(self, time: Duration) -> Self {
        self.with(Action::Delay(time))
    }

    /// Puts these bytes in between.
    pub fn garbage(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.with(Action::Garbage(bytes.into().into()))
    }

    /// Only on the connection of this number; the first one has the number 0.
    pub fn on_connection(mut self, number: u64) -> Self {
        self.connection = Some(number);
        self
    }

    /// Only where a request carries this text. The bytes are then counted from the start of that request, or of its
    /// reply, instead of the start of the connection.
    ///
    /// A request is what comes from the client until the server answers. Its text has to be in what has come up to the
    /// byte in question, or comes along with it: a client that writes each request at once meets that for every byte.
    pub fn carrying(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into().into_bytes().into());
        self
    }

    /// Every time, not only the first.
    pub fn always(mut self) -> Self {
        self.always = true;
        self
    }

    fn with(mut self, action: Action) -> Self {
        self.action = action;
        self
    }
}
