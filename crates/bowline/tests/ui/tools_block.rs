use bowline::prelude::*;

#[tools]
struct State;

struct Empty;

#[tools]
impl Empty {
    fn add(&self) {}
}

struct Changing(i64);

#[tools]
impl Changing {
    #[tool]
    fn add(&mut self, /** How much. */ amount: i64) -> i64 {
        self.0 += amount;
        self.0
    }
}

#[tools]
impl Clone for Copied {
    #[tool]
    fn clone(&self) -> Self {
        Self
    }
}

struct Copied;

fn main() {
    Server::new("demo").with(Changing(1));
}
