//! Every kind of client before every kind of server: the compatibility matrix of the specification, over real processes.

use bowline_client::{Client, Result, command};
use bowline_types::Revision::{self, V2025_11_25, V2026_07_28};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Legacy,
    Modern,
    Dual,
}

impl Side {
    fn revisions(self) -> Vec<Revision> {
        let speaks = |revision: &Revision| match self {
            Self::Legacy => revision.is_legacy(),
            Self::Modern => revision.is_modern(),
            Self::Dual => true,
        };
        Revision::ALL.into_iter().filter(speaks).collect()
    }

    fn fixture(self) -> &'static str {
        match self {
            Self::Legacy => "legacy-only",
            Self::Modern => "modern-only",
            Self::Dual => "everything",
        }
    }
}

async fn connect(revisions: &[Revision], server: Side) -> Result<Client> {
    let client = Client::builder().revisions(revisions.iter().copied());
    client.connect(command(env!("CARGO_BIN_EXE_fixture"), [server.fixture()])).await
}

/// Connects, and checks that both sides agree on `expected` and understand each other.
async fn works(revisions: &[Revision], server: Side, expected: Revision) {
    let connected = connect(revisions, server).await;
    let client = connected.unwrap_or_else(|error| panic!("{revisions:?} with {server:?}: {error}"));
    assert_eq!(client.revision(), expected, "{revisions:?} with {server:?}");
    assert_eq!(client.server().server_info.as_ref().map(|info| info.name.as_str()), Some(server.fixture()));
    client.ping().await.unwrap_or_else(|error| panic!("{revisions:?} with {server:?}: {error}"));
    client.close().await;
}

/// Connects, and checks that it fails with an error that says what to do.
async fn fails(client: Side, server: Side, expected: &str) {
    let Err(error) = connect(&client.revisions(), server).await else {
        panic!("{client:?} and {server:?} have nothing in common");
    };
    assert_eq!(error.to_string(), expected, "{client:?} with {server:?}");
    assert!(error.open().is_some() && !error.is_timeout(), "{client:?} with {server:?}");
}

#[tokio::test]
async fn a_modern_client_works_with_whoever_is_modern() {
    // proves: VER-10
    works(&Side::Modern.revisions(), Side::Modern, V2026_07_28).await;
    works(&Side::Modern.revisions(), Side::Dual, V2026_07_28).await;
}

#[tokio::test]
async fn a_modern_client_reports_why_it_cannot_use_a_legacy_server() {
    // proves: VER-04, VER-21
    let error =
        "no common protocol revision: this client supports 2026-07-28, the server named no modern revision";
    fails(Side::Modern, Side::Legacy, error).await;
}

#[tokio::test]
async fn a_dual_client_stays_modern_where_it_can() {
    // proves: VER-18
    works(&Side::Dual.revisions(), Side::Modern, V2026_07_28).await;
    works(&Side::Dual.revisions(), Side::Dual, V2026_07_28).await;
}

#[tokio::test]
async fn a_dual_client_falls_back_before_a_legacy_server() {
    // proves: VER-19
    works(&Side::Dual.revisions(), Side::Legacy, V2025_11_25).await;
}

#[tokio::test]
async fn a_legacy_client_fails_before_a_modern_server_and_learns_its_versions() {
    // proves: VER-14, LIFE-26
    let error = "no common protocol revision: this client supports 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05, \
                 the server 2026-07-28";
    fails(Side::Legacy, Side::Modern, error).await;
}

#[tokio::test]
async fn a_legacy_client_works_with_whoever_knows_the_handshake() {
    // proves: LIFE-08
    works(&Side::Legacy.revisions(), Side::Legacy, V2025_11_25).await;
    works(&Side::Legacy.revisions(), Side::Dual, V2025_11_25).await;
}

#[tokio::test]
async fn each_legacy_revision_is_agreed_on_as_asked() {
    // proves: LIFE-07, LIFE-09
    for revision in Side::Legacy.revisions() {
        works(&[revision], Side::Legacy, revision).await;
        works(&[revision], Side::Dual, revision).await;
    }
}

#[tokio::test]
async fn a_client_with_gaps_negotiates_a_common_revision() {
    // An old revision and the modern one: the newest in common wins, whichever era it is of.
    works(&[Revision::V2024_11_05, V2026_07_28], Side::Legacy, Revision::V2024_11_05).await;
    works(&[Revision::V2024_11_05, V2026_07_28], Side::Dual, V2026_07_28).await;
}
