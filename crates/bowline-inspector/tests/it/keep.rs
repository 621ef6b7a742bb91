//! Traffic that is kept in a folder and opened without servers.

use crate::support::{Site, post, site};
use bowline_inspector::{
    Inspector, InspectorOptions,
    query::{Grade, Mode},
};
use bowline_transcript::Transcript;
use http::StatusCode;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use std::path::Path;
use tower_service::Service as _;

/// Keeps a call and returns its number and its tree.
async fn kept(site: &Site, folder: &Path) -> (u64, Value) {
    let (end, ended) = tokio::sync::oneshot::channel();
    let ended = async move { drop(ended.await) };
    let keeping = tokio::spawn(site.inspector.keep(folder, ended).unwrap());
    let call = site.call("echo", json!({"text":"keep hunter2-secret"})).await;
    site.result(call).await;
    let tree = site.query(json!({"query":"call","call":call})).await;
    end.send(()).unwrap();
    keeping.await.unwrap().unwrap();
    (call, tree)
}

async fn query(inspector: &Inspector, query: Value) -> (StatusCode, Value) {
    let send = async |request: http::Request<Full<bytes::Bytes>>| {
        let response = inspector.service().call(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice::<Value>(&body).unwrap_or_default())
    };
    let code = inspector.link(Grade::Control).unwrap();
    let entered = send(post("/api/enter", None, &json!({"code":code.expose()}))).await.1;
    let path = if query.get("query").is_some() { "/api/query" } else { "/api/act" };
    send(post(path, entered["key"].as_str(), &query)).await
}

#[tokio::test]
async fn a_kept_folder_opens_without_servers() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(None).await;
    let (call, tree) = kept(&site, folder.path()).await;
    assert!(Inspector::is_kept(folder.path()) && !Inspector::is_kept(&folder.path().join("other")));
    // What was kept is not written over.
    assert!(site.inspector.keep(folder.path(), std::future::pending()).is_err());
    let inspector = Inspector::new(InspectorOptions::new(Mode::Folder)).unwrap();
    assert_eq!(inspector.open_folder(folder.path()).unwrap(), 0);
    let overview = query(&inspector, json!({"query":"overview"})).await.1;
    assert_eq!((&overview["mode"], &overview["servers"]), (&json!("folder"), &json!([])), "{overview}");
    assert_eq!(query(&inspector, json!({"query":"call","call":call})).await.1, tree);
    let message = query(&inspector, json!({"query":"message","seq":call})).await.1;
    let text = message["text"].as_str().unwrap();
    assert!(text.contains("keep ***") && !text.contains("hunter2"), "{text}");
    let result = query(&inspector, json!({"query":"result","call":call})).await.1;
    assert_eq!(result["verdict"], "done", "{result}");
    let found = query(&inspector, json!({"query":"find","text":"keep"})).await.1;
    assert!(found["seqs"].as_array().unwrap().contains(&json!(call)), "{found}");
    // Nothing can be sent.
    let send = json!({"action":"send","server":"demo","method":"tools/call","params":{"name":"echo","arguments":{}}});
    assert_eq!(query(&inspector, send).await.0, StatusCode::CONFLICT);
    assert_eq!(query(&inspector, json!({"query":"entries"})).await.1, json!({"servers":[]}));
    let transcripts: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    assert_eq!(transcripts.len(), 1, "{transcripts:?}");
    let text = std::fs::read_to_string(&transcripts[0]).unwrap();
    assert!(!text.contains("hunter2"), "{text}");
    Transcript::parse("kept", &text).unwrap();
}

#[tokio::test]
async fn a_damaged_folder_shows_what_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let site = site(None).await;
    let (call, _) = kept(&site, folder.path()).await;
    let file = folder.path().join("calls.jsonl");
    let text = std::fs::read_to_string(&file).unwrap();
    // The first line is lost, and the last is incomplete: numbers change, and calls still belong together.
    let (_, rest) = text.split_once('\n').unwrap();
    std::fs::write(&file, format!("not json\n{rest}{{\"head\":{{")).unwrap();
    let inspector = Inspector::new(InspectorOptions::new(Mode::Folder)).unwrap();
    assert_eq!(inspector.open_folder(folder.path()).unwrap(), 2);
    let tree = query(&inspector, json!({"query":"call","call":call - 1})).await.1;
    assert_eq!(tree["root"]["head"]["name"], "demo__echo", "{tree}");
    assert_eq!(tree["root"]["end"]["status"], "done", "{tree}");
    assert!(inspector.open_folder(&folder.path().join("other")).is_err());
}
