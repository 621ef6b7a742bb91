//! The tools of the database server, and tables as resources.

use super::{
    Access,
    engine::{self, Engine, Executed, Limits, Statement},
    rows::Rows,
    schema::{Table, TableName},
};
use crate::percent;
use bowline::{
    prelude::*,
    server::{BoxFuture, ResourceSource},
    types,
};
use bowline_text::{visible, visible_lines};
use serde_json::Value;

/// The prefix of table URIs.
const TABLES: &str = "database://tables/";

#[derive(Clone, Debug)]
struct Handlers {
    engine: Engine,
    limits: Limits,
}

/// The arguments of tools that run a statement.
#[data]
struct Sql {
    /// A single SQL statement.
    sql: String,
    /// The values for the placeholders, in order.
    #[serde(default)]
    parameters: Vec<Value>,
}

impl Sql {
    fn statement(self, tool: engine::Tool) -> Statement {
        Statement { sql: self.sql, parameters: self.parameters, tool }
    }
}

/// The tables and views.
#[data]
struct Tables {
    /// Sorted by name.
    tables: Vec<TableName>,
}

#[data]
struct Consent {
    /// Run the statement?
    run: bool,
}

#[tools]
impl Handlers {
    /// List the tables and views of the database.
    #[tool(title = "List tables", read_only, open_world = false)]
    async fn tables(&self) -> Result<Json<Tables>> {
        Ok(Json(Tables { tables: self.engine.tables(self.limits).await? }))
    }

    /// Describe a table or view: columns, keys, indexes and the CREATE statement.
    #[tool(title = "Describe a table", read_only, open_world = false)]
    async fn describe(
        &self,
        /// The name, as listed by `tables`.
        table: String,
    ) -> Result<Json<Table>> {
        Ok(Json(self.engine.describe(table, self.limits).await?))
    }
}

/// The state of the server.
pub(super) fn server(engine: Engine, limits: Limits, access: Access) -> Server {
    let (name, placeholders) = (engine.name(), engine.placeholders());
    let handlers = Handlers { engine, limits };
    let writes = match access {
        Access::Read => "The database is read-only; `--write` adds `execute`.",
        Access::WriteByConsent => "`execute` modifies the database after asking the user.",
        Access::Write => "`execute` modifies the database.",
    };
    let mut server = Server::new("bowline-database")
        .version(env!("CARGO_PKG_VERSION"))
        .title(format!("{name} database"))
        .instructions(format!(
            "A {name} database. `tables` and `describe` show what there is, `query` reads it with one SQL statement. Give \
             values as parameters, written {placeholders} in the statement. {writes}"
        ))
        .tool(query(&handlers))
        .tool(explain(&handlers));
    server = if access == Access::Read {
        crate::read_only(server, &["execute"])
    } else {
        server.tool(execute(&handlers, access))
    };
    server
        .resource(by_name(&handlers, "json"))
        .resource(by_name(&handlers, "sql"))
        .resources(Listing(handlers.clone()))
        .with(handlers)
}

fn query(handlers: &Handlers) -> Tool {
    let (name, placeholders, handlers) =
        (handlers.engine.name(), handlers.engine.placeholders(), handlers.clone());
    let Limits { rows, .. } = handlers.limits;
    Tool::new("query")
        .title("Query")
        .description(format!(
            "Run a read-only {name} statement and return at most {rows} rows. Placeholders are {placeholders}"
        ))
        .read_only()
        .open_world(false)
        .handler(move |sql: Sql| {
            let handlers = handlers.clone();
            async move {
                Ok::<Rows, Error>(
                    handlers.engine.query(sql.statement(engine::Tool::Query), handlers.limits).await?,
                )
            }
        })
}

fn explain(handlers: &Handlers) -> Tool {
    let handlers = handlers.clone();
    Tool::new("explain")
        .title("Explain a query")
        .description("Show the query plan of a statement without running it.")
        .read_only()
        .open_world(false)
        .handler(move |sql: Sql| {
            let handlers = handlers.clone();
            async move {
                Ok::<Rows, Error>(
                    handlers.engine.explain(sql.statement(engine::Tool::Explain), handlers.limits).await?,
                )
            }
        })
}

fn execute(handlers: &Handlers, access: Access) -> Tool {
    let (name, placeholders, handlers) =
        (handlers.engine.name(), handlers.engine.placeholders(), handlers.clone());
    Tool::new("execute")
        .title("Execute")
        .description(format!(
            "Run a {name} statement that writes, in its own transaction. Placeholders are {placeholders}"
        ))
        .destructive(true)
        .open_world(false)
        .handler(move |ctx: Ctx, sql: Sql| {
            let handlers = handlers.clone();
            async move {
                if access == Access::WriteByConsent {
                    consent(&ctx, &sql).await?;
                }
                let executed =
                    handlers.engine.execute(sql.statement(engine::Tool::Execute), handlers.limits).await?;
                Ok::<Json<Executed>, Error>(Json(executed))
            }
        })
}

/// Asks the user before running a statement.
async fn consent(ctx: &Ctx, Sql { sql, parameters }: &Sql) -> Result<()> {
    // Invisible characters are shown, so that the user sees what they agree to.
    let statement: Vec<String> = visible_lines(sql).collect();
    let mut question = format!("Run this statement on the database?\n\n{}", statement.join("\n"));
    if !parameters.is_empty() {
        let values: Vec<String> = parameters.iter().map(|value| visible(&value.to_string())).collect();
        question.push_str("\n\nwith the parameters ");
        question.push_str(&values.join(", "));
    }
    match ctx.ask::<Consent>(question).await {
        Ok(Answer::Accept(Consent { run: true })) => Ok(()),
        Ok(Answer::Accept(_) | Answer::Decline | Answer::Cancel) => {
            Err(Error::tool("the user declined the statement; nothing was changed"))
        }
        Err(error) if error.is_unsupported() => Err(Error::tool(
            "statements that write need the consent of the user, but this client cannot ask its user; nothing was changed. \
             Start the server with `--write --without-consent` to write without asking",
        )),
        Err(error) => Err(error.into()),
    }
}

/// The variable of the URI templates.
#[data]
struct ByName {
    table: String,
}

/// Returns the template for tables as `json` or `sql`.
fn by_name(handlers: &Handlers, form: &'static str) -> Resource {
    let (reading, completing) = (handlers.clone(), handlers.clone());
    let uri = format!("{TABLES}{{table}}/{form}");
    let (name, mime_type) = match form {
        "sql" => ("table as SQL", "application/sql"),
        _ => ("table as JSON", "application/json"),
    };
    Resource::new(uri, name)
        .description("The definition of a table or view")
        .mime_type(mime_type)
        .complete("table", move |typing: CompletionRequest| {
            let handlers = completing.clone();
            async move {
                // Completion is best effort.
                let tables = handlers.engine.tables(handlers.limits).await.unwrap_or_default();
                let typed = typing.value.to_lowercase();
                let names = tables.into_iter().map(|table| table.name);
                names.filter(|name| name.to_lowercase().starts_with(&typed)).collect::<Vec<_>>()
            }
        })
        .handler(move |ByName { table }: ByName| {
            let handlers = reading.clone();
            async move {
                let uri = format!("{TABLES}{table}/{form}");
                let found = handlers.engine.describe(table, handlers.limits).await;
                let table = found.map_err(|error| {
                    tracing::debug!(%error, "cannot describe a table");
                    Error::resource_not_found(&uri)
                })?;
                let text = if form == "sql" { table.sql } else { serde_json::to_string_pretty(&table)? };
                Ok::<String, Error>(text)
            }
        })
}

/// Lists the tables. The templates read them.
struct Listing(Handlers);

impl ResourceSource for Listing {
    fn list(&self, _ctx: Ctx) -> BoxFuture<'_, Result<Vec<types::Resource>>> {
        Box::pin(async move {
            let tables = self.0.engine.tables(self.0.limits).await?;
            Ok(tables.into_iter().map(|table| listed(&table)).collect())
        })
    }

    fn read(&self, _ctx: Ctx, _uri: String) -> BoxFuture<'_, Result<Option<types::ReadResourceResult>>> {
        Box::pin(async { Ok(None) })
    }
}

fn listed(table: &TableName) -> types::Resource {
    let uri = format!("{TABLES}{}/json", percent::encode(&table.name));
    let mut resource = types::Resource::new(uri, table.name.clone());
    resource.mime_type = Some("application/json".into());
    resource.description = Some(format!("The {} `{}`", table.kind, table.name));
    resource
}
