//! How much may wait on the disk of the embedded bus, of one workspace and in all.

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;
use tg_bus::embedded::{EmbeddedBus, EmbeddedOptions};
use tg_bus::{Bus, BusError, Envelope, PublishMode, Routed, Target};
use tg_schemas::topic::Class;
use tg_schemas::{Headers, Subscription, Topic};
use tg_storage::StorageError;
use tg_testkit::bus::*;

/// Bytes on disk, and of a record: a few parts of the log.
const DISK: u64 = 40_000_000;
const RECORD: usize = 1_000_000;

/// Opens a directory. What a bus before it loads or copies together just then holds the log until that is done.
async fn open(dir: &Path, disk: u64) -> (EmbeddedBus, Arc<dyn Bus>) {
    let options = EmbeddedOptions {
        memory: 2_000_000,
        disk,
        ..EmbeddedOptions::default()
    };
    let mut opened = None;
    until(async || match EmbeddedBus::open_with(dir, options) {
        Err(StorageError::InUse) => false,
        bus => {
            opened = Some(bus.unwrap());
            true
        }
    })
    .await;
    let own = opened.unwrap();
    (own.clone(), Arc::new(own))
}

/// A record of a workspace, so far from what was new.
fn record(workspace: &str, depth: u32, bytes: usize) -> Envelope {
    Envelope {
        headers: Arc::new(Headers {
            workspace: (!workspace.is_empty()).then(|| workspace.to_owned()),
            depth: (depth > 0).then_some(depth),
            ..Headers::default()
        }),
        body: vec![7; bytes].into(),
        ..Envelope::default()
    }
}

async fn put(bus: &Arc<dyn Bus>, topic: &Topic, record: Envelope) -> Result<Routed, BusError> {
    let target = Target::Topic(topic.clone());
    bus.publish(&target, record, PublishMode::Confirmed).await
}

/// Puts records until one is refused for want of room; how many were kept.
async fn fill(bus: &Arc<dyn Bus>, topic: &Topic, workspace: &str, depth: u32) -> usize {
    for kept in 0.. {
        match put(bus, topic, record(workspace, depth, RECORD)).await {
            Ok(_) => {}
            Err(BusError::WorkspaceFull) => return kept,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

async fn reader(bus: &Arc<dyn Bus>) -> (Topic, Subscription) {
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    let queues = std::slice::from_ref(&reader);
    bus.declare(&[], queues).await.unwrap();
    (topic, reader)
}

#[tokio::test]
async fn a_workspace_has_half_of_the_disk_and_others_pass() {
    let dir = TempDir::new().unwrap();
    let (own, bus) = open(dir.path(), DISK).await;
    let (topic, queue) = reader(&bus).await;
    assert_eq!(fill(&bus, &topic, "acme", 0).await, 9, "a quarter");
    assert_eq!(fill(&bus, &topic, "acme", 1).await, 5, "what those lead to");
    assert_eq!(fill(&bus, &topic, "acme", 99).await, 5, "up to half");
    assert_eq!(fill(&bus, &topic, "other", 0).await, 9);
    for free in [
        Headers::default(),
        Headers {
            attempt: Some(1),
            ..Headers::clone(&record("acme", 0, 0).headers)
        },
    ] {
        let record = Envelope {
            headers: Arc::new(free),
            ..record("", 0, RECORD)
        };
        assert_eq!(put(&bus, &topic, record).await, Ok(Routed::Queued));
    }
    let waiting = bus.queue_state(&queue).await.unwrap().unwrap().ready;
    assert_eq!(waiting, 9 + 5 + 5 + 9 + 2);

    // The next process counts anew what it finds.
    bus.close().await;
    drop((own, bus));
    let (_own, bus) = open(dir.path(), DISK).await;
    for (workspace, depth) in [("acme", 0), ("acme", 1), ("acme", 99), ("other", 0)] {
        assert_eq!(fill(&bus, &topic, workspace, depth).await, 0, "{workspace}");
    }
    assert_eq!(fill(&bus, &topic, "third", 0).await, 9);

    // What is handled makes room, whoever's it is; what is given back does not.
    let mut ear = bus.listen(&queue, 100).await;
    let held = ear.next().await;
    assert_eq!(held.envelope.headers.workspace.as_deref(), Some("acme"));
    drop(held);
    assert_eq!(fill(&bus, &topic, "acme", 99).await, 0);
    for _ in 0..waiting + 9 {
        ear.next().await.ack();
    }
    assert_eq!(fill(&bus, &topic, "acme", 0).await, 9);
    ear.stop().await;
    // What it was handed and did not settle goes back before.
    drop(ear);
    assert!(delete(&*bus, &queue).await);
    let (topic, _) = reader(&bus).await;
    for workspace in ["acme", "third"] {
        assert_eq!(fill(&bus, &topic, workspace, 0).await, 9, "a deleted queue");
    }
}

/// What waits for one workspace keeps nothing of the others on disk, although it is the oldest.
#[tokio::test]
async fn a_full_workspace_leaves_the_rest_of_the_disk_to_others() {
    const MIB: usize = 1 << 20;
    let dir = TempDir::new().unwrap();
    let (own, bus) = open(dir.path(), 128 << 20).await;
    let (stuck, _) = reader(&bus).await;
    let mut kept = 0;
    while put(&bus, &stuck, record("acme", 99, 4 * MIB)).await.is_ok() {
        kept += 4;
    }
    assert!((60..=64).contains(&kept), "{kept} MiB");
    let (moving, queue) = reader(&bus).await;
    let mut ear = bus.listen(&queue, 4).await;
    // Three times what is left.
    for _ in 0..48 {
        until(async || {
            let said = put(&bus, &moving, record("other", 0, 4 * MIB)).await;
            assert!(matches!(said, Ok(Routed::Queued) | Err(BusError::Store)));
            said.is_ok()
        })
        .await;
        ear.next().await.ack();
        assert!(own.usage().1 <= 144 << 20, "{}", own.usage().1);
    }
    let full = put(&bus, &stuck, record("acme", 0, MIB)).await;
    assert_eq!(full, Err(BusError::WorkspaceFull));
}
