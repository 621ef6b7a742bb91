//! A client of any revision in front of a server of any other, with everything servers ask and tell.
//!
//! Both ends exchange raw frames of their revision; only the host between them is ours.

mod client;
mod server;

use bowline_host::{Host, Upstream};
use bowline_policy::{Guard, Policy, Rule};
use bowline_server::{Server, ServerHandle};
use bowline_testing::Peer;
use bowline_types::Revision;
use client::{Caller, Said};
use server::Scripted;
use std::{fmt::Write as _, io::Write as _};

/// What is carried across.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    Elicitation,
    Url,
    Sampling,
    Roots,
    Progress,
    Cancel,
    Log,
    Subscribe,
}

pub(crate) const FEATURES: [Feature; 8] = [
    Feature::Elicitation,
    Feature::Url,
    Feature::Sampling,
    Feature::Roots,
    Feature::Progress,
    Feature::Cancel,
    Feature::Log,
    Feature::Subscribe,
];

/// How the client reaches the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Stdio,
    Http,
}

/// A host in front of a scripted server.
fn host(revision: Revision) -> (Host, ServerHandle, Scripted) {
    let scripted = Scripted::new(revision);
    let guard = Guard::builder().policy(Policy::new([Rule::allow()])).build();
    let host = Host::builder().add("far", Upstream::to(scripted.clone())).guard(guard).build();
    let handle = host.open(Server::new("gateway")).expect("the gateway can be built");
    (host, handle, scripted)
}

/// What has to come of a feature between a client and a server of these revisions.
fn expected(feature: Feature, client: Revision, server: Revision) -> Said {
    let asks = |since: Revision| server >= since;
    let answers = |since: Revision| client >= since;
    match feature {
        Feature::Elicitation if !asks(Revision::V2025_06_18) => Said::NotInServer,
        Feature::Elicitation if !answers(Revision::V2025_06_18) => Said::Text("cancel".into()),
        Feature::Elicitation => Said::Text(r#"accept {"name":"Ada"}"#.into()),
        Feature::Url if !asks(Revision::V2025_11_25) => Said::NotInServer,
        Feature::Url if !answers(Revision::V2025_11_25) => Said::Text("cancel".into()),
        Feature::Url => Said::Text("accept".into()),
        Feature::Sampling => Said::Text("the model says hello".into()),
        Feature::Roots => Said::Text("file:///home/ada".into()),
        Feature::Progress => Said::Progress(vec![1.0, 2.0]),
        Feature::Cancel => Said::Cancelled,
        Feature::Log => Said::Log("it works".into()),
        Feature::Subscribe => Said::Updated("note:///a".into()),
    }
}

async fn cell(feature: Feature, client: Revision, server: Revision, wire: Wire) -> Said {
    if matches!(expected(feature, client, server), Said::NotInServer) {
        return Said::NotInServer;
    }
    let (host, handle, scripted) = host(server);
    let peer = match wire {
        Wire::Stdio => Peer::memory(handle),
        Wire::Http => Peer::http(handle),
    };
    let mut caller = Caller::new(peer.expect("the host is served"), client).await;
    let said = caller.try_feature(feature, &scripted).await;
    host.close().await;
    said
}

async fn matrix(wire: Wire) {
    let mut wrong = String::new();
    for client in Revision::ALL {
        for server in Revision::ALL {
            for feature in FEATURES {
                let said = cell(feature, client, server, wire).await;
                let expected = expected(feature, client, server);
                report(feature, client, server, wire, &said);
                if said != expected {
                    let _ = writeln!(
                        wrong,
                        "{feature:?}, client {client}, server {server}: {said:?}, not {expected:?}"
                    );
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Adds a cell to the file that `cargo xtask bridge` makes its page from.
fn report(feature: Feature, client: Revision, server: Revision, wire: Wire, said: &Said) {
    let Some(file) = std::env::var_os("BOWLINE_BRIDGE") else { return };
    let said = match said {
        Said::NotInServer => "not in the server's revision",
        Said::Text(text) if text == "cancel" => "cancelled for the user",
        Said::Wrong(_) => "wrong",
        _ => "carried",
    };
    let line = format!("{feature:?}\t{client}\t{server}\t{wire:?}\t{said}\n");
    let mut file =
        std::fs::File::options().append(true).create(true).open(file).expect("the report can be written");
    file.write_all(line.as_bytes()).expect("the report can be written");
}

#[tokio::test]
async fn every_revision_works_with_every_other_over_stdio() {
    matrix(Wire::Stdio).await;
}

#[tokio::test]
async fn every_revision_works_with_every_other_over_http() {
    matrix(Wire::Http).await;
}
