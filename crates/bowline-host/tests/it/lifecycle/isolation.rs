//! What a server gets to know of the others behind the same host: nothing.

use super::support::{Program, ask, call, caller, host, tools};
use bowline_host::Start;
use serde_json::json;

/// Has a client use everything that both servers have.
async fn use_both(one: &Program, other: &Program) {
    let (host, handle) = host([("amber", one.upstream().start(Start::Eager)), ("cobalt", other.upstream())]);
    let mut peer = caller(&handle).await;
    assert_eq!(tools(&mut peer).await.len(), 8);
    for server in ["amber", "cobalt"] {
        for tool in ["id", &format!("of_{server}")] {
            call(&mut peer, &format!("{server}__{tool}")).await.unwrap();
        }
        let uri = format!("note:///{server}");
        for method in ["resources/read", "resources/subscribe", "resources/unsubscribe"] {
            ask(&mut peer, method, json!({ "uri": uri })).await.unwrap();
        }
        let prompt = format!("{server}__greet_{server}");
        ask(&mut peer, "prompts/get", json!({ "name": prompt })).await.unwrap();
    }
    // A URI that both have is shown with the name of one of them.
    let listed = ask(&mut peer, "resources/list", json!({})).await.unwrap();
    let uris =
        listed["resources"].as_array().into_iter().flatten().filter_map(|resource| resource["uri"].as_str());
    let shared: Vec<_> = uris.filter(|uri| uri.ends_with("/shared")).map(str::to_owned).collect();
    assert_eq!(shared.len(), 2);
    for uri in shared {
        ask(&mut peer, "resources/read", json!({ "uri": uri })).await.unwrap();
    }
    // A crash and a new start change nothing.
    call(&mut peer, "amber__die").await.unwrap_err();
    call(&mut peer, "amber__id").await.unwrap();
    host.close().await;
}

fn check(program: &Program, own: &str, others: &str) {
    let (frames, env) = (program.read("frames"), program.read("env"));
    for method in ["tools/call", "resources/read", "prompts/get"] {
        assert!(frames.contains(method), "{own} was not sent {method}: {frames}");
    }
    assert!(frames.contains(own) && env.contains(own), "what it is told is kept");
    for (what, text) in [("frames", &frames), ("environment", &env)] {
        assert!(!text.to_lowercase().contains(others), "the {what} of {own} tell of {others}: {text}");
    }
    // Of the host's own environment it has what is documented, and nothing else.
    let own_or_shells = ["LABEL", "ERA", "PWD", "OLDPWD", "SHLVL", "_"];
    let minimal = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];
    let names: Vec<_> = env.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    let is_default = |name: &str| {
        let network = ["PROXY", "proxy", "_CA_BUNDLE", "_CERT_FILE", "_CERT_DIR", "_CA_CERTS", "_CAINFO"];
        let locale = ["LANG", "LANGUAGE", "TMPDIR", "TEMP", "TMP", "TZ"];
        let families = ["LC_", "XDG_", "npm_config_", "NPM_CONFIG_", "UV_", "PIP_", "PIPX_"];
        network.iter().any(|end| name.ends_with(end))
            || locale.contains(&name)
            || families.iter().any(|start| name.starts_with(start))
            || ["NODE_USE_ENV_PROXY", "NODE_USE_SYSTEM_CA", "DENO_CERT", "DENO_TLS_CA_STORE"].contains(&name)
    };
    let strange = names
        .iter()
        .find(|name| !own_or_shells.contains(name) && !minimal.contains(name) && !is_default(name));
    assert_eq!(strange, None, "{env}");
}

#[tokio::test]
async fn legacy_servers_receive_nothing_about_each_other() {
    // V-71, V-111
    let (one, other) = (Program::new("legacy-apart", "amber"), Program::new("legacy-apart", "cobalt"));
    use_both(&one, &other).await;
    check(&one, "amber", "cobalt");
    check(&other, "cobalt", "amber");
}

#[tokio::test]
async fn modern_servers_receive_nothing_about_each_other() {
    // V-71, V-111
    let (one, other) = (Program::new("modern-apart", "amber"), Program::new("modern-apart", "cobalt"));
    let (one, other) = (one.modern(), other.modern());
    use_both(&one, &other).await;
    check(&one, "amber", "cobalt");
    check(&other, "cobalt", "amber");
}
