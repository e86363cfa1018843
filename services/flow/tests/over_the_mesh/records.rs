//! Dead letters: retries, parking, replay.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tg_mesh::{Ask, ConsumeError, dead_letter};
use tg_schemas::codec::{self, ContentType};
use tg_schemas::msg::{DeadLetter, Metadata, Triples};
use tg_schemas::{Error, ErrorCode};
use tg_testkit::place::Place;

use crate::harness::{Reader, WAIT, World, json, later, queue, request, store};

async fn a_record_that_fails_is_tried_again_when_due(place: Place) {
    let world = World::new(place);
    let reader = Reader::open();
    *reader.fault.lock() = Some(later("not now"));
    let process = world.process(Some(reader.clone())).await;
    process.start_flow("f").await.unwrap();
    process.send("f", "one", 0).await;
    reader.until(1).await;
    assert_eq!(*reader.seen.lock(), ["one"]);
    process.until_aside("f", 0).await;
    process.stop().await;
}

async fn a_dead_record_is_listed_shown_and_replayed(place: Place) {
    let world = World::new(place);
    let reader = Reader::open();
    *reader.fault.lock() = Some(ConsumeError::Dead(Error::new(
        ErrorCode::BadRequest,
        "no good",
    )));
    let process = world.process(Some(reader.clone())).await;
    process.start_flow("f").await.unwrap();
    process.send("f", "one", 0).await;
    reader.moved.notified().await;
    let listed = process.until_aside("f", 1).await;
    let id = listed[0]["id"].as_str().expect("a record").to_owned();
    assert_eq!(listed[0]["detail"], "no good");
    let shown = process
        .dead_letter("show-put-aside", "", &[("put-aside-id", &id)])
        .await;
    assert_eq!(shown["topic"], "flow:tg:triples-store:w:f");
    let replayed = process
        .dead_letter("replay-put-aside", "", &[("put-aside-id", &id)])
        .await;
    assert_eq!(replayed[0]["id"], id.as_str());
    reader.until(1).await;
    let error = process
        .ask(request("show-put-aside", "", &[("put-aside-id", &id)]))
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::NotFound);
    process.stop().await;
}

async fn parked_records_replay_under_the_next_start(place: Place) {
    let world = World::new(place);
    // Nobody reads: the queue is there from the start all the same.
    let process = world.process(None).await;
    process.start_flow("f").await.unwrap();
    for n in 0..300 {
        process.send("f", &n.to_string(), 1).await;
    }
    let receipt = process.stop_flow("f", "park").await.unwrap();
    assert_eq!(receipt["queues"][0]["parked"], 300, "{receipt}");
    assert_eq!(receipt["queues"][0]["finished"], 0);
    let error = process
        .ask(request("replay-put-aside", "f", &[]))
        .await
        .unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
    process.stop().await;

    let reader = Reader::open();
    let process = world.process(Some(reader.clone())).await;
    process.start_flow("f").await.unwrap();
    assert_eq!(process.waiting("f").await, Some(0), "no stale message");
    let replayed = process
        .dead_letter("replay-put-aside", "f", &[("reason", "parked")])
        .await;
    assert_eq!(replayed.as_array().unwrap().len(), 300);
    reader.until(300).await;
    let mut seen: Vec<u32> = reader
        .seen
        .lock()
        .iter()
        .map(|name| name.parse().unwrap())
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..300).collect::<Vec<_>>());
    assert_eq!(
        process.dead_letter("list-put-aside", "f", &[]).await,
        serde_json::json!([])
    );
    process.stop().await;
}

async fn discard_throws_away_and_says_so(place: Place) {
    let world = World::new(place);
    let process = world.process(None).await;
    process.start_flow("f").await.unwrap();
    for n in 0..7 {
        process.send("f", &n.to_string(), 0).await;
    }
    let receipt = process.stop_flow("f", "discard").await.unwrap();
    assert_eq!(receipt["queues"][0]["discarded"], 7, "{receipt}");
    assert_eq!(
        process.dead_letter("list-put-aside", "", &[]).await,
        serde_json::json!([])
    );
    process.stop().await;
}

async fn retries_that_wait_are_parked_by_a_stop(place: Place) {
    let world = World::new(place);
    let reader = Reader::open();
    let long = ConsumeError::Retry {
        error: Error::new(ErrorCode::Storage, "later"),
        after: Some(std::time::Duration::from_secs(3600)),
    };
    *reader.fault.lock() = Some(long);
    let process = world.process(Some(reader.clone())).await;
    process.start_flow("f").await.unwrap();
    process.send("f", "one", 0).await;
    reader.moved.notified().await;
    let receipt = process.stop_flow("f", "wait").await.unwrap();
    assert_eq!(receipt["queues"][0]["parked"], 1, "{receipt}");
    let listed = process
        .dead_letter("list-put-aside", "f", &[("reason", "parked")])
        .await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    process.stop().await;
}

/// A flow's room is full of retries: its records stay in their queue, those of other flows do not notice, and a stop
/// says so before it begins.
async fn a_full_room_holds_its_own_records_back_and_nobody_elses(place: Place) {
    let mut world = World::new(place);
    (
        world.options.dead_letter_records,
        world.options.dead_letter_mb,
    ) = (4, 1);
    let reader = Reader::open();
    let process = world.process(Some(reader.clone())).await;
    process.start_flow("f").await.unwrap();
    process.start_flow("g").await.unwrap();
    for (n, name) in ["never-1", "never-2"].iter().enumerate() {
        process.send("f", name, 0).await;
        process.until_aside("f", n + 1).await;
    }
    let full = |view: &tg_mesh::PresenceView| view.room_full("w", "f");
    assert!(process.mesh.presence().until(WAIT, full).await);
    process.send("f", "never-3", 0).await;
    // What can be handled is, in the flow and elsewhere; elsewhere there also is room.
    process.send("f", "fine", 0).await;
    *reader.fault.lock() = None;
    reader.until(1).await;
    *reader.fault.lock() = Some(later("not now"));
    process.send("g", "second", 0).await;
    reader.until(2).await;
    assert_eq!(*reader.seen.lock(), ["fine", "second"]);
    let why = process.ask(request("why", "f", &[])).await.unwrap();
    assert!(why.flow.contains("quota of dead letters"), "{why:?}");
    let listed = process.dead_letter("list-put-aside", "f", &[]).await;
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");

    // Room is made: what waited for it becomes a dead letter.
    let id = listed[0]["id"].as_str().unwrap();
    let one = [("put-aside-id", id)];
    process.dead_letter("discard-put-aside", "", &one).await;
    process.until_aside("f", 2).await;
    process.stop().await;
}

async fn a_stop_that_has_no_room_says_so_and_changes_nothing(place: Place) {
    let mut world = World::new(place);
    (
        world.options.dead_letter_records,
        world.options.dead_letter_mb,
    ) = (8, 1);
    let process = world.process(None).await;
    process.start_flow("f").await.unwrap();
    for n in 0..5 {
        process.send("f", &n.to_string(), 1).await;
    }
    let error = process.stop_flow("f", "park").await.unwrap_err();
    assert!(
        error.message.contains("quota of the flow (4 records"),
        "{error}"
    );
    assert_eq!(process.waiting("f").await, Some(5));
    let shown = process.ask(request("why", "f", &[])).await.unwrap();
    assert_eq!(json(&shown)["why"][0]["state"], "running", "{shown:?}");
    let receipt = process.stop_flow("f", "discard").await.unwrap();
    assert_eq!(receipt["queues"][0]["discarded"], 5, "{receipt}");
    process.stop().await;
}

/// A record as the release before put it aside: one message, the body as base64 text.
async fn records_that_the_release_before_dead_letter_are_kept_and_replayed(place: Place) {
    let world = World::new(place);
    let reader = Reader::open();
    let process = world.process(Some(reader.clone())).await;
    process.start_flow("f").await.unwrap();
    let triples = Triples {
        metadata: Some(Metadata {
            id: "old".to_owned(),
            ..Metadata::default()
        }),
        ..Triples::default()
    };
    let body = codec::encode(&triples, ContentType::Avro).unwrap();
    let record = DeadLetter {
        topic: store("f").to_string(),
        subscription: queue("f").name,
        reason: "dead".to_owned(),
        detail: "no good".to_owned(),
        headers: "{}".to_owned(),
        content_type: ContentType::Avro.as_str().to_owned(),
        body: STANDARD.encode(&body),
        workspace: "w".to_owned(),
        flow: "f".to_owned(),
        ..DeadLetter::default()
    };
    let aside = dead_letter::topic();
    let written = process.mesh.record(&aside, &record, Ask::default());
    written.await.unwrap();
    let listed = process.until_aside("f", 1).await;
    assert_eq!(listed[0]["size"], body.len());
    process.dead_letter("replay-put-aside", "f", &[]).await;
    reader.until(1).await;
    assert_eq!(*reader.seen.lock(), ["old"]);
    process.stop().await;
}

/// Queues of processes that a record names are nobody's business outside.
async fn a_dead_letter_names_no_inbox(place: Place) {
    let world = World::new(place);
    let process = world.process(Some(Reader::open())).await;
    process.start_flow("f").await.unwrap();
    let inbox = |name: &str| format!("inbox-of-{name}");
    let headers = serde_json::json!({"id": "urn:seen", "from": inbox("asker"),
        "reply-to": inbox("answers"), "receipt": inbox("receipts")});
    let record = DeadLetter {
        topic: store("f").to_string(),
        subscription: queue("f").name,
        reason: "dead".to_owned(),
        detail: "no good".to_owned(),
        headers: headers.to_string(),
        workspace: "w".to_owned(),
        flow: "f".to_owned(),
        ..DeadLetter::default()
    };
    let aside = dead_letter::topic();
    let written = process.mesh.record(&aside, &record, Ask::default());
    written.await.unwrap();
    let listed = process.until_aside("f", 1).await;
    let id = listed[0]["id"].as_str().expect("a record").to_owned();
    let shown = process
        .dead_letter("show-put-aside", "", &[("put-aside-id", &id)])
        .await;
    assert_eq!(shown["headers"], serde_json::json!({"id": "urn:seen"}));
    let doctor = process.ask(request("doctor", "", &[])).await.unwrap();
    for said in [listed.to_string(), shown.to_string(), doctor.flow] {
        assert!(!said.contains("inbox-of-"), "{said}");
    }
    process.stop().await;
}

/// The workspace is deleted and made again: nobody sees what became a dead letter before, and what comes late for it is
/// not kept.
async fn a_workspace_of_an_old_name_sees_no_dead_letters_of_its_predecessor(place: Place) {
    let world = World::new(place);
    let process = world.process(Some(Reader::open())).await;
    process.start_flow("f").await.unwrap();
    let letter = |generation: Option<i64>, detail: &str| DeadLetter {
        topic: store("f").to_string(),
        subscription: queue("f").name,
        reason: "dead".to_owned(),
        detail: detail.to_owned(),
        headers: match generation {
            Some(generation) => format!(r#"{{"generation":{generation}}}"#),
            None => "{}".to_owned(),
        },
        workspace: "w".to_owned(),
        flow: "f".to_owned(),
        ..DeadLetter::default()
    };
    let aside = dead_letter::topic();
    let write = async |record: DeadLetter| {
        let written = process.mesh.record(&aside, &record, Ask::default());
        written.await.unwrap();
    };
    write(letter(None, "of the first")).await;
    process.until_aside("f", 1).await;

    let tombstone = r#"{"generation":0,"deleted-at":1,"purge-after":9000000000000}"#;
    let registered = r#"{"enabled":true,"generation":7}"#;
    let rows = [
        ("tombstone", "w", Some(tombstone)),
        ("workspace", "w", Some(registered)),
    ];
    let config = &world.config;
    config
        .apply_all(&process.mesh, "__workspaces__", &rows)
        .await;
    process
        .until(|mesh| mesh.config().generation("w") == 7)
        .await;
    process.until_aside("f", 0).await;
    for late in [Some(0), Some(6)] {
        write(letter(late, "too late")).await;
    }
    for present in [Some(7), None] {
        write(letter(present, "of the second")).await;
    }
    let listed = process.until_aside("f", 2).await;
    let details: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["detail"])
        .collect();
    assert_eq!(details, ["of the second", "of the second"], "{listed}");
    let doctor = process.ask(request("doctor", "", &[])).await.unwrap();
    assert!(doctor.flow.contains("2 dead of f"), "{doctor:?}");
    process.stop_flow("f", "park").await.unwrap();
    process.stop().await;
}

async fn records_are_listed_page_by_page(place: Place) {
    let world = World::new(place);
    let process = world.process(None).await;
    process.start_flow("f").await.unwrap();
    for n in 0..5 {
        process.send("f", &n.to_string(), 1).await;
    }
    process.stop_flow("f", "park").await.unwrap();
    let ids = |listed: &serde_json::Value| -> Vec<String> {
        let listed = listed.as_array().unwrap().iter();
        listed
            .map(|one| one["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let whole = ids(&process.dead_letter("list-put-aside", "f", &[]).await);
    let mut ask = request("list-put-aside", "f", &[("reason", "parked")]);
    ask.limit = 2;
    let mut pages = Vec::new();
    loop {
        let reply = process.ask(ask.clone()).await.unwrap();
        pages.push(ids(&json(&reply)["put-aside"]));
        if reply.next.is_empty() {
            break;
        }
        ask.after = reply.next;
    }
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 1]);
    assert_eq!(pages.concat(), whole);
    for (limit, after, says) in [(-1, "", "limit: "), (1, "2", "after: ")] {
        (ask.limit, ask.after) = (limit, after.to_owned());
        let error = process.ask(ask.clone()).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::BadRequest);
        assert!(error.message.starts_with(says), "{error}");
    }
    process.stop().await;
}

tg_testkit::on_both_buses!(
    a_record_that_fails_is_tried_again_when_due,
    a_dead_record_is_listed_shown_and_replayed,
    a_dead_letter_names_no_inbox,
    parked_records_replay_under_the_next_start,
    discard_throws_away_and_says_so,
    retries_that_wait_are_parked_by_a_stop,
    a_full_room_holds_its_own_records_back_and_nobody_elses,
    a_stop_that_has_no_room_says_so_and_changes_nothing,
    records_that_the_release_before_dead_letter_are_kept_and_replayed,
    a_workspace_of_an_old_name_sees_no_dead_letters_of_its_predecessor,
    records_are_listed_page_by_page,
);
