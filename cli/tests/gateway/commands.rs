//! Commands over single requests: what they ask, what they print, what they return.

use serde_json::{Value, json};

use crate::fake::{Fake, Heard, Say, asked};

/// A gateway that answers every REST request with one body.
async fn answering(body: Value) -> Fake {
    Fake::rest(move |_, _| (200, body.clone())).await
}

#[tokio::test]
async fn the_first_key_alone_is_data() {
    let fake = answering(json!({"bootstrap_admin_user_id": "u1",
        "bootstrap_admin_api_key": "tg_secret"}))
    .await;
    let ran = fake.tg(&["bootstrap-iam"]).await;
    assert!(ran.talk.contains("u1"));
    for next in ["tg login", "TRUSTGRAPH_TOKEN"] {
        assert!(ran.talk.contains(next), "{next} in {}", ran.talk);
    }
    assert_eq!(ran.printed(), "tg_secret\n");

    let fake = answering(json!({"bootstrap_available": false})).await;
    assert_eq!(fake.tg(&["bootstrap-iam"]).await.error().exit_code(), 5);
}

#[tokio::test]
async fn a_config_item_that_is_not_there_is_not_found() {
    let fake = answering(json!({"values": [{"type": "t", "key": "k", "value": null}]})).await;
    let line = ["get-config-item", "--type", "t", "--key", "k", "-w", "acme"];
    assert_eq!(fake.tg(&line).await.error().exit_code(), 3);
    assert_eq!(
        asked(&fake),
        [json!({"operation": "get", "keys": [{"type": "t", "key": "k"}], "workspace": "acme"})]
    );

    let fake =
        answering(json!({"values": [{"type": "t", "key": "k", "value": "{\"a\":1}"}]})).await;
    assert_eq!(fake.tg(&line).await.printed(), "{\"a\":1}\n");
}

#[tokio::test]
async fn faults_of_a_blueprint_are_listed_and_fail() {
    let fake = answering(json!({"faults": [{"path": "flow.x", "message": "no such thing"}]})).await;
    let ran = fake.tg(&["check-blueprint", "-c", "{\"flow\": {}}"]).await;
    assert!(ran.data.contains("flow.x") && ran.data.contains("no such thing"));
    assert_eq!(ran.error().exit_code(), 2);
    assert_eq!(asked(&fake)[0]["blueprint-definition"], "{\"flow\":{}}");

    let fake = answering(json!({"faults": []})).await;
    let ran = fake.tg(&["check-blueprint", "-c", "{}"]).await;
    assert_eq!(ran.printed(), "No faults.\n");
}

#[tokio::test]
async fn stopping_a_flow_prints_its_receipt() {
    let fake = answering(json!({"receipt": {
        "queues": [{"subscription": "agent-step", "sent": 3, "answered": 0, "finished": 2, "parked": 1, "discarded": 0}],
        "queues-removed": 12, "exchanges-removed": 7}}))
    .await;
    let ran = fake
        .tg(&["stop-flow", "-i", "f", "--drain", "park", "--dry-run"])
        .await;
    assert!(ran.data.contains("agent-step"));
    assert!(ran.data.contains("Queues to remove: 12"));
    let idle = answering(json!({"receipt": {"queues": [], "queues-removed": 12}})).await;
    assert_eq!(
        idle.tg(&["stop-flow", "f"]).await.printed(),
        "Receipt of flow f\nQueues removed: 12  Exchanges removed: 0\n\
         Flow f is stopped; no messages were waiting.\n"
    );
    assert_eq!(
        asked(&fake),
        [json!({"operation": "stop-flow", "flow-id": "f", "drain": "park", "dry-run": true})]
    );

    let foreign = answering(json!({"flow-ids": []})).await;
    assert_eq!(foreign.tg(&["stop-flow", "-i", "f"]).await.printed(), "");
    assert_eq!(
        asked(&foreign),
        [json!({"operation": "stop-flow", "flow-id": "f"})]
    );
}

#[tokio::test]
async fn starting_a_flow_is_told_needs_no_description_and_sends_text() {
    let fake = answering(json!({"flow-ids": []})).await;
    let line = ["start-flow", "-n", "b", "-i", "f", "-p", "{\"t\": 0.3}"];
    let ran = fake.tg(&line).await;
    assert!(ran.talk.contains("Flow f is started."), "{}", ran.talk);
    assert_eq!(ran.printed(), "");
    assert_eq!(asked(&fake)[0]["parameters"], json!({"t": "0.3"}));
}

#[tokio::test]
async fn a_flow_that_ran_before_is_told_from_one_that_is_started() {
    for (said, told) in [
        (
            json!({"status": "running", "processors": 34}),
            "Flow f is started (34 processors).",
        ),
        (
            json!({"status": "running", "processors": 34, "already-running": true}),
            "Flow f runs already (34 processors).",
        ),
        (
            json!({"status": "running", "processors": 1, "waiting-for": ["prompt"]}),
            "Flow f is there, but these do not serve it yet: prompt",
        ),
    ] {
        let fake = answering(json!({"flow": said.to_string()})).await;
        let ran = fake.tg(&["start-flow", "-n", "b", "f"]).await;
        assert!(ran.talk.contains(told), "{told} in {}", ran.talk);
    }
}

#[tokio::test]
async fn dead_letters_and_parked_records_are_listed_by_that_word_too() {
    for (command, reason) in [("dead-letters", "dead"), ("parked", "parked")] {
        let fake = answering(json!({"put-aside": []})).await;
        assert_eq!(fake.tg(&[command, "list"]).await.printed(), "None.\n");
        assert_eq!(asked(&fake)[0]["operation"], "list-put-aside");
        assert_eq!(asked(&fake)[0]["reason"], reason);
    }
}

#[tokio::test]
async fn violations_are_listed_shown_replayed_and_discarded() {
    let fake = Fake::rest(|_, body| {
        let one = json!({"id": "7", "flow": "f", "collection": "c", "chunk": "urn:k",
            "statement": {"type": "entity", "entity": "Sell", "entity_type": "Brook"},
            "reason": "unknown class 'Brook'"});
        match body["operation"].as_str() {
            Some("list-violations") => (200, json!({"violations": [one], "dropped": 3})),
            // Two parts.
            Some("replay-violations") if body.get("after").is_none() => (
                200,
                json!({"replayed": 2, "kept": 1, "discarded": 0, "next": "9"}),
            ),
            Some("replay-violations") => (200, json!({"replayed": 1, "kept": 0, "discarded": 1})),
            _ => (200, json!({"discarded": 4})),
        }
    })
    .await;
    let listed = fake.tg(&["violations", "-f", "f"]).await;
    assert!(
        listed.data.contains("unknown class 'Brook'"),
        "{}",
        listed.data
    );
    assert!(listed.talk.contains("3 older ones"), "{}", listed.talk);
    let shown = fake.tg(&["violations", "--show", "7"]).await.printed();
    assert!(shown.contains("\"entity_type\": \"Brook\""), "{shown}");
    let replayed = fake.tg(&["violations", "--replay-all", "-C", "c"]).await;
    assert_eq!(
        replayed.printed(),
        "Written: 3. Still not fitting: 1. 1 were for collections that are gone.\n"
    );
    let discarded = fake.tg(&["violations", "--discard-all"]).await;
    assert_eq!(discarded.printed(), "Discarded 4.\n");
    let asked = asked(&fake);
    assert_eq!(asked[0]["flow"], "f");
    assert_eq!(
        (&asked[1]["id"], &asked[1]["limit"]),
        (&json!("7"), &json!(1))
    );
    assert_eq!(
        asked[3],
        json!({"operation": "replay-violations", "collection": "c", "after": "9"})
    );
    assert_eq!(asked[4], json!({"operation": "discard-violations"}));
}

#[tokio::test]
async fn doctor_joins_its_own_checks_with_the_servers() {
    let fake = Fake::rest(|path, body| {
        if path == "/health/ready" {
            return (
                503,
                json!({"ready": false, "missing": ["the agent is not attached"]}),
            );
        }
        if path == "/api/v1/flow/default/service/embeddings" {
            return (200, json!({"vectors": [], "model": "lexical/1024"}));
        }
        match body["operation"].as_str() {
            Some("whoami") => (200, json!({"user": {"username": "ann"}})),
            Some("doctor") => (
                200,
                json!({"doctor": {"checks": [{"name": "queues", "ok": true, "detail": "fine",
                    "advice": ""}]}}),
            ),
            _ => (404, json!("404: Not Found")),
        }
    })
    .await;
    let ran = fake.tg(&["doctor"]).await;
    for part in [
        "✓ gateway reachable",
        "✓ token accepted: ann",
        "✗ default flow ready",
        "the agent is not attached",
        "try: ",
        "✓ queues: fine",
        "✓ embeddings: lexical/1024, the default: it finds shared words, not meaning.",
    ] {
        assert!(ran.data.contains(part), "{part} in\n{}", ran.data);
    }
    assert_eq!(ran.error().exit_code(), 1);
}

#[tokio::test]
async fn status_is_verified_check_by_check() {
    let fake = Fake::rest(|path, body| match (path, body["operation"].as_str()) {
        ("/", _) => (404, json!("404: Not Found")),
        (path, _) if path.starts_with("/api/metrics/query?query=processor_info") => {
            (200, json!({"data": {"result": [{}, {}]}}))
        }
        (_, Some("list-blueprints")) => (200, json!({"blueprint-names": ["everything"]})),
        (_, Some("list-flows")) => (200, json!({"flow-ids": []})),
        (_, Some("list")) => (200, json!({"directory": ["system", "template.question"]})),
        (_, Some("list-documents")) => (200, json!({"document-metadatas": []})),
        _ => (404, json!({"error": "none"})),
    })
    .await;
    let line = [
        "verify-system-status",
        "--global-timeout",
        "0",
        "--min-processors",
        "2",
    ];
    // Nobody who did not ask for a page hears that there is none.
    let with_page = [&line[..], &["--ui-url", &fake.url]].concat();
    for quiet in [line.to_vec(), [&with_page[..], &["--skip-ui"]].concat()] {
        let ran = fake.tg(&quiet).await;
        assert!(ran.printed().contains("Checks passed: 6/6"));
    }
    let ran = fake.tg(&with_page).await;
    assert!(ran.data.contains("Checks failed: 1/7"), "{}", ran.data);
    assert_eq!(ran.error().exit_code(), 1);
}

#[tokio::test]
async fn flow_state_is_asked_for_the_flow_and_its_blueprint() {
    let fake = Fake::rest(|path, _| match path.starts_with("/api/metrics") {
        true => (
            200,
            json!({"data": {"result": [
                {"metric": {"processor": "agent-manager"}, "value": [1, "1"]}]}}),
        ),
        false => (200, json!({"flow": "{\"blueprint-name\": \"everything\"}"})),
    })
    .await;
    let printed = fake.tg(&["show-flow-state"]).await.printed();
    assert!(printed.contains("Flow default\n- agent-manager"));
    assert!(printed.contains("Blueprint everything\n- agent-manager"));
}

#[tokio::test]
async fn dead_letter_records_are_listed_and_replayed() {
    let fake = answering(json!({"put-aside": [{"id": "7", "flow-id": "f"}], "next": "n"})).await;
    assert!(
        fake.tg(&["dead-letters", "-i", "f"])
            .await
            .printed()
            .contains("| 7 ")
    );
    let told = fake.tg(&["dead-letters", "--limit", "1"]).await.talk;
    assert!(told.contains("There are more."), "{told}");
    fake.tg(&["parked", "--replay", "7"]).await.printed();
    fake.tg(&["parked", "-i", "f", "--replay-all"])
        .await
        .printed();
    assert_eq!(
        asked(&fake),
        [
            json!({"operation": "list-put-aside", "reason": "dead", "flow-id": "f", "limit": 10_000,
                "after": ""}),
            json!({"operation": "list-put-aside", "reason": "dead", "flow-id": "f", "limit": 10_000,
                "after": "n"}),
            json!({"operation": "list-put-aside", "reason": "dead", "limit": 1}),
            json!({"operation": "replay-put-aside", "put-aside-id": "7"}),
            json!({"operation": "replay-put-aside", "flow-id": "f", "reason": "parked"}),
        ]
    );
}

#[tokio::test]
async fn flows_are_shown_from_many_calls_on_one_socket() {
    let fake = Fake::socket(|frame| {
        let request = &frame["request"];
        let key = request.pointer("/keys/0/type").and_then(Value::as_str);
        let body = match (request["operation"].as_str(), key) {
            (Some("getvalues"), _) => json!({"values": [{"key": "agent", "value":
                "{\"kind\": \"request-response\", \"visible\": true}"}]}),
            (Some("list-flows"), _) => json!({"flow-ids": ["default"]}),
            (Some("get"), Some("parameter-type")) => json!({"values": [{"value": null}]}),
            (Some("get-flow"), _) => json!({"flow": "{\"blueprint-name\": \"everything\",
                \"description\": \"Main\", \"parameters\": {\"model\": \"m\"},
                \"interfaces\": {\"agent\": {\"request\": \"q\", \"response\": \"r\"}}}"}),
            (Some("get-blueprint"), _) => json!({"blueprint-definition":
                "{\"parameters\": {\"model\": {\"type\": \"llm-model\", \"description\": \"Model\"}}}"}),
            _ => json!({"error": {"type": "bad-operation", "message": "?"}}),
        };
        vec![Say::Last(body)]
    })
    .await;
    let printed = fake.tg(&["show-flows"]).await.printed();
    for part in [
        "| default",
        "everything",
        "Main",
        "• Model: m",
        "agent request: q",
    ] {
        assert!(printed.contains(part), "{part} in\n{printed}");
    }
    let json = fake.tg(&["show-flows", "--json"]).await.printed();
    let flows: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(flows["default"]["description"], "Main");
}

#[tokio::test]
async fn all_dead_letters_are_discarded_flow_by_flow() {
    let letters = std::sync::Mutex::new(vec![("1", "f"), ("2", "g"), ("3", "f")]);
    let fake = Fake::rest(move |_, body| {
        let mut letters = letters.lock().expect("letters");
        let of = |flow: &str| body.get("flow-id").is_none_or(|wanted| *wanted == flow);
        let (found, left): (Vec<_>, Vec<_>) =
            letters.iter().copied().partition(|(_, flow)| of(flow));
        if body["operation"] == "discard-put-aside" {
            *letters = left;
        }
        let shown: Vec<_> = found
            .iter()
            .map(|(id, flow)| json!({"id": id, "flow-id": flow}))
            .collect();
        (200, json!({"put-aside": shown}))
    })
    .await;
    let line = ["dead-letters", "--discard-all"];
    assert_eq!(
        fake.tg(&["dead-letters", "-i", "g", "--discard-all"])
            .await
            .printed(),
        "Discarded 1.\n"
    );
    assert_eq!(fake.tg(&line).await.printed(), "Discarded 2.\n");
    assert_eq!(fake.tg(&line).await.printed(), "None.\n");
    let asked = asked(&fake);
    let discards = asked
        .iter()
        .filter(|body| body["operation"] == "discard-put-aside");
    let discards: Vec<_> = discards.collect();
    assert_eq!(discards.len(), 2);
    assert!(discards.iter().all(|body| body["reason"] == "dead"));
}

#[tokio::test]
async fn a_table_that_is_not_there_is_told_once_with_those_that_are() {
    let schema = json!({"name": "lamps", "fields": [{"name": "id"}, {"name": "maker"}]});
    let fake = Fake::rest(move |path, body| match body["operation"].as_str() {
        Some("getvalues") => (
            200,
            json!({"values": [{"type": "schema", "key": "lamps", "value": schema.to_string()}],
                "version": 1}),
        ),
        Some("list") => (200, json!({"directory": [], "version": 1})),
        _ => {
            assert!(path.ends_with("/rows"), "{path}");
            let text = "Unknown field \"lambs\" on type \"Query\"";
            (200, json!({"data": null, "errors": [{"message": text}]}))
        }
    })
    .await;
    let ran = fake
        .tg(&["invoke-rows-query", "-q", "{ lambs { id } }"])
        .await;
    assert!(!ran.talk.contains("lambs"), "{}", ran.talk);
    let error = ran.error().to_string();
    assert_eq!(error.matches("lambs").count(), 1, "{error}");
    assert!(error.contains("known: lamps(id, maker)"), "{error}");
    let ran = fake.tg(&["list-config-items", "--type", "schema"]).await;
    assert_eq!(ran.talk.trim(), "None.");
    assert_eq!(ran.printed(), "");
}

#[tokio::test]
async fn a_workspace_that_is_made_is_told_what_it_lacks_and_one_that_was_there_is_told_so() {
    let record = json!({"id": "acme", "name": "", "enabled": true});
    let fake = Fake::rest(move |_, body| match body["operation"].as_str() {
        Some("create-workspace") => (200, json!({"workspace": record})),
        Some("get-workspace") if body["workspace_record"]["id"] == "old" => {
            (200, json!({"workspace": {"id": "old"}}))
        }
        _ => (
            200,
            json!({"error": {"type": "not-found", "message": "workspace not found"}}),
        ),
    })
    .await;
    assert_eq!(
        fake.tg(&["create-workspace", "acme"]).await.printed(),
        "Workspace acme is created. It has no flow yet: tg start-flow default -n everything -w acme\n"
    );
    assert_eq!(
        fake.tg(&["create-workspace", "old"]).await.printed(),
        "Workspace old exists already.\n"
    );
}

#[tokio::test]
async fn a_workspace_that_was_never_deleted_is_not_there_to_be_restored() {
    let error = json!({"type": "bad-request", "message": "workspace: was not deleted"});
    let fake = answering(json!({"error": error})).await;
    let ran = fake.tg(&["restore-workspace", "nope"]).await;
    let error = ran.error();
    assert_eq!(
        (error.to_string().as_str(), error.exit_code()),
        ("there is no deleted workspace 'nope'", 3)
    );
}

#[tokio::test]
async fn a_document_that_is_removed_is_told_by_its_title() {
    let fake = answering(json!({"document-metadata": {"id": "urn:d", "title": "Lamps"}})).await;
    let ran = fake.tg(&["remove-library-document", "urn:d"]).await;
    assert_eq!(ran.talk, "Removed \"Lamps\" (urn:d).\n");
    assert_eq!(ran.printed(), "");
}

#[tokio::test]
async fn a_question_to_a_collection_that_does_not_exist_is_not_asked() {
    let fake = Fake::socket(|frame| {
        let body = match frame["service"].as_str() {
            Some("collection-management") => json!({"collections": [{"collection": "docs"}]}),
            _ => json!({"response": "It is so.", "end-of-session": true}),
        };
        vec![Say::Last(body)]
    })
    .await;
    for line in [
        &["ask", "-C", "nope", "hi"][..],
        &["invoke-agent", "-C", "nope", "hi"],
        &["invoke-graph-rag", "-C", "nope", "hi"],
        &["invoke-document-rag", "-C", "nope", "hi"],
    ] {
        let ran = fake.tg(line).await;
        assert_eq!(ran.data, "");
        let error = ran.error();
        assert_eq!(
            (error.to_string().as_str(), error.exit_code()),
            ("There is no collection nope; there are: docs", 3)
        );
    }
    let services = fake.heard().into_iter().filter_map(|heard| match heard {
        Heard::Frame(frame) => frame["service"].as_str().map(str::to_owned),
        _ => None,
    });
    let services: Vec<String> = services.collect();
    assert_eq!(services, ["collection-management"; 4]);
}

#[tokio::test]
async fn a_file_that_is_no_bundle_is_told_so() {
    let fake = answering(json!({"flow-ids": ["default"]})).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("notes.md");
    for content in ["# Lamps, and more of them", ""] {
        std::fs::write(&file, content).expect("written");
        let line = ["import-workspace", file.to_str().expect("a path")];
        let told = fake.tg(&line).await.error().to_string();
        let wanted = "notes.md: is not a workspace bundle (made by `tg export-workspace`); nothing was imported";
        assert!(told.ends_with(wanted), "{told}");
    }
}

#[tokio::test]
async fn the_audit_is_shown_by_time_with_the_names_of_users() {
    let fake = Fake::rest(|_, body| match body["operation"].as_str() {
        Some("list-users") => (200, json!({"users": [{"id": "u1", "username": "ada"}]})),
        _ => {
            let entry = |id: u64, second: u64, actor: &str| {
                let time = format!("2030-01-01T08:00:0{second}.000Z");
                json!({"id": id, "time": time, "kind": "read", "actor": actor, "operation": "ask"})
            };
            let (late, early) = (entry(1, 2, "u1"), entry(2, 1, "u2"));
            (200, json!({"entries": [late, early]}))
        }
    })
    .await;
    let printed = fake.tg(&["show-audit", "--actor", "ada"]).await.printed();
    let (first, second) = printed.split_once('\n').expect("two lines");
    assert!(
        first.contains("08:00:01") && first.contains("  u2  "),
        "{printed}"
    );
    assert!(
        second.contains("08:00:02") && second.contains("  ada (u1)  "),
        "{printed}"
    );
    let asked = asked(&fake);
    let lists = asked.iter().filter(|ask| ask["operation"] == "list-users");
    assert_eq!(lists.count(), 1, "{asked:?}");
    assert_eq!(asked.last().expect("asked")["actor"], "u1");
}
