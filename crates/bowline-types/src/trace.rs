//! Trace context: the keys `traceparent`, `tracestate` and `baggage` of `_meta`.
//!
//! The formats are those of W3C Trace Context and W3C Baggage. Invalid values are treated as
//! absent, as both specifications require.

use crate::meta::{Meta, key};

/// The trace that a message belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// `traceparent`: the position in the trace.
    pub traceparent: String,
    /// `tracestate`: data of tracing systems.
    pub tracestate: Option<String>,
    /// `baggage`: data of the application.
    pub baggage: Option<String>,
}

impl TraceContext {
    /// Creates a trace context from a `traceparent`; `None` if it is invalid.
    pub fn new(traceparent: impl Into<String>) -> Option<Self> {
        let traceparent = traceparent.into();
        is_traceparent(&traceparent).then_some(Self { traceparent, tracestate: None, baggage: None })
    }

    /// Sets `tracestate`; ignored if it is invalid.
    #[must_use]
    pub fn with_tracestate(mut self, tracestate: impl Into<String>) -> Self {
        self.tracestate = Some(tracestate.into()).filter(|text| is_tracestate(text));
        self
    }

    /// Sets `baggage`; ignored if it is invalid.
    #[must_use]
    pub fn with_baggage(mut self, baggage: impl Into<String>) -> Self {
        self.baggage = Some(baggage.into()).filter(|text| is_baggage(text));
        self
    }
}

impl Meta {
    /// Returns the trace context; `None` without a valid `traceparent`. The other parts are included if
    /// they are valid.
    pub fn trace_context(&self) -> Option<TraceContext> {
        let mut context = TraceContext::new(self.trace_text(key::TRACEPARENT)?)?;
        if let Some(tracestate) = self.trace_text(key::TRACESTATE) {
            context = context.with_tracestate(tracestate);
        }
        context.baggage = self.baggage();
        Some(context)
    }

    /// Returns the baggage, which does not require a `traceparent`.
    pub fn baggage(&self) -> Option<String> {
        self.trace_text(key::BAGGAGE).filter(|text| is_baggage(text))
    }

    /// Replaces the trace context. Invalid parts are omitted.
    pub fn set_trace_context(&mut self, context: &TraceContext) {
        let TraceContext { traceparent, tracestate, baggage } = context;
        let follows = is_traceparent(traceparent);
        for (key, text) in [
            (key::TRACEPARENT, follows.then_some(traceparent)),
            (key::TRACESTATE, tracestate.as_ref().filter(|text| follows && is_tracestate(text))),
            (key::BAGGAGE, baggage.as_ref().filter(|text| is_baggage(text))),
        ] {
            match text {
                Some(text) => self.insert(key, crate::to_json(text)),
                None => self.remove(key),
            };
        }
    }

    fn trace_text(&self, key: &str) -> Option<String> {
        self.decode(key).ok().flatten()
    }
}

fn is_lower_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_nonzero_hex(text: &str, length: usize) -> bool {
    is_lower_hex(text, length) && text.bytes().any(|byte| byte != b'0')
}

fn is_traceparent(text: &str) -> bool {
    let mut parts = text.splitn(5, '-');
    let mut next = || parts.next().unwrap_or_default();
    let (version, trace, parent, flags) = (next(), next(), next(), next());
    let form = is_lower_hex(version, 2)
        && version != "ff"
        && is_nonzero_hex(trace, 32)
        && is_nonzero_hex(parent, 16)
        && is_lower_hex(flags, 2);
    // Later versions may append parts; the first one has none.
    form && (version != "00" || parts.next().is_none())
}

const BLANKS: [char; 2] = [' ', '\t'];

fn is_tracestate(text: &str) -> bool {
    let members: Vec<&str> = text
        .split(',')
        .map(|member| member.trim_matches(BLANKS))
        .filter(|member| !member.is_empty())
        .collect();
    if members.is_empty() || members.len() > 32 {
        return false;
    }
    let mut keys = Vec::new();
    for member in members {
        let Some((key, value)) = member.split_once('=') else { return false };
        if !is_tracestate_key(key) || !is_tracestate_value(value) || keys.contains(&key) {
            return false;
        }
        keys.push(key);
    }
    true
}

fn is_tracestate_key(key: &str) -> bool {
    let part = |part: &str, most: usize, digit_first: bool| {
        part.len() <= most
            && part
                .bytes()
                .next()
                .is_some_and(|first| first.is_ascii_lowercase() || (digit_first && first.is_ascii_digit()))
            && part.bytes().all(|byte| {
                byte.is_ascii_lowercase()
                    || byte.is_ascii_digit()
                    || matches!(byte, b'_' | b'-' | b'*' | b'/')
            })
    };
    match key.split_once('@') {
        Some((tenant, system)) => part(tenant, 241, true) && part(system, 14, false),
        None => part(key, 256, true),
    }
}

fn is_tracestate_value(value: &str) -> bool {
    !value.is_empty()
        && value.len() <= 256
        && !value.ends_with(' ')
        && value.bytes().all(|byte| matches!(byte, 0x20..=0x7e) && !matches!(byte, b',' | b'='))
}

fn is_baggage(text: &str) -> bool {
    text.len() <= 8192 && text.split(',').count() <= 64 && text.split(',').all(is_baggage_member)
}

fn is_baggage_member(member: &str) -> bool {
    let mut parts = member.split(';');
    let pair = parts.next().and_then(|pair| pair.split_once('='));
    let Some((key, value)) = pair else { return false };
    is_token(key.trim_matches(BLANKS))
        && is_baggage_value(value.trim_matches(BLANKS))
        && parts.all(|property| match property.split_once('=') {
            Some((key, value)) => {
                is_token(key.trim_matches(BLANKS)) && is_baggage_value(value.trim_matches(BLANKS))
            }
            None => is_token(property.trim_matches(BLANKS)),
        })
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn is_baggage_value(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x2b | 0x2d..=0x3a | 0x3c..=0x5b | 0x5d..=0x7e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawJson;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    #[test]
    fn the_position_has_a_strict_form() {
        for text in [PARENT, "cc-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-what-comes-later"] {
            assert!(is_traceparent(text), "{text}");
        }
        for text in [
            "",
            "00",
            "00-0AF7651916CD43DD8448EB211C80319C-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-more",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-1",
        ] {
            assert!(!is_traceparent(text), "{text}");
        }
    }

    #[test]
    fn the_state_is_a_list_of_distinct_members() {
        for text in ["rojo=00f067aa0ba902b7", "a=1, b=2,,c=3", "fw529a3039@dt=FfAK", "0a=b c"] {
            assert!(is_tracestate(text), "{text}");
        }
        let many = (0..33).map(|index| format!("k{index}=v")).collect::<Vec<_>>().join(",");
        for text in ["", "a", "A=1", "a=1,a=2", "a=", "a=b=c", "t@0sys=1", "a=\u{e9}", &many] {
            assert!(!is_tracestate(text), "{text}");
        }
    }

    #[test]
    fn baggage_has_members_with_properties() {
        for text in ["k=v", "k1=v1;p1;p2=x , k2=v%20two", "k=", "k = v"] {
            assert!(is_baggage(text), "{text}");
        }
        for text in ["", "k", "k=v,", "k=a b", "k=\"v\"", "k y=v", "k=v;", "k=a\\b"] {
            assert!(!is_baggage(text), "{text}");
        }
        assert!(!is_baggage(&format!("k={}", "v".repeat(8192))));
    }

    // proves: META-26
    #[test]
    fn malformed_values_count_as_absent() {
        let meta = |parent: &str, state: &str| {
            Meta::new()
                .with("traceparent", crate::to_json(parent))
                .with("tracestate", crate::to_json(state))
                .with("baggage", RawJson::parse("1").unwrap())
        };
        let context = meta(PARENT, "rojo=1").trace_context().unwrap();
        assert_eq!((context.traceparent.as_str(), context.tracestate.as_deref()), (PARENT, Some("rojo=1")));
        assert_eq!(context.baggage, None);
        assert_eq!(meta(PARENT, "Rojo=1").trace_context().unwrap().tracestate, None);
        assert_eq!(meta("nonsense", "rojo=1").trace_context(), None);
        assert_eq!(Meta::new().with("baggage", crate::to_json("k=v")).baggage().as_deref(), Some("k=v"));
        let mut forwarded = Meta::new().with("baggage", RawJson::null());
        forwarded.set_trace_context(&context);
        assert_eq!(
            serde_json::to_string(&forwarded).unwrap(),
            format!(r#"{{"traceparent":"{PARENT}","tracestate":"rojo=1"}}"#),
        );
    }
}
