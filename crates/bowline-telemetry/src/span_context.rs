//! The trace and span ids of W3C Trace Context.

use bowline_text::hex;
use bowline_types::TraceContext;

/// The flag of recorded traces.
const SAMPLED: u8 = 1;

/// A trace id, a span id and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpanContext {
    pub(super) trace: [u8; 16],
    pub(super) span: [u8; 8],
    pub(super) flags: u8,
}

impl SpanContext {
    /// Parses a trace context. Future versions keep the parts of the first one.
    pub(super) fn of(context: &TraceContext) -> Option<Self> {
        let mut parts = context.traceparent.split('-').skip(1);
        let (trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?);
        let [flags] = bytes(flags)?;
        Some(Self { trace: bytes(trace)?, span: bytes(span)?, flags })
    }

    pub(super) fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Formats the `traceparent`.
    pub(super) fn traceparent(self) -> String {
        // Only the flags of version 00 are passed on.
        format!("00-{}-{}-{:02x}", hex(&self.trace), hex(&self.span), self.flags & 0x03)
    }
}

/// Returns the flags of a new trace.
pub(super) fn flags(is_sampled: bool) -> u8 {
    // The second flag means that the id is random.
    2 | if is_sampled { SAMPLED } else { 0 }
}

/// Returns an id that is never zero, whatever the source of randomness returns.
pub(super) fn id<const N: usize>(random: &(dyn Fn(&mut [u8]) + Send + Sync)) -> [u8; N] {
    let mut id = [0; N];
    random(&mut id);
    if id.iter().all(|byte| *byte == 0)
        && let Some(last) = id.last_mut()
    {
        *last = 1;
    }
    id
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != N * 2 {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(place * 2..place * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_becomes_a_place_and_back() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        let position = SpanContext::of(&TraceContext::new(text).unwrap()).unwrap();
        assert!(position.is_sampled());
        assert_eq!(position.span, [0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]);
        assert_eq!(position.traceparent(), text);
        let later = "cc-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-fc-later";
        let position = SpanContext::of(&TraceContext::new(later).unwrap()).unwrap();
        assert_eq!(position.traceparent(), "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00");
    }

    #[test]
    fn an_id_is_never_zero() {
        assert_eq!(id::<4>(&|_| {}), [0, 0, 0, 1]);
        assert_eq!(id::<2>(&|bytes| bytes.fill(7)), [7, 7]);
    }
}
