//! Functions as tools.

use crate::peer::{Peer, check, check_tools};
use bowline::prelude::*;
use expect_test::expect;

/// Add two numbers.
///
/// They may be negative.
#[tool]
fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[data]
#[derive(Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Fahrenheit,
}

#[data]
struct Forecast {
    /// In the unit that was asked for.
    high: f64,
}

/// Tell the weather.
#[tool(
    name = "weather.forecast",
    title = "Forecast",
    read_only,
    destructive = false,
    idempotent,
    open_world = false
)]
async fn forecast(
    /// City name.
    city: String,
    ctx: Ctx,
    /// How many days ahead.
    #[serde(default)]
    #[schemars(range(max = 7))]
    days: u8,
    unit: Option<Unit>,
) -> Result<Json<Forecast>> {
    ctx.log(LoggingLevel::Debug, &city);
    tokio::task::yield_now().await;
    if city.is_empty() {
        return Err(Error::tool("which city?"));
    }
    let high = if unit == Some(Unit::Fahrenheit) { 68.0 } else { 20.0 };
    Ok(Json(Forecast { high: high + f64::from(days) }))
}

#[data]
struct Point {
    /// To the right.
    x: i32,
    #[serde(default)]
    y: i32,
}

/// Taken apart.
#[tool]
fn norm(Point { x, y }: Point) -> i32 {
    x.abs() + y.abs()
}

/// Taken whole.
#[tool]
async fn shift(#[args] mut point: Point, _ctx: Ctx) -> Json<Point> {
    tokio::task::yield_now().await;
    point.x += 1;
    Json(point)
}

#[tool]
fn shout(text: String) -> String {
    text.to_uppercase()
}

mod elsewhere {
    use bowline::prelude::*;

    #[tool]
    pub(crate) fn far() -> Vec<String> {
        vec!["a".into(), "b".into()]
    }

    #[tool]
    pub(crate) fn perhaps(value: Option<i64>) -> Option<i64> {
        value
    }
}

#[tool(blocking)]
fn thread() -> String {
    format!("{:?}", std::thread::current().id())
}

#[tool]
fn nothing() {}

/// A parameter may have the name of any tool, a variable that of the function itself.
#[tool]
fn echo(echo: String, add: i64, #[serde(rename = "type")] kind: String, r#move: Option<bool>) -> String {
    let echo = format!("{echo} {add} {kind} {move:?}");
    echo.trim().to_owned()
}

/// A text.
#[doc = include_str!("../ui/README.md")]
#[tool]
fn documented() {}

#[tokio::test]
async fn parameters_become_the_schema() {
    check_tools(
        Server::new("t").tool(add::tool()).tool(forecast::tool()),
        expect![[r#"
            {
              "tools": [
                {
                  "name": "add",
                  "description": "Add two numbers.\n\nThey may be negative.",
                  "inputSchema": {
                    "type": "object",
                    "properties": {
                      "a": {
                        "type": "integer"
                      },
                      "b": {
                        "type": "integer"
                      }
                    },
                    "required": [
                      "a",
                      "b"
                    ]
                  }
                },
                {
                  "name": "weather.forecast",
                  "title": "Forecast",
                  "description": "Tell the weather.",
                  "inputSchema": {
                    "type": "object",
                    "properties": {
                      "city": {
                        "description": "City name.",
                        "type": "string"
                      },
                      "days": {
                        "description": "How many days ahead.",
                        "type": "integer",
                        "minimum": 0,
                        "maximum": 7,
                        "default": 0
                      },
                      "unit": {
                        "type": "string",
                        "enum": [
                          "celsius",
                          "fahrenheit"
                        ]
                      }
                    },
                    "required": [
                      "city"
                    ]
                  },
                  "outputSchema": {
                    "type": "object",
                    "properties": {
                      "high": {
                        "description": "In the unit that was asked for.",
                        "type": "number"
                      }
                    },
                    "required": [
                      "high"
                    ]
                  },
                  "annotations": {
                    "readOnlyHint": true,
                    "destructiveHint": false,
                    "idempotentHint": true,
                    "openWorldHint": false
                  }
                }
              ]
            }"#]],
    )
    .await;
}

#[tokio::test]
async fn a_struct_can_have_all_arguments() {
    check_tools(
        Server::new("t").tool(norm::tool()).tool(shift::tool()),
        expect![[r#"
            {
              "tools": [
                {
                  "name": "norm",
                  "description": "Taken apart.",
                  "inputSchema": {
                    "type": "object",
                    "properties": {
                      "x": {
                        "description": "To the right.",
                        "type": "integer"
                      },
                      "y": {
                        "type": "integer",
                        "default": 0
                      }
                    },
                    "required": [
                      "x"
                    ]
                  }
                },
                {
                  "name": "shift",
                  "description": "Taken whole.",
                  "inputSchema": {
                    "type": "object",
                    "properties": {
                      "x": {
                        "description": "To the right.",
                        "type": "integer"
                      },
                      "y": {
                        "type": "integer",
                        "default": 0
                      }
                    },
                    "required": [
                      "x"
                    ]
                  },
                  "outputSchema": {
                    "type": "object",
                    "properties": {
                      "x": {
                        "description": "To the right.",
                        "type": "integer"
                      },
                      "y": {
                        "type": "integer",
                        "default": 0
                      }
                    },
                    "required": [
                      "x"
                    ]
                  }
                }
              ]
            }"#]],
    )
    .await;
    let mut peer = Peer::of(Server::new("t").tool(norm::tool()).tool(shift::tool())).await;
    assert_eq!(peer.call("norm", json!({ "x": -3 })).await, "3");
    assert_eq!(peer.call("shift", json!({ "x": 1, "y": 2 })).await, r#"{"x":2,"y":2}"#);
    peer.close().await;
}

#[tokio::test]
async fn functions_without_arguments_take_none() {
    check_tools(
        Server::new("t").tool(nothing::tool()),
        expect![[r#"
        {
          "tools": [
            {
              "name": "nothing",
              "inputSchema": {
                "type": "object",
                "additionalProperties": false
              }
            }
          ]
        }"#]],
    )
    .await;
    check(
        Server::new("t").tool(nothing::tool()),
        "tools/call",
        json!({ "name": "nothing" }),
        expect![[r#"
        {
          "content": []
        }"#]],
    )
    .await;
}

#[tokio::test]
async fn arguments_reach_the_function() {
    let mut peer =
        Peer::of(Server::new("t").tool(add::tool()).tool(forecast::tool()).tool(echo::tool())).await;
    assert_eq!(peer.call("add", json!({ "a": 2, "b": -5 })).await, "-3");
    assert_eq!(peer.call("weather.forecast", json!({ "city": "Oslo" })).await, r#"{"high":20.0}"#);
    let all = json!({ "city": "Oslo", "days": 2, "unit": "fahrenheit" });
    assert_eq!(peer.call("weather.forecast", all).await, r#"{"high":70.0}"#);
    assert_eq!(peer.call("weather.forecast", json!({ "city": "" })).await, "which city?");
    let arguments = json!({ "echo": "a", "add": 1, "type": "b", "move": true });
    assert_eq!(peer.call("echo", arguments).await, "a 1 b Some(true)");
    peer.close().await;
}

#[cfg(feature = "validate")]
#[tokio::test]
async fn schemars_attributes_are_enforced() {
    let mut peer = Peer::of(Server::new("t").tool(forecast::tool())).await;
    let told = peer.call("weather.forecast", json!({ "city": "Oslo", "days": 8 })).await;
    expect!["invalid arguments: /days: 8 is greater than the maximum of 7"].assert_eq(&told);
    peer.close().await;
}

#[tokio::test]
async fn a_blocking_function_runs_on_its_own_thread() {
    let mut peer = Peer::of(Server::new("t").tool(thread::tool())).await;
    let told = peer.call("thread", json!({})).await;
    assert_ne!(told, format!("{:?}", std::thread::current().id()));
    assert!(told.starts_with("ThreadId("), "{told}");
    peer.close().await;
}

#[tokio::test]
async fn the_functions_stay_functions() {
    // A pointer, an argument of `map`, and the name of a local variable.
    let copy: fn(i64, i64) -> i64 = add;
    assert_eq!(add(1, 2) + copy(3, 4), 10);
    assert_eq!(["a", "b"].map(String::from).map(shout), ["A", "B"]);
    {
        let add = 1;
        assert_eq!(add, 1);
        assert_eq!(add::tool().definition().name, "add");
    }
    assert_eq!(norm(Point { x: 1, y: -1 }), 2);
    let answers = [1, 2].map(|a| add(a, a));
    assert_eq!(answers, [2, 4]);
    let () = nothing();
    assert_eq!(echo("a".into(), 1, "b".into(), None), "a 1 b None");

    /// Calls another tool.
    #[tool]
    async fn outer(ctx: Ctx) -> Result<String> {
        let inner = forecast("Oslo".into(), ctx, 1, None).await?;
        Ok(inner.0.high.to_string())
    }
    let mut peer = Peer::of(Server::new("t").tool(outer::tool())).await;
    assert_eq!(peer.call("outer", json!({})).await, "21");
    peer.close().await;
}

#[tokio::test]
async fn functions_are_registered_by_path_or_import() {
    use elsewhere::far;
    let mut peer = Peer::of(Server::new("t").tool(far::tool()).tool(elsewhere::perhaps::tool())).await;
    let listed = peer.request("tools/call", &json!({ "name": "far" })).await;
    assert_eq!(listed["content"], json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]));
    assert_eq!(peer.call("perhaps", json!({ "value": 1 })).await, "1");
    assert_eq!(peer.call("perhaps", json!({})).await, "null");
    assert_eq!(far(), ["a", "b"]);
    peer.close().await;
}

#[test]
fn descriptions_may_come_from_a_file() {
    let description = documented::tool().definition().description;
    assert!(description.is_some_and(|text| text.starts_with("A text.\nEach file")));
}

/// Offer another tool.
#[tool]
fn learn(ctx: Ctx, word: String) -> Result<()> {
    let known = word.clone();
    ctx.registry().add_tool(Tool::new(word).handler(move || known.clone()))?;
    Ok(())
}

#[tool]
fn forget(ctx: Ctx, word: String) -> bool {
    ctx.registry().remove_tool(&word)
}

#[tokio::test]
async fn a_tool_changes_the_list_of_tools() {
    let server = Server::new("t").dynamic().tool(learn::tool()).tool(forget::tool());
    let mut peer = Peer::of(server).await;
    let mut changes = 0;
    for (tool, count) in [("learn", 3), ("forget", 2)] {
        peer.call(tool, json!({ "word": "hi" })).await;
        changes += peer.notified("notifications/tools/list_changed").await;
        let listed = peer.request("tools/list", &json!({})).await;
        assert_eq!(listed["tools"].as_array().map(Vec::len), Some(count), "{tool}");
    }
    assert_eq!(changes, 2);
    peer.close().await;
}
