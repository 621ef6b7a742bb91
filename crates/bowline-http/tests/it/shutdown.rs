//! Graceful shutdown under a server of someone else.

use bowline_client::Client;
use bowline_http::{HttpService, http};
use bowline_server::{Server, Tool};
use bowline_types::{Revision, SubscriptionFilter};
use serde_json::json;
use std::{future::IntoFuture as _, sync::Arc, time::Duration};
use tokio::{
    net::TcpListener,
    sync::{Notify, mpsc, oneshot},
};

const DEADLINE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn axum_shuts_down_with_a_listen_stream_and_a_call_open() {
    for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
        let release = Arc::new(Notify::new());
        let (started, mut running) = mpsc::channel(1);
        let tool = {
            let release = Arc::clone(&release);
            Tool::new("slow").handler(move || {
                let (release, started) = (Arc::clone(&release), started.clone());
                async move {
                    started.send(()).await.unwrap();
                    release.notified().await;
                    "done"
                }
            })
        };
        let server = Server::new("s").tool(tool);
        let _registry = server.registry();
        let service = HttpService::new(server).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let app = axum::Router::new().route_service("/mcp", service.clone());
        let signal = service.end_after(async { drop(stopped.await) });
        let serving = tokio::spawn(axum::serve(listener, app).with_graceful_shutdown(signal).into_future());

        let client = Client::builder().revisions([revision]).connect(http(url)).await.unwrap();
        let filter = SubscriptionFilter::new().tools_list_changed(true);
        let _listen = client.listen(filter).await.unwrap();
        let call = tokio::spawn(client.call("slow", json!({})).into_future());
        running.recv().await.unwrap();
        drop(stop);
        // The call that runs may finish, and the stream does not keep the server.
        release.notify_one();
        let called = tokio::time::timeout(DEADLINE, call).await.expect("the call ends").unwrap();
        assert_eq!(called.unwrap().text(), "done", "{revision}");
        tokio::time::timeout(DEADLINE, serving).await.expect("axum ends").unwrap().unwrap();
    }
}
