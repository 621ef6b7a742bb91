use bowline::prelude::*;

#[data]
struct Args {
    a: i64,
}

fn main() {
    Tool::new("three").handler(|_ctx: Ctx, args: Args, _more: Args| args.a);
}
