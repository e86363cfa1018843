//! `tg chat --agent` as a program that reads lines: a session that is shortened on the way goes on without notice (line 132 of the
//! contract).

use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::fake::{Fake, Heard, Say, asked, bounded};

/// Runs the program with these lines; its exit code and what it printed.
async fn talk(url: &str, lines: &str) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tg"));
    command.args(["chat", "--agent", "ann", "--user-id", "bob", "-u", url]);
    command.env("XDG_CONFIG_HOME", "/nowhere");
    for name in ["URL", "TOKEN", "WORKSPACE", "PROFILE"] {
        command.env_remove(format!("THREADGRAPH_{name}"));
        command.env_remove(format!("TRUSTGRAPH_{name}"));
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).kill_on_drop(true);
    let mut program = command.spawn().unwrap();
    let mut stdin = program.stdin.take().unwrap();
    stdin.write_all(lines.as_bytes()).await.unwrap();
    drop(stdin);
    let output = bounded(program.wait_with_output()).await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), printed)
}

#[tokio::test]
async fn line_132_a_session_that_is_shortened_goes_on_without_notice() {
    let fake = Fake::rest(|_, body| {
        let result = match body["operation"].as_str() {
            Some("create-session") => json!({"id": "s1"}),
            _ => {
                let text = body["message"].as_str().unwrap_or_default();
                json!({"content": format!("re {text}"), "session_id": "s2",
                       "compacted": {"from": "s1", "to": "s2", "tokens": 9}})
            }
        };
        (200, json!({"result": result}))
    })
    .await;
    let (code, printed) = talk(&fake.url, "one\ntwo\n").await;
    assert_eq!((code, printed.as_str()), (Some(0), "re one\nre two\n"));
    let sent: Vec<Value> = asked(&fake);
    let sent = sent.iter().filter(|one| one["operation"] == "send-message");
    let sessions: Vec<_> = sent.map(|one| one["session_id"].clone()).collect();
    assert_eq!(sessions, ["s1", "s2"]);
}

/// Somebody else had it shortened, or it was shortened long ago.
#[tokio::test]
async fn line_132_an_archived_session_goes_on_in_its_successor() {
    let fake = Fake::rest(|_, body| {
        let operation = body["operation"].as_str().unwrap_or_default();
        let told = match (operation, body["session_id"].as_str()) {
            ("session-lineage", _) => {
                json!({"result": {"session_id": "s1", "live_session_id": "s3"}})
            }
            (_, Some("s3")) => json!({"result": {"content": "there", "session_id": "s3"}}),
            _ => json!({"error": {"type": "session_archived", "message": "m",
                                  "successor_session_id": "s2"}}),
        };
        (200, told)
    })
    .await;
    let line = [
        "chat",
        "--agent",
        "ann",
        "--session-id",
        "s1",
        "-q",
        "where?",
    ];
    assert_eq!(fake.tg(&line).await.printed(), "there\n");
    let sent: Vec<Value> = asked(&fake);
    let sent = sent.iter().filter(|one| one["operation"] == "send-message");
    let sessions: Vec<_> = sent.map(|one| one["session_id"].clone()).collect();
    assert_eq!(sessions, ["s1", "s3"]);
}

#[tokio::test]
async fn words_behind_a_slash_are_for_the_program() {
    let made = AtomicUsize::new(0);
    let fake = Fake::rest(move |_, body| {
        let result = match body["operation"].as_str() {
            Some("create-session") => {
                let number = made.fetch_add(1, Ordering::Relaxed) + 1;
                json!({"id": format!("s{number}")})
            }
            _ => json!({"content": body["message"], "session_id": body["session_id"]}),
        };
        (200, json!({"result": result}))
    })
    .await;
    let lines = "/session\none\n/new\n/odd\ntwo\n/help\nthree\n/quit\nfour\n";
    let (code, printed) = talk(&fake.url, lines).await;
    assert_eq!((code, printed.as_str()), (Some(0), "one\ntwo\nthree\n"));
    let sent: Vec<Value> = asked(&fake);
    let sent = sent.iter().filter(|one| one["operation"] == "send-message");
    let sessions: Vec<_> = sent.map(|one| one["session_id"].clone()).collect();
    assert_eq!(sessions, ["s1", "s2", "s2"]);
}

#[tokio::test]
async fn line_132_a_wrong_token_is_an_error() {
    let fake = Fake::rest(|_, _| (401, json!({"error": "auth failure"}))).await;
    let (code, printed) = talk(&fake.url, "one\n").await;
    assert_eq!((code, printed.as_str()), (Some(1), ""));
}

/// An event of a turn.
fn event(name: &str, data: Value) -> Value {
    json!({"event": name, "data": data})
}

#[tokio::test]
async fn at_a_terminal_an_answer_is_printed_as_it_comes() {
    let fake = Fake::socket(|frame| {
        let token = |text: &str| Say::Part(event("token", json!({"delta": text})));
        match frame["request"]["message"].as_str() {
            Some("look") => vec![
                Say::Part(event("user-message", json!({"content": "look"}))),
                token("let me see"),
                Say::Part(event("token-reset", json!({}))),
                Say::Part(event("tool-call", json!({"toolName": "search"}))),
                token("it is "),
                token("there"),
                Say::Last(event(
                    "done",
                    json!({"content": "it is there", "session_id": "s2"}),
                )),
            ],
            Some("short") => vec![Say::Last(event("done", json!({"content": "whole"})))],
            _ => vec![
                token("half of"),
                Say::Last(json!({"error": {"type": "upstream_error", "message": "m"}})),
            ],
        }
    })
    .await;
    let talk = ["chat", "--agent", "ann", "--session-id", "s1", "-q"];
    let ran = |text| {
        let line = talk.iter().copied().chain([text]).collect::<Vec<_>>();
        let fake = fake.clone();
        async move { fake.tg_at(80, &line).await }
    };
    let looked = ran("look").await;
    assert!(looked.talk.contains("[search]"), "{}", looked.talk);
    assert_eq!(looked.printed(), "let me see\nit is there\n");
    assert_eq!(ran("short").await.printed(), "whole\n");
    let failed = ran("fail").await;
    assert_eq!(failed.data, "half of\n");
    assert!(failed.error().exit_code() > 0);
    let asked = fake.heard().into_iter().filter_map(|heard| match heard {
        Heard::Frame(frame) if frame["service"] == "sessions" => Some(frame["request"].clone()),
        _ => None,
    });
    for request in asked {
        assert_eq!(
            (&request["streaming"], &request["session_id"]),
            (&json!(true), &json!("s1"))
        );
    }
}
