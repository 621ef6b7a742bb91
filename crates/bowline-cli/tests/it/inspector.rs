//! The inspector of `bowline up` and `bowline inspect`: control, checks, and traffic that is kept.

use crate::{
    inbox::Page,
    place::{Background, Place, signal},
    pty::Pty,
};
use rustix::process::Signal;
use serde_json::json;

const SERVER: &str = "[servers.mine]\ncommand = \"bowline\"\nargs = [\"serve\", \"everything\"]\n";

fn end(up: Pty) {
    signal(up.id(), Signal::INT);
    let (code, screen) = up.finish();
    assert_eq!(code, Some(0), "{screen}");
}

#[test]
fn control_is_granted_in_the_terminal() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", SERVER);
    let mut up = Pty::sized(place.program(&["up", "--port", "0"]), 100, 160);
    up.expect("Press Ctrl-C to stop.");
    let mut open = Background::start(place.program(&["open", "--print"]));
    let page = Page::enter(&open.line());
    open.end();
    let overview = json!({ "query": "overview" });
    let shown = page.query(&overview);
    assert_eq!((&shown["grade"], &shown["can_ask_control"]), (&json!("view"), &json!(true)));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| page.act(&json!({ "action": "ask_control", "digits": "4821" })));
        up.expect("its page shows the number 4821").expect("inspector>");
        up.enter("y");
        asking.join().expect("it is granted");
    });
    assert_eq!(page.query(&overview)["grade"], "control");
    page.act(&json!({ "action": "clear" }));
    end(up);
}

#[test]
fn checks_lead_to_messages_and_kept_traffic_opens_without_servers() {
    let place = Place::new();
    place.put("user/.config/bowline/bowline.toml", SERVER);
    let mut up = Pty::sized(place.program(&["up", "--port", "0", "--keep", "kept"]), 100, 160);
    up.expect("Press Ctrl-C to stop.");
    let page = Page::enter(&up.screen());
    page.act(&json!({ "action": "run_checks", "server": "mine" }));
    page.until("\"checks\":2");
    let checks = page.query(&json!({ "query": "checks", "server": "mine" }));
    assert_eq!(checks["state"], "done", "{checks}");
    page.act(&json!({ "action": "start", "server": "mine" }));
    end(up);

    let calls = place.get("here/kept/calls.jsonl");
    assert!(calls.contains("\"method\":\"tools/list\""), "{calls}");
    let mut inspect = Pty::sized(place.program(&["inspect", "kept"]), 100, 160);
    inspect.expect("Press Ctrl-C to stop.");
    let page = Page::enter(&inspect.screen());
    let overview = page.query(&json!({ "query": "overview" }));
    assert_eq!((&overview["mode"], &overview["servers"]), (&json!("folder"), &json!([])));
    let found = page.query(&json!({ "query": "find", "text": "\"tools/list\"" }));
    assert!(found["seqs"].as_array().is_some_and(|seqs| !seqs.is_empty()), "{found}");
    end(inspect);
}
