//! The benchmark server as a user of Bowline would write it: echo, add and a hundred dummy tools.

use bowline::prelude::*;

/// Returns the message unchanged.
#[tool]
fn echo(
    /// Text to return
    message: String,
) -> String {
    message
}

#[data]
struct Sum {
    sum: f64,
}

/// Adds two numbers.
#[tool]
fn add(a: f64, b: f64) -> Json<Sum> {
    Json(Sum { sum: a + b })
}

#[data]
#[serde(rename_all = "lowercase")]
enum Mode {
    Fast,
    Balanced,
    Thorough,
}

#[data]
struct Search {
    /// Text to search for
    query: String,
    /// Most results to return
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u8>,
    /// Only results with these tags
    tags: Option<Vec<String>>,
    /// How hard to search
    mode: Option<Mode>,
    /// Plan only, do nothing
    dry_run: Option<bool>,
}

/// A server of so many tools: `echo`, `add`, then dummies.
pub fn server(tools: usize) -> Server {
    let mut server = Server::new("bench").page_size(tools.max(1)).tool(echo::tool());
    if tools > 1 {
        server = server.tool(add::tool());
    }
    for number in 0..tools.saturating_sub(2) {
        server = server.tool(
            Tool::new(format!("dummy_tool_{number:03}"))
                .description(format!(
                    "Dummy tool number {number}; it only gives tools/list a realistic size."
                ))
                .handler(|_: Search| "ok"),
        );
    }
    server
}

/// The number after this flag on the command line.
pub fn flag(name: &str) -> Option<usize> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    arguments.next()?;
    let value = arguments.next().unwrap_or_default();
    Some(value.parse().unwrap_or_else(|_| panic!("{name} takes a number, not {value:?}")))
}
