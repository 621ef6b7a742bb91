use bowline::prelude::*;

#[tool]
fn shout(text: &str) -> String {
    text.to_uppercase()
}

#[tool]
fn maybe(text: Option<&str>) -> String {
    text.unwrap_or_default().to_uppercase()
}

#[tool]
async fn look(ctx: &Ctx) -> String {
    ctx.revision().to_string()
}

fn main() {
    Server::new("demo").tool(shout::tool()).tool(maybe::tool()).tool(look::tool());
}
