//! Who is at the other end of a connection, as far as it is known.

use super::state::{State, now};
use crate::query::ClientSummary;

/// How many connections and clients are known at most. Beyond it the oldest connections are forgotten.
const MAX_CONNECTIONS: usize = 4096;
const MAX_CLIENTS: usize = 64;

/// The name of the page among clients.
pub(crate) const PAGE: &str = "page";
/// The name of a client that calls itself like the page.
const NOT_THE_PAGE: &str = "page (a client)";

#[derive(Clone, Default)]
pub(super) struct Connection {
    pub(super) peer: String,
    pub(super) revision: Option<String>,
    /// It belongs to the page, whatever its messages say.
    pub(super) is_page: bool,
}

impl Connection {
    pub(super) fn of_server(name: &str, revision: Option<String>) -> Self {
        Self { peer: name.to_owned(), revision, is_page: false }
    }

    /// A connection of a client that reports this name.
    pub(super) fn of_client(name: String, revision: Option<String>) -> Self {
        let peer = if name == PAGE { NOT_THE_PAGE.to_owned() } else { name };
        Self { peer, revision, is_page: false }
    }
}

impl State {
    pub(super) fn connect(&mut self, number: u64, connection: Connection) {
        if self.connections.insert(number, connection).is_none() {
            self.connection_order.push_back(number);
        }
        while self.connections.len() > MAX_CONNECTIONS
            && let Some(oldest) = self.connection_order.pop_front()
        {
            self.connections.remove(&oldest);
        }
    }

    /// Notes who uses a connection, as it reports.
    pub(super) fn introduce(
        &mut self,
        number: u64,
        name: String,
        version: Option<String>,
        revision: Option<String>,
    ) {
        if let Some(page) = self.connections.get_mut(&number).filter(|known| known.is_page) {
            page.revision = revision;
            return;
        }
        let connection = Connection::of_client(name, revision.clone());
        self.meet(&connection.peer, version, revision);
        self.connect(number, connection);
    }

    /// Notes a client that introduces itself.
    fn meet(&mut self, name: &str, version: Option<String>, revision: Option<String>) {
        let at = now();
        let is_new = !self.clients.contains_key(name);
        if is_new && self.clients.len() >= MAX_CLIENTS {
            return;
        }
        let client = self.clients.entry(name.to_owned()).or_insert_with(|| ClientSummary {
            name: name.to_owned(),
            version: None,
            revision: None,
            since: at,
            latest: at,
            calls: 0,
        });
        (client.version, client.revision, client.latest) = (version, revision, at);
        if is_new {
            self.changed.clients += 1;
        }
    }
}
