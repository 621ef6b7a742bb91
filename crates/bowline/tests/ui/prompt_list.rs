use bowline::prelude::*;

#[prompt]
fn review(files: Vec<String>) -> String {
    files.join(" ")
}

#[resource("users://{ids}")]
fn users(ids: Option<Vec<u64>>) -> String {
    format!("{ids:?}")
}

fn main() {
    Server::new("demo").prompt(review::prompt()).resource(users::resource());
}
