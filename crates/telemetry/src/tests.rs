//! Contexts, sampling, bounds, and the form of a request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::otlp::{self, Resource};
use crate::{BYTES, Context, Finished, SPANS, Sampling, Span, SpanKind, Spans, Tracer};

const TOLD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNRECORDED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

fn clock() -> u64 {
    static NOW: AtomicU64 = AtomicU64::new(1_700_000_000_000_000_001);
    NOW.fetch_add(1, Ordering::Relaxed)
}

fn tracer(share: f64) -> (Tracer, Spans) {
    let sampling = Sampling {
        share,
        to_providers: false,
    };
    Tracer::new(sampling, clock)
}

fn named(tracer: &Tracer, traceparent: &str) -> Span {
    tracer.child(SpanKind::Consumer, Some(traceparent), || "a".to_owned())
}

#[test]
fn a_context_is_read_as_w3c_says_and_written_the_same() {
    let read = Context::parse(TOLD).unwrap();
    assert_eq!(read.to_string(), TOLD);
    assert!(read.is_sampled());
    let zeros = format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32));
    let no_span = format!("00-4bf92f3577b34da6a3ce929d0e0e4736-{}-01", "0".repeat(16));
    for wrong in [
        "",
        "00-zz-00-01",
        &TOLD[..54],
        &format!("{TOLD}-"),
        &format!("{TOLD}0"),
        &TOLD.to_uppercase(),
        &TOLD.replace('-', "_"),
        &TOLD.replacen("00", "ff", 1),
        &TOLD.replacen('4', "é", 1),
        &zeros,
        &no_span,
    ] {
        assert_eq!(Context::parse(wrong), None, "{wrong}");
    }
    // What a later version says beside is not ours; of the flags only the one that is known counts.
    let later = format!("{}-more", TOLD.replacen("00", "cc", 1));
    assert_eq!(Context::parse(&later), Some(read));
    let flags = TOLD.replace("-01", "-03");
    assert_eq!(Context::parse(&flags).unwrap().to_string(), TOLD);
    let unflagged = TOLD.replace("-01", "-02");
    assert!(!Context::parse(&unflagged).unwrap().is_sampled());
}

#[test]
fn a_fresh_context_is_its_own_and_is_not_recorded_yet() {
    let (one, other) = (Context::fresh(), Context::fresh());
    assert_ne!(one.to_string()[3..35], other.to_string()[3..35]);
    assert_eq!(Context::parse(&one.to_string()), Some(one));
    assert!(!one.is_sampled());
}

#[test]
fn a_share_of_the_traces_is_recorded_the_same_wherever_that_is_asked() {
    let traces: Vec<String> = (0..4000).map(|_| Context::fresh().to_string()).collect();
    let recorded = |share: f64| -> Vec<bool> {
        let (tracer, _spans) = tracer(share);
        let root = |trace: &String| tracer.root(SpanKind::Server, trace, String::new);
        traces
            .iter()
            .map(|trace| root(trace).is_recorded())
            .collect()
    };
    let count = |share| recorded(share).iter().filter(|yes| **yes).count();
    assert_eq!((count(0.0), count(1.0)), (0, 4000));
    let tenth = count(0.1);
    assert!((250..550).contains(&tenth), "{tenth} of 4000");
    assert_eq!(recorded(0.3), recorded(0.3));
    // A larger share has all that a smaller one has.
    let both = recorded(0.2).into_iter().zip(recorded(0.4));
    assert!(both.into_iter().all(|(smaller, larger)| larger || !smaller));
}

#[test]
fn who_began_a_trace_decides_whether_it_is_recorded() {
    let (never, _spans) = tracer(0.0);
    assert!(named(&never, TOLD).is_recorded());
    let (always, _spans) = tracer(1.0);
    assert!(!named(&always, UNRECORDED).is_recorded());
    assert!(!named(&always, "noise").is_recorded());
    assert!(
        !always
            .child(SpanKind::Client, None, String::new)
            .is_recorded()
    );
}

#[test]
fn a_tracer_that_is_off_does_nothing() {
    let off = Tracer::default();
    let mut span = off.child(SpanKind::Client, Some(TOLD), || {
        unreachable!("no name is made")
    });
    span.say("a", "b");
    span.count("c", 1);
    span.fail("busy");
    let mut traceparent = Some(UNRECORDED.to_owned());
    span.lead(&mut traceparent);
    assert_eq!(traceparent.as_deref(), Some(UNRECORDED));
    assert_eq!((span.traceparent(), span.is_recorded()), (None, false));
    assert_eq!(off.place(Some(TOLD)).for_providers(), None);
    assert_eq!(size_of::<Span>(), size_of::<usize>());
}

#[test]
fn spans_name_their_parents_and_come_out_when_they_end() {
    let (tracer, mut spans) = tracer(1.0);
    let trace = Context::fresh().to_string();
    let root = tracer.root(SpanKind::Server, &trace, || "root".to_owned());
    let mut header = None;
    root.lead(&mut header);
    let place = tracer.place(header.as_deref());
    let inner = place.span(SpanKind::Internal, || "inner".to_owned());
    let innermost = place
        .within(&inner)
        .span(SpanKind::Client, || "innermost".to_owned());
    assert_eq!(spans.waiting(), 0);
    drop((innermost, inner, root));
    let all = spans.here(10);
    let names: Vec<&str> = all.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["innermost", "inner", "root"]);
    let parents: Vec<_> = all.iter().map(|span| span.parent).collect();
    let ids: Vec<_> = all.iter().map(|span| Some(span.context.span)).collect();
    assert_eq!(parents, [ids[1], ids[2], None]);
    assert!(
        all.iter()
            .all(|span| span.context.trace == all[0].context.trace)
    );
    assert_eq!(&trace[3..35], &all[0].context.to_string()[3..35]);
    assert!(all.iter().all(|span| span.began < span.ended));
}

#[test]
fn only_where_a_setting_says_so_a_provider_is_told() {
    for told in [false, true] {
        let sampling = Sampling {
            share: 1.0,
            to_providers: told,
        };
        let (tracer, _spans) = Tracer::new(sampling, clock);
        let place = tracer.place(Some(TOLD));
        assert_eq!(place.for_providers().as_deref(), told.then_some(TOLD));
        assert_eq!(tracer.place(Some(UNRECORDED)).for_providers(), None);
    }
}

#[test]
fn what_a_span_says_is_bounded() {
    let (tracer, mut spans) = tracer(1.0);
    let mut span = named(&tracer, TOLD);
    span.say("long", &"é".repeat(1000));
    span.say("empty", "");
    span.say("long", &"ü".repeat(1000));
    for _ in 0..100 {
        span.count("same", 7);
    }
    const NAMES: [&str; 20] = [
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r",
        "s", "t",
    ];
    for name in NAMES {
        span.count(name, 1);
    }
    drop(span);
    let said = spans.here(1).remove(0).attributes;
    assert_eq!(said.len(), 16);
    assert_eq!(said[0].1, crate::Value::Text("ü".repeat(128)));
    assert_eq!(said[1], ("same", crate::Value::Number(7)));
}

#[test]
fn beyond_its_bounds_the_queue_takes_nothing_and_nobody_waits() {
    let (tracer, mut spans) = tracer(1.0);
    for _ in 0..SPANS + 100 {
        drop(named(&tracer, TOLD));
    }
    assert_eq!(spans.waiting(), SPANS);
    assert_eq!(spans.here(usize::MAX).len(), SPANS);
    let large = || {
        let mut span = named(&tracer, TOLD);
        for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            span.say(name, &"x".repeat(256));
        }
    };
    (0..SPANS).for_each(|_| large());
    let held = spans.here(usize::MAX);
    let bytes: usize = held.iter().map(Finished::bytes).sum();
    assert!(
        held.len() < SPANS && bytes <= BYTES,
        "{} spans, {bytes}",
        held.len()
    );
    assert!(bytes + 4096 > BYTES, "{bytes}");
    // What was taken out makes room.
    large();
    assert_eq!(spans.here(10).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_what_comes_within_a_moment() {
    let (tracer, mut spans) = tracer(1.0);
    let moment = Duration::from_secs(1);
    let later = async {
        for pause in [300, 300, 600, 800] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            drop(named(&tracer, TOLD));
        }
    };
    let mut batch = Vec::new();
    tokio::join!(spans.fill(&mut batch, 10, moment), later);
    assert_eq!(batch.len(), 3);
    // Full at once, and what was taken is not taken again by who stops waiting.
    batch.clear();
    spans.fill(&mut batch, 1, moment * 1000).await;
    assert_eq!(batch.len(), 1);
    drop(named(&tracer, TOLD));
    let began = tokio::time::Instant::now();
    let stopped = tokio::time::timeout(moment / 2, spans.fill(&mut batch, 10, moment)).await;
    assert!(stopped.is_err() && batch.len() == 2);
    assert_eq!(began.elapsed(), moment / 2);
    drop(tracer);
    batch.clear();
    spans.fill(&mut batch, 1, moment).await;
    assert_eq!(batch, []);
}

/// The request, read back as OTLP says that JSON is read.
#[test]
fn a_request_is_as_otlp_has_it_in_json() {
    let (tracer, mut spans) = tracer(1.0);
    let place = tracer.place(Some(TOLD));
    let mut span = place.span(SpanKind::Client, || "chat \"m\"\n".to_owned());
    span.say("gen_ai.request.model", "m/2 ü");
    span.count("gen_ai.usage.input_tokens", 12);
    span.fail("timeout");
    let own = span.traceparent().unwrap();
    drop(span);
    let root = tracer.root(SpanKind::Server, UNRECORDED, || "rest agent".to_owned());
    drop(root);
    let all = spans.here(10);
    let of = Resource {
        service: "threadgraph".to_owned(),
        version: "0.1.0",
        instance: "tg.inbox.up.1".to_owned(),
    };
    let text = otlp::request(&of, &all);
    let told: Json = serde_json::from_slice(text.as_bytes()).unwrap();
    let said = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
    assert_eq!(
        told["resourceSpans"][0]["resource"]["attributes"],
        json!([
            said("service.name", "threadgraph"),
            said("service.version", "0.1.0"),
            said("service.instance.id", "tg.inbox.up.1")
        ])
    );
    let scope = &told["resourceSpans"][0]["scopeSpans"][0];
    assert_eq!(
        scope["scope"],
        json!({"name": "threadgraph", "version": "0.1.0"})
    );
    assert_eq!(
        scope["spans"][0],
        json!({
            "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
            "spanId": &own[36..52],
            "parentSpanId": "00f067aa0ba902b7",
            "flags": 1,
            "name": "chat \"m\"\n",
            "kind": 3,
            "startTimeUnixNano": all[0].began.to_string(),
            "endTimeUnixNano": all[0].ended.to_string(),
            "attributes": [
                said("gen_ai.request.model", "m/2 ü"),
                {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "12"}},
                said("error.type", "timeout")
            ],
            "status": {"code": 2}
        })
    );
    let root = &scope["spans"][1];
    assert_eq!((&root["kind"], root.get("parentSpanId")), (&json!(2), None));
    assert_eq!(root.get("status"), None);
}
