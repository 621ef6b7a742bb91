//! Opening the file.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::time::Duration;

use bowline_store::StoreError;
use rusqlite::{Connection, OpenFlags};

/// The format of the tables. A file of a later format is refused.
const FORMAT: i64 = 1;

/// How long a write waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// From this version on, two processes cannot damage a write-ahead log.
const OLDEST_SQLITE: i32 = 3_051_003;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS records (
        namespace TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, version INTEGER NOT NULL,
        node INTEGER, claim INTEGER, lapses INTEGER NOT NULL, due INTEGER, queue TEXT, grp TEXT, expires INTEGER NOT NULL,
        PRIMARY KEY (namespace, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS records_due ON records (namespace, queue, due) WHERE due IS NOT NULL AND queue IS NOT NULL;
    CREATE INDEX IF NOT EXISTS records_group ON records (namespace, grp, key) WHERE grp IS NOT NULL;
    CREATE INDEX IF NOT EXISTS records_node ON records (namespace, node) WHERE node IS NOT NULL;
    CREATE INDEX IF NOT EXISTS records_expires ON records (namespace, expires);
";

/// Opens a file, creates its tables, and checks that it is ours.
pub(crate) fn open(path: &Path, full: bool) -> Result<Connection, StoreError> {
    let failed = |error: rusqlite::Error| {
        StoreError::unavailable(format!("{}: {error}", path.display())).with_source(error)
    };
    if rusqlite::version_number() < OLDEST_SQLITE {
        return Err(StoreError::invalid(format!(
            "SQLite {} can damage a file that two processes use; 3.51.3 or later is needed",
            rusqlite::version()
        )));
    }
    create_private(path).map_err(|error| {
        StoreError::unavailable(format!("{}: {error}", path.display())).with_source(error)
    })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed)?;
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", (), |row| row.get(0)).map_err(failed)?;
    if mode != "wal" {
        return Err(StoreError::invalid(format!(
            "{}: this file system does not support the write-ahead log of SQLite (journal mode {mode}); \
             use a local disk",
            path.display()
        )));
    }
    let synchronous = if full { "FULL" } else { "NORMAL" };
    connection
        .execute_batch(&format!(
            "PRAGMA synchronous = {synchronous}; PRAGMA mmap_size = 0; PRAGMA journal_size_limit = 67108864;"
        ))
        .map_err(failed)?;
    create_tables(&connection, path).map_err(|error| error.into_store_error(path))?;
    Ok(connection)
}

enum TableError {
    Sqlite(rusqlite::Error),
    Format(i64),
}

impl TableError {
    fn into_store_error(self, path: &Path) -> StoreError {
        match self {
            Self::Sqlite(error) => {
                StoreError::unavailable(format!("{}: {error}", path.display())).with_source(error)
            }
            Self::Format(format) => StoreError::invalid(format!(
                "{}: the file has format {format}, and this version knows {FORMAT}; use a newer version of the program",
                path.display()
            )),
        }
    }
}

impl From<rusqlite::Error> for TableError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

fn create_tables(connection: &Connection, path: &Path) -> Result<(), TableError> {
    let format: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    match format {
        FORMAT => Ok(()),
        // Two processes may create the tables at the same time.
        0 => {
            tracing::debug!(path = %path.display(), "creating the tables of the store");
            connection.execute_batch(&format!(
                "BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {FORMAT}; COMMIT;"
            ))?;
            Ok(())
        }
        other => Err(TableError::Format(other)),
    }
}

/// Creates a missing file that only its owner can read.
///
/// A file that exists is not opened here: closing it again would drop the locks of this process on it.
fn create_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => check_private(path),
        created => created.map(drop),
    }
}

/// Refuses a file that others can access: the records of all users are in it.
#[cfg(unix)]
fn check_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    const OTHERS: u32 = 0o077;
    let mode = std::fs::metadata(path)?.permissions().mode() & 0o777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let reason = format!("other users can access it (mode {mode:o}); run `chmod 600` on it");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, reason))
}

#[cfg(not(unix))]
fn check_private(_: &Path) -> io::Result<()> {
    Ok(())
}
