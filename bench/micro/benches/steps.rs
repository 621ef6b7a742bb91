//! The steps of a call, from the envelope to the encoded reply, and the codecs beside it.

use bench_micro::{params, request, text};
use bowline_proto::{
    encode, envelope,
    params::{Params, RequestMeta},
    seal::{Key, KeyRing},
    sse::{Decoder, EventRef, Limits, encode_event},
    uri::UriTemplate,
};
use bowline_types::{Adapt, CallToolResult, Id, RawJson, Revision};
use divan::{AllocProfiler, Bencher, black_box, counter::BytesCount};

// Shows allocations next to times.
#[global_allocator]
static ALLOCATIONS: AllocProfiler = AllocProfiler::system();

const SIZES: [usize; 2] = [100, 65_536];

fn main() {
    divan::main();
}

#[divan::bench(args = SIZES)]
fn envelope_parse(bencher: Bencher<'_, '_>, size: usize) {
    let frame = request(size);
    bencher.counter(BytesCount::new(frame.len())).bench_local(|| envelope::parse(black_box(&frame)));
}

#[divan::bench(args = SIZES)]
fn params_parse(bencher: Bencher<'_, '_>, size: usize) {
    let raw = RawJson::parse(params(size)).expect("it is JSON");
    bencher
        .counter(BytesCount::new(raw.as_str().len()))
        .bench_local(|| Params::parse(black_box(raw.clone())));
}

#[divan::bench]
fn meta_parse(bencher: Bencher<'_, '_>) {
    let params = Params::parse(RawJson::parse(params(100)).expect("it is JSON")).expect("they are params");
    let meta = params.meta().expect("it is an object").expect("it is there").clone();
    bencher.bench_local(|| RequestMeta::parse(black_box(&meta)));
}

#[divan::bench(args = Revision::ALL)]
fn adapt(bencher: Bencher<'_, '_>, revision: Revision) {
    let result = CallToolResult::text(text(100));
    bencher.with_inputs(|| result.clone()).bench_local_values(|mut result| {
        result.adapt(black_box(revision));
        result
    });
}

#[divan::bench(args = SIZES)]
fn encode_result(bencher: Bencher<'_, '_>, size: usize) {
    let (result, id) = (CallToolResult::text(text(size)), Id::from(10_000_000));
    let mut out = Vec::with_capacity(2 * size + 256);
    bencher.counter(BytesCount::new(size)).bench_local(|| {
        out.clear();
        let encoded = serde_json::to_vec(black_box(&result)).expect("a result serializes");
        encode::write_response(&mut out, &id, &encoded);
        out.len()
    });
}

#[divan::bench(args = SIZES)]
fn sse_encode(bencher: Bencher<'_, '_>, size: usize) {
    let data = request(size);
    let mut out = Vec::with_capacity(2 * data.len() + 64);
    bencher.counter(BytesCount::new(data.len())).bench_local(|| {
        out.clear();
        let event = EventRef { data: black_box(&data), id: Some("7"), ..EventRef::default() };
        encode_event(&mut out, &event).expect("it is text");
        out.len()
    });
}

#[divan::bench(args = SIZES)]
fn sse_decode(bencher: Bencher<'_, '_>, size: usize) {
    let mut stream = Vec::new();
    let data = request(size);
    encode_event(&mut stream, &EventRef { data: &data, ..EventRef::default() }).expect("it is text");
    let mut decoder = Decoder::new(Limits::new(1 << 20, 1 << 20));
    bencher.counter(BytesCount::new(stream.len())).bench_local(|| {
        decoder.feed(black_box(&stream));
        decoder.next().expect("a whole event").expect("a right one").data.len()
    });
}

#[divan::bench]
fn uri_template_parse() -> UriTemplate {
    UriTemplate::parse(black_box("note://{user}/{year}/{+path}{?page,size}")).expect("a right template")
}

#[divan::bench]
fn uri_template_match(bencher: Bencher<'_, '_>) {
    let template = UriTemplate::parse("note://{user}/{year}/{name}").expect("a right template");
    bencher.bench_local(|| {
        template.match_uri(black_box("note://ada/1843/first%20program")).expect("it matches")
    });
}

#[divan::bench]
fn uri_template_expand(bencher: Bencher<'_, '_>) {
    let template = UriTemplate::parse("note://{user}/{year}/{name}").expect("a right template");
    bencher.bench_local(|| template.expand(|_| Some(black_box("first program").into())).expect("texts fit"));
}

fn keys() -> KeyRing {
    KeyRing::new(Key::new([7; 32]))
}

#[divan::bench(args = [100, 4_096])]
fn seal(bencher: Bencher<'_, '_>, size: usize) {
    let (keys, plain) = (keys(), text(size));
    bencher
        .counter(BytesCount::new(size))
        .bench_local(|| keys.seal(black_box(&[9; 32]), b"context", plain.as_bytes()));
}

#[divan::bench(args = [100, 4_096])]
fn seal_open(bencher: Bencher<'_, '_>, size: usize) {
    let keys = keys();
    let sealed = keys.seal(&[9; 32], b"context", text(size).as_bytes());
    bencher
        .counter(BytesCount::new(size))
        .bench_local(|| keys.open(b"context", black_box(&sealed), 1 << 20).expect("it was sealed here"));
}
