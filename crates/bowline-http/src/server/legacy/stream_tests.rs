//! Events of a stream: limits, readers, and storage.

use super::{super::log::MemoryEvents, *};

fn stream() -> Stream {
    let bounds = Bounds { events: 3, bytes: 1000 };
    let retention = Arc::new(Retention::new(usize::MAX));
    let session = "s".into();
    let source = Source { store: Arc::new(MemoryEvents), session, bounds, retention, prefix: None };
    Stream::new(1, source, true)
}

fn read(stream: &Stream, reader: u64, from: u64) -> Vec<String> {
    let mut seen = Vec::new();
    let mut number = from;
    while let Next::Event(at, event) = stream.next(reader, number, Waker::noop()) {
        seen.push(format!("{at}:{}", String::from_utf8_lossy(&event)));
        number += 1;
    }
    seen
}

#[test]
fn a_reader_resumes_after_its_last_event() {
    let stream = stream();
    for event in ["a", "b", "c"] {
        stream.push(event.as_bytes());
    }
    let first = stream.attach(0).unwrap();
    assert_eq!(read(&stream, first, 1), ["1:a", "2:b", "3:c"]);
    let again = stream.attach(2).unwrap();
    assert_eq!(read(&stream, again, 3), ["3:c"]);
    // Ends the older reader.
    assert_eq!(stream.next(first, 4, Waker::noop()), Next::End);
    assert_eq!(stream.next(again, 4, Waker::noop()), Next::Wait);
    stream.finish();
    assert_eq!(stream.next(again, 4, Waker::noop()), Next::End);
}

#[test]
fn retained_events_are_limited_and_a_gap_is_noticed() {
    let stream = stream();
    for event in ["a", "b", "c", "d", "e"] {
        stream.push(event.as_bytes());
    }
    assert_eq!(stream.attach(0), None);
    assert_eq!(stream.attach(1), None);
    let reader = stream.attach(2).unwrap();
    assert_eq!(read(&stream, reader, 3), ["3:c", "4:d", "5:e"]);
}

#[cfg(feature = "store")]
#[tokio::test]
async fn events_are_read_only_after_they_are_stored() {
    let stream = stream();
    stream.push(b"a");
    assert!(stream.stage() && !stream.stage());
    stream.push(b"b");
    let reader = stream.attach(0).unwrap();
    assert_eq!(read(&stream, reader, 1), [""; 0]);
    let batch = stream.next_batch().await.unwrap();
    assert_eq!((batch.events.len(), batch.is_last), (2, false));
    stream.publish(batch);
    assert_eq!(read(&stream, reader, 1), ["1:a", "2:b"]);
    // Without the store, events go on without ids.
    stream.go_live();
    stream.push(b"c");
    stream.finish();
    assert!(stream.is_finished());
    let batch = stream.next_batch().await.unwrap();
    assert!(batch.is_last);
    stream.publish(batch);
    assert_eq!(read(&stream, reader, 3), ["3:c"]);
    assert!(stream.has_id(2) && !stream.has_id(3));
    assert_eq!(stream.next(reader, 4, Waker::noop()), Next::End);
    assert!(stream.next_batch().await.is_none());
}

#[test]
fn droppable_lines_do_not_displace_required_ones() {
    let stream = stream();
    for event in ["a", "b", "c"] {
        stream.push(event.as_bytes());
    }
    stream.offer(b"progress");
    let reader = stream.attach(0).unwrap();
    assert_eq!(read(&stream, reader, 1), ["1:a", "2:b", "3:c"]);
}
