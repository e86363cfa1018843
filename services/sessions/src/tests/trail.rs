//! The trail of turns.

use std::fs;

use serde_json::Value;
use tg_schemas::ErrorCode;
use tg_schemas::operations::{
    CompactSession, CreateSession, NewSession, SendMessage, SentMessage, Session,
};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, code, fails, one, sent};

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
            (&line["event"], &line["status"]),
            (&"llm.call".into(), &"error".into())
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

on_both_buses!(
    line_040_the_trail_has_nothing_of_what_was_said,
    line_037_a_turn_is_written_down_with_the_calls_that_were_made_for_it,
    line_037_a_summary_on_demand_is_written_down_even_where_it_failed,
    line_037_looking_for_facts_is_written_down_after_its_turn,
);
