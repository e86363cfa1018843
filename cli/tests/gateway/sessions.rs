//! The commands of agents and sessions: what each asks of the gateway, and what it prints of the answer.

use serde_json::{Value, json};

use crate::fake::{Fake, Heard, Say, asked};

/// What is answered: lists have two pages.
fn answer(body: &Value) -> Value {
    let first = body["cursor"].is_null();
    let page = |first_page: Value, second: Value| match first {
        true => first_page,
        false => second,
    };
    match body["operation"].as_str().unwrap_or_default() {
        "list-named-agents" => json!({"agents": [{"name": "ann", "model": "m1"}]}),
        "get-named-agent" => json!({"name": "ann", "system_prompt": "Be brief."}),
        "list-agents" => page(
            json!({"items": [{"agentId": "i1", "name": "Bo"}], "nextCursor": "c"}),
            json!({"items": [{"agentId": "i2", "name": "Flo"}]}),
        ),
        "create-agent" | "update-agent" | "create-from-template" => json!({"agentId": "i3"}),
        "list-templates" => json!({"items": [{"templateId": "maven", "name": "Maven"}]}),
        "list-sessions" => page(
            json!({"sessions": [{"id": "s1"}], "next_cursor": "c"}),
            json!({"sessions": [{"id": "s2"}]}),
        ),
        "get-session" => json!({"id": "s", "agent": "ann", "message_count": 2}),
        "list-messages" => page(
            json!({"messages": [{"role": "user", "content": "x"}], "next_cursor": "c"}),
            json!({"messages": [{"role": "assistant", "content": "y"}]}),
        ),
        "compact-session" => {
            json!({"source_session_id": "s", "successor_session_id": "t", "summary_text": "short"})
        }
        "session-lineage" => {
            json!({"session_id": "s", "backward": [{"id": "r"}], "summaries": [{"id": "a"}, {"id": "b"}]})
        }
        "expand-summary" => json!({
            "summary": {"source_session_id": "r", "text": "short", "message_count": 1},
            "messages": [{"role": "user", "content": "x"}],
        }),
        "undo-compaction" => json!({"id": "s"}),
        "export-session" => json!({"form": "threadgraph-session-1", "session": {"id": "s"}}),
        "import-session" => json!({"id": "u"}),
        "list-memories" => page(
            json!({"memories": [{"id": "m1", "object": "Kassel"}], "next_cursor": "c"}),
            json!({"memories": [{"id": "m2", "object": "Graz"}]}),
        ),
        "get-tenant-config" | "put-tenant-config" => {
            json!({"effective": {"compact_keep_last_n": 3}})
        }
        _ => json!({}),
    }
}

async fn gateway() -> Fake {
    Fake::rest(|_, body| (200, json!({"result": answer(body)}))).await
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// Runs a line: each part of `wanted` is in one request, in their order, and each of `prints` in what it prints.
async fn does(line: &str, wanted: &[Value], prints: &[&str]) {
    let fake = gateway().await;
    let printed = fake.tg(&words(line)).await.printed();
    for text in prints {
        assert!(printed.contains(text), "{line}: {text}\n{printed}");
    }
    let sent = asked(&fake);
    assert_eq!(sent.len(), wanted.len(), "{line}: {sent:?}");
    for (sent, wanted) in sent.iter().zip(wanted) {
        for (key, value) in wanted.as_object().into_iter().flatten() {
            assert_eq!(&sent[key], value, "{line}: {key} of {sent}");
        }
    }
    let services = fake.heard().into_iter().filter_map(|heard| match heard {
        Heard::Rest(path, ..) => Some(path),
        _ => None,
    });
    for path in services {
        assert_eq!(path, "/api/v1/sessions", "{line}");
    }
}

#[tokio::test]
async fn agents_are_listed_made_and_deleted() {
    let operation = |name: &str| json!({"operation": name});
    does(
        "list-agents",
        &[operation("list-named-agents")],
        &["ann", "m1"],
    )
    .await;
    let pages = [
        json!({"operation": "list-agents", "cursor": null, "workspace": "acme"}),
        json!({"operation": "list-agents", "cursor": "c", "workspace": "acme"}),
    ];
    let line = "list-agents --of-workspace -w acme";
    does(line, &pages, &["i1", "Bo", "i2", "Flo"]).await;
    let one = json!({"operation": "get-named-agent", "name": "ann"});
    does("show-agent ann", &[one], &["Be brief."]).await;
    let new = json!({
        "operation": "create-agent", "name": "Bo", "description": "d", "systemPrompt": "s",
        "knowledgeBaseIds": ["a", "b"], "ragEnabled": true,
    });
    let line = "put-agent Bo --description d --system-prompt s -C a -C b";
    does(line, &[new], &["i3"]).await;
    let like = json!({"operation": "create-from-template", "templateId": "maven"});
    does("put-agent --template maven", &[like], &["i3"]).await;
    let templates = operation("list-templates");
    does("list-agent-templates", &[templates], &["maven", "Maven"]).await;
    let gone = json!({"operation": "delete-agent", "agent_id": "i1"});
    does("delete-agent i1 -y", &[gone], &["deleted: i1"]).await;
}

/// What is not said stays: nothing else is sent.
#[tokio::test]
async fn an_agent_is_changed_by_what_is_said() {
    let fake = gateway().await;
    let line = words("put-agent --agent-id i --system-prompt s");
    fake.tg(&line).await.printed();
    let expected = json!({"operation": "update-agent", "agent_id": "i", "systemPrompt": "s"});
    assert_eq!(asked(&fake), [expected]);
}

#[tokio::test]
async fn sessions_are_shown_and_shortened() {
    let of = |operation: &str| json!({"operation": operation, "name": "ann", "user_id": "bob"});
    let named = |operation: &str, cursor: Value| {
        let mut asked = of(operation);
        asked["session_id"] = json!("s");
        asked["cursor"] = cursor;
        asked
    };
    let listed = [of("list-sessions"), of("list-sessions")];
    let line = "list-sessions ann --user-id bob";
    does(line, &listed, &["s1", "s2"]).await;
    let shown = [
        named("get-session", Value::Null),
        named("list-messages", Value::Null),
        named("list-messages", json!("c")),
    ];
    let line = "show-session ann --session-id s --user-id bob";
    does(line, &shown, &["user: x", "assistant: y"]).await;
    for (command, operation, prints) in [
        ("compact-session", "compact-session", "goes on in t"),
        ("show-session-lineage", "session-lineage", "> s"),
        ("undo-compaction --yes", "undo-compaction", "\"s\""),
        ("export-session", "export-session", "threadgraph-session-1"),
    ] {
        let line = format!("{command} ann --session-id s --user-id bob");
        does(&line, &[named(operation, Value::Null)], &[prints]).await;
    }
}

#[tokio::test]
async fn a_summary_is_shown_with_what_it_stands_for() {
    let chain = json!({"operation": "session-lineage", "session_id": "s", "user_id": "bob"});
    let newest = json!({"operation": "expand-summary", "session_id": "s", "summary_id": "b", "user_id": "bob"});
    let line = "expand-session-summary ann --session-id s --user-id bob";
    let prints = ["1 messages of session r", "short", "user: x"];
    does(line, &[chain, newest.clone()], &prints).await;
    let mut named = newest;
    named["summary_id"] = json!("a");
    let line = format!("{line} --summary-id a");
    does(&line, &[named], &prints).await;
}

#[tokio::test]
async fn a_session_is_taken_in_from_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("s.json");
    let document = json!({"form": "threadgraph-session-1", "messages": [{"role": "user"}]});
    std::fs::write(&file, document.to_string()).unwrap();
    let fake = gateway().await;
    let file = file.to_string_lossy();
    let line = [
        "import-session",
        "ann",
        "--user-id",
        "bob",
        "--file",
        &*file,
    ];
    assert!(fake.tg(&line).await.printed().contains("\"u\""));
    let sent = asked(&fake);
    assert_eq!(sent.len(), 1);
    let said = &sent[0]["document"]["messages"][0]["role"];
    let who = (&sent[0]["name"], &sent[0]["user_id"], said);
    assert_eq!(who, (&json!("ann"), &json!("bob"), &json!("user")));
    std::fs::write(dir.path().join("s.json"), "no document").unwrap();
    assert!(fake.tg(&line).await.error().exit_code() > 0);
    assert_eq!(asked(&fake).len(), 1);
}

#[tokio::test]
async fn memories_and_settings_are_shown_and_changed() {
    let page =
        |cursor: Value| json!({"operation": "list-memories", "user_id": "bob", "cursor": cursor});
    let pages = [page(Value::Null), page(json!("c"))];
    let line = "list-memories --user-id bob";
    does(line, &pages, &["Kassel", "Graz"]).await;
    let gone = json!({"operation": "forget-memory", "user_id": "bob", "memory_id": "m1"});
    let line = "forget-memory m1 --user-id bob";
    does(line, &[gone], &["forgotten: m1"]).await;
    let shown = json!({"operation": "get-tenant-config"});
    does("show-tenant-config", &[shown], &["compact_keep_last_n"]).await;
    let put =
        json!({"operation": "put-tenant-config", "compact_keep_last_n": 3, "agent_flow": null});
    let line = "set-tenant-config compact_keep_last_n=3 agent_flow=null";
    does(line, &[put], &["compact_keep_last_n"]).await;
}

#[tokio::test]
async fn an_operation_is_called_by_its_name() {
    let one =
        json!({"operation": "get-session", "name": "ann", "session_id": "s", "user_id": "bob"});
    let line = "call get-session name=ann session_id=s user_id=bob";
    does(line, &[one], &["message_count"]).await;
    let line = "call put-tenant-config compact_keep_last_n=3 agent_flow=null";
    let put =
        json!({"operation": "put-tenant-config", "compact_keep_last_n": 3, "agent_flow": null});
    does(line, &[put], &["compact_keep_last_n"]).await;
}

/// What deletes asks for a word first, and sends nothing without it.
#[tokio::test]
async fn nothing_is_deleted_without_a_word() {
    let fake = gateway().await;
    for line in [
        "delete-agent i",
        "undo-compaction ann --session-id s",
        "call delete-agent agent_id=i",
    ] {
        let error = fake.tg(&words(line)).await.error();
        assert!(error.exit_code() > 0 && error.to_string().contains("--yes"));
    }
    assert_eq!(asked(&fake), Vec::<Value>::new());
}

#[tokio::test]
async fn a_refusal_is_the_error_of_the_command() {
    let refusal =
        json!({"error": {"type": "session_not_found", "message": "there is no such session"}});
    let fake = Fake::rest(move |_, _| (200, refusal.clone())).await;
    for line in [
        "show-session ann --session-id s",
        "compact-session ann --session-id s",
        "forget-memory m",
    ] {
        let error = fake.tg(&words(line)).await.error();
        assert!(error.exit_code() > 0, "{line}");
        assert!(error.to_string().contains("no such session"), "{error}");
    }
}

#[tokio::test]
async fn the_health_of_models_is_a_command_of_its_own() {
    let fake = Fake::socket(|_| {
        let health =
            json!([{"model": "m", "provider": "p", "available": false, "reason": "rests"}]);
        vec![Say::Last(json!({"health": health}))]
    })
    .await;
    for line in ["show-model-health -m m", "route --health -m m"] {
        let printed = fake.tg(&words(line)).await.printed();
        assert!(printed.contains("rests"), "{printed}");
    }
    let frames = fake.heard().into_iter().filter_map(|heard| match heard {
        Heard::Frame(frame) if frame["service"] == "chat-completion" => {
            Some(frame["request"].clone())
        }
        _ => None,
    });
    let expected = json!({"operation": "health", "models": ["m"]});
    assert_eq!(frames.collect::<Vec<_>>(), [expected.clone(), expected]);
}
