//! HTTP APIs described by OpenAPI.

use super::{call, refusal, site::Site};
use bowline::prelude::Server;
use bowline_servers::web::{OpenApi, Web};
use bowline_testing::{Peer, Result};
use serde_json::{Value, json};

const SHOP: &str = r##"
openapi: 3.0.3
info: {title: Shop, version: "1"}
servers: [{url: "https://shop.example.com/{version}", variables: {version: {default: v1}}}]
security: [{token: []}]
paths:
  /items/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: string}}
    get:
      operationId: "items.get one"
      summary: Get an item
      parameters:
        - {name: "filter[name]", in: query, description: By name., schema: {type: string}}
        - {name: tags, in: query, schema: {type: array, items: {type: string}}}
        - {name: ids, in: query, style: pipeDelimited, explode: false, schema: {type: array, items: {type: integer}}}
        - {name: range, in: query, style: deepObject, schema: {type: object}}
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: Authorization, in: header, schema: {type: string}}
        - {name: session, in: cookie, schema: {type: string}}
      responses: {"200": {description: ok}}
    delete: {responses: {}}
  /items:
    post:
      operationId: create
      requestBody: {$ref: "#/components/requestBodies/Item"}
      responses: {}
  /open:
    get: {operationId: open, security: [], responses: {}}
  /keyed:
    get: {operationId: keyed, security: [{key: []}], responses: {}}
  /basic:
    get: {operationId: basic, security: [{cookie: [], basic: []}], responses: {}}
  /form:
    put:
      operationId: form
      security: []
      requestBody: {content: {application/x-www-form-urlencoded: {schema: {type: object}}}}
      responses: {}
  /elsewhere:
    get: {operationId: elsewhere, servers: [{url: "https://other.example.com"}], responses: {}}
components:
  requestBodies:
    Item: {required: true, content: {application/json: {schema: {$ref: "#/components/schemas/Item"}}}}
  schemas:
    Item:
      type: object
      required: [id, name]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, nullable: true, pattern: "^(?!x).*$"}
        price: {type: number, minimum: 0, exclusiveMinimum: true}
        parts: {type: array, items: {$ref: "#/components/schemas/Item"}}
  securitySchemes:
    token: {type: http, scheme: bearer}
    key: {type: apiKey, in: query, name: api key}
    basic: {type: http, scheme: basic}
    cookie: {type: apiKey, in: cookie, name: sid}
"##;

fn credentials(name: &str) -> Option<String> {
    let known = match name {
        "BOWLINE_API_TOKEN" => "canary-token",
        "BOWLINE_API_KEY" => "canary key",
        "BOWLINE_API_BASIC" => "ann:canary",
        "BOWLINE_API_COOKIE" => "canary;cookie",
        _ => return None,
    };
    Some(known.into())
}

fn shop() -> OpenApi {
    OpenApi::with_environment(SHOP, &credentials).unwrap()
}

async fn site() -> Site {
    Site::start(|path| match path.split('?').next().unwrap() {
        "/v1/items" => "201 Created\nContent-Type: application/json\n\n{\"id\":7}".into(),
        "/v1/form" => "204 No Content\n\n".into(),
        "/v1/keyed" => "403 Forbidden\nContent-Type: text/plain\n\nbad key canary key".into(),
        "/v1/open" => "302 Found\nLocation: http://example.com/\n\n".into(),
        _ => "200 OK\nContent-Type: application/vnd.shop+json\n\n{\"ok\":true}".into(),
    })
    .await
}

fn server(site: &Site) -> Server {
    Web::new().openapi(shop().base_url(site.url("/v1/"))).server().unwrap()
}

#[tokio::test]
async fn operations_become_tools() -> Result {
    let mut peer = Peer::memory(Web::new().openapi(shop()).server().unwrap())?;
    let list = peer.modern("tools/list", json!({})).await?;
    let tools = list["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "fetch",
            "items_get_one",
            "delete_items_id",
            "create",
            "open",
            "keyed",
            "basic",
            "form",
            "elsewhere"
        ]
    );
    let get = &tools[1];
    assert_eq!(get["title"], "Get an item");
    let arguments: Vec<&String> = get["inputSchema"]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(arguments, ["filter_name", "tags", "ids", "range", "X-Trace", "session", "id"]);
    assert_eq!(
        get["inputSchema"]["properties"]["filter_name"],
        json!({ "type": "string", "description": "By name." })
    );
    assert_eq!(get["inputSchema"]["required"], json!(["id"]));
    assert_eq!(get["annotations"]["readOnlyHint"], true);
    assert_eq!(
        tools[2]["annotations"],
        json!({ "destructiveHint": true, "idempotentHint": true, "openWorldHint": true })
    );
    assert_eq!(
        tools[3]["inputSchema"],
        json!({
            "type": "object",
            "properties": { "body": { "$ref": "#/$defs/Item" } },
            "additionalProperties": false,
            "required": ["body"],
            "$defs": { "Item": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": { "type": ["string", "null"] },
                    "price": { "type": "number", "exclusiveMinimum": 0 },
                    "parts": { "type": "array", "items": { "$ref": "#/$defs/Item" } },
                },
            } },
        })
    );
    assert!(!list.to_string().contains("canary"));
    Ok(())
}

#[tokio::test]
async fn arguments_are_sent_in_their_locations() {
    let site = site().await;
    let arguments = json!({
        "id": "a/b ?#", "filter_name": "x&y", "tags": ["p", "q"], "ids": [1, 2], "range": { "from": 1 },
        "X-Trace": "t", "session": "s;x",
    });
    let result = call(server(&site), "items_get_one", arguments).await;
    assert_eq!(result["structuredContent"], json!({ "ok": true }));
    let request = site.asked().remove(0);
    let line = "GET /v1/items/a%2Fb%20%3F%23?filter%5Bname%5D=x%26y&tags=p&tags=q&ids=1%7C2&range%5Bfrom%5D=1 HTTP/1.1";
    assert_eq!(request.lines().next().unwrap(), line);
    for header in ["x-trace: t", "cookie: session=s%3Bx", "authorization: Bearer canary-token"] {
        assert!(request.contains(&format!("{header}\r\n")), "{header}: {request}");
    }
    let created = call(server(&site), "create", json!({ "body": { "name": "rope", "price": 2 } })).await;
    assert_eq!(created["structuredContent"], json!({ "id": 7 }));
    let request = site.asked().remove(1);
    assert!(
        request.starts_with("POST /v1/items HTTP/1.1")
            && request.contains("content-type: application/json\r\n")
    );
    assert!(request.ends_with("\r\n\r\n{\"name\":\"rope\",\"price\":2}"), "{request}");
    let formed = call(server(&site), "form", json!({ "body": { "a": ["1", "2"], "b": "x y" } })).await;
    assert_eq!(formed["content"][0]["text"], "204 No Content");
    assert!(site.asked().remove(2).ends_with("\r\n\r\na=1&a=2&b=x%20y"));
}

#[tokio::test]
async fn invalid_arguments_are_not_sent() {
    let site = site().await;
    for (tool, arguments) in [
        ("items_get_one", json!({})),
        ("items_get_one", json!({ "id": "" })),
        ("items_get_one", json!({ "id": "." })),
        ("items_get_one", json!({ "id": ".." })),
        ("items_get_one", json!({ "id": "1", "Authorization": "mine" })),
        ("items_get_one", json!({ "id": "1", "X-Trace": "a\r\nHost: evil" })),
        ("items_get_one", json!({ "id": 1 })),
        ("create", json!({ "body": { "name": "x", "price": 0 } })),
        ("create", json!({ "body": { "parts": [{}] } })),
        ("create", json!({})),
    ] {
        refusal(server(&site), tool, arguments).await;
    }
    assert!(site.asked().is_empty());
}

#[tokio::test]
async fn credentials_are_sent_by_scheme_and_never_shown() {
    let site = site().await;
    let told = refusal(server(&site), "keyed", json!({})).await;
    assert_eq!(told, format!("{} answers 403 Forbidden: bad key ***", site.url("/v1/keyed")));
    assert!(site.asked()[0].starts_with("GET /v1/keyed?api%20key=canary%20key HTTP/1.1"));
    call(server(&site), "basic", json!({})).await;
    let request = site.asked().remove(1);
    assert!(request.contains("authorization: Basic YW5uOmNhbmFyeQ==\r\n"), "{request}");
    assert!(request.contains("cookie: sid=canary%3Bcookie\r\n"), "{request}");
    assert!(!format!("{:?}", shop()).contains("canary"));
}

#[tokio::test]
async fn missing_credentials_name_the_variable() {
    let site = site().await;
    let bare = OpenApi::with_environment(SHOP, &|_| None).unwrap().base_url(site.url("/v1"));
    let server = Web::new().openapi(bare).server().unwrap();
    let told = refusal(server, "create", json!({ "body": { "name": "x" } })).await;
    assert!(told.contains("BOWLINE_API_TOKEN"), "{told}");
    assert!(site.asked().is_empty());
}

// V-51
#[tokio::test]
async fn nothing_is_sent_to_another_origin() {
    let (site, other) = (site().await, site().await);
    let told = refusal(server(&site), "open", json!({})).await;
    assert!(told.contains("redirect to another origin"), "{told}");
    // An operation with its own server does not get the credentials of the document.
    let text = SHOP
        .replace("https://shop.example.com/{version}", &site.url("/v1"))
        .replace("https://other.example.com", &other.url(""));
    let api = OpenApi::with_environment(&text, &credentials).unwrap();
    let server = Web::new().allow_private(true).openapi(api).server().unwrap();
    refusal(server, "elsewhere", json!({})).await;
    assert!(other.asked().is_empty());
}

// V-92
#[tokio::test]
async fn a_document_cannot_reach_private_networks() {
    let site = site().await;
    let text = SHOP.replace("https://shop.example.com/{version}", &site.url("/v1"));
    let api = OpenApi::with_environment(&text, &credentials).unwrap();
    let told = refusal(Web::new().openapi(api).server().unwrap(), "form", json!({})).await;
    assert!(told.contains("which is not allowed"), "{told}");
    assert!(site.asked().is_empty());
}

#[tokio::test]
async fn a_document_is_fetched_by_url() {
    let text = SHOP.replace("https://shop.example.com/{version}", "../v1");
    let site = Site::start(move |path| match path {
        "/docs/openapi.yaml" => format!("200 OK\nContent-Type: application/yaml\n\n{text}"),
        _ => "200 OK\nContent-Type: text/plain\n\nhere".into(),
    })
    .await;
    let api = OpenApi::fetch(&site.url("/docs/openapi.yaml")).await.unwrap();
    let result = call(Web::new().openapi(api).server().unwrap(), "form", json!({})).await;
    assert_eq!(result["content"][0]["text"], "here");
    assert!(site.asked()[1].starts_with("PUT /v1/form "));
    assert!(OpenApi::fetch(&site.url("/none")).await.is_err());
}

#[test]
fn errors_have_a_position() {
    let paths = |paths: Value| {
        json!({ "openapi": "3.1.0", "servers": [{ "url": "https://h" }], "paths": paths }).to_string()
    };
    let operation = |operation: Value| paths(json!({ "/a/{id}": { "get": operation } }));
    for (text, told) in [
        ("{".to_owned(), "invalid JSON: "),
        ("a: b: c".into(), "invalid YAML: line 1: "),
        (
            json!({ "swagger": "2.0" }).to_string(),
            "#/openapi: expected OpenAPI 3.0 or 3.1, got Swagger \"2.0\"",
        ),
        (json!({ "openapi": "4.0" }).to_string(), "#/openapi: expected OpenAPI 3.0 or 3.1, got `4.0`"),
        (json!({ "openapi": "3.1.0" }).to_string(), "#: expected `paths`"),
        (paths(json!({})), "#/paths: the document has no operations"),
        (paths(json!([])), "#/paths: expected an object"),
        (paths(json!({ "a": {} })), "#/paths/a: paths must start with `/`"),
        (operation(json!([])), "#/paths/~1a~1{id}/get: expected an object"),
        (operation(json!({})), "#/paths/~1a~1{id}/get: missing path parameter `{id}`"),
        (operation(json!({ "parameters": {} })), "#/paths/~1a~1{id}/get/parameters: expected an array"),
        (
            operation(json!({ "parameters": [{ "name": "id" }] })),
            "#/paths/~1a~1{id}/get/parameters/0: `in` must be",
        ),
        (
            operation(json!({ "parameters": [{ "$ref": "#/components/none" }] })),
            "#/paths/~1a~1{id}/get/parameters/0: reference `#/components/none` not found",
        ),
        (
            operation(json!({ "parameters": [{ "$ref": "#/paths/~1a~1{id}/get/parameters/0" }] })),
            "#/paths/~1a~1{id}/get/parameters/0: circular reference",
        ),
        (
            operation(
                json!({ "requestBody": { "$ref": "file:///etc/passwd" }, "parameters": [{ "name": "id", "in": "path" }] }),
            ),
            "#/paths/~1a~1{id}/get/requestBody: external reference `file:///etc/passwd` is not supported",
        ),
    ] {
        let error = OpenApi::with_environment(&text, &|_| None).unwrap_err().to_string();
        assert!(error.starts_with(told), "{error}\n{told}");
    }
}

#[tokio::test]
async fn names_are_valid_and_differ() -> Result {
    let path = format!("/{}", "long/".repeat(50));
    let document = json!({ "openapi": "3.1.0", "servers": [{ "url": "https://h" }], "paths": {
        "/a": { "get": { "operationId": "same" }, "put": { "operationId": "same" }, "post": { "operationId": "ünïcode name!" } },
        path: { "get": {}, "put": {}, "post": { "operationId": "x".repeat(300) }, "patch": { "operationId": "x".repeat(300) } },
        "/": { "get": {} },
    } });
    let api = OpenApi::with_environment(&document.to_string(), &|_| None).unwrap();
    let mut peer = Peer::memory(Web::new().openapi(api).server().unwrap())?;
    let list = peer.modern("tools/list", json!({})).await?;
    let names: Vec<&str> = list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert!(names.iter().all(|name| name.len() <= 60), "{names:?}");
    assert_eq!(names.len(), 9);
    for name in ["same", "same_2", "n_code_name", &"x".repeat(60), &format!("{}_2", "x".repeat(58)), "get"] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    Ok(())
}

#[test]
fn schemas_of_any_size_become_tools() {
    // Schemas that all refer to each other.
    let all: Vec<Value> =
        (0..300).map(|number| json!({ "$ref": format!("#/components/schemas/S{number}") })).collect();
    let schemas: serde_json::Map<String, Value> = (0..300)
        .map(|number| (format!("S{number}"), json!({ "anyOf": all, "type": "nonsense", "enum": [] })))
        .collect();
    let mut deep = json!({ "type": "string" });
    for _ in 0..100 {
        deep = json!({ "type": "array", "items": deep });
    }
    let document = json!({ "openapi": "3.1.0", "servers": [{ "url": "https://h" }], "components": { "schemas": schemas }, "paths": {
        "/a": { "put": { "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/S0" } } } } } },
        "/b": { "put": { "requestBody": { "content": { "application/json": { "schema": deep } } } } },
    } });
    let api = OpenApi::with_environment(&document.to_string(), &|_| None).unwrap();
    Web::new().openapi(api).server().unwrap().build().unwrap();
    let nowhere = json!({ "openapi": "3.1.0", "paths": { "/a": { "get": {} } } }).to_string();
    let api = OpenApi::with_environment(&nowhere, &|_| None).unwrap();
    let told = Web::new().openapi(api).server().unwrap_err().to_string();
    assert!(told.starts_with("#/servers: invalid server URL `/`"), "{told}");
}
