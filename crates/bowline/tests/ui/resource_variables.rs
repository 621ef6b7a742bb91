use bowline::prelude::*;

#[resource("users://{id}")]
fn user(id: u64, name: String) -> String {
    format!("{id} {name}")
}

#[resource("users://{id}/{name}")]
fn named(id: u64) -> String {
    id.to_string()
}

#[resource("users://{id")]
fn open(id: u64) -> String {
    id.to_string()
}

#[resource]
fn nowhere() -> String {
    String::new()
}

fn main() {
    Server::new("demo").resource(user::resource()).resource(named::resource()).resource(open::resource()).resource(nowhere::resource());
}
