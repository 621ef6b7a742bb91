use bowline::prelude::*;

struct Add {
    a: i64,
    b: i64,
}

#[tool]
fn add(Add { a, b }: Add) -> i64 {
    a + b
}

fn main() {
    Server::new("demo").tool(add::tool());
}
