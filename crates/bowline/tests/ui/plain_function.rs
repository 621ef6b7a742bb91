use bowline::prelude::*;

fn add(a: i64, b: i64) -> i64 {
    a + b
}

struct State;

fn main() {
    Server::new("demo").tool(add);
    Server::new("demo").prompt(add);
    Server::new("demo").resource(add);
    Server::new("demo").with(State);
}
