use bowline::prelude::*;

#[tool]
fn sum((a, b): (i64, i64)) -> i64 {
    a + b
}

#[tool]
fn ignore(_: i64) {}

#[data]
struct Args {
    a: i64,
}

#[tool]
fn both(Args { a }: Args, b: i64) -> i64 {
    a + b
}

fn main() {
    Server::new("demo").tool(sum::tool()).tool(ignore::tool()).tool(both::tool());
}
