//! Handlers that take longer than a broker lets a consumer hold a record, and records that wait that long for their turn.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_mesh::{Ask, ConsumeError, Cx, Processor, RecordConsumer};
use tg_schemas::msg::{DeadLetter, Triples};
use tg_schemas::{Subscription, processors};
use tg_testkit::bus::until;
use tg_testkit::fakes::RecordingConsumer;
use tg_testkit::place::Place;
use tg_testkit::rabbitmq::RabbitNode;

use crate::dialogs::mesh;
use crate::records::{begins, config_of, id, store, triples};

/// What the node lets a consumer hold, and how often it takes back what the slowest handler holds.
const LONGEST: Duration = Duration::from_secs(1);
const TIMES: usize = 3;

/// Takes as long as the node needs to take records back so often.
struct Slow {
    node: RabbitNode,
    begun: Mutex<Vec<String>>,
    turn: tokio::sync::Mutex<()>,
    ended: Mutex<Vec<String>>,
}

#[async_trait]
impl RecordConsumer<Triples> for Slow {
    async fn consume(&self, _cx: Cx, record: Triples) -> Result<(), ConsumeError> {
        let id = id(&record).to_owned();
        self.begun.lock().push(id.clone());
        // One at a time: the others wait, in hand.
        let _turn = self.turn.lock().await;
        let before = self.node.taken_back().unwrap();
        if id == "slow" {
            while self.node.taken_back().unwrap() < before + TIMES {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        self.ended.lock().push(id);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_record_is_handled_once_and_so_are_those_that_wait_for_it() {
    let node = RabbitNode::start_impatient(LONGEST).await.unwrap();
    let place = Place::RabbitMq(node.url());
    let mesh = mesh(&place).await;
    let config = config_of(&mesh).await;
    let slow = Arc::new(Slow {
        node,
        begun: Mutex::default(),
        turn: tokio::sync::Mutex::default(),
        ended: Mutex::default(),
    });
    let writer = Processor::new(processors::triples_write::PROCESSOR)
        .reads(processors::triples_write::INPUT, slow.clone());
    mesh.host(writer).await.unwrap();
    let aside = RecordingConsumer::<DeadLetter>::new();
    let flow = Processor::new(processors::flow_svc::PROCESSOR)
        .reads(processors::flow_svc::DEAD_LETTERS, aside.clone());
    mesh.host(flow).await.unwrap();
    begins(&mesh, &config, 1).await;
    let mut all = vec!["slow".to_owned()];
    all.extend((0..20).map(|n| format!("waits-{n}")));
    for id in &all {
        let record = triples(id);
        mesh.record(&store(), &record, Ask::default())
            .await
            .unwrap();
    }
    until(async || {
        tokio::time::sleep(Duration::from_millis(10)).await;
        slow.ended.lock().len() >= all.len()
    })
    .await;
    let queue = Subscription {
        topic: store(),
        name: "triples-write--default--f--input".to_owned(),
    };
    let queue = queue.queue(mesh.bus().rules().prefix);
    until(async || {
        let queues = slow.node.queues().await.unwrap();
        let found = queues.iter().find(|one| one.name == queue);
        found.is_some_and(|one| one.messages == 0)
    })
    .await;
    for handled in [&slow.begun, &slow.ended] {
        let mut handled = handled.lock().clone();
        handled.sort();
        all.sort();
        assert_eq!(handled, all, "each exactly once");
    }
    assert_eq!(aside.count(), 0);
}
