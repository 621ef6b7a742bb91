use bowline::prelude::*;

struct State;

impl State {
    #[tool]
    fn add(&self, a: i64) -> i64 {
        a
    }
}

fn main() {}
