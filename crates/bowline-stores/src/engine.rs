//! The engines of this build.

use std::sync::Arc;
use std::time::Duration;

use bowline_store::{Bus, Finding, Memory, MemoryBus, Namespace, Reach, Records, StoreError};

/// The engine that a URL names.
#[derive(Clone)]
pub(crate) enum Engine {
    Memory,
    #[cfg(feature = "sqlite")]
    Sqlite {
        path: std::path::PathBuf,
        full: bool,
    },
    #[cfg(feature = "postgres")]
    Postgres(Box<bowline_postgres::Options>),
    #[cfg(feature = "redis")]
    Redis(Box<bowline_redis::Options>),
}

/// An engine that is open.
pub(crate) enum Opened {
    Memory(Memory),
    #[cfg(feature = "sqlite")]
    Sqlite(bowline_sqlite::Sqlite),
    #[cfg(feature = "postgres")]
    Postgres(Box<bowline_postgres::Postgres>),
    #[cfg(feature = "redis")]
    Redis(Box<bowline_redis::Redis>),
}

impl Engine {
    pub(crate) fn parse(url: &str) -> Result<Self, StoreError> {
        let (scheme, rest) = url.split_once(':').unwrap_or(("", url));
        match scheme {
            "memory" if rest.is_empty() => Ok(Self::Memory),
            "memory" => Err(StoreError::invalid("`memory:` has nothing after the colon")),
            "sqlite" => sqlite(rest),
            "postgres" | "postgresql" => postgres(url),
            "redis" | "rediss" => redis(url),
            // What follows may be secret.
            _ => Err(StoreError::invalid(format!(
                "`{}` is not a store; use `memory:`, `sqlite:PATH`, `postgres://…`, `redis://…` or `rediss://…`",
                if scheme.is_empty() { String::new() } else { format!("{scheme}:") }
            ))),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            #[cfg(feature = "sqlite")]
            Self::Sqlite { .. } => "sqlite",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "postgres",
            #[cfg(feature = "redis")]
            Self::Redis(_) => "redis",
        }
    }

    pub(crate) fn reach(&self) -> Reach {
        match self {
            Self::Memory => Reach::Process,
            #[cfg(feature = "sqlite")]
            Self::Sqlite { .. } => Reach::Machine,
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => Reach::Network,
            #[cfg(feature = "redis")]
            Self::Redis(_) => Reach::Network,
        }
    }

    #[cfg_attr(
        not(any(feature = "postgres", feature = "redis")),
        expect(unused_variables, clippy::unused_async)
    )]
    pub(crate) async fn open(&self, namespace: &Namespace, deadline: Duration) -> Result<Opened, StoreError> {
        Ok(match self {
            Self::Memory => Opened::Memory(Memory::new()),
            #[cfg(feature = "sqlite")]
            Self::Sqlite { path, full } => Opened::Sqlite(sqlite_options(namespace, *full).open(path)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(options) => Opened::Postgres(Box::new(
                options.as_ref().clone().namespace(namespace.clone()).deadline(deadline).open().await?,
            )),
            #[cfg(feature = "redis")]
            Self::Redis(options) => Opened::Redis(Box::new(
                options.as_ref().clone().namespace(namespace.clone()).deadline(deadline).open().await?,
            )),
        })
    }

    #[cfg_attr(
        not(any(feature = "postgres", feature = "redis")),
        expect(unused_variables, clippy::unused_async)
    )]
    pub(crate) async fn open_bus(
        &self,
        namespace: &Namespace,
        deadline: Duration,
    ) -> Result<Arc<dyn Bus>, StoreError> {
        Ok(match self {
            Self::Memory => Arc::new(MemoryBus::new()),
            #[cfg(feature = "sqlite")]
            Self::Sqlite { path, full } => Arc::new(sqlite_options(namespace, *full).open_bus(path)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(options) => Arc::new(
                options.as_ref().clone().namespace(namespace.clone()).deadline(deadline).open_bus().await?,
            ),
            #[cfg(feature = "redis")]
            Self::Redis(options) => Arc::new(
                options.as_ref().clone().namespace(namespace.clone()).deadline(deadline).open_bus().await?,
            ),
        })
    }
}

impl Opened {
    pub(crate) fn into_records(self) -> Arc<dyn Records> {
        match self {
            Self::Memory(records) => Arc::new(records),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(records) => Arc::new(records),
            #[cfg(feature = "postgres")]
            Self::Postgres(records) => Arc::new(*records),
            #[cfg(feature = "redis")]
            Self::Redis(records) => Arc::new(*records),
        }
    }

    #[cfg_attr(
        not(any(feature = "sqlite", feature = "postgres", feature = "redis")),
        expect(clippy::unused_async)
    )]
    pub(crate) async fn inspect(&self) -> Result<Vec<Finding>, StoreError> {
        match self {
            Self::Memory(_) => Ok(vec![Finding::ok("durability", "none: records end with the process")]),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(records) => records.inspect().await,
            #[cfg(feature = "postgres")]
            Self::Postgres(records) => records.inspect().await,
            #[cfg(feature = "redis")]
            Self::Redis(records) => records.inspect().await,
        }
    }
}

#[cfg(feature = "sqlite")]
fn sqlite_options(namespace: &Namespace, full: bool) -> bowline_sqlite::Options {
    let options = bowline_sqlite::Options::new().namespace(namespace.as_str());
    if full { options.synchronous_full() } else { options }
}

#[cfg(feature = "sqlite")]
fn sqlite(rest: &str) -> Result<Engine, StoreError> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let full = match query {
        "" => false,
        "synchronous=full" => true,
        query => {
            return Err(StoreError::invalid(format!(
                "unknown parameter `{query}`; known is `synchronous=full`"
            )));
        }
    };
    // `sqlite:///var/state.db` is the same as `sqlite:/var/state.db`.
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() {
        return Err(StoreError::invalid("`sqlite:` needs the path of a file, such as `sqlite:state.db`"));
    }
    Ok(Engine::Sqlite { path: path.into(), full })
}

#[cfg(feature = "postgres")]
fn postgres(url: &str) -> Result<Engine, StoreError> {
    bowline_postgres::Options::new(url).map(Box::new).map(Engine::Postgres)
}

#[cfg(feature = "redis")]
fn redis(url: &str) -> Result<Engine, StoreError> {
    bowline_redis::Options::new(url).map(Box::new).map(Engine::Redis)
}

#[cfg(not(feature = "sqlite"))]
fn sqlite(_: &str) -> Result<Engine, StoreError> {
    Err(missing("sqlite"))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &str) -> Result<Engine, StoreError> {
    Err(missing("postgres"))
}

#[cfg(not(feature = "redis"))]
fn redis(_: &str) -> Result<Engine, StoreError> {
    Err(missing("redis"))
}

#[cfg(not(all(feature = "sqlite", feature = "postgres", feature = "redis")))]
fn missing(feature: &str) -> StoreError {
    StoreError::invalid(format!("this program was built without the feature `{feature}`"))
}
