//! The method table against the inventory of the five revisions.

use Direction::{Both, ClientToServer, ServerToClient};
use bowline_types::{Capability, Direction, Method, Revision};

/// The wire name, then who may send it in each revision: client, server, both or (`-`) nobody.
const INVENTORY: &[(&str, &str)] = &[
    ("initialize", "cccc-"),
    ("ping", "bbbb-"),
    ("server/discover", "----c"),
    ("tools/list", "ccccc"),
    ("tools/call", "ccccc"),
    ("resources/list", "ccccc"),
    ("resources/templates/list", "ccccc"),
    ("resources/read", "ccccc"),
    ("resources/subscribe", "cccc-"),
    ("resources/unsubscribe", "cccc-"),
    ("prompts/list", "ccccc"),
    ("prompts/get", "ccccc"),
    ("completion/complete", "ccccc"),
    ("logging/setLevel", "cccc-"),
    ("subscriptions/listen", "----c"),
    ("tasks/get", "---bc"),
    ("tasks/cancel", "---bc"),
    ("tasks/result", "---b-"),
    ("tasks/list", "---b-"),
    ("tasks/update", "----c"),
    ("roots/list", "ssss-"),
    ("sampling/createMessage", "ssss-"),
    ("elicitation/create", "--ss-"),
    ("notifications/initialized", "cccc-"),
    ("notifications/cancelled", "bbbbb"),
    ("notifications/progress", "bbbbs"),
    ("notifications/roots/list_changed", "cccc-"),
    ("notifications/tasks/status", "---b-"),
    ("notifications/message", "sssss"),
    ("notifications/tools/list_changed", "sssss"),
    ("notifications/prompts/list_changed", "sssss"),
    ("notifications/resources/list_changed", "sssss"),
    ("notifications/resources/updated", "sssss"),
    ("notifications/subscriptions/acknowledged", "----s"),
    ("notifications/elicitation/complete", "---s-"),
    ("notifications/tasks", "----s"),
];

#[test]
fn the_table_has_every_method_of_every_revision() {
    let names: Vec<&str> = Method::ALL.iter().map(|method| method.as_str()).collect();
    assert_eq!(names, INVENTORY.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    for (name, senders) in INVENTORY {
        let method = Method::parse(name).unwrap();
        let found: String = Revision::ALL
            .map(|revision| match method.direction_in(revision) {
                Some(ClientToServer) => 'c',
                Some(ServerToClient) => 's',
                Some(Both) => 'b',
                None => '-',
            })
            .into_iter()
            .collect();
        assert_eq!(found, **senders, "{name}");
        assert_eq!(method.is_notification(), name.starts_with("notifications/"), "{name}");
    }
}

#[test]
fn names_are_exact() {
    for name in ["", "Tools/list", "tools/list ", "notifications/tasks/", "ui/initialize"] {
        assert_eq!(Method::parse(name), None, "{name}");
    }
}

#[test]
fn extension_methods_are_those_of_tasks() {
    let extended: Vec<&str> = Method::ALL
        .iter()
        .filter(|method| method.extension() == Some("io.modelcontextprotocol/tasks"))
        .map(|method| method.as_str())
        .collect();
    assert_eq!(extended, ["tasks/get", "tasks/cancel", "tasks/update", "notifications/tasks"]);
}

#[test]
fn asks_are_the_questions_to_the_client() {
    let asks: Vec<Method> = Method::ALL.iter().copied().filter(|method| method.is_ask()).collect();
    assert_eq!(asks, [Method::ListRoots, Method::CreateMessage, Method::Elicit]);
}

#[test]
fn names_come_from_the_params_of_six_methods() {
    let named: Vec<(&str, &str)> =
        Method::ALL.iter().filter_map(|method| Some((method.as_str(), method.name_source()?))).collect();
    assert_eq!(
        named,
        [
            ("tools/call", "name"),
            ("resources/read", "uri"),
            ("prompts/get", "name"),
            ("tasks/get", "taskId"),
            ("tasks/cancel", "taskId"),
            ("tasks/update", "taskId"),
        ]
    );
}

#[test]
fn completion_needs_no_capability_in_the_first_revision() {
    let needed = Method::Complete.capability().unwrap();
    assert_eq!(needed, Capability::Completions);
    assert_eq!(Revision::ALL.map(|revision| needed.exists_in(revision)), [false, true, true, true, true]);
}
