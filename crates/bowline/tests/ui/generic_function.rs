use bowline::prelude::*;

#[tool]
fn show<T: ToString>(value: T) -> String {
    value.to_string()
}

#[tool]
fn print(value: impl ToString) -> String {
    value.to_string()
}

#[tool]
fn list() -> impl Iterator<Item = i64> {
    [1].into_iter()
}

fn main() {
    Server::new("demo").tool(show::tool()).tool(print::tool()).tool(list::tool());
}
