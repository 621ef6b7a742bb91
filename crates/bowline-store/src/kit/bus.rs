//! Hints between two processes.

use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use futures_util::StreamExt;

use crate::{Bus, BusEvent, MAX_HINT_BYTES, Message, Topic};

/// Two ends of one bus, as two processes have them.
pub type Ends = (Arc<dyn Bus>, Arc<dyn Bus>);

pub(super) fn message(topic: &str, hint: impl Into<bytes::Bytes>) -> Message {
    Message::new(Topic::new(topic).expect("a topic"), hint).expect("a hint")
}

/// The next hint. The limit only ends a test that hangs.
async fn next(stream: &mut BoxStream<'static, BusEvent>) -> BusEvent {
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, stream.next())
        .await
        .expect("no hint arrived in time")
        .expect("the bus has ended")
}

/// A hint reaches the other process and the one that published it, and every subscriber in them.
pub async fn a_hint_reaches_every_subscriber((one, two): Ends) {
    let mut streams = [one.subscribe(), one.subscribe(), two.subscribe()];
    one.publish(message("tasks", "7"));
    for stream in &mut streams {
        assert_eq!(next(stream).await, BusEvent::Message(message("tasks", "7")));
    }
    two.publish(message("sessions", ""));
    for stream in &mut streams {
        assert_eq!(next(stream).await, BusEvent::Message(message("sessions", "")));
    }
}

/// Nothing in a topic or hint has a meaning for the engine.
pub async fn hints_are_binary_safe((one, two): Ends) {
    let mut stream = two.subscribe();
    let bytes: Vec<u8> = (0..=255).cycle().take(MAX_HINT_BYTES).collect();
    for topic in ["'; NOTIFY x; --", "日本語", " ", &"t".repeat(512)] {
        let sent = message(topic, bytes.clone());
        one.publish(sent.clone());
        assert_eq!(next(&mut stream).await, BusEvent::Message(sent));
    }
}

/// Hints that are published together arrive together, and none twice.
pub async fn many_hints_arrive_once((one, two): Ends) {
    let mut stream = two.subscribe();
    for number in 0..200_u32 {
        one.publish(message("n", number.to_string()));
    }
    let mut numbers = Vec::new();
    while numbers.len() < 200 {
        let BusEvent::Message(message) = next(&mut stream).await else { panic!("a gap on a healthy bus") };
        numbers.push(String::from_utf8_lossy(message.hint()).parse::<u32>().expect("a number"));
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (0..200).collect::<Vec<_>>());
}

/// Makes a test of every case of a bus. `$open` is an async function that returns [`Ends`].
#[macro_export]
macro_rules! bus_tests {
    ($open:path) => {
        $crate::bus_tests! { @cases $open:
            a_hint_reaches_every_subscriber
            hints_are_binary_safe
            many_hints_arrive_once
        }
    };
    (@cases $open:path: $($case:ident)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $case() {
            let open = $open;
            let Some(ends) = open().await else { return };
            $crate::kit::$case(ends).await;
        }
    )* };
}
