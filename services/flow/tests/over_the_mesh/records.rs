//! Put-aside records: retries, parking, replay.

use tg_mesh::ReadFault;
use tg_schemas::{Error, ErrorCode};

use crate::harness::{Reader, World, later, request};

#[tokio::test]
async fn a_record_that_fails_is_tried_again_when_due() {
    let world = World::new();
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

#[tokio::test]
async fn a_dead_record_is_listed_shown_and_replayed() {
    let world = World::new();
    let reader = Reader::open();
    *reader.fault.lock() = Some(ReadFault::Dead(Error::new(
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
        .put_aside("show-put-aside", "", &[("put-aside-id", &id)])
        .await;
    assert_eq!(shown["topic"], "flow:tg:triples-store:w:f");
    let replayed = process
        .put_aside("replay-put-aside", "", &[("put-aside-id", &id)])
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

#[tokio::test]
async fn parked_records_replay_under_the_next_start() {
    let world = World::new();
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
        .put_aside("replay-put-aside", "f", &[("reason", "parked")])
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
        process.put_aside("list-put-aside", "f", &[]).await,
        serde_json::json!([])
    );
    process.stop().await;
}

#[tokio::test]
async fn discard_throws_away_and_says_so() {
    let world = World::new();
    let process = world.process(None).await;
    process.start_flow("f").await.unwrap();
    for n in 0..7 {
        process.send("f", &n.to_string(), 0).await;
    }
    let receipt = process.stop_flow("f", "discard").await.unwrap();
    assert_eq!(receipt["queues"][0]["discarded"], 7, "{receipt}");
    assert_eq!(
        process.put_aside("list-put-aside", "", &[]).await,
        serde_json::json!([])
    );
    process.stop().await;
}

#[tokio::test]
async fn retries_that_wait_are_parked_by_a_stop() {
    let world = World::new();
    let reader = Reader::open();
    let long = ReadFault::Retry {
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
        .put_aside("list-put-aside", "f", &[("reason", "parked")])
        .await;
    assert_eq!(listed.as_array().unwrap().len(), 1);
    process.stop().await;
}
