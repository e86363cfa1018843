//! Several messages in one record, on both buses.

use std::sync::Arc;

use tg_mesh::{Ask, Bus, Host, Relay};
use tg_schemas::limits;
use tg_schemas::msg::{AgentRun, LibraryTexts, Triples};
use tg_schemas::sections::Sections;
use tg_schemas::{Class, ErrorCode, Message, Subscription, Topic};
use tg_testkit::bus::within;
use tg_testkit::faults::FaultyBus;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

struct World {
    host: Host,
    from: Topic,
    runs: Subscription,
    triples: Subscription,
}

impl World {
    async fn new(place: &Place) -> Self {
        Self::on(place.connect().await).await
    }

    async fn on(bus: Arc<dyn Bus>) -> Self {
        let topic = |base: &str| {
            Topic::system(
                Class::Flow,
                &format!("{base}-{}", uuid::Uuid::new_v4().simple()),
            )
        };
        let host = tg_testkit::place::host(bus).await;
        let world = Self {
            host,
            from: topic("both"),
            runs: Subscription::service(topic("runs"), "reader"),
            triples: Subscription::service(topic("triples"), "reader"),
        };
        world.declare().await;
        world
    }

    async fn declare(&self) {
        let queues = [self.runs.clone(), self.triples.clone()];
        let topics = std::slice::from_ref(&self.from);
        self.host.bus().declare(topics, &queues).await.unwrap();
    }

    fn relay(&self) -> Relay {
        Relay {
            from: self.from.clone(),
            to: vec![self.runs.topic.clone(), self.triples.topic.clone()],
        }
    }

    async fn write(&self, run: &str) -> Result<(), tg_schemas::Error> {
        let relays = [self.relay()];
        let written = self
            .host
            .record_together(&relays, sections(run), Ask::default());
        within(written).await
    }

    async fn read<M: Message>(&self, from: &Subscription) -> Option<M> {
        let delivery = within(self.host.bus().take(from)).await.unwrap()?;
        let message = delivery.envelope.read().unwrap();
        delivery.ack();
        Some(message)
    }
}

fn sections(run: &str) -> Sections {
    let mut sections = Sections::default();
    let run = AgentRun {
        run: run.to_owned(),
        ..AgentRun::default()
    };
    sections.add(&run).unwrap();
    sections.add(&Triples::default()).unwrap();
    sections
}

async fn each_reader_gets_its_own_message_once(place: Place) {
    let world = World::new(&place).await;
    world.write("one").await.unwrap();
    world.write("two").await.unwrap();
    for expected in ["one", "two"] {
        let run: AgentRun = world.read(&world.runs).await.unwrap();
        assert_eq!(run.run, expected);
        assert_eq!(world.read(&world.triples).await, Some(Triples::default()));
    }
    assert_eq!(world.read::<AgentRun>(&world.runs).await, None);
    assert_eq!(world.read::<Triples>(&world.triples).await, None);
}

/// However many readers a record has, its writer waits for one confirmation.
async fn a_record_for_several_readers_is_published_once(place: Place) {
    let bus = FaultyBus::new(place.connect().await, 1);
    let world = World::on(Arc::new(bus.clone())).await;
    for number in 1..=2 {
        world.write("one").await.unwrap();
        let published = bus.published();
        let records = published
            .iter()
            .filter(|topic| topic.class() == Class::Flow);
        let records: Vec<&Topic> = records.collect();
        assert_eq!(records, vec![&world.from; number]);
    }
}

/// Nobody's message is among them: that is said, and nothing is read as what it is not.
async fn a_message_that_is_not_there_is_not_read(place: Place) {
    let world = World::new(&place).await;
    world.write("one").await.unwrap();
    let delivery = world.host.bus().take(&world.runs).await.unwrap().unwrap();
    let read = delivery.envelope.read::<LibraryTexts>();
    assert_eq!(
        read.unwrap_err().to_string(),
        "no LibraryTexts among the messages of the body"
    );
}

/// A topic that was deleted and declared anew passes nothing on; who publishes there finds out.
async fn a_relay_that_is_gone_is_made_again(place: Place) {
    let world = World::new(&place).await;
    world.write("one").await.unwrap();
    assert_eq!(world.host.bus().delete_relay(&world.from).await, Ok(true));
    world.declare().await;
    world.write("two").await.unwrap();
    for expected in ["one", "two"] {
        let run: AgentRun = world.read(&world.runs).await.unwrap();
        assert_eq!(run.run, expected);
    }
}

async fn without_its_topics_nothing_is_written(place: Place) {
    let mut world = World::new(&place).await;
    world.triples.topic = Topic::system(Class::Flow, "nowhere");
    let error = world.write("one").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::NobodyServes, "{error:?}");
    assert_eq!(world.read::<AgentRun>(&world.runs).await, None);
    let error = world.write(&"x".repeat(limits::RECORD)).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::TooLarge, "{error:?}");
}

on_both_buses!(
    each_reader_gets_its_own_message_once,
    a_record_for_several_readers_is_published_once,
    a_message_that_is_not_there_is_not_read,
    a_relay_that_is_gone_is_made_again,
    without_its_topics_nothing_is_written
);
