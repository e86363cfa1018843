//! Sessions as documents.

use tg_schemas::operations::{ExportSession, ImportSession, ImportedSession, SessionDocument};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, code, one, said};

async fn a_session_is_written_out_and_taken_in(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.fill(&session, 2, "turn").await;
    let document = world.call::<ExportSession>(&one(&session)).await.unwrap();
    assert_eq!(
        (document.form.as_str(), document.messages.len()),
        ("threadgraph-session-1", 4)
    );
    let request = ImportedSession {
        name: "zoe".to_owned(),
        user_id: "eve".to_owned(),
        document,
    };
    let id = "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d72";
    let taken = world
        .call_as::<ImportSession>(Some(id), &request)
        .await
        .unwrap();
    assert_eq!((taken.id.as_str(), taken.message_count), (id, 4));
    assert_eq!(
        (taken.agent.as_str(), taken.user_id.as_str()),
        ("zoe", "eve")
    );
    // The same request once more finds it.
    let again = world
        .call_as::<ImportSession>(Some(id), &request)
        .await
        .unwrap();
    assert_eq!(again.message_count, 4);
    world.send(&taken, "on").await.unwrap();
    let framing = world.asked().pop().unwrap().framing;
    assert!(
        framing.contains("User: turn 1\n\nAssistant: re turn 1"),
        "{framing}"
    );
    assert_eq!(said(&world, &taken).await.len(), 6);
    let bad = ImportedSession {
        document: SessionDocument::default(),
        ..request
    };
    assert_eq!(
        code(world.call::<ImportSession>(&bad).await),
        "validation_error"
    );
}

on_both_buses!(a_session_is_written_out_and_taken_in,);
