//! Decodes server-sent events.

use std::fmt;
use std::time::Duration;

use super::Event;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
const KEPT_CAPACITY: usize = 64 * 1024;

/// Limits of one event; the decoder skips events that exceed them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    line: usize,
    event: usize,
}

impl Limits {
    /// Creates limits for the bytes of one line, and of the type, id and data of one event together.
    pub fn new(line: usize, event: usize) -> Self {
        Self { line, event }
    }
}

/// An event exceeds the limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseError {
    what: &'static str,
    limit: usize,
}

impl fmt::Display for SseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} of at most {} bytes in the event stream, got more", self.what, self.limit)
    }
}

impl std::error::Error for SseError {}

/// Decodes events from a byte stream.
///
/// Feed it the bytes that arrived, then take events until there are none. How the bytes are split makes no
/// difference. After an error the rest of the event is skipped and decoding continues with the next one, so
/// memory use stays within the limits.
///
/// ```
/// use bowline_proto::sse::{Decoder, Limits};
///
/// let mut decoder = Decoder::new(Limits::new(1024, 4096));
/// decoder.feed(b"id: 7\ndata: {\"a\":");
/// assert!(decoder.next().is_none());
/// decoder.feed(b"1}\n\n");
/// let event = decoder.next().unwrap()?;
/// assert_eq!(event.data, "{\"a\":1}");
/// assert_eq!(decoder.last_id(), Some("7"));
/// # Ok::<(), bowline_proto::sse::SseError>(())
/// ```
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    buffer: Vec<u8>,
    /// Where the unread part of the buffer begins.
    start: usize,
    /// Up to where the unread part is known to hold no line end.
    searched: usize,
    /// The last line ended in CR, so that a LF that follows belongs to it.
    after_cr: bool,
    line: Line,
    /// The event being received was given up.
    skipping: bool,
    block: Block,
    last_id: Option<String>,
    comments: u64,
}

/// The state of the line being received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// The first of the stream, which may begin with a byte order mark.
    First,
    Ordinary,
    /// Over the limit; its bytes are thrown away.
    TooLong,
}

/// The fields of the event being received.
#[derive(Debug, Default)]
struct Block {
    event: Option<String>,
    data: Option<String>,
    id: Option<String>,
    retry: Option<Duration>,
    size: usize,
}

impl Decoder {
    /// Creates a decoder for the start of a stream.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            after_cr: false,
            line: Line::First,
            skipping: false,
            block: Block::default(),
            last_id: None,
            comments: 0,
        }
    }

    /// Adds bytes that arrived. Take all events before feeding again: unread bytes stay in memory.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.is_empty() {
            // One large event must not occupy its memory for the rest of a long stream.
            self.buffer.shrink_to(KEPT_CAPACITY);
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the id to resume after: that of the last event that had one. An empty id resets it.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref().filter(|id| !id.is_empty())
    }

    /// Returns the number of comment lines so far. Servers send them to keep the stream open.
    pub fn comments(&self) -> u64 {
        self.comments
    }

    /// Returns whether the stream would be cut inside an event if it ended now.
    pub fn is_mid_event(&self) -> bool {
        let Block { event, data, id, retry, size: _ } = &self.block;
        self.start < self.buffer.len()
            || self.line == Line::TooLong
            || self.skipping
            || event.is_some()
            || data.is_some()
            || id.is_some()
            || retry.is_some()
    }

    /// Returns the bounds of the next complete line, without its line ending, and advances past it.
    fn next_line(&mut self) -> Option<(usize, usize)> {
        if self.after_cr {
            if *self.buffer.get(self.start)? == b'\n' {
                self.start += 1;
                self.searched = self.start;
            }
            self.after_cr = false;
        }
        let unsearched = self.buffer.get(self.searched..)?;
        let Some(found) = memchr::memchr2(b'\r', b'\n', unsearched) else {
            self.searched = self.buffer.len();
            return None;
        };
        let (start, end) = (self.start, self.searched + found);
        self.after_cr = unsearched.get(found) == Some(&b'\r');
        self.start = end + 1;
        self.searched = self.start;
        Some((start, end))
    }

    /// Gives the current event up. Reports it once, however many of its lines are too long.
    fn give_up(&mut self, what: &'static str, limit: usize) -> Option<SseError> {
        self.block = Block::default();
        let first = !self.skipping;
        self.skipping = true;
        first.then_some(SseError { what, limit })
    }

    /// Throws away what came of the next line if that is over the limit already.
    fn give_up_long_line(&mut self) -> Option<SseError> {
        let end = self.buffer.len();
        let received = end - self.start;
        let fits = match self.line {
            Line::First => received - self.mark_in(self.start, end) <= self.limits.line,
            Line::Ordinary => received <= self.limits.line,
            Line::TooLong => false,
        };
        if fits {
            return None;
        }
        self.start = end;
        self.searched = end;
        self.line = Line::TooLong;
        self.give_up("a line", self.limits.line)
    }

    /// Returns how many bytes of a line belong to the byte order mark at the start of the stream.
    fn mark_in(&self, start: usize, end: usize) -> usize {
        let line = self.buffer.get(start..end).unwrap_or_default();
        let begun = line.get(..BYTE_ORDER_MARK.len()).unwrap_or(line);
        if BYTE_ORDER_MARK.starts_with(begun) { begun.len() } else { 0 }
    }

    /// Reads one line into the current event.
    fn field(&mut self, start: usize, end: usize) -> Option<SseError> {
        let line = self.buffer.get(start..end).unwrap_or_default();
        let (name, value) = match memchr::memchr(b':', line) {
            Some(0) => {
                self.comments += 1;
                return None;
            }
            Some(colon) => {
                let (name, value) = line.split_at(colon);
                let value = value.strip_prefix(b":").unwrap_or(value);
                (name, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, [].as_slice()),
        };
        if self.skipping {
            return None;
        }
        let block = &mut self.block;
        match name {
            b"data" => {
                block.size += value.len() + 1;
                let value = String::from_utf8_lossy(value);
                match &mut block.data {
                    Some(data) => {
                        data.push('\n');
                        data.push_str(&value);
                    }
                    None => block.data = Some(value.into_owned()),
                }
            }
            b"event" => {
                block.size += value.len();
                block.event =
                    Some(String::from_utf8_lossy(value).into_owned()).filter(|name| !name.is_empty());
            }
            b"id" if !value.contains(&0) => {
                block.size += value.len();
                block.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let digits = str::from_utf8(value).unwrap_or_default();
                // Only a number beyond all bounds does not parse.
                block.retry = Some(Duration::from_millis(digits.parse().unwrap_or(u64::MAX)));
            }
            _ => {}
        }
        if self.block.size > self.limits.event {
            return self.give_up("an event", self.limits.event);
        }
        None
    }

    /// Ends the current event at a blank line.
    fn dispatch(&mut self) -> Option<Event> {
        self.skipping = false;
        let Block { event, data, id, retry, size: _ } = std::mem::take(&mut self.block);
        if let Some(id) = &id {
            self.last_id = Some(id.clone());
        }
        if data.is_none() && id.is_none() && retry.is_none() {
            return None;
        }
        Some(Event { event, data: data.unwrap_or_default(), id, retry })
    }
}

impl Iterator for Decoder {
    type Item = Result<Event, SseError>;

    /// Returns the next event; `None` if more bytes are needed.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((start, end)) = self.next_line() else {
                return self.give_up_long_line().map(Err);
            };
            let start = match std::mem::replace(&mut self.line, Line::Ordinary) {
                Line::First => start + self.mark_in(start, end),
                Line::Ordinary => start,
                // Only the end of that line is left.
                Line::TooLong => continue,
            };
            let outcome = if end - start > self.limits.line {
                self.give_up("a line", self.limits.line).map(Err)
            } else if start == end {
                self.dispatch().map(Ok)
            } else {
                self.field(start, end).map(Err)
            };
            if outcome.is_some() {
                return outcome;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{encode_comment, encode_event};
    use super::*;
    use proptest::prelude::*;

    type Decoded = Vec<Result<Event, SseError>>;

    const WIDE: Limits = Limits { line: 1 << 20, event: 1 << 20 };

    fn decode(limits: Limits, chunks: &[&[u8]]) -> (Decoded, Decoder) {
        let mut decoder = Decoder::new(limits);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.feed(chunk);
            events.extend(decoder.by_ref());
        }
        (events, decoder)
    }

    fn check(stream: &str, expected: &[Event]) {
        let (events, decoder) = decode(WIDE, &[stream.as_bytes()]);
        let events: Vec<Event> = events.into_iter().map(Result::unwrap).collect();
        assert_eq!(events, expected, "{stream:?}");
        assert!(!decoder.is_mid_event(), "{stream:?}");
    }

    fn data(data: &str) -> Event {
        Event { data: data.to_owned(), ..Event::default() }
    }

    #[test]
    fn lines_end_in_cr_lf_or_both() {
        for end in ["\n", "\r", "\r\n"] {
            check(&"data: a|data: b||data: c||".replace('|', end), &[data("a\nb"), data("c")]);
        }
        check("data: a\r\ndata: b\n\r\ndata: c\r\r", &[data("a\nb"), data("c")]);
    }

    #[test]
    fn a_line_end_split_between_chunks_is_one() {
        let (events, _) = decode(WIDE, &[b"data: a\r", b"\n", b"data: b\r", b"\n\r", b"\n"]);
        assert_eq!(events, [Ok(data("a\nb"))]);
    }

    #[test]
    fn a_cr_ends_the_event_without_waiting_for_more() {
        let (events, _) = decode(WIDE, &[b"data: a\r\r"]);
        assert_eq!(events, [Ok(data("a"))]);
    }

    #[test]
    fn one_space_after_the_colon_is_not_part_of_the_value() {
        check(
            "data:a\n\ndata: a\n\ndata:  a\n\ndata: a:b \n\n",
            &[data("a"), data("a"), data(" a"), data("a:b ")],
        );
    }

    #[test]
    fn data_lines_are_joined_even_if_empty() {
        check("data\n\n", &[data("")]);
        check("data\ndata\n\n", &[data("\n")]);
        check("data:\n\n\n\n", &[data("")]);
    }

    #[test]
    fn the_byte_order_mark_counts_only_at_the_start() {
        check("\u{feff}data: a\n\n", &[data("a")]);
        check("\u{feff}\u{feff}data: a\n\n", &[]);
        check("\n\u{feff}data: a\n\n", &[]);
        let (events, _) = decode(WIDE, &[b"\xEF", b"\xBB", b"\xBFdata: a\n\n"]);
        assert_eq!(events, [Ok(data("a"))]);
    }

    #[test]
    fn comments_are_counted_and_ignored() {
        let (events, decoder) = decode(WIDE, &[b":\r\n: ping\ndata: a\n:x\ndata: b\n\n:\n"]);
        assert_eq!(events, [Ok(data("a\nb"))]);
        assert_eq!(decoder.comments(), 4);
        assert!(!decoder.is_mid_event());
    }

    #[test]
    fn unknown_and_misspelled_fields_are_ignored() {
        check("Data: a\ndata : b\n data: c\nfoo\nfoo: bar\n\n", &[]);
    }

    #[test]
    fn the_last_event_type_wins_and_an_empty_one_is_ignored() {
        let event = |name: &str| Event { event: Some(name.to_owned()), ..data("x") };
        check("event: a\nevent: b\ndata: x\n\n", &[event("b")]);
        check("event: a\nevent\ndata: x\n\n", &[data("x")]);
        check("event: a\n\ndata: x\n\n", &[data("x")]);
    }

    #[test]
    fn ids_persist_until_replaced_or_withdrawn() {
        let mut decoder = Decoder::new(WIDE);
        let mut last = |bytes: &[u8]| {
            decoder.feed(bytes);
            let event = decoder.next().map(Result::unwrap);
            (event.and_then(|event| event.id), decoder.last_id().map(str::to_owned))
        };
        let some = |id: &str| Some(id.to_owned());
        assert_eq!(last(b"id: 1\ndata: a\n\n"), (some("1"), some("1")));
        assert_eq!(last(b"data: a\n\n"), (None, some("1")));
        assert_eq!(last(b"id: 2\x003\ndata: a\n\n"), (None, some("1")));
        assert_eq!(last(b"id: 4\n"), (None, some("1")));
        assert_eq!(last(b"\n"), (some("4"), some("4")));
        assert_eq!(last(b"id\ndata: a\n\n"), (some(""), None));
    }

    #[test]
    fn events_without_data_carry_id_and_delay() {
        let primer =
            Event { id: Some("1".to_owned()), retry: Some(Duration::from_millis(500)), ..Event::default() };
        check("id: 1\nretry: 500\n\n", std::slice::from_ref(&primer));
        check("id: 1\nretry: 500\ndata:\n\n", &[primer]);
    }

    #[test]
    fn the_delay_is_digits_only() {
        let retry = |millis| Event { retry: Some(Duration::from_millis(millis)), ..data("a") };
        check("retry: 010\ndata: a\n\n", &[retry(10)]);
        check("retry: 99999999999999999999999\ndata: a\n\n", &[retry(u64::MAX)]);
        for bad in ["", "-1", "+1", "1.5", "1s", " 1", "\u{0661}"] {
            check(&format!("retry: {bad}\ndata: a\n\n"), &[data("a")]);
        }
    }

    #[test]
    fn invalid_utf8_is_replaced() {
        let (events, _) = decode(WIDE, &[b"data: a\xFFb\n\n"]);
        assert_eq!(events, [Ok(data("a\u{fffd}b"))]);
    }

    #[test]
    fn an_event_cut_off_by_the_end_is_not_delivered() {
        for stream in ["data: a", "data: a\n", "event: a\n", "id: 1\n"] {
            let (events, decoder) = decode(WIDE, &[stream.as_bytes()]);
            assert_eq!(events, []);
            assert!(decoder.is_mid_event());
            assert_eq!(decoder.last_id(), None);
        }
    }

    #[test]
    fn a_line_over_the_limit_drops_only_its_event() {
        let limits = Limits::new(10, 100);
        let long = SseError { what: "a line", limit: 10 };
        assert_eq!(decode(limits, &[b"data: 1234\n\n"]).0, [Ok(data("1234"))]);
        let stream = b"id: 1\ndata: 12345\ndata: 1234567\n: ok\n\ndata: a\n\n";
        let (events, decoder) = decode(limits, &[stream]);
        assert_eq!(events, [Err(long.clone()), Ok(data("a"))]);
        assert_eq!(decoder.last_id(), None);
        assert_eq!(long.to_string(), "expected a line of at most 10 bytes in the event stream, got more");
    }

    #[test]
    fn an_endless_line_is_reported_at_once_and_not_kept() {
        let mut decoder = Decoder::new(Limits::new(10, 100));
        decoder.feed(b"data: 12345");
        assert!(matches!(decoder.next(), Some(Err(_))));
        for _ in 0..1000 {
            decoder.feed(&[b'x'; 100]);
            assert_eq!(decoder.next(), None);
            assert!(decoder.buffer.len() <= 100);
        }
        decoder.feed(b"\ndata: b\n\ndata: c\n\n");
        assert_eq!(decoder.next(), Some(Ok(data("c"))));
    }

    #[test]
    fn an_event_over_the_limit_is_skipped() {
        let limits = Limits::new(100, 10);
        let large = SseError { what: "an event", limit: 10 };
        assert_eq!(decode(limits, &[b"data: 12345\ndata: 123\n\n"]).0, [Ok(data("12345\n123"))]);
        let (events, _) = decode(limits, &[b"data: 12345\ndata: 1234\ndata: 1\n\ndata: b\n\n"]);
        assert_eq!(events, [Err(large), Ok(data("b"))]);
    }

    #[test]
    fn memory_of_a_large_event_is_released() {
        let mut decoder = Decoder::new(WIDE);
        decoder.feed(format!("data: {}\n\n", "x".repeat(500_000)).as_bytes());
        assert_eq!(decoder.next().map(|event| event.unwrap().data.len()), Some(500_000));
        decoder.feed(b":\n");
        assert!(decoder.buffer.capacity() <= KEPT_CAPACITY);
    }

    fn events() -> impl Strategy<Value = Vec<Event>> {
        let event = (
            prop::option::of("[^\r\n\0]{1,8}"),
            "([^\r]|\n){0,20}",
            prop::option::of("[^\r\n\0]{0,8}"),
            prop::option::of(any::<u64>().prop_map(Duration::from_millis)),
        );
        let event = event.prop_map(|(event, data, id, retry)| Event { event, data, id, retry });
        prop::collection::vec(event, 0..6)
    }

    fn cut<'b>(bytes: &'b [u8], cuts: &[prop::sample::Index]) -> Vec<&'b [u8]> {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
    }

    proptest! {
        #[test]
        fn decoding_undoes_encoding(
            events in events(),
            comment in "\\PC{0,8}",
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let mut out = Vec::new();
            for event in &events {
                encode_event(&mut out, &event.into()).unwrap();
                encode_comment(&mut out, &comment);
            }
            let (decoded, decoder) = decode(WIDE, &cut(&out, &cuts));
            prop_assert_eq!(decoded, events.into_iter().map(Ok).collect::<Decoded>());
            prop_assert!(!decoder.is_mid_event());
        }

        #[test]
        fn chunks_make_no_difference(
            stream in prop::collection::vec(
                prop::sample::select(vec![
                    "data", "id", "event", "retry", ": ", ":", "\r", "\n", "\r\n", "\n\n", "12", "\0", "\u{feff}",
                    "abcdefgh",
                ]),
                0..40,
            ),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
            line in 0..20_usize,
            event in 0..20_usize,
        ) {
            let stream = stream.concat().into_bytes();
            let limits = Limits::new(line, event);
            let (whole, one) = decode(limits, &[&stream]);
            let (pieces, many) = decode(limits, &cut(&stream, &cuts));
            prop_assert_eq!(&whole, &pieces);
            prop_assert_eq!(one.last_id(), many.last_id());
            prop_assert_eq!(one.comments(), many.comments());
            prop_assert_eq!(one.is_mid_event(), many.is_mid_event());
        }

        #[test]
        fn any_bytes_decode_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let (events, _) = decode(Limits::new(50, 80), &[&bytes]);
            for event in events.into_iter().flatten() {
                prop_assert!(event.data.len() <= 80 * 3);
            }
        }
    }
}
