use bowline::prelude::*;

struct Broken;

#[tool]
fn fails() -> Result<String, Broken> {
    Err(Broken)
}


struct Unit;

#[tool]
fn convert(value: f64, unit: Unit) -> f64 {
    let _ = unit;
    value
}

fn main() {
    Server::new("demo").tool(fails::tool()).tool(convert::tool());
}
