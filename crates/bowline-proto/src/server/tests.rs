//! Calls of a session, and their cancellation.

use super::*;
use crate::{
    envelope,
    seal::{Key, KeyRing},
    service::Reply,
};
use bowline_types::{Implementation, ServerCapabilities, ToolsCapability};

fn call<C: std::fmt::Debug>(session: &mut ServerSession<C>) -> Ticket {
    let frame = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    match session.accept(envelope::parse(&Bytes::from_static(frame.as_bytes())), || 0) {
        Inbound::Call(ticket, ..) => ticket,
        other => panic!("expected a call, got {other:?}"),
    }
}

fn session<C>(ids: Ids) -> ServerSession<C> {
    let mut profile = Profile::new(Implementation::new("s", "1"), KeyRing::new(Key::new([7; 32])));
    profile.capabilities = ServerCapabilities::new().tools(ToolsCapability::new());
    ServerSession::new(Arc::new(profile), None).with_ids(ids)
}

fn cancel(session: &mut ServerSession) -> Option<u64> {
    cancelled(session).map(|(serial, _)| serial)
}

fn cancelled<C>(session: &mut ServerSession<C>) -> Option<(u64, Option<C>)> {
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    match session.accept(envelope::parse(&Bytes::from_static(cancel.as_bytes())), || 0) {
        Inbound::Cancel { serial, attached, .. } => Some((serial, attached)),
        _ => None,
    }
}

fn finish(session: &mut ServerSession, ticket: &Ticket) -> bool {
    let outcome = Outcome::Complete(Reply::Raw(RawJson::empty_object()));
    session.finish(&mut ticket.clone(), outcome, &|| Sealing { random: [0; 32], expires: 0 }, &mut Vec::new())
}

#[test]
fn the_list_of_tasks_is_offered_only_to_clients_that_can_be_told_apart() {
    // proves: TASK-55
    let declared = |principal: Option<&str>, subscriber: Subscriber| {
        let mut profile = Profile::new(Implementation::new("s", "1"), KeyRing::new(Key::new([7; 32])));
        let tasks = bowline_types::ServerTasksCapability::new()
            .list(bowline_types::RawMap::new())
            .cancel(bowline_types::RawMap::new());
        profile.capabilities = ServerCapabilities::new().tasks(tasks);
        let mut session = ServerSession::<()>::new(Arc::new(profile), principal.map(Arc::from));
        session.set_subscriber(subscriber);
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
        match session.accept(envelope::parse(&Bytes::from_static(hello.as_bytes())), || 0) {
            Inbound::Reply(reply) => String::from_utf8_lossy(&reply).into_owned(),
            other => panic!("expected a reply, got {other:?}"),
        }
    };
    let with_list = r#""tasks":{"list":{},"cancel":{}}"#;
    assert!(declared(None, Subscriber::WithoutTokens).contains(with_list));
    assert!(declared(Some("ada"), Subscriber::Http(None)).contains(with_list));
    assert!(declared(None, Subscriber::Http(None)).contains(r#""tasks":{"cancel":{}}"#));
}

#[test]
fn a_cancellation_returns_what_was_attached_to_the_call() {
    let mut session = session::<&str>(Ids::Unique);
    let ticket = call(&mut session);
    assert!(session.attach(&ticket, "stop"));
    assert_eq!(cancelled(&mut session), Some((ticket.serial(), Some("stop"))));
    assert!(!session.attach(&ticket, "too late"));
    assert!(!session.end(&ticket));
}

#[test]
fn a_cancelled_call_does_not_answer_for_a_later_one_of_its_id() {
    let mut session = session(Ids::Unique);
    let earlier = call(&mut session);
    assert_eq!(cancel(&mut session), Some(earlier.serial()));
    let later = call(&mut session);
    assert!(!finish(&mut session, &earlier));
    assert!(finish(&mut session, &later));
    assert!(!finish(&mut session, &later));
}

#[test]
fn calls_of_one_id_are_kept_apart_where_each_has_its_exchange() {
    let mut session = session(Ids::PerExchange);
    let tickets: Vec<_> = (0..3).map(|_| call(&mut session)).collect();
    assert_eq!(session.running(), 3);
    // It is unknown which one is meant.
    assert_eq!(cancel(&mut session), None);
    assert!(finish(&mut session, &tickets[1]) && !finish(&mut session, &tickets[1]));
    assert!(finish(&mut session, &tickets[0]) && !finish(&mut session, &tickets[0]));
    assert_eq!(cancel(&mut session), Some(tickets[2].serial()));
    assert!(!finish(&mut session, &tickets[2]));
    assert_eq!(session.running(), 0);
}
