//! `huh` and `SystemError`: the same whatever the cause, and never from a handler.

use base64::Engine as _;
use serde_json::{Value, json};
use tg_threads::{BadListener, Directory, Kind, Listener, Outcome, Turn};

use crate::world::{Mesh, agent, caller, object, says, tool};

fn adder() -> Listener {
    let schema =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}});
    Listener::new("calculator.add", "Adds.", Kind::Tool)
        .and_then(|adder| adder.takes("add", object(schema)))
        .unwrap()
}

/// 143: who is no peer and who does not exist are the same, byte by byte; the log knows.
#[test]
fn line_143_not_a_peer_and_not_there_are_one() {
    let mut mesh = Mesh::of([
        agent("greeter", &["shouter"]),
        tool("shouter"),
        tool("logger"),
    ]);
    let mut step = 0;
    mesh.handles("greeter", move |_| {
        step += 1;
        match step {
            1 => Turn::forward("logger", "textinput", says("x")),
            2 => Turn::forward("nosuch", "textinput", says("x")),
            3 => Turn::forward("shouter", "textinput", says("x")),
            _ => Turn::respond("textinput", says("done")),
        }
    });
    mesh.handles("shouter", |_| Turn::respond("textinput", says("X")));
    let first = mesh.send("greeter", "x");
    let got = mesh.got_by("greeter");
    let (one, two) = (got[1].envelope(), got[2].envelope());
    assert_eq!(
        serde_json::to_vec(one).unwrap(),
        serde_json::to_vec(two).unwrap()
    );
    assert_eq!(
        (one.thread, one.from.as_str(), one.kind.as_str()),
        (first, "system", "systemerror")
    );
    let said = r#"{"code":"routing","message":"Message could not be delivered. Please verify your target and try again.","retry_allowed":true}"#;
    assert_eq!(serde_json::to_string(&one.payload).unwrap(), said);
    let wanted: Vec<_> = mesh.notes.iter().map(|note| note.wanted.as_str()).collect();
    assert_eq!(wanted, ["logger", "nosuch"]);
    let why = "not a peer, or no such listener; allowed are: shouter";
    assert!(mesh.notes.iter().all(|note| note.why == why));
    assert_eq!(mesh.out[0].content().text("text"), "done");
    assert!(mesh.got_by("logger").is_empty());
}

/// 145: four causes, one answer but for the attempt, of which the first 4 096 bytes come back.
#[test]
fn line_145_huhs_are_one() {
    let mut mesh = Mesh::of([adder()]);
    let thread = tg_threads::ThreadId::parse("6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70").ok();
    for (to, kind, raw) in [
        ("calculator.add", "add", "not json"),
        ("calculator.add", "add", r#"{"a":"x"}"#),
        ("calculator.add", "sub", r#"{"a":1}"#),
        ("ghost", "add", r#"{"a":1}"#),
        ("calculator.add", "add", "[1]"),
        ("system.boot", "boot", "{}"),
        ("Not a name", "Not a type", "{}"),
    ] {
        mesh.external(caller(thread), to, kind, raw.as_bytes());
        let mut out = serde_json::to_value(mesh.out.last().unwrap()).unwrap();
        let attempt = out["payload"]["original_attempt"].take();
        let raw = base64::engine::general_purpose::STANDARD.encode(raw);
        assert_eq!(attempt, Value::String(raw));
        let mut first = serde_json::to_value(&mesh.out[0]).unwrap();
        first["payload"]["original_attempt"].take();
        assert_eq!(out.to_string(), first.to_string());
        assert_eq!(out["payload"]["error"], "Invalid payload structure");
    }
    mesh.external(caller(None), "calculator.add", "add", &[b'x'; 10_000]);
    let attempt = mesh
        .out
        .last()
        .unwrap()
        .content()
        .text("original_attempt")
        .to_owned();
    let back = base64::engine::general_purpose::STANDARD
        .decode(attempt)
        .unwrap();
    assert_eq!(back, [b'x'; 4096]);
    assert_eq!(mesh.pump.registry().live(), 0);
}

/// 146: what only the system says, nobody else says; who something is from is not the handler's to tell.
#[test]
fn line_146_the_systems_payloads_are_refused() {
    for reserved in ["systemerror", "huh", "boot"] {
        let mut mesh = Mesh::of([tool("liar"), tool("other")]);
        mesh.handles("liar", move |got| match got.envelope().kind.as_str() {
            "huh" => Turn::respond("textinput", json!({"text": "sorry", "from": "system"})),
            _ => Turn::respond(reserved, json!({"code": "routing"})),
        });
        mesh.send("liar", "x");
        assert_eq!(mesh.got_by("liar")[1].envelope().from.as_str(), "system");
        let out = &mesh.out[0];
        assert_eq!(
            (out.from.as_str(), out.kind.as_str()),
            ("liar", "textinput")
        );
        mesh.handles("liar", move |got| match got.envelope().kind.as_str() {
            "huh" => Turn::none(),
            _ => Turn::forward("other", reserved, json!({})),
        });
        mesh.send("liar", "x");
        assert!(mesh.got_by("other").is_empty());
        // Nobody can register to take it either.
        let taken = tool("other").takes(reserved, object(json!({})));
        assert!(matches!(taken, Err(BadListener::Type(_))), "{reserved}");
    }
}

/// 147: a handler that failed becomes an error for its caller; why is only noted.
#[test]
fn line_147_a_failed_handler_is_told() {
    let mut mesh = Mesh::of([tool("caller"), tool("broken")]);
    mesh.handles("caller", |got| match got.envelope().kind.as_str() {
        "systemerror" => Turn::respond("textinput", says(got.envelope().content().text("message"))),
        _ => Turn::forward("broken", "textinput", says("x")),
    });
    mesh.ends("broken", |_| Outcome::Failed("secret detail".to_owned()));
    let first = mesh.send("caller", "x");
    let error = mesh.got_by("caller")[1].envelope();
    assert_eq!((error.from.as_str(), error.thread), ("system", first));
    let said = json!({"code": "validation",
        "message": "Message could not be processed. Please check its content and try again.",
        "retry_allowed": true});
    assert_eq!(serde_json::to_value(&error.payload).unwrap(), said);
    assert_eq!(mesh.got_by("broken").len(), 1);
    assert!(
        mesh.notes
            .iter()
            .any(|note| note.why.contains("secret detail"))
    );
    // Nobody there, and no reply in time.
    for (outcome, code) in [
        (Outcome::Unserved, "routing"),
        (Outcome::TimedOut, "timeout"),
    ] {
        mesh.ends("broken", move |_| outcome.clone());
        mesh.send("caller", "x");
        let error = mesh.got_by("caller").last().unwrap().envelope().content();
        assert_eq!(error.text("code"), code);
    }
}

/// A payload that the target does not take comes back as huh; three in a row end the turn.
#[test]
fn three_huhs_end_a_turn() {
    let mut mesh = Mesh::of([agent("clumsy", &["calculator.add"]), adder()]);
    mesh.handles("clumsy", |_| {
        Turn::forward("calculator.add", "add", json!({"a": "x"}))
    });
    mesh.send("clumsy", "x");
    let kinds: Vec<_> = mesh
        .got
        .iter()
        .map(|got| got.envelope().kind.as_str())
        .collect();
    assert_eq!(kinds, ["textinput", "huh", "huh"]);
    assert_eq!(mesh.out[0].content().text("code"), "validation");
    // What is no return at all is huh too.
    mesh.ends("clumsy", |_| Outcome::Unreadable(b"nonsense".to_vec()));
    mesh.send("clumsy", "x");
    assert_eq!(mesh.out[1].content().text("code"), "validation");
}

/// 149: an agent is told of its peers, and of nobody else.
#[test]
fn line_149_usage_names_the_peers() {
    let mesh = Mesh::of([
        agent("boss", &["calculator.add", "missing"]),
        agent("other", &[]),
        adder(),
        tool("logger"),
    ]);
    let boss = mesh.directory.get("boss").unwrap();
    let usage = mesh.directory.usage(boss.name()).unwrap();
    for part in [
        "You are boss. The agent boss.",
        "calculator.add: Adds.",
        r#"{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}"#,
        r#"for example {"a":1}"#,
        "When you respond, your call ends",
        "Finish all sub-tasks",
    ] {
        assert!(usage.contains(part), "{part} is not in {usage}");
    }
    for part in ["missing", "logger", "other", "console"] {
        assert!(!usage.contains(part), "{part} is in {usage}");
    }
    let logger = mesh.directory.get("logger").unwrap();
    assert!(mesh.directory.usage(logger.name()).is_none());
}

/// What ended by itself is not gone on with: of one return there is one answer at most.
#[test]
fn a_turn_ends_once() {
    let mut mesh = Mesh::of([agent("clumsy", &["calculator.add"]), adder()]);
    mesh.handles("clumsy", |got| match got.envelope().kind.as_str() {
        "textinput" => {
            let bad = |turn: Turn, _| turn.and_forward("nosuch", "textinput", says("x"));
            let turn = (0..64).fold(Turn::none(), bad);
            turn.and_respond("textinput", says("done"))
        }
        _ => Turn::none(),
    });
    mesh.send("clumsy", "x");
    let codes: Vec<_> = mesh
        .out
        .iter()
        .map(|out| out.content().text("code").to_owned())
        .collect();
    assert_eq!(codes, ["timeout"]);
    // So it is after three that cannot be processed.
    mesh.handles("clumsy", |got| match got.envelope().kind.as_str() {
        "textinput" => {
            let bad = |turn: Turn, _| turn.and_forward("calculator.add", "add", json!({"a": "x"}));
            let turn = (0..64).fold(Turn::none(), bad);
            turn.and_respond("textinput", says("done"))
        }
        _ => Turn::none(),
    });
    mesh.send("clumsy", "x");
    assert_eq!(mesh.out.len(), 2);
    assert_eq!(mesh.out[1].content().text("code"), "validation");
}

/// Of what a listener says of its failure the log has the beginning.
#[test]
fn the_log_is_told_so_much() {
    let mut mesh = Mesh::of([tool("broken")]);
    mesh.ends("broken", |_| Outcome::Failed("ä".repeat(100_000)));
    mesh.send("broken", "x");
    assert_eq!(mesh.notes[0].why, "ä".repeat(512));
}

/// All listeners together have so many patterns: a listener beyond is left out, and another one without any is not.
#[test]
fn all_patterns_have_a_bound() {
    let patterned = |n: usize| {
        let names = (0..32).map(|n| (format!("^a{n}"), json!({})));
        let schema = json!({"patternProperties": names.collect::<serde_json::Map<_, _>>()});
        Listener::new(&format!("l{n}"), "Has patterns.", Kind::Tool)
            .and_then(|one| one.takes("textinput", object(schema)))
            .unwrap()
    };
    let listeners = (0..9).map(patterned).chain([tool("plain")]);
    let (directory, refused) = Directory::new(listeners);
    let refused: Vec<_> = refused
        .iter()
        .map(|(name, why)| (name.as_str(), *why))
        .collect();
    assert_eq!(refused, [("l8", BadListener::Patterns)]);
    assert!(directory.get("l7").is_some() && directory.get("plain").is_some());
}

/// What an agent is told has a bound; the warning stands at its end all the same.
#[test]
fn usage_has_a_bound() {
    let names: Vec<_> = (0..200).map(|n| format!("peer-{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let large = |name: &&str| Listener::new(name, &"x".repeat(4000), Kind::Tool).unwrap();
    let boss = agent("boss", &names);
    let mesh = Mesh::of(names.iter().map(large).chain([boss.clone()]));
    let usage = mesh.directory.usage(boss.name()).unwrap();
    assert!(
        usage.len() > 200 << 10 && usage.len() <= 256 << 10,
        "{}",
        usage.len()
    );
    assert!(usage.contains("There are more") && usage.ends_with("before you respond.\n"));
}
