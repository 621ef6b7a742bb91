use bowline::prelude::*;

struct Confirm {
    sure: bool,
}

#[tool]
async fn delete(ctx: Ctx) -> Result<bool> {
    let answer = ctx.ask::<Confirm>("Delete?").await?.accepted()?;
    Ok(answer.sure)
}

fn main() {
    Server::new("demo").tool(delete::tool());
}
