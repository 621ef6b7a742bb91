//! Statements that write.

use super::*;

#[tokio::test]
async fn writing_needs_the_write_flag() -> Result {
    let mut peer = Peer::memory(sample().server())?;
    let arguments = json!({ "name": "execute", "arguments": { "sql": UPDATE, "parameters": [1] } });
    assert!(peer.modern("tools/call", arguments).await?["error"].is_object());
    Ok(())
}

#[tokio::test]
async fn a_client_that_cannot_ask_its_user_cannot_write() -> Result {
    let mut peer = Peer::memory(sample().writable(true).server())?;
    let result = call(&mut peer, "execute", json!({ "sql": UPDATE, "parameters": [1] })).await?;
    assert_eq!(result["isError"], true);
    assert!(result["content"][0]["text"].as_str().unwrap().contains("cannot ask its user"));
    let price = call(&mut peer, "query", json!({ "sql": "SELECT price FROM products WHERE id = 1" })).await?;
    assert_eq!(price["structuredContent"]["rows"], json!([[14.5]]));
    Ok(())
}

#[tokio::test]
async fn the_user_sees_the_whole_statement_and_decides() -> Result {
    for (answer, price) in [
        (json!({ "action": "accept", "content": { "run": true } }), 1.0),
        (json!({ "action": "accept", "content": { "run": false } }), 14.5),
        (json!({ "action": "decline" }), 14.5),
        (json!({ "action": "cancel" }), 14.5),
    ] {
        let mut peer =
            Peer::memory(sample().writable(true).server())?.capabilities(json!({ "elicitation": {} }));
        peer.initialize(Revision::V2025_06_18).await?;
        let sql = format!("{UPDATE} -- \u{202e}hidden");
        let execute = json!({ "name": "execute", "arguments": { "sql": sql, "parameters": [1] } });
        let id = peer.start("tools/call", execute).await?;
        let question = peer.recv_method("elicitation/create").await?;
        let shown = question["params"]["message"].as_str().unwrap();
        assert!(shown.contains(UPDATE) && shown.contains("parameters 1"), "{shown}");
        assert!(shown.contains("<U+202E>hidden"), "{shown}");
        peer.reply(&question, answer).await?;
        let result = peer.response(&id).await?;
        assert_eq!(result["result"]["isError"] == true, price > 1.0, "{result}");
        let select =
            json!({ "name": "query", "arguments": { "sql": "SELECT price FROM products WHERE id = 1" } });
        let found = peer.request("tools/call", select).await?;
        assert_eq!(found["result"]["structuredContent"]["rows"], json!([[price]]));
    }
    Ok(())
}

#[tokio::test]
async fn statements_run_immediately_without_consent() -> Result {
    let shop = Shop::new();
    for database in [shop.database(), sample()] {
        let mut peer = Peer::memory(database.without_consent().max_rows(1).server())?;
        let done = call(&mut peer, "execute", json!({ "sql": UPDATE, "parameters": [1] })).await?;
        assert_eq!(done["structuredContent"], json!({ "affected": 1 }));
        // Everything is written, even if not everything is shown.
        let sql = json!({ "sql": "UPDATE products SET price = 2 RETURNING id" });
        let done = call(&mut peer, "execute", sql).await?;
        assert_eq!(done["structuredContent"]["affected"], 12);
        assert_eq!(done["structuredContent"]["returned"]["rows"], json!([[1]]));
        let count = json!({ "sql": "SELECT count(*) FROM products WHERE price = 2" });
        let found = call(&mut peer, "query", count).await?;
        assert_eq!(found["structuredContent"]["rows"], json!([[12]]));
    }
    Ok(())
}
