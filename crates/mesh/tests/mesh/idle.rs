//! A consumer that takes nothing of what waits for it is reported, and one that is slow is not.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_mesh::{Ask, ConsumeError, Cx, Host, Processor, RecordConsumer};
use tg_schemas::msg::Triples;
use tg_schemas::processors;
use tg_testkit::bus::{BOUND, until};
use tg_testkit::place::Place;
use tokio::sync::Semaphore;

use crate::dialogs::mesh;
use crate::records::{begins, config_of, store, triples};

const RECORDS: usize = 8;
const MINUTE: Duration = Duration::from_secs(60);

/// Handles a record for each permit, one at a time.
struct Held {
    begun: Semaphore,
    may: Semaphore,
}

impl Held {
    fn handle(&self, records: usize) {
        self.may.add_permits(records);
    }

    /// Waits until another record is being handled.
    async fn until_begun(&self) {
        let begun = tokio::time::timeout(BOUND, self.begun.acquire()).await;
        begun.expect("a record is taken").expect("open").forget();
    }
}

#[async_trait]
impl RecordConsumer<Triples> for Held {
    async fn consume(&self, _cx: Cx, _record: Triples) -> Result<(), ConsumeError> {
        self.begun.add_permits(1);
        self.may.acquire().await.expect("open").forget();
        Ok(())
    }
}

/// A process whose only consumer has taken the first of all records and hangs.
async fn hanging(place: &Place) -> (Host, Arc<Held>) {
    let mesh = mesh(place).await;
    let config = config_of(&mesh).await;
    let held = Arc::new(Held {
        begun: Semaphore::new(0),
        may: Semaphore::new(0),
    });
    let writer = Processor::new(processors::triples_write::PROCESSOR)
        .reads(processors::triples_write::INPUT, held.clone())
        .concurrency(1);
    mesh.host(writer).await.unwrap();
    begins(&mesh, &config, 1).await;
    for n in 0..RECORDS {
        let record = triples(&format!("{n}"));
        mesh.record(&store(), &record, Ask::default())
            .await
            .unwrap();
    }
    held.until_begun().await;
    (mesh, held)
}

/// The time passes while nothing is in progress but the record that hangs, so it can be stopped: on the bus inside the process.
#[tokio::test]
async fn a_consumer_that_takes_nothing_for_a_minute_is_reported() {
    let (mesh, held) = hanging(&Place::embedded()).await;
    mesh.watch_intake(MINUTE);
    tokio::time::pause();
    tokio::time::sleep(MINUTE).await;
    assert!(mesh.idle_consumers().is_empty(), "not for a minute yet");
    tokio::time::sleep(MINUTE).await;
    assert_eq!(mesh.idle_consumers(), ["triples-write"]);
    assert_eq!(mesh.full_consumers(), ["triples-write"], "it has one place");
    tokio::time::resume();
    held.handle(1);
    held.until_begun().await;
    assert!(mesh.idle_consumers().is_empty(), "it took another one");
}

#[tokio::test]
async fn a_consumer_that_takes_one_now_and_then_is_not_reported() {
    let (mesh, held) = hanging(&Place::embedded()).await;
    mesh.watch_intake(MINUTE);
    for _ in 1..RECORDS {
        tokio::time::pause();
        tokio::time::sleep(MINUTE * 5 / 6).await;
        tokio::time::resume();
        assert!(mesh.idle_consumers().is_empty());
        held.handle(1);
        held.until_begun().await;
    }
    // The last one is in hand, and nothing waits.
    tokio::time::pause();
    tokio::time::sleep(10 * MINUTE).await;
    assert!(mesh.idle_consumers().is_empty());
}

async fn a_hanging_consumer_is_reported_until_it_goes_on(place: Place) {
    let (mesh, held) = hanging(&place).await;
    mesh.watch_intake(Duration::from_millis(300));
    until(async || {
        tokio::time::sleep(Duration::from_millis(10)).await;
        mesh.idle_consumers() == ["triples-write"]
    })
    .await;
    held.handle(RECORDS);
    for _ in 1..RECORDS {
        held.until_begun().await;
    }
    until(async || {
        tokio::time::sleep(Duration::from_millis(10)).await;
        mesh.idle_consumers().is_empty()
    })
    .await;
}

tg_testkit::on_both_buses!(a_hanging_consumer_is_reported_until_it_goes_on);
