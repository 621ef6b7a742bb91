//! SQLite: authorization and cancellation of statements.

use super::{
    engine::{Executed, Limits, Statement, Tool},
    error::Error,
    queue::Slot,
    rows::{Collector, Column, Fit, Rows, Wanted, binary, binary_size, float, lossy},
    schema::{Table, TableName},
    sqlite_schema,
};
use rusqlite::{
    Connection, ErrorCode, OpenFlags,
    config::DbConfig,
    hooks::{AuthAction, AuthContext, Authorization},
    limits::Limit,
    types::{Value as Stored, ValueRef},
};
use serde_json::Value;
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// The number of SQLite VM steps between two checks of the clock.
const STEPS: i32 = 1000;
/// How long to wait for a locked file.
const BUSY: Duration = Duration::from_secs(2);
/// The maximum size of a value.
const MAX_VALUE: i32 = 16 * 1024 * 1024;
/// The maximum memory of SQLite for all databases of the process. SQLite has no other limit for whole rows or intermediate
/// results.
const MAX_MEMORY: i64 = 256 * 1024 * 1024;

/// The pragmas that read the schema. None of them changes anything with an argument.
const PRAGMAS: [&str; 10] = [
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "index_xinfo",
    "foreign_key_list",
    "collation_list",
    "function_list",
    "compile_options",
];

/// A SQLite database. Each call opens the file again, so calls do not share state.
#[derive(Debug)]
pub(super) struct Sqlite(Place);

#[derive(Debug)]
enum Place {
    File(PathBuf),
    Memory(Mutex<Connection>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The tool that runs the statement.
    Read(Tool),
    Write,
}

impl Sqlite {
    pub(super) fn file(path: PathBuf) -> Result<Self, Error> {
        let sqlite = Self(Place::File(path));
        // SQLite reads files lazily. Report a file that is not a database now.
        sqlite.with(Mode::Read(Tool::Query), |connection| {
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(Error::new)
        })?;
        Ok(sqlite)
    }

    /// Creates an empty database file if there is none.
    pub(super) fn create(path: &Path) -> Result<(), Error> {
        match File::create_new(path) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(Error::new(format!("cannot create `{}`: {error}", path.display()))),
        }
    }

    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self.0, Place::Memory(_))
    }

    /// Creates an in-memory database filled by `fill`.
    pub(super) fn memory(fill: fn(&Connection) -> rusqlite::Result<()>) -> Result<Self, Error> {
        let connection = Connection::open_in_memory().map_err(Error::new)?;
        fill(&connection).map_err(Error::new)?;
        Ok(Self(Place::Memory(Mutex::new(connection))))
    }

    pub(super) async fn query(
        self: &Arc<Self>,
        statement: Statement,
        limits: Limits,
        slot: Slot,
    ) -> Result<Rows, Error> {
        let tool = statement.tool;
        self.run(Mode::Read(tool), limits, slot, move |connection| query(connection, &statement, limits))
            .await
    }

    pub(super) async fn execute(
        self: &Arc<Self>,
        statement: Statement,
        limits: Limits,
        slot: Slot,
    ) -> Result<Executed, Error> {
        self.run(Mode::Write, limits, slot, move |connection| execute(connection, &statement, limits)).await
    }

    pub(super) async fn tables(
        self: &Arc<Self>,
        limits: Limits,
        slot: Slot,
    ) -> Result<Vec<TableName>, Error> {
        self.run(Mode::Read(Tool::Query), limits, slot, |connection| {
            sqlite_schema::tables(connection).map_err(Failed::Engine)
        })
        .await
    }

    pub(super) async fn describe(
        self: &Arc<Self>,
        name: String,
        limits: Limits,
        slot: Slot,
    ) -> Result<Table, Error> {
        let found = self.run(Mode::Read(Tool::Query), limits, slot, {
            let name = name.clone();
            move |connection| sqlite_schema::describe(connection, &name).map_err(Failed::Engine)
        });
        found.await?.ok_or_else(|| Error::no_table(&name))
    }

    /// Runs `work` on a blocking thread until it completes, times out, or is cancelled. The thread keeps the slot until then, so a
    /// database never has more threads than slots.
    async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        mode: Mode,
        limits: Limits,
        slot: Slot,
        work: impl FnOnce(&Connection) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Error> {
        let abandoned = Arc::new(AtomicBool::new(false));
        let _waiting = Waiting(Arc::clone(&abandoned));
        let this = Arc::clone(self);
        let ran = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            this.with(mode, |connection| {
                let deadline = Instant::now() + limits.time;
                let is_over = move || abandoned.load(Ordering::Relaxed) || Instant::now() >= deadline;
                connection.progress_handler(STEPS, Some(is_over)).map_err(Error::new)?;
                work(connection).map_err(|failed| failed.into_error(mode, limits))
            })
        });
        ran.await.map_err(|_| Error::new("the statement was aborted by an internal error"))?
    }

    /// Opens the database for `work` and forbids everything that `mode` does not allow.
    fn with<T>(
        &self,
        mode: Mode,
        work: impl FnOnce(&mut Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match &self.0 {
            Place::File(path) => {
                let flags = match mode {
                    Mode::Read(_) => OpenFlags::SQLITE_OPEN_READ_ONLY,
                    Mode::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
                };
                let mut connection =
                    Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
                        .map_err(|error| Error::new(format!("cannot open `{}`: {error}", path.display())))?;
                prepare(&mut connection, mode).map_err(Error::new)?;
                work(&mut connection)
            }
            Place::Memory(connection) => {
                let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
                prepare(&mut connection, mode).map_err(Error::new)?;
                let done = work(&mut connection);
                // A cancelled statement may have left a transaction open, which must not affect the next call.
                if !connection.is_autocommit() {
                    connection
                        .authorizer(None::<fn(AuthContext<'_>) -> Authorization>)
                        .map_err(Error::new)?;
                    connection.progress_handler(0, None::<fn() -> bool>).map_err(Error::new)?;
                    connection.execute_batch("ROLLBACK").map_err(Error::new)?;
                }
                done
            }
        }
    }
}

/// Dropping this cancels the statement.
struct Waiting(Arc<AtomicBool>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Converts the error of a statement.
enum Failed {
    Engine(rusqlite::Error),
    Told(Error),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Engine(error)
    }
}

impl Failed {
    fn into_error(self, mode: Mode, limits: Limits) -> Error {
        let error = match self {
            Self::Told(error) => return error,
            Self::Engine(error) => error,
        };
        let tool = match mode {
            Mode::Read(tool) => tool,
            Mode::Write => Tool::Execute,
        };
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => Error::too_slow(limits.time),
            Some(ErrorCode::AuthorizationForStatementDenied) => Error::not_allowed(tool),
            Some(ErrorCode::ReadOnly) if tool != Tool::Execute => Error::not_allowed(tool),
            Some(ErrorCode::ReadOnly) => Error::new(format!("{error}: the file is not writable")),
            Some(ErrorCode::OutOfMemory) => Error::out_of_memory(),
            _ if tool == Tool::Explain && matches!(error, rusqlite::Error::SqlInputError { .. }) => {
                Error::new(error).in_explain()
            }
            _ => Error::new(error),
        }
    }
}

fn prepare(connection: &mut Connection, mode: Mode) -> rusqlite::Result<()> {
    connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>)?;
    connection.progress_handler(0, None::<fn() -> bool>)?;
    connection.busy_timeout(BUSY)?;
    // A file of unknown origin is not trusted.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    for (limit, value) in [
        (Limit::SQLITE_LIMIT_LENGTH, MAX_VALUE),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 256 * 1024),
        (Limit::SQLITE_LIMIT_COLUMN, 1000),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 200),
        (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 100),
        (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200),
        (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 1000),
        (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 50),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
        (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
        connection.set_limit(limit, value)?;
    }
    connection.pragma_update(None, "hard_heap_limit", MAX_MEMORY)?;
    connection.pragma_update(None, "query_only", mode != Mode::Write)?;
    let allows = match mode {
        Mode::Read(_) => only_reads,
        Mode::Write => stays_inside,
    };
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        if allows(&context.action) { Authorization::Allow } else { Authorization::Deny }
    }))
}

/// Returns whether an action is read-only.
fn only_reads(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => !function_name.eq_ignore_ascii_case("load_extension"),
        AuthAction::Pragma { pragma_name, .. } => {
            PRAGMAS.iter().any(|known| known.eq_ignore_ascii_case(pragma_name))
        }
        _ => false,
    }
}

/// Returns whether an action stays inside this database and its transaction.
fn stays_inside(action: &AuthAction<'_>) -> bool {
    match action {
        AuthAction::Attach { .. }
        | AuthAction::Detach { .. }
        | AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. }
        | AuthAction::Unknown { .. }
        | AuthAction::CreateVtable { .. }
        | AuthAction::DropVtable { .. } => false,
        AuthAction::Function { .. } | AuthAction::Pragma { .. } => only_reads(action),
        _ => true,
    }
}

fn columns(statement: &rusqlite::Statement<'_>) -> Vec<Column> {
    statement
        .columns()
        .map(|column| Column { name: column.name().to_owned(), kind: column.decl_type().map(str::to_owned) })
        .collect()
}

fn query(connection: &Connection, statement: &Statement, limits: Limits) -> Result<Rows, Failed> {
    let mut prepared = connection.prepare(&statement.sql)?;
    if prepared.column_count() == 0 {
        return Err(Failed::Told(Error::no_rows()));
    }
    bind(&mut prepared, &statement.parameters)?;
    Ok(rows(&mut prepared, limits)?)
}

fn rows(prepared: &mut rusqlite::Statement<'_>, limits: Limits) -> rusqlite::Result<Rows> {
    let columns = columns(prepared);
    let count = columns.len();
    let mut collector = Collector::new(columns, limits);
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next()? {
        let stored = (0..count).map(|index| row.get_ref(index)).collect::<Result<Vec<_>, _>>()?;
        let values = |max| stored.iter().map(|stored| value(*stored, max)).collect();
        let wanted = match collector.fit(stored.iter().map(|stored| size_of(*stored)).sum()) {
            Fit::Whole => collector.push(values(usize::MAX)),
            Fit::Shortened(share) => collector.push_shortened(values(share), share),
            Fit::Nothing => Wanted::Enough,
        };
        if wanted == Wanted::Enough {
            break;
        }
    }
    Ok(collector.finish())
}

fn execute(connection: &Connection, statement: &Statement, limits: Limits) -> Result<Executed, Failed> {
    let mut prepared = connection.prepare(&statement.sql)?;
    bind(&mut prepared, &statement.parameters)?;
    let before = connection.total_changes();
    let returned = if prepared.column_count() == 0 {
        prepared.raw_execute()?;
        None
    } else {
        // The statement writes everything with the first row that it returns.
        Some(rows(&mut prepared, limits)?)
    };
    Ok(Executed { affected: connection.total_changes().saturating_sub(before), returned })
}

fn bind(prepared: &mut rusqlite::Statement<'_>, parameters: &[Value]) -> Result<(), Failed> {
    let expected = prepared.parameter_count();
    if expected != parameters.len() {
        return Err(Failed::Told(Error::parameters(expected, parameters.len())));
    }
    for (index, parameter) in parameters.iter().enumerate() {
        prepared.raw_bind_parameter(index + 1, stored(parameter))?;
    }
    Ok(())
}

fn stored(value: &Value) -> Stored {
    match value {
        Value::Null => Stored::Null,
        Value::Bool(truth) => Stored::Integer(i64::from(*truth)),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Stored::Integer(integer),
            (None, Some(real)) => Stored::Real(real),
            (None, None) => Stored::Text(number.to_string()),
        },
        Value::String(text) => Stored::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => Stored::Text(value.to_string()),
    }
}

/// Returns the approximate size of the value as JSON.
fn size_of(stored: ValueRef<'_>) -> usize {
    match stored {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 8,
        ValueRef::Text(text) => text.len() + 2,
        ValueRef::Blob(blob) => binary_size(blob.len()),
    }
}

/// Converts a value, cut to `max` bytes.
fn value(stored: ValueRef<'_>, max: usize) -> Value {
    match stored {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(integer) => integer.into(),
        ValueRef::Real(real) => float(real),
        ValueRef::Text(text) => lossy(text, max),
        ValueRef::Blob(blob) => binary(blob),
    }
}
