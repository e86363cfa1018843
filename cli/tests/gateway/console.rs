//! `tg console` over a script, line by line (line 150 of the contract), and what Ctrl-C stops.

use std::io::Write;

use serde_json::{Value, json};
use tg_cli::client::Error;
use tg_cli::interrupt::Interrupt;

use crate::fake::{Fake, Heard, Say, bounded};

const THREAD: &str = "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70";

fn script(lines: &[&str]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(lines.join("\n").as_bytes()).unwrap();
    file
}

fn told(frame: &Value) -> Vec<Say> {
    let reply = |response: Value, last: bool| match last {
        true => Say::Last(response),
        false => Say::Part(response),
    };
    let request = &frame["request"];
    let prompt = |output: &str, source: &str| {
        let payload = json!({"output": output, "source": source, "show_banner": false});
        json!({"thread": THREAD, "from": "console-router", "type": "consoleprompt", "payload": payload})
    };
    match (
        request["operation"].as_str(),
        request["payload"]["target"].as_str(),
    ) {
        (Some("list-listeners"), _) => {
            let one = json!({"name": "greeter", "description": "Greets.", "types": ["textinput"], "agent": false});
            vec![reply(json!({"listeners": [one]}), true)]
        }
        (Some("list-refused-listeners"), _) => {
            let one = json!({"name": "mute", "why": "the description is required"});
            vec![reply(json!({"refused": [one]}), true)]
        }
        (Some("send-message"), Some("greeter")) => vec![
            reply(json!({"thread": THREAD, "end-of-stream": false}), false),
            reply(
                json!({"source": "greeter", "chunk": "hello ", "end-of-stream": false}),
                false,
            ),
            reply(
                json!({"source": "greeter", "chunk": "you", "end-of-stream": false}),
                false,
            ),
            reply(
                json!({"messages": [prompt("hello you", "greeter")], "end-of-stream": false}),
                false,
            ),
            reply(json!({"thread": THREAD, "end-of-stream": true}), true),
        ],
        (Some("send-message"), Some("slow")) => {
            vec![reply(
                json!({"thread": THREAD, "end-of-stream": false}),
                false,
            )]
        }
        (Some("send-message"), _) => vec![
            reply(
                json!({"messages": [prompt("No.\nNo.", "system")], "end-of-stream": false}),
                false,
            ),
            reply(json!({"thread": THREAD, "end-of-stream": true}), true),
        ],
        (Some("close-thread"), _) => vec![reply(json!({"closed": 2}), true)],
        _ => Vec::new(),
    }
}

fn asks(heard: &Heard) -> bool {
    matches!(heard, Heard::Frame(frame) if frame["service"] == "threads")
}

/// What the service was asked, in order.
fn asked(fake: &Fake) -> Vec<Value> {
    let frame = |heard| match heard {
        Heard::Frame(frame) => Some(frame),
        _ => None,
    };
    fake.heard()
        .into_iter()
        .filter(asks)
        .filter_map(frame)
        .collect()
}

#[tokio::test]
async fn line_150_a_script_is_followed() {
    let fake = Fake::socket(told).await;
    let lines = [
        "",
        "/listeners",
        "hi",
        "@greeter hi",
        "@nobody hi",
        "/dance",
        "/status",
        "/history",
        "/quit",
        "@greeter never",
    ];
    let file = script(&lines);
    let path = file.path().to_string_lossy();
    let ran = bounded(fake.tg(&["console", "-i", &path])).await;
    let seen: Vec<_> = asked(&fake)
        .iter()
        .map(|frame| {
            let request = &frame["request"];
            let one = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
            (one("operation"), one("thread"), request["payload"].clone())
        })
        .collect();
    let none = || Value::Null;
    let line = |target: &str| json!({"text": "hi", "target": target});
    let expected = [
        ("list-listeners", "", none()),
        ("list-refused-listeners", "", none()),
        ("send-message", "", line("greeter")),
        ("send-message", THREAD, line("nobody")),
        ("close-thread", THREAD, none()),
    ];
    let expected: Vec<_> = expected
        .into_iter()
        .map(|(operation, thread, body)| (operation.to_owned(), thread.to_owned(), body))
        .collect();
    assert_eq!(seen, expected);
    let talk = ran.talk.clone();
    for said in [
        "Write '@listener text'",
        "Begin with '@'",
        "unknown command",
        "running, thread 6f1f6a52\nits whole id: 6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70\n",
        "> @greeter hi\n[greeter] hello you\n> @nobody hi",
    ] {
        assert!(talk.contains(said), "{said} is not in {talk}");
    }
    let shown = "greeter  Greets.\nleft out: mute: the description is required\n[greeter] hello you\n\
                 [system] No.\n[system] No.\n";
    assert_eq!(ran.printed(), shown);
}

#[tokio::test]
async fn why_asks_for_a_thread_by_its_whole_id_alone() {
    let fake = Fake::rest(|_, body| match body["operation"].as_str() {
        Some("show-thread") => (
            200,
            json!({"chain": ["system", "mesh", "gateway", "writer"]}),
        ),
        Some("list-listeners") => (200, json!({"listeners": [{"name": "shouter"}]})),
        _ => (200, json!({"why": []})),
    })
    .await;
    let ran = bounded(fake.tg(&["why", "--thread", "6f1f6a52"])).await;
    let why = ran.error().to_string();
    assert!(
        why.contains("must be a whole id") && why.contains("/status"),
        "{why}"
    );
    assert_eq!(fake.heard(), []);
    let ran = bounded(fake.tg(&["why", "--json", "--thread", THREAD])).await;
    let told: Value = serde_json::from_str(&ran.printed()).unwrap();
    assert_eq!(
        (&told[0]["subject"], &told[0]["state"]),
        (&json!(THREAD), &json!("left"))
    );
}

#[tokio::test]
async fn a_thread_is_closed_in_its_flow_and_at_its_end() {
    let fake = Fake::rest(|_, body| {
        let wanted =
            json!({"operation": "close-thread", "flow": "f", "thread": THREAD, "console": true});
        let closed = if *body == wanted { 2 } else { 0 };
        (200, json!({"closed": closed}))
    })
    .await;
    let ran = bounded(fake.tg(&["close-thread", THREAD, "-f", "f", "--console"])).await;
    assert_eq!(ran.printed().trim_end(), "Ended: 2 threads");
    let ran = bounded(fake.tg(&["close-thread", THREAD, "-f", "f"])).await;
    assert!(ran.printed().starts_with("Nothing ended"));
}

#[tokio::test]
async fn ctrl_c_stops_what_runs() {
    let fake = Fake::socket(told).await;
    let file = script(&["@slow hi", "@greeter never"]);
    let path = file.path().to_string_lossy().into_owned();
    let (switch, interrupt) = Interrupt::manual();
    let line = ["console", "-i", path.as_str()];
    let (ran, ()) = tokio::join!(bounded(fake.tg_until(&line, interrupt)), async {
        fake.hears(asks).await;
        switch.send_replace(true);
    });
    assert!(matches!(ran.error(), Error::Interrupted));
    assert_eq!(asked(&fake).len(), 1);
}
