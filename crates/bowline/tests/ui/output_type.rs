use bowline::prelude::*;

struct Foo;

#[tool]
fn foo() -> Foo {
    Foo
}

#[tool]
async fn fallible(a: i64) -> Result<Foo> {
    let _ = a;
    Ok(Foo)
}

#[tool]
fn structured() -> Json<Foo> {
    Json(Foo)
}

fn main() {
    Server::new("demo").tool(foo::tool()).tool(fallible::tool()).tool(structured::tool());
}
