//! What a configuration says is what a gateway does.

use super::{
    Far, Folder, Headers, call, client, config, config_of, environment, gateway, open_file, text, tools,
};
use bowline_config::Scope;
use bowline_host::{Gateway, Reach, gateway::EntryState};
use bowline_http::HttpOptions;
use bowline_server::Server;
use bowline_testing::Peer;
use bowline_types::Revision;
use serde_json::json;

#[tokio::test]
async fn one_bad_entry_affects_only_itself() {
    let far = Far::start().await;
    let file = format!(
        "{}[servers.bad]\ncommand = \"bad\"\nenv_file = \"/nowhere/.env\"\n\
         [servers.off]\ncommand = \"off\"\nenabled = false\n\
         [sampling.providers.cloud]\nkind = \"openai\"\nkey_env = \"NOT_THERE\"\n",
        open_file(&far)
    );
    let gateway = gateway(&file);
    let states: Vec<_> = gateway.status().into_iter().map(|status| status.state).collect();
    assert!(
        matches!(&states[..], [EntryState::Broken(reason), EntryState::Active, EntryState::Disabled]
            if reason.contains("/nowhere/.env")),
        "{states:?}"
    );
    let about: Vec<_> = gateway.problems().into_iter().map(|problem| problem.about).collect();
    assert_eq!(about, ["sampling.providers.cloud", "servers.bad"]);
    let mut peer = client(gateway.open().unwrap()).await;
    assert_eq!(text(&call(&mut peer, "far__fast", json!({})).await), "fast is done");
    gateway.close().await;
}

#[test]
fn a_program_inherits_the_variables_that_its_entry_allows() {
    // V-71
    let config = config(
        "[servers.a]\ncommand = \"a\"\ninherit_env = [\"AWS_*\", \"KUBECONFIG\"]\n\
         [servers.b]\ncommand = \"b\"\ninherit_env = \"all\"\n\
         [servers.c]\ncommand = \"c\"\ninherit_env = \"none\"\n\
         [servers.d]\ncommand = \"d\"\n",
    );
    for (name, expected) in [
        ("a", "environment: Minimal, inherited: [\"AWS_*\", \"KUBECONFIG\"], env"),
        ("b", "environment: Inherit, env"),
        ("c", "environment: Empty, env"),
        ("d", "environment: Minimal, env"),
    ] {
        let entry = config.upstream(name).expect("it has a command");
        let shown = format!("{:?}", Reach::from_config(entry, None).expect("it can be launched"));
        assert!(shown.contains(expected), "{name}: {shown}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_command_knows_the_headers_of_a_server() {
    // V-70
    let (seen, folder) = (Headers::default(), Folder::new("helper"));
    let far = Far::served(Server::new("far"), HttpOptions::new().filter(seen.clone())).await;
    let ran = folder.path().join("ran");
    let script =
        |printed: &str| json!(["sh", "-c", "echo >> \"$0\"; printf '%s' \"$1\"", ran, printed]).to_string();
    let file = format!(
        "{}headers = {{ X-Key = \"old\" }}\nheaders_helper = {}\n[servers.wrong]\nurl = \"{}\"\nheaders_helper = {}\n",
        open_file(&far),
        script(r#"{"X-Key": "fresh"}"#),
        far.url,
        script("s3cret"),
    );
    let project = format!("[servers.theirs]\nurl = {:?}\nheaders_helper = {}\n", far.url, script("{}"));
    let files =
        [("bowline.toml", Scope::User, file.as_str()), ("p/bowline.toml", Scope::Project, project.as_str())];
    let gateway = Gateway::builder(config_of(&files)).environment(environment()).build().unwrap();
    assert_eq!(gateway.problems(), []);
    let mut peer = client(gateway.open().unwrap()).await;
    assert_eq!(text(&call(&mut peer, "far__fast", json!({})).await), "fast is done");
    let wrong = peer.request("tools/call", json!({ "name": "wrong__fast" })).await.unwrap().to_string();
    assert!(wrong.contains("JSON object") && !wrong.contains("s3cret"), "{wrong}");
    let theirs = peer.request("tools/call", json!({ "name": "theirs__fast" })).await.unwrap().to_string();
    assert!(theirs.contains("is not approved"), "{theirs}");
    let seen = seen.all();
    assert!(seen.lines().all(|sent| sent.contains(r#""x-key": "fresh""#) && !sent.contains("old")), "{seen}");
    // Once for each of the two that may; what was not approved ran nothing.
    assert_eq!(std::fs::read_to_string(&ran).unwrap().lines().count(), 2);
    gateway.close().await;
}

#[tokio::test]
async fn names_and_instructions_are_as_configured() {
    let far = Far::start().await;
    let file = open_file(&far).replace("servers.far", "servers.a-server-with-a-long-name");
    let gateway = gateway(&format!(
        "[gateway]\nname = \"shop\"\ninstructions = \"All a shop needs.\"\nmax_name = 24\n{file}"
    ));
    let mut peer = Peer::memory(gateway.open().unwrap()).unwrap();
    let hello = peer.initialize(Revision::V2025_11_25).await.unwrap().to_string();
    assert!(hello.contains(r#""instructions":"All a shop needs.""#), "{hello}");
    assert!(hello.contains(r#""name":"shop""#), "{hello}");
    let names = tools(&mut peer).await;
    assert!(names.len() == 3 && names.iter().all(|name| name.len() <= 24), "{names:?}");
    assert_eq!(text(&call(&mut peer, &names[0], json!({})).await), "fast is done");
    gateway.close().await;
}

#[tokio::test]
async fn calls_are_written_down_without_secrets() {
    // V-57
    let (far, folder) = (Far::start().await, Folder::new("audit"));
    let path = folder.path().join("audit.jsonl");
    let file = format!(
        "[audit]\nfile = {:?}\n[gateway]\ntoken_env = \"GATE_TOKEN\"\n[[rules]]\neffect = \"deny\"\ntool = \"fast\"\n\
         reason = \"the token is s3cret-token\"\n{}",
        path.to_str().unwrap(),
        open_file(&far)
    );
    let gateway = Gateway::builder(config(&file)).environment(environment()).build().unwrap();
    let mut peer = client(gateway.open().unwrap()).await;
    call(&mut peer, "far__fast", json!({})).await;
    call(&mut peer, "far__trace", json!({})).await;
    let written = || std::fs::read_to_string(&path).unwrap_or_default();
    while !written().contains(r#""event":"call""#) {
        tokio::task::yield_now().await;
    }
    let log = written();
    assert!(log.contains(r#""decision":"deny""#) && log.contains(r#""name":"trace""#), "{log}");
    assert!(!log.contains("s3cret"), "{log}");
    gateway.close().await;
}

#[tokio::test]
async fn secrets_of_servers_that_came_later_are_not_written_down_either() {
    // V-57
    let (far, folder) = (Far::start().await, Folder::new("audit-later"));
    let path = folder.path().join("audit.jsonl");
    let variables = folder.path().join(".env");
    std::fs::write(&variables, "KEY=canary-of-a-file\n").unwrap();
    let before = format!("[audit]\nfile = {:?}\n{}", path.to_str().unwrap(), open_file(&far));
    let later = format!(
        "{before}headers = {{ Authorization = \"Bearer canary-of-a-header\" }}\n\
         [servers.near]\ncommand = \"near\"\nargs = [\"--token=canary-of-an-argument\"]\nenv_file = {:?}\n",
        variables.to_str().unwrap()
    )
    .replace(
        "effect = \"allow\"",
        "effect = \"deny\"\nreason = \"canary-of-a-header, canary-of-an-argument, canary-of-a-file\"",
    );
    let gateway = Gateway::builder(config(&before)).environment(environment()).build().unwrap();
    let applied = gateway.apply(config(&later)).unwrap();
    assert_eq!(applied.problems, []);
    let mut peer = client(gateway.open().unwrap()).await;
    call(&mut peer, "far__fast", json!({})).await;
    let written = || std::fs::read_to_string(&path).unwrap_or_default();
    while !written().contains(r#""decision":"deny""#) {
        tokio::task::yield_now().await;
    }
    assert!(!written().contains("canary"), "{}", written());
    gateway.close().await;
}
