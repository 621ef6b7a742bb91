use bowline::prelude::*;

#[tool(readonly)]
fn one() {}

#[prompt(blocking)]
fn two() -> &'static str {
    ""
}

#[tool(name = "no spaces")]
fn three() {}

#[tool(blocking)]
async fn four() {}

#[data(camel)]
struct Five;

fn main() {
    Server::new("demo").tool(one::tool()).prompt(two::prompt()).tool(three::tool()).tool(four::tool());
}
