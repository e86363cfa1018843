//! The trail of turns.

use std::fs;

use serde_json::{Value, json};
use tg_mesh::Ask;
use tg_schemas::msg::{
    AgentRequest, AgentResponse, AnswerCall, AnswerCost, AuditEvent, OperationRequest,
    OperationResponse,
};
use tg_schemas::operations::{
    CancelTurn, CancelledTurn, CompactSession, CreateSession, NewSession, SESSIONS, SendMessage,
    SentMessage, Session,
};
use tg_schemas::{Class, Error, ErrorCode, Reply, Topic, WorkspaceId};
use tg_testkit::fakes::Play;
use tg_testkit::flow::SOON;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, code, fails, one, part, sent};

/// The lines of the trail, and their fields.
fn trail(world: &World) -> (String, Vec<Value>) {
    let files = fs::read_dir(world.dir.path().join("audit")).unwrap();
    let text = |file: std::io::Result<fs::DirEntry>| fs::read_to_string(file.unwrap().path());
    let text: String = files.map(|file| text(file).unwrap()).collect();
    let fields = |line: &str| {
        let line: Value = serde_json::from_slice(line.as_bytes()).unwrap();
        assert_eq!(line["target"], "audit");
        line["fields"].clone()
    };
    let lines = text.lines().map(fields).collect();
    (text, lines)
}

async fn line_037_a_turn_is_written_down_with_the_calls_that_were_made_for_it(place: Place) {
    let world = World::start(&place).await;
    let new = NewSession {
        name: "ann".to_owned(),
        user_id: "bob".to_owned(),
        ..NewSession::default()
    };
    let session = world.call::<CreateSession>(&new).await.unwrap();
    world.fill(&session, 6, &"secret ".repeat(640)).await;
    // 35: what is asked within the second nesting is the third.
    let asked = SentMessage {
        caller_depth: 2,
        parent_request_id: "outer".to_owned(),
        ..sent(&session, "secret")
    };
    let turn = world.call::<SendMessage>(&asked).await.unwrap();
    world.answers(|_| fails(ErrorCode::Provider));
    world.chat("ann", "secret").await.unwrap_err();
    let (text, lines) = trail(&world);
    assert_eq!(lines.len(), 9);
    let (call, own, failed) = (&lines[6], &lines[7], &lines[8]);
    assert_eq!(
        (&call["event"], &own["event"]),
        (&"llm.call".into(), &"agent.turn".into())
    );
    assert_eq!(call["parent_request_id"], own["request_id"]);
    assert_eq!(
        (&call["surface"], &call["caller_depth"]),
        (&"compaction".into(), &3.into())
    );
    assert_eq!(
        (&own["parent_request_id"], &own["caller_depth"]),
        (&"outer".into(), &2.into())
    );
    assert_eq!(own["session_id"].as_str(), turn.session_id.as_deref());
    assert_eq!(own["sub_calls"], 2);
    assert_eq!(
        (&failed["status"], &failed["error_code"]),
        (&"error".into(), &"upstream_error".into())
    );
    // 40: nothing of what was said.
    assert!(!text.contains("secret") && !text.contains("in short"));
}

/// A call of a model that an agent lists.
fn called(model: &str, nanodollars: Option<i64>, failed: bool) -> AnswerCall {
    AnswerCall {
        model: model.to_owned(),
        in_token: 5,
        out_token: 2,
        nanodollars,
        failed,
        backend: "far".to_owned(),
        attempts: Some(3),
        source: "upstream".to_owned(),
        duration_ms: 40,
        ..AnswerCall::default()
    }
}

/// The last part of an agent that asked a model three times.
fn thrice() -> AgentResponse {
    AgentResponse {
        end_of_message: true,
        end_of_dialog: true,
        cost: Some(AnswerCost {
            usd: Some(0.75),
            source: "mixed".to_owned(),
            sub_calls: 3,
            ..AnswerCost::default()
        }),
        calls: vec![
            called("m1", Some(500_000_000), false),
            called("m1", Some(250_000_000), true),
            called("m2", None, false),
        ],
        ..part("answer", "secret")
    }
}

async fn line_037_a_turn_has_a_line_for_each_call_of_its_agent(place: Place) {
    let world = World::start(&place).await;
    world.plays(|_| Play::of(vec![thrice()]));
    let session = world.session("ann", "bob").await;
    world.send(&session, "secret").await.unwrap();
    world.chat("ann", "secret").await.unwrap();
    let failed = |_: &AgentRequest| {
        let error = Error::new(ErrorCode::Provider, "at http://10.0.0.1/v1");
        Play::of(vec![AgentResponse {
            calls: vec![called("m3", None, true)],
            ..AgentResponse::failure(error)
        }])
    };
    world.plays(failed);
    world.chat("ann", "secret").await.unwrap_err();
    let (text, lines) = trail(&world);
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str()).collect();
    let (call, turn) = (Some("llm.call"), Some("agent.turn"));
    let asked_thrice = [call, call, call, turn];
    assert_eq!(
        events,
        [&asked_thrice[..], &asked_thrice, &[call, turn]].concat()
    );
    for one in [&lines[..4], &lines[4..8]] {
        let (calls, turn) = (&one[..3], &one[3]);
        assert_eq!(
            (&turn["sub_calls"], &turn["cost_usd"]),
            (&3.into(), &0.75.into())
        );
        for call in calls {
            assert_eq!(call["parent_request_id"], turn["request_id"]);
            assert_eq!(
                (&call["surface"], &call["total_tokens"]),
                (&"a1".into(), &7.into())
            );
        }
        let said = |field: &str| {
            calls
                .iter()
                .map(|call| call[field].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(said("model"), ["m1", "m1", "m2"]);
        assert_eq!(said("status"), ["ok", "error", "ok"]);
        for (field, value) in [
            ("backend", json!("far")),
            ("attempts", json!(3)),
            ("cost_source", json!("upstream")),
            ("duration_ms", json!(40)),
        ] {
            assert_eq!(said(field), vec![value; 3], "{field}");
        }
        assert_eq!(said("cost_usd"), [json!(0.5), json!(0.25), Value::Null]);
    }
    assert_eq!(
        (&lines[8]["model"], &lines[8]["status"]),
        (&"m3".into(), &"error".into())
    );
    assert!(!text.contains("secret") && !text.contains("10.0.0.1"));
}

async fn a_turn_that_was_ended_is_written_down_as_cancelled(place: Place) {
    let world = World::start(&place).await;
    world.plays(|_| Play::of(vec![part("thought", "hm")]).hanging());
    let session = world.session("ann", "bob").await;
    let which = CancelledTurn {
        name: session.agent.clone(),
        session_id: session.id.clone(),
        user_id: session.user_id.clone(),
        message_id: None,
    };
    let cancel = async {
        world.agent.hanging.notified().await;
        world.call::<CancelTurn>(&which).await.unwrap();
    };
    let (turn, ()) = tokio::join!(world.send(&session, "secret"), cancel);
    assert_eq!(code(turn), "turn_interrupted");
    let (_, lines) = trail(&world);
    assert_eq!(
        (&lines[0]["status"], &lines[0]["error_code"]),
        (&"cancelled".into(), &"turn_interrupted".into())
    );
}

async fn line_040_a_line_names_the_key_by_its_id(place: Place) {
    let world = World::start(&place).await;
    let workspace = WorkspaceId::new("default").unwrap();
    let topic = Topic::workspace(Class::Request, SESSIONS, &workspace);
    let request = json!({"name": "ann", "message": "secret"});
    let question = OperationRequest {
        operation: "chat".to_owned(),
        request: request.as_object().cloned().unwrap(),
    };
    for (credential, id) in [("key:k1", Value::from("k1")), ("token", Value::Null)] {
        let ask = Ask {
            user_id: Some("u1".to_owned()),
            credential: Some(credential.to_owned()),
            ..Ask::default()
        };
        let answer = world.flow.mesh.ask(&topic, &question, ask);
        let told: OperationResponse = answer.last().await.unwrap();
        assert_eq!(told.error, None);
        let (_, lines) = trail(&world);
        let line = lines.last().unwrap();
        assert_eq!((&line["principal"], &line["token_id"]), (&"u1".into(), &id));
    }
}

/// A session with one turn, of which nothing stays when it is shortened.
async fn short(world: &World) -> Session {
    let new = NewSession {
        name: "ann".to_owned(),
        user_id: "bob".to_owned(),
        compact_keep_last_n: Some(0),
        ..NewSession::default()
    };
    let session = world.call::<CreateSession>(&new).await.unwrap();
    world.fill(&session, 1, "secret").await;
    session
}

async fn line_037_a_summary_on_demand_is_written_down_even_where_it_failed(place: Place) {
    let world = World::start(&place).await;
    let session = short(&world).await;
    world.call::<CompactSession>(&one(&session)).await.unwrap();
    let (_, lines) = trail(&world);
    let call = &lines[1];
    assert_eq!((lines.len(), &call["event"]), (2, &"llm.call".into()));
    assert_eq!(
        (&call["surface"], &call["status"], &call["model"]),
        (&"compaction".into(), &"ok".into(), &"of-flow".into())
    );
    assert_eq!(
        (&call["backend"], &call["attempts"], &call["cost_source"]),
        (&"near".into(), &2.into(), &"unknown".into())
    );
    assert_eq!(
        (&call["usage_estimated"], call["duration_ms"].is_i64()),
        (&false.into(), true)
    );
    assert_eq!(
        (&call["session_id"], &call["user_id"], &call["agent"]),
        (&session.id.as_str().into(), &"bob".into(), &"ann".into())
    );
    world.sums_up(|_| fails(ErrorCode::Provider));
    let other = short(&world).await;
    let failed = world.call::<CompactSession>(&one(&other)).await;
    assert_eq!(code(failed), "compact_summary_failed");
    let (text, lines) = trail(&world);
    assert_eq!(lines[2]["event"], "agent.turn");
    assert!(lines.len() > 3);
    for line in &lines[3..] {
        assert_eq!(
            (&line["event"], &line["status"], &line["error_code"]),
            (&"llm.call".into(), &"error".into(), &"llm-error".into())
        );
    }
    // Each line has an id that no client chose.
    assert!(lines.iter().all(|line| line["id"].is_string()));
    assert!(!text.contains("secret"));
}

async fn line_037_looking_for_facts_is_written_down_after_its_turn(place: Place) {
    let world = World::start_with(&place, |dir| {
        let text = "name: rex\nmodel: m2\nmemory: true\n";
        fs::write(dir.join("agents/d.yaml"), text).unwrap();
    })
    .await;
    let session = world.session("rex", "bob").await;
    world.send(&session, "secret").await.unwrap();
    world.flow.until(async || trail(&world).1.len() == 2).await;
    let (_, lines) = trail(&world);
    assert_eq!(
        (&lines[1]["surface"], &lines[1]["parent_request_id"]),
        (&"memory".into(), &lines[0]["request_id"])
    );
}

async fn line_040_the_trail_has_nothing_of_what_was_said(place: Place) {
    let world = World::start(&place).await;
    world.answers(|_| Ok("secret answer".to_owned()));
    let session = short(&world).await;
    world.call::<CompactSession>(&one(&session)).await.unwrap();
    world.chat("ann", "secret").await.unwrap();
    world.answers(|_| fails(ErrorCode::Provider));
    world.chat("ann", "secret").await.unwrap_err();
    let (text, lines) = trail(&world);
    assert_eq!(lines.len(), 4);
    for never in ["secret", "in short", "10.0.0.1", "sk-played"] {
        assert!(!text.contains(never), "{never}");
    }
}

/// C.15: what listens on the bus gets the fields of each line, in their order.
async fn line_037_each_line_is_announced(place: Place) {
    let world = World::start(&place).await;
    let topic = Topic::system(Class::Notify, "audit-events");
    let mut heard = world.flow.mesh.tap::<AuditEvent>(&topic).await.unwrap();
    world.plays(|_| Play::of(vec![thrice()]));
    let session = world.session("ann", "bob").await;
    world.send(&session, "secret").await.unwrap();
    let (text, lines) = trail(&world);
    assert_eq!(lines.len(), 4);
    for (line, written) in lines.into_iter().zip(text.lines()) {
        let event = tokio::time::timeout(SOON, heard.next()).await;
        let event = event.expect("an event").expect("the bus is there");
        let event = event.unwrap();
        let fields: Value = serde_json::from_slice(event.payload_json.as_bytes()).unwrap();
        assert_eq!(fields, line);
        assert_eq!(fields["event"], *event.event_type);
        // The same bytes, of the same moment, stand in the file.
        assert!(written.contains(&format!("\"fields\":{}}}", event.payload_json)));
        let written: Value = serde_json::from_slice(written.as_bytes()).unwrap();
        assert_eq!(written["timestamp"], *event.timestamp);
        assert_eq!((event.schema_version, &*event.producer), (1, "sessions"));
    }
}

/// A broker has the topic then, and publishing a line looks for none that is not there.
async fn line_037_lines_have_their_topic_where_nobody_listens(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.send(&session, "secret").await.unwrap();
    let topic = Topic::system(Class::Notify, "audit-events");
    let bus = world.flow.mesh.bus();
    // Only what is there can be deleted.
    let is_there = async || bus.delete_topic(&topic).await.unwrap();
    world.flow.until(is_there).await;
}

on_both_buses!(
    line_037_each_line_is_announced,
    line_037_lines_have_their_topic_where_nobody_listens,
    a_turn_that_was_ended_is_written_down_as_cancelled,
    line_040_the_trail_has_nothing_of_what_was_said,
    line_037_a_turn_is_written_down_with_the_calls_that_were_made_for_it,
    line_037_a_turn_has_a_line_for_each_call_of_its_agent,
    line_040_a_line_names_the_key_by_its_id,
    line_037_a_summary_on_demand_is_written_down_even_where_it_failed,
    line_037_looking_for_facts_is_written_down_after_its_turn,
);
