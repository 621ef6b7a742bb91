//! The database server with PostgreSQL, if `BOWLINE_POSTGRES` names one, as `tests/postgres/run` does.

use bowline_servers::database::Database;
use bowline_testing::{Peer, Result};
use serde_json::{Value, json};
use std::time::Duration;

const SCHEMA: [&str; 6] = [
    "DROP SCHEMA IF EXISTS bowline CASCADE",
    "CREATE SCHEMA bowline",
    "CREATE TYPE bowline.mood AS ENUM ('good', 'bad')",
    "CREATE TABLE bowline.people (id int PRIMARY KEY, name text NOT NULL DEFAULT 'nobody', mood bowline.mood)",
    "CREATE TABLE bowline.\"Odd Name\" (person int REFERENCES bowline.people (id), note text)",
    "INSERT INTO bowline.people SELECT i, 'p' || i, 'good' FROM generate_series(1, 1000) AS s (i)",
];

fn database() -> Option<Database> {
    let Ok(url) = std::env::var("BOWLINE_POSTGRES") else {
        bowline_testing::skip("BOWLINE_POSTGRES is not set; tests/postgres/run sets it");
        return None;
    };
    Some(Database::postgres(&url).unwrap())
}

async fn call(peer: &mut Peer, tool: &str, arguments: Value) -> Result<Value> {
    let answer = peer.modern("tools/call", json!({ "name": tool, "arguments": arguments })).await?;
    Ok(answer["result"].clone())
}

async fn rows(peer: &mut Peer, sql: &str) -> Result<Value> {
    let result = call(peer, "query", json!({ "sql": sql })).await?;
    assert_ne!(result["isError"], true, "{result}");
    Ok(result["structuredContent"]["rows"].clone())
}

/// One test, because its parts share a schema.
#[tokio::test]
async fn a_real_server_is_read_and_written() -> Result {
    let Some(database) = database() else { return Ok(()) };
    let mut peer = Peer::memory(database.clone().without_consent().server())?;
    for sql in SCHEMA {
        let result = call(&mut peer, "execute", json!({ "sql": sql })).await?;
        assert_ne!(result["isError"], true, "{sql}: {result}");
    }
    queries_only_read(&database).await?;
    plans_run_nothing(&database).await?;
    long_rows_are_refused(&database).await?;
    connections_are_bounded(&database).await?;
    values_are_read(&mut peer).await?;
    statements_end(&database).await?;
    rows_are_bounded(&database).await?;
    the_schema_is_described(&mut peer).await?;
    statements_write(&mut peer).await
}

async fn queries_only_read(database: &Database) -> Result {
    let mut peer = Peer::memory(database.clone().writable(true).server())?;
    for sql in [
        "INSERT INTO bowline.people VALUES (0)",
        "INSERT INTO bowline.people VALUES (0) RETURNING id",
        "WITH gone AS (DELETE FROM bowline.people RETURNING id) SELECT count(*) FROM gone",
        "UPDATE bowline.people SET name = '' RETURNING id",
        "CREATE TABLE bowline.evil (a int)",
        "CREATE TEMP TABLE evil AS SELECT 1",
        "DROP TABLE bowline.people",
        "TRUNCATE bowline.people",
        "SELECT 1; DELETE FROM bowline.people",
        "COMMIT; DELETE FROM bowline.people",
        "COMMIT",
        "SET default_transaction_read_only = off",
        "SET TRANSACTION READ WRITE",
        "SELECT set_config('transaction_read_only', 'off', false), query_to_xml('DELETE FROM bowline.people', true, true, '')",
        "DO $$ BEGIN DELETE FROM bowline.people; END $$",
        "DO $$ BEGIN COMMIT; DELETE FROM bowline.people; END $$",
        "COPY bowline.people TO '/tmp/bowline-evil'",
        "COPY (SELECT 1) TO PROGRAM 'touch /tmp/bowline-evil'",
        "COPY (SELECT 1) TO STDOUT",
        "EXPLAIN ANALYZE DELETE FROM bowline.people",
        "SELECT nextval(pg_get_serial_sequence('bowline.people', 'id')) FROM bowline.none",
        "LISTEN evil",
        "PREPARE evil AS SELECT 1",
        "VACUUM",
    ] {
        let result = call(&mut peer, "query", json!({ "sql": sql })).await?;
        assert_eq!(result["isError"], true, "{sql}: {result}");
    }
    let refused =
        call(&mut peer, "query", json!({ "sql": "DELETE FROM bowline.people RETURNING id" })).await?;
    let told = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        told.starts_with("`query` is read-only; use `execute` (needs `--write`): cannot execute"),
        "{told}"
    );
    let counted =
        rows(&mut peer, "SELECT count(*), to_regclass('bowline.evil')::text FROM bowline.people").await?;
    assert_eq!(counted, json!([[1000, null]]));
    let plan = call(&mut peer, "explain", json!({ "sql": "SELECT * FROM bowline.people" })).await?;
    assert!(plan["content"][0]["text"].as_str().unwrap().contains("Seq Scan"), "{plan}");
    let injected = json!({ "sql": "SELECT count(*) FROM bowline.people WHERE name = $1", "parameters": ["' OR 1=1 --"] });
    assert_eq!(call(&mut peer, "query", injected).await?["structuredContent"]["rows"], json!([[0]]));
    Ok(())
}

/// An explained statement is planned and not run, however the options are spelled.
async fn plans_run_nothing(database: &Database) -> Result {
    const SLOW: &str = "SELECT pg_sleep(3600)";
    let mut peer = Peer::memory(database.clone().time_limit(Duration::from_secs(60)).server())?;
    for options in [
        "ANALYZE",
        "analyse",
        "ANALYZE VERBOSE",
        "VERBOSE ANALYZE",
        "(ANALYZE)",
        "(ANALYZE true)",
        "(analyze on, verbose)",
        "(ANALYZE off, ANALYZE 1)",
        "(\"analyze\")",
        "/* */ ANALYZE",
        "-- a\nANALYZE",
        "/* /* */ */ (FORMAT JSON, ANALYZE)",
        "EXPLAIN ANALYZE",
        "SELECT 1; EXPLAIN ANALYZE",
        ") ANALYZE",
    ] {
        let result = call(&mut peer, "explain", json!({ "sql": format!("{options} {SLOW}") })).await?;
        assert_eq!(result["isError"], true, "{options}: {result}");
        let told = result["content"][0]["text"].as_str().unwrap();
        assert!(!told.contains("timed out"), "{options}: {told}");
    }
    for sql in [SLOW, "(SELECT pg_sleep(3600))", "/* ANALYZE */ SELECT pg_sleep(3600)"] {
        let plan = call(&mut peer, "explain", json!({ "sql": sql })).await?;
        assert!(plan["content"][0]["text"].as_str().unwrap().contains("Result"), "{plan}");
    }
    let typed = json!({ "sql": "SELECT * FROM bowline.people WHERE id = $1", "parameters": [5] });
    let plan = call(&mut peer, "explain", typed).await?;
    assert!(plan["content"][0]["text"].as_str().unwrap().contains("Index Scan"), "{plan}");
    Ok(())
}

/// A row can have a gigabyte; it is not buffered as a whole.
async fn long_rows_are_refused(database: &Database) -> Result {
    let database = &database.clone().time_limit(Duration::from_secs(60));
    let mut peer = Peer::memory(database.clone().server())?;
    for sql in [
        "SELECT repeat(repeat('x', 1000), 400000)",
        "SELECT repeat('x', 15000000), repeat('y', 15000000), repeat('z', 15000000)",
        "SELECT array_fill(1, ARRAY[5000000])",
    ] {
        let told = call(&mut peer, "query", json!({ "sql": sql })).await?["content"][0]["text"].clone();
        assert!(told.as_str().unwrap().starts_with("the result is too large"), "{told}");
    }
    // Long values are cut without being decoded.
    let cut = "SELECT repeat('x', 5000000), array_fill(1, ARRAY[500000]), to_json(repeat('j', 3000000))";
    let found = call(&mut peer, "query", json!({ "sql": cut })).await?["structuredContent"].clone();
    assert_eq!(found["truncated"], true, "{found}");
    assert_eq!(found["rows"][0][1], "… (too long)");
    assert!(found.to_string().len() < 1_000_000);
    // Each row is short enough, and all are written.
    let mut peer = Peer::memory(database.clone().without_consent().server())?;
    let many = "UPDATE bowline.people SET name = name RETURNING repeat('x', 100000)";
    let done = call(&mut peer, "execute", json!({ "sql": many })).await?["structuredContent"].clone();
    assert_eq!((&done["affected"], &done["returned"]["truncated"]), (&json!(1000), &json!(true)));
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap().to_owned();
        let kibibytes: u64 = peak.split_whitespace().next().unwrap().parse().unwrap();
        assert!(kibibytes < 400 * 1024, "{peak}");
    }
    Ok(())
}

async fn connections_are_bounded(database: &Database) -> Result {
    let database = database.clone().time_limit(Duration::from_secs(3600)).max_statements(2, 1);
    let mut peer = Peer::memory(database.server())?;
    peer.initialize(bowline::prelude::Revision::V2025_11_25).await?;
    let slow = json!({ "name": "query", "arguments": { "sql": "SELECT pg_sleep(3600)" } });
    let mut started = Vec::new();
    for _ in 0..3 {
        started.push(peer.start("tools/call", slow.clone()).await?);
    }
    let refused = peer.request("tools/call", slow).await?["result"].clone();
    assert!(refused["content"][0]["text"].as_str().unwrap().starts_with("the database is busy"), "{refused}");
    for id in started {
        peer.notify("notifications/cancelled", json!({ "requestId": id })).await?;
    }
    let next = json!({ "name": "query", "arguments": { "sql": "SELECT 1" } });
    // Until the cancelled statements are gone.
    while peer.request("tools/call", next.clone()).await?["result"]["isError"] == true {}
    Ok(())
}

async fn values_are_read(peer: &mut Peer) -> Result {
    let found = rows(
        peer,
        "SELECT true, 1::int2, 2::int4, 9007199254740993::int8, 0.5::float4, 12.50::numeric, -0.0001::numeric, 1e20::numeric,
                'ä'::text, '\\x00ff'::bytea, '{\"a\": [1]}'::jsonb, '2024-02-29'::date, '12:30:00.5'::time,
                '2024-02-29 12:30:00'::timestamp, '2024-02-29 12:30:00+02'::timestamptz, '1 month 2 days'::interval,
                ARRAY[[1, 2], [3, NULL]], 'good'::bowline.mood, '10.0.0.0/8'::cidr, NULL::int,
                '550e8400-e29b-41d4-a716-446655440000'::uuid, ARRAY['x']::name[], 'infinity'::timestamp",
    )
    .await?;
    let expected = json!([[
        true, 1, 2, 9_007_199_254_740_993_i64, 0.5, "12.50", "-0.0001", "100000000000000000000",
        "ä", { "base64": "AP8=", "bytes": 2 }, { "a": [1] }, "2024-02-29", "12:30:00.5",
        "2024-02-29T12:30:00", "2024-02-29T10:30:00Z", "P1M2D",
        [[1, 2], [3, null]], "good", "10.0.0.0/8", null,
        "550e8400-e29b-41d4-a716-446655440000", ["x"], "infinity",
    ]]);
    assert_eq!(found, expected);
    let typed = json!({
        "sql": "SELECT $1::int + 1, $2::date, $3::jsonb, $4::text[], $5::bool, $6::numeric, $7::text",
        "parameters": [41, "2024-02-29", { "a": 1 }, ["x,\"y\"", null], true, 1.5, null],
    });
    let found = call(peer, "query", typed).await?;
    assert_eq!(
        found["structuredContent"]["rows"],
        json!([[42, "2024-02-29", { "a": 1 }, ["x,\"y\"", null], true, "1.5", null]]),
        "{found}"
    );
    let wrong = json!({ "sql": "SELECT $1::int", "parameters": ["one"] });
    let told = call(peer, "query", wrong).await?["content"][0]["text"].clone();
    assert!(told.as_str().unwrap().contains("invalid input syntax"), "{told}");
    Ok(())
}

async fn statements_end(database: &Database) -> Result {
    const ENDLESS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) SELECT max(i) FROM n";
    let mut peer = Peer::memory(database.clone().time_limit(Duration::from_millis(100)).server())?;
    let result = call(&mut peer, "query", json!({ "sql": ENDLESS })).await?;
    assert!(result["content"][0]["text"].as_str().unwrap().contains("timed out"), "{result}");

    let mut peer = Peer::memory(database.clone().time_limit(Duration::from_secs(3600)).server())?;
    peer.initialize(bowline::prelude::Revision::V2025_11_25).await?;
    let endless = json!({ "name": "query", "arguments": { "sql": format!("{ENDLESS} /* given up */") } });
    let id = peer.start("tools/call", endless).await?;
    let active = json!({ "name": "query", "arguments": {
        "sql": "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%/* given ' || 'up */' AND state = 'active'",
    } });
    // Polled until it appears and then until it is gone; the test would hang if either did not happen.
    for wanted in [json!([[1]]), json!([[0]])] {
        loop {
            let answer = peer.request("tools/call", active.clone()).await?;
            if answer["result"]["structuredContent"]["rows"] == wanted {
                break;
            }
        }
        peer.notify("notifications/cancelled", json!({ "requestId": id })).await?;
    }
    Ok(())
}

async fn rows_are_bounded(database: &Database) -> Result {
    let mut peer = Peer::memory(database.clone().max_rows(3).server())?;
    let many = json!({ "sql": "SELECT i, repeat('x', 1000) FROM generate_series(1, 10000000) AS s (i)" });
    let found = call(&mut peer, "query", many).await?["structuredContent"].clone();
    assert_eq!((found["rows"].as_array().unwrap().len(), &found["truncated"]), (3, &json!(true)));
    let exact = call(&mut peer, "query", json!({ "sql": "SELECT generate_series(1, 3)" })).await?;
    assert_eq!(exact["structuredContent"]["truncated"], false);
    let mut peer = Peer::memory(database.clone().max_bytes(1000).server())?;
    let wide = call(&mut peer, "query", json!({ "sql": "SELECT repeat('x', 10000000)" })).await?;
    assert_eq!(wide["structuredContent"]["truncated"], true);
    assert!(wide["structuredContent"].to_string().len() < 2000);
    Ok(())
}

async fn the_schema_is_described(peer: &mut Peer) -> Result {
    let tables = call(peer, "tables", json!({})).await?["structuredContent"].to_string();
    assert!(tables.contains(r#"bowline.\"Odd Name\""#) && !tables.contains("pg_catalog"), "{tables}");
    let people =
        call(peer, "describe", json!({ "table": "bowline.people" })).await?["structuredContent"].clone();
    assert_eq!(
        people["columns"][1],
        json!({ "name": "name", "type": "text", "nullable": false, "primary_key": false, "default": "'nobody'::text" })
    );
    assert_eq!(people["columns"][0]["primary_key"], true);
    assert_eq!(people["indexes"][0]["columns"], json!(["id"]));
    let odd = call(peer, "describe", json!({ "table": "bowline.\"Odd Name\"" })).await?["structuredContent"]
        .clone();
    assert_eq!(
        odd["foreign_keys"],
        json!([{ "columns": ["person"], "table": "bowline.people", "references": ["id"] }])
    );
    assert!(odd["sql"].as_str().unwrap().starts_with("CREATE TABLE bowline.\"Odd Name\" ("), "{odd}");
    for name in ["none", "bowline.people; DROP TABLE bowline.people", "'", ""] {
        assert_eq!(call(peer, "describe", json!({ "table": name })).await?["isError"], true, "{name}");
    }
    Ok(())
}

async fn statements_write(peer: &mut Peer) -> Result {
    let update = json!({ "sql": "UPDATE bowline.people SET mood = $1::text::bowline.mood WHERE id <= $2", "parameters": ["bad", 10] });
    assert_eq!(call(peer, "execute", update).await?["structuredContent"], json!({ "affected": 10 }));
    let returning = json!({ "sql": "DELETE FROM bowline.people RETURNING id" });
    let deleted = call(peer, "execute", returning).await?["structuredContent"].clone();
    assert_eq!(deleted["affected"], 1000);
    assert_eq!(deleted["returned"]["rows"].as_array().unwrap().len(), 200);
    assert_eq!(rows(peer, "SELECT count(*) FROM bowline.people").await?, json!([[0]]));
    let two = json!({ "sql": "DROP SCHEMA bowline CASCADE; SELECT 1" });
    assert_eq!(call(peer, "execute", two).await?["isError"], true);
    let gone = json!({ "sql": "DROP SCHEMA bowline CASCADE" });
    assert_ne!(call(peer, "execute", gone).await?["isError"], true);
    Ok(())
}
