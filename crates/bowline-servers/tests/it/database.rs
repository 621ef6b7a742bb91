//! The database server with SQLite.

mod writing;

use crate::support::alone;
use bowline::prelude::{Revision, Server};
use bowline_servers::database::Database;
use bowline_testing::{Peer, Result};
use serde_json::{Value, json};
use std::{fs, path::PathBuf, time::Duration};

/// A file in its own temporary directory.
struct Shop {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Shop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.db");
        drop(Database::sqlite_sample_at(&path).unwrap());
        Self { _folder: folder, path }
    }

    fn database(&self) -> Database {
        Database::sqlite(&self.path).unwrap()
    }
}

fn sample() -> Database {
    Database::sqlite_sample().unwrap()
}

async fn call(peer: &mut Peer, tool: &str, arguments: Value) -> Result<Value> {
    let answer = peer.modern("tools/call", json!({ "name": tool, "arguments": arguments })).await?;
    Ok(answer["result"].clone())
}

/// Returns the structured content of a result.
async fn given(server: Server, tool: &str, arguments: Value) -> Value {
    let mut peer = Peer::memory(server).unwrap();
    let result = call(&mut peer, tool, arguments).await.unwrap();
    assert_ne!(result["isError"], true, "{result}");
    result["structuredContent"].clone()
}

async fn query(server: Server, sql: &str) -> Value {
    given(server, "query", json!({ "sql": sql })).await
}

/// Returns the error of a tool.
async fn refusal(server: Server, tool: &str, arguments: Value) -> String {
    let mut peer = Peer::memory(server).unwrap();
    let result = call(&mut peer, tool, arguments).await.unwrap();
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_query_returns_data_and_a_table_in_every_revision() -> Result {
    let sql = json!({ "name": "query", "arguments": { "sql": "SELECT id, name FROM products WHERE id < ?1", "parameters": [3] } });
    let table = "id | name\n-- | -----------\n1  | Hemp rope\n2  | Cotton line\n(2 rows)";
    for revision in Revision::ALL.into_iter().filter(|revision| revision.is_legacy()) {
        let mut peer = Peer::memory(sample().server())?;
        peer.initialize(revision).await?;
        let answer = peer.request("tools/call", sql.clone()).await?;
        assert_eq!(answer["result"]["content"][0]["text"], table, "{revision}");
    }
    let mut peer = Peer::memory(sample().server())?;
    let answer = peer.modern("tools/call", sql).await?;
    assert_eq!(answer["result"]["content"][0]["text"], table);
    assert_eq!(
        answer["result"]["structuredContent"],
        json!({
            "columns": [{ "name": "id", "type": "INTEGER" }, { "name": "name", "type": "TEXT" }],
            "rows": [[1, "Hemp rope"], [2, "Cotton line"]],
            "truncated": false,
        })
    );
    Ok(())
}

#[tokio::test]
async fn values_of_every_kind_are_shown() {
    let found = query(sample().server(), "SELECT NULL, 9007199254740993, 0.5, 'ä', x'00ff', 9e999").await;
    let binary = json!({ "base64": "AP8=", "bytes": 2 });
    assert_eq!(found["rows"], json!([[null, 9_007_199_254_740_993_i64, 0.5, "ä", binary, "inf"]]));
}

/// Statements that `query` refuses.
const WRITES: [&str; 27] = [
    "INSERT INTO customers VALUES (1000, 'x', 'x', 'x')",
    "INSERT INTO customers VALUES (1000, 'x', 'x', 'x') RETURNING id",
    "UPDATE products SET price = 0 RETURNING id",
    "DELETE FROM order_lines RETURNING 1",
    "WITH gone AS (SELECT 1) DELETE FROM order_lines RETURNING 1",
    "REPLACE INTO products VALUES (1, 'x', 'x', 1) RETURNING id",
    "CREATE TABLE evil (a)",
    "CREATE TEMP TABLE evil (a)",
    "CREATE TEMP VIEW evil AS SELECT 1",
    "CREATE VIRTUAL TABLE evil USING fts5(a)",
    "DROP TABLE customers",
    "ALTER TABLE customers RENAME TO evil",
    "CREATE INDEX evil ON customers (name)",
    "REINDEX",
    "ANALYZE",
    "BEGIN",
    "SAVEPOINT evil",
    "PRAGMA query_only = 0",
    "PRAGMA writable_schema = 1",
    "PRAGMA journal_mode = WAL",
    "PRAGMA user_version = 5",
    "SELECT * FROM pragma_user_version",
    "ATTACH 'evil.db' AS evil",
    "DETACH main",
    "SELECT load_extension('evil')",
    "SELECT 1; DELETE FROM order_lines",
    "DELETE FROM order_lines; SELECT 1",
];

#[tokio::test]
async fn a_query_cannot_write() -> Result {
    let shop = Shop::new();
    let before = fs::read(&shop.path).unwrap();
    let others = |shop: &Shop| fs::read_dir(shop.path.parent().unwrap()).unwrap().count();
    for server in [shop.database().server(), shop.database().writable(true).server(), sample().server()] {
        let mut peer = Peer::memory(server)?;
        let count = json!({ "sql": "SELECT (SELECT count(*) FROM order_lines), (SELECT count(*) FROM sqlite_schema)" });
        let rows = call(&mut peer, "query", count.clone()).await?["structuredContent"]["rows"].clone();
        for sql in WRITES {
            let result = call(&mut peer, "query", json!({ "sql": sql })).await?;
            assert_eq!(result["isError"], true, "{sql}: {result}");
            let result = call(&mut peer, "explain", json!({ "sql": format!("SELECT 1; {sql}") })).await?;
            assert_eq!(result["isError"], true, "{sql}: {result}");
        }
        let to = shop.path.with_file_name("copy.db");
        let vacuum = json!({ "sql": format!("VACUUM INTO '{}'", to.display()) });
        assert_eq!(call(&mut peer, "query", vacuum).await?["isError"], true);
        assert_eq!(call(&mut peer, "query", count).await?["structuredContent"]["rows"], rows);
    }
    assert_eq!(fs::read(&shop.path).unwrap(), before, "the file is as it was");
    assert_eq!(others(&shop), 1, "there is no other file");
    Ok(())
}

#[tokio::test]
async fn parameters_are_never_parsed_as_sql() {
    for text in ["' OR 1=1 --", "'; DROP TABLE customers; --", "\" OR \"\"=\"", "\\' OR 1=1", "?1", "\0"] {
        let arguments =
            json!({ "sql": "SELECT ?1, count(*) FROM customers WHERE name = ?1", "parameters": [text] });
        assert_eq!(given(sample().server(), "query", arguments).await["rows"], json!([[text, 0]]));
    }
    let arguments = json!({ "sql": "SELECT ?, ?, ?, ?", "parameters": [null, true, 1.5, { "a": [1] }] });
    let found = given(sample().server(), "query", arguments).await;
    assert_eq!(found["rows"], json!([[null, 1, 1.5, "{\"a\":[1]}"]]));
}

#[tokio::test]
async fn parameters_are_counted() {
    for (parameters, found) in [(json!([]), 0), (json!([1, 2, 3]), 3)] {
        let arguments = json!({ "sql": "SELECT ?1 + ?2", "parameters": parameters });
        let told = refusal(sample().server(), "query", arguments).await;
        assert_eq!(told, format!("the statement has 2 placeholders, but got {found} parameters"));
    }
}

#[tokio::test]
async fn a_table_name_is_escaped() {
    for name in
        ["customers'; DROP TABLE customers; --", "x) UNION SELECT sql, 1, 1, 1, 1 FROM sqlite_schema --", ""]
    {
        let told = refusal(sample().server(), "describe", json!({ "table": name })).await;
        assert!(told.starts_with("unknown table or view"), "{told}");
    }
}

const ENDLESS: [&str; 4] = [
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n ORDER BY random()",
    "SELECT count(*) FROM order_lines a, order_lines b, order_lines c, order_lines d, order_lines e",
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0",
];

#[tokio::test]
async fn an_endless_query_times_out() -> Result {
    let shop = Shop::new();
    for database in [shop.database(), sample()] {
        let mut peer = Peer::memory(database.time_limit(Duration::from_millis(50)).server())?;
        for sql in ENDLESS {
            let result = call(&mut peer, "query", json!({ "sql": sql })).await?;
            let told = result["content"][0]["text"].as_str().unwrap();
            assert!(told.starts_with("the statement timed out after 50ms"), "{told}");
        }
        let next = call(&mut peer, "query", json!({ "sql": "SELECT 1" })).await?;
        assert_eq!(next["structuredContent"]["rows"], json!([[1]]));
    }
    Ok(())
}

#[tokio::test]
async fn a_cancelled_call_cancels_its_query() -> Result {
    // The in-memory database has one connection: if the first query were still running, the second would wait.
    let mut peer = Peer::memory(sample().time_limit(Duration::from_secs(3600)).server())?;
    peer.initialize(Revision::V2025_11_25).await?;
    let endless = json!({ "name": "query", "arguments": { "sql": ENDLESS[0] } });
    let id = peer.start("tools/call", endless).await?;
    // Other calls are served at the same time, on one thread.
    assert!(peer.request("ping", json!({})).await?["result"].is_object());
    peer.notify("notifications/cancelled", json!({ "requestId": id })).await?;
    let next = json!({ "name": "query", "arguments": { "sql": "SELECT 1" } });
    let answer = peer.request("tools/call", next).await?;
    assert_eq!(answer["result"]["structuredContent"]["rows"], json!([[1]]));
    Ok(())
}

#[tokio::test]
async fn ten_million_rows_are_not_fetched() {
    let sql = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 10000000) SELECT i, hex(i) FROM n";
    let found = query(sample().server(), sql).await;
    assert_eq!(found["rows"].as_array().unwrap().len(), 200);
    assert_eq!(found["truncated"], true);
    assert_eq!(found["note"], "only the first 200 rows are shown");
    let found = query(sample().max_rows(3).server(), sql).await;
    assert_eq!(found["rows"].as_array().unwrap().len(), 3);
    let wide = "SELECT printf('%.*c', 100000, 'x') FROM order_lines";
    let found = query(sample().max_bytes(250_000).server(), wide).await;
    assert_eq!(found["rows"].as_array().unwrap().len(), 2);
    assert_eq!(found["note"], "the result was cut at 250000 bytes");
}

#[tokio::test]
async fn huge_values_are_refused_or_cut() {
    for sql in [
        "SELECT zeroblob(900000000)",
        "SELECT hex(zeroblob(50000000))",
        "SELECT printf('%.*c', 900000000, 'x')",
    ] {
        let told = refusal(sample().server(), "query", json!({ "sql": sql })).await;
        assert!(told.contains("too big"), "{told}");
    }
    let found =
        query(sample().max_bytes(1000).server(), "SELECT printf('%.*c', 15000000, 'x'), zeroblob(15000000)")
            .await;
    assert_eq!(found["truncated"], true);
    assert!(found.to_string().len() < 2000);
}

/// Returns the peak memory of this process in MiB.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

#[test]
fn a_row_of_many_long_values_is_limited() {
    if !alone("database::a_row_of_many_long_values_is_limited", &[]) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let shop = Shop::new();
        let values = |count: usize, length: usize| {
            let value = |number| format!("printf('%.*c', {}, 'x') AS v{number}", length + number);
            (0..count).map(value).collect::<Vec<_>>().join(", ")
        };
        let all = (0..500).map(|number| format!("length(v{number})")).collect::<Vec<_>>();
        let added = all.chunks(50).map(|some| some.join(" + ")).collect::<Vec<_>>().join(", ");
        for database in [shop.database(), sample()] {
            // A busy machine must not reach the time limit first.
            let database = database.time_limit(Duration::from_secs(3600));
            for sql in [
                format!("SELECT {}", values(900, 10_000_000)),
                format!("SELECT {added} FROM (SELECT {} LIMIT 1)", values(500, 10_000_000)),
                "SELECT group_concat(printf('%.*c', 1000000, 'x')) FROM order_lines a, order_lines b".into(),
            ] {
                let told = refusal(database.clone().server(), "query", json!({ "sql": sql })).await;
                assert!(told.contains("too much memory") || told.contains("too big"), "{told}");
            }
            // The memory is released, and a long row is cut, not refused.
            let found = query(database.server(), &format!("SELECT {}", values(10, 10_000_000))).await;
            assert_eq!((&found["truncated"], found["rows"][0].as_array().unwrap().len()), (&json!(true), 10));
            assert!(found.to_string().len() < 1_100_000);
        }
    });
    if let Some(peak) = peak_memory() {
        assert!(peak < 700, "{peak} MiB");
    }
}

#[tokio::test]
async fn statements_beyond_the_queue_are_refused() -> Result {
    let database = sample().time_limit(Duration::from_secs(3600)).max_statements(4, 2);
    let mut peer = Peer::memory(database.server())?;
    peer.initialize(Revision::V2025_11_25).await?;
    let endless = json!({ "name": "query", "arguments": { "sql": ENDLESS[0] } });
    let mut started = Vec::new();
    for _ in 0..3 {
        started.push(peer.start("tools/call", endless.clone()).await?);
    }
    let refused = peer.request("tools/call", endless).await?["result"].clone();
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(
        refused["content"][0]["text"],
        "the database is busy (1 statements running, 2 waiting); try again later"
    );
    for id in started {
        peer.notify("notifications/cancelled", json!({ "requestId": id })).await?;
    }
    let next = json!({ "name": "query", "arguments": { "sql": "SELECT 1" } });
    loop {
        // Cancelled statements leave the queue a moment later.
        let answer = peer.request("tools/call", next.clone()).await?["result"].clone();
        if answer["isError"] != true {
            assert_eq!(answer["structuredContent"]["rows"], json!([[1]]));
            return Ok(());
        }
    }
}

#[test]
fn waiting_statements_leave_threads_to_other_servers() -> Result {
    // With one thread each, the statements would occupy all eight threads, and the file would never be read.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(8).build();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "read").unwrap();
    runtime.unwrap().block_on(async {
        let shop = Shop::new();
        let mut busy = Vec::new();
        for database in [sample(), shop.database()] {
            let server = database.time_limit(Duration::from_secs(3600)).server();
            let mut peer = Peer::memory(server)?;
            peer.initialize(Revision::V2025_11_25).await?;
            for _ in 0..20 {
                let endless = json!({ "name": "query", "arguments": { "sql": ENDLESS[0] } });
                peer.start("tools/call", endless).await?;
            }
            assert!(peer.request("ping", json!({})).await?["result"].is_object());
            busy.push(peer);
        }
        let mut files = Peer::memory(bowline_servers::Files::new([folder.path()]).unwrap().server())?;
        let read = call(&mut files, "read_file", json!({ "path": "a.txt" })).await?;
        assert_eq!(read["content"][0]["text"], "read");
        Ok(())
    })
}

#[tokio::test]
async fn refusals_name_the_tool_and_the_flag() {
    for (tool, sql, expected) in [
        ("query", "DELETE FROM orders RETURNING 1", "`query` is read-only; use `execute` (needs `--write`)"),
        ("query", "DELETE FROM orders", "`query` is read-only; use `execute` (needs `--write`)"),
        ("explain", "DELETE FROM orders", "`explain` is read-only; use `execute` (needs `--write`)"),
    ] {
        assert_eq!(refusal(sample().server(), tool, json!({ "sql": sql })).await, expected);
    }
    let server = || sample().without_consent().server();
    let told = refusal(server(), "execute", json!({ "sql": "BEGIN" })).await;
    assert!(told.starts_with("`execute` runs one statement"), "{told}");
    let told = refusal(server(), "explain", json!({ "sql": "EXPLAIN SELECT 1" })).await;
    assert!(
        told.ends_with("pass only the statement to `explain`, without EXPLAIN, ANALYZE or options"),
        "{told}"
    );
    let told =
        refusal(sample().writable(true).server(), "execute", json!({ "sql": "DELETE FROM orders" })).await;
    assert!(told.contains("`--write --without-consent`"), "{told}");
}

#[tokio::test]
async fn explain_does_not_run_the_statement() -> Result {
    let shop = Shop::new();
    let before = fs::read(&shop.path).unwrap();
    let mut peer = Peer::memory(shop.database().without_consent().server())?;
    // Some settings take effect when a statement is compiled, even in a plan.
    for sql in [
        "PRAGMA journal_mode = WAL",
        "PRAGMA user_version = 5",
        "DELETE FROM orders",
        "ANALYZE",
        "ANALYZE SELECT 1",
        "(ANALYZE) SELECT 1",
        "QUERY PLAN DELETE FROM orders",
        "/* */ EXPLAIN DELETE FROM orders",
        "SELECT 1; DELETE FROM orders",
    ] {
        let result = call(&mut peer, "explain", json!({ "sql": sql })).await?;
        assert_eq!(result["isError"], true, "{sql}: {result}");
    }
    // Running it would never end.
    let result = call(&mut peer, "explain", json!({ "sql": ENDLESS[0] })).await?;
    assert_ne!(result["isError"], true, "{result}");
    assert_eq!(fs::read(&shop.path).unwrap(), before);
    Ok(())
}

#[tokio::test]
async fn a_missing_database_is_created_on_request() -> Result {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.db");
    let mut peer = Peer::memory(Database::sqlite_or_create(&path).unwrap().without_consent().server())?;
    let made = call(&mut peer, "execute", json!({ "sql": "CREATE TABLE notes (text TEXT)" })).await?;
    assert_ne!(made["isError"], true, "{made}");
    // An existing file is not changed.
    let tables = given(Database::sqlite_or_create(&path).unwrap().server(), "tables", json!({})).await;
    assert_eq!(tables["tables"][0]["name"], "notes");
    let told = Database::sqlite_or_create(folder.path().join("none/new.db")).unwrap_err().to_string();
    assert!(told.contains("cannot create"), "{told}");
    Ok(())
}

#[tokio::test]
async fn deep_and_long_statements_are_refused() {
    let deep = format!("SELECT {}1{}", "(".repeat(5000), ")".repeat(5000));
    let long = format!("SELECT '{}'", "x".repeat(300 * 1024));
    let many = format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(5000));
    let pattern = format!("SELECT 'aaaa' LIKE '{}'", "%a".repeat(5000));
    for sql in [deep, long, many, pattern, String::new(), "-- nothing".into(), "\0".into()] {
        refusal(sample().server(), "query", json!({ "sql": sql })).await;
    }
}

#[tokio::test]
async fn a_schema_is_described() {
    let tables = given(sample().server(), "tables", json!({})).await;
    let names: Vec<_> =
        tables["tables"].as_array().unwrap().iter().map(|table| table["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["customers", "order_lines", "orders", "products", "revenue"]);
    let lines = given(sample().server(), "describe", json!({ "table": "order_lines" })).await;
    assert_eq!(
        lines["columns"][0],
        json!({ "name": "order_id", "type": "INTEGER", "nullable": false, "primary_key": true })
    );
    assert_eq!(
        lines["foreign_keys"],
        json!([
            { "columns": ["product_id"], "table": "products", "references": ["id"] },
            { "columns": ["order_id"], "table": "orders", "references": ["id"] },
        ])
    );
    assert_eq!(lines["indexes"][0]["columns"], json!(["order_id", "product_id"]));
    let orders = given(sample().server(), "describe", json!({ "table": "ORDERS" })).await;
    assert_eq!(orders["columns"][3]["default"], "'open'");
    assert!(orders["sql"].as_str().unwrap().starts_with("CREATE TABLE orders ("));
}

#[tokio::test]
async fn the_query_plan_is_shown() {
    let arguments = json!({ "sql": "SELECT * FROM orders WHERE customer_id = ?1", "parameters": [1] });
    let plan = given(sample().server(), "explain", arguments).await;
    assert!(plan["rows"].to_string().contains("orders_by_customer"), "{plan}");
}

#[tokio::test]
async fn tables_are_resources() -> Result {
    let mut peer = Peer::memory(sample().server())?;
    let list = peer.modern("resources/list", json!({})).await?;
    let first = &list["result"]["resources"][0];
    assert_eq!(first["uri"], "database://tables/customers/json");
    let read = peer.modern("resources/read", json!({ "uri": first["uri"] })).await?;
    let contents = &read["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "application/json");
    let table: Value = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
    assert_eq!(table["name"], "customers");
    let sql = peer.modern("resources/read", json!({ "uri": "database://tables/revenue/sql" })).await?;
    assert!(sql["result"]["contents"][0]["text"].as_str().unwrap().starts_with("CREATE VIEW revenue"));
    let missing = peer.modern("resources/read", json!({ "uri": "database://tables/none/sql" })).await?;
    assert!(missing["error"]["message"].is_string(), "{missing}");
    let completion = peer
        .modern(
            "completion/complete",
            json!({
                "ref": { "type": "ref/resource", "uri": "database://tables/{table}/sql" },
                "argument": { "name": "table", "value": "Or" },
            }),
        )
        .await?;
    assert_eq!(completion["result"]["completion"]["values"], json!(["order_lines", "orders"]));
    Ok(())
}

const UPDATE: &str = "UPDATE products SET price = 1 WHERE id = ?1";

#[tokio::test]
async fn statements_cannot_leave_the_database() -> Result {
    let shop = Shop::new();
    for database in [shop.database(), sample()] {
        let mut peer = Peer::memory(database.without_consent().server())?;
        let to = shop.path.with_file_name("copy.db");
        for sql in [
            format!("ATTACH '{}' AS evil", to.display()),
            format!("VACUUM INTO '{}'", to.display()),
            "PRAGMA writable_schema = 1".into(),
            "PRAGMA journal_mode = WAL".into(),
            "SELECT load_extension('evil')".into(),
            "BEGIN".into(),
            "DELETE FROM order_lines; DELETE FROM orders".into(),
            "INSERT INTO orders VALUES (999, 999, '2024-01-01', 'open')".into(),
        ] {
            let result = call(&mut peer, "execute", json!({ "sql": sql })).await?;
            assert_eq!(result["isError"], true, "{sql}: {result}");
        }
        assert!(!to.exists());
        let count = json!({ "sql": "SELECT count(*) FROM orders" });
        let found = call(&mut peer, "query", count).await?;
        assert_eq!(found["structuredContent"]["rows"], json!([[120]]));
    }
    Ok(())
}

#[tokio::test]
async fn a_cancelled_statement_changes_nothing() -> Result {
    let shop = Shop::new();
    for database in [shop.database(), sample()] {
        let server = database.without_consent().time_limit(Duration::from_millis(50)).server();
        let mut peer = Peer::memory(server)?;
        let endless = format!(
            "INSERT INTO customers {}",
            ENDLESS[3].replace("SELECT i FROM", "SELECT -i, 'x', 'x', 'x' FROM").replace("WHERE i < 0", "")
        );
        let result = call(&mut peer, "execute", json!({ "sql": endless })).await?;
        assert!(result["content"][0]["text"].as_str().unwrap().contains("timed out"), "{result}");
        let count = json!({ "sql": "SELECT count(*) FROM customers" });
        let found = call(&mut peer, "query", count).await?;
        assert_eq!(found["structuredContent"]["rows"], json!([[40]]));
    }
    Ok(())
}

#[tokio::test]
async fn the_sample_is_the_same_each_time() {
    let shop = Shop::new();
    let sql = "SELECT count(*), sum(quantity), min(ordered_on), max(ordered_on) FROM orders JOIN order_lines ON id = order_id";
    let one = query(sample().server(), sql).await;
    assert_eq!(one, query(shop.database().server(), sql).await);
    assert!(one["rows"][0][0].as_i64().unwrap() > 200, "{one}");
    assert!(Database::sqlite_sample_at(&shop.path).is_err(), "a file that is there is left as it is");
}

#[test]
fn a_file_that_is_not_a_database_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("text.db");
    assert!(Database::sqlite(&path).unwrap_err().to_string().contains("cannot open"));
    assert!(!path.exists());
    fs::write(
        &path,
        "this is no database, and long enough to be looked at by anyone who wants to know ".repeat(20),
    )
    .unwrap();
    assert!(Database::sqlite(&path).unwrap_err().to_string().contains("not a database"));
}
