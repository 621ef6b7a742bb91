//! The snippets of the book, as documentation tests: `cargo test -p bowline-examples --doc`.

macro_rules! chapters {
    ($($name:ident = $file:literal;)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!("../../docs/", $file))]
            pub mod $name {}
        )*
    };
}

chapters! {
    introduction = "README.md";
    first_server = "first-server.md";
    first_client = "first-client.md";
    asking = "asking.md";
    revisions = "revisions.md";
    tasks = "tasks.md";
    middleware = "middleware.md";
    testing = "testing.md";
    command_line = "command-line.md";
    http = "http.md";
    cors = "cors.md";
    protect = "protect.md";
    login = "login.md";
    tasks_client = "tasks-client.md";
    host = "host.md";
    team = "team.md";
    clients = "clients.md";
    restart = "restart.md";
    stores = "stores.md";
    tracing = "tracing.md";
    servers = "servers.md";
    record = "record.md";
    defaults = "defaults.md";
    architecture = "architecture.md";
    glossary = "glossary.md";
    rmcp = "rmcp.md";
}
