//! The embedded bus: what is on disk, what memory it takes, and the bus that misbehaves.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tg_bus::embedded::{EmbeddedBus, EmbeddedOptions};
use tg_bus::{Bus, BusError, Consume, Envelope, Link, Mode, PublishMode, Routed, Target};
use tg_schemas::Topic;
use tg_schemas::topic::Class;
use tg_storage::{Durability, StorageError};
use tg_testkit::faults::{Faults, FaultyBus};

use tg_testkit::bus::*;

mod native {
    use tg_bus::Mode;
    use tg_testkit::bus::World;

    crate::suite::suite!(World::embedded(Mode::Native));
}

mod interop {
    use tg_bus::Mode;
    use tg_testkit::bus::World;

    crate::suite::suite!(World::embedded(Mode::Interop));
}

/// Opens a directory. What a bus before it loads or copies together just then holds the log until that is done.
async fn open(dir: &Path) -> Arc<dyn Bus> {
    let mut opened = None;
    until(async || match EmbeddedBus::open(dir, Durability::Process) {
        Err(StorageError::InUse) => false,
        bus => {
            opened = Some(bus.unwrap());
            true
        }
    })
    .await;
    Arc::new(opened.unwrap())
}

#[tokio::test]
async fn records_topics_and_queues_survive_the_process() {
    let dir = TempDir::new().unwrap();
    let topic = topic(Class::Flow);
    let (one, two) = (sub(&topic, "one"), sub(&topic, "two"));
    {
        let bus = open(dir.path()).await;
        bus.declare(&[], &[one.clone(), two.clone()]).await.unwrap();
        for n in 0..50 {
            bus.send(&topic, &format!("{n:02}")).await;
        }
        let mut ear = bus.listen(&one, 20).await;
        ear.texts(10).await;
        let held = ear.next().await;
        assert_eq!(text(&held), "10");
        let twice = EmbeddedBus::open(dir.path(), Durability::Process);
        assert_eq!(twice.err(), Some(StorageError::InUse));
        // No good-bye: everything is dropped where it stands.
    }
    let bus = open(dir.path()).await;
    let mut ear = bus.listen(&one, 100).await;
    let rest: Vec<String> = (10..50).map(|n| format!("{n:02}")).collect();
    assert_eq!(ear.texts(40).await, rest);
    assert_eq!(bus.queue_state(&two).await.unwrap().unwrap().ready, 50);
    bus.send(&topic, "new").await;
    assert_eq!(ear.texts(1).await, ["new"]);
    assert!(delete(&*bus, &two).await);
    bus.close().await;
    let bus = open(dir.path()).await;
    assert_eq!(bus.queue_state(&two).await, Ok(None));
    assert_eq!(bus.queue_state(&one).await.unwrap().unwrap().ready, 0);
}

/// Confirmed means kept, whatever happens to the process. The victim is this test in another process.
#[tokio::test]
async fn what_was_confirmed_survives_kill_9() {
    const DIR: &str = "TG_MESH_TEST_VICTIM";
    let topic = Topic::system(Class::Flow, "kill");
    let reader = sub(&topic, "reader");
    if let Ok(dir) = std::env::var(DIR) {
        let bus = open(Path::new(&dir)).await;
        bus.declare(&[], std::slice::from_ref(&reader))
            .await
            .unwrap();
        for n in 0.. {
            bus.send(&topic, &n.to_string()).await;
            println!("confirmed {n}");
        }
    }
    let dir = TempDir::new().unwrap();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--nocapture", "--exact"])
        .arg("embedded::what_was_confirmed_survives_kill_9")
        .env(DIR, dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(victim.stdout.take().unwrap()).lines();
    let mut last = 0_usize;
    for line in lines.map_while(Result::ok) {
        if let Some((_, number)) = line.split_once("confirmed ") {
            last = number.parse().unwrap();
        }
        if last == 2000 {
            victim.kill().unwrap();
        }
    }
    victim.wait().unwrap();
    let bus = open(dir.path()).await;
    let count = bus.queue_state(&reader).await.unwrap().unwrap().ready as usize;
    assert!(count > last, "{count} kept of {last} confirmed");
    let mut ear = bus.listen(&reader, 10).await;
    let expected: Vec<String> = (0..count).map(|n| n.to_string()).collect();
    assert_eq!(ear.texts(count).await, expected);
}

#[tokio::test]
async fn a_torn_end_costs_nothing_before_it() {
    let dir = TempDir::new().unwrap();
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    {
        let bus = open(dir.path()).await;
        bus.declare(&[], std::slice::from_ref(&reader))
            .await
            .unwrap();
        bus.send(&topic, "whole").await;
    }
    let log = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|file| file.unwrap().path())
        .find(|path| path.extension().is_some_and(|ext| ext == "log"))
        .unwrap();
    let mut data = std::fs::read(&log).unwrap();
    data.extend_from_slice(&[200, 0, 0, 0, 1, 2, 3, 4, 5, 1, 1, 1]);
    std::fs::write(&log, data).unwrap();
    for _ in 0..2 {
        let bus = open(dir.path()).await;
        assert_eq!(bus.queue_state(&reader).await.unwrap().unwrap().ready, 1);
        bus.close().await;
    }
}

#[tokio::test]
async fn a_long_backlog_waits_on_disk() {
    let dir = TempDir::new().unwrap();
    let budget = 1 << 20;
    let options = EmbeddedOptions {
        memory: budget,
        ..EmbeddedOptions::default()
    };
    let own = EmbeddedBus::open_with(dir.path(), options).unwrap();
    let bus: Arc<dyn Bus> = Arc::new(own.clone());
    let topic = topic(Class::Flow);
    let (reader, idle) = (sub(&topic, "reader"), sub(&topic, "idle"));
    bus.declare(&[], &[reader.clone(), idle.clone()])
        .await
        .unwrap();
    let filler = "x".repeat(60_000);
    for n in 0..200 {
        bus.send(&topic, &format!("{n} {filler}")).await;
    }
    assert!(own.usage().0 <= budget);
    let mut ear = bus.listen(&reader, 3).await;
    for n in 0..200 {
        let delivery = ear.next().await;
        assert!(text(&delivery).starts_with(&format!("{n} ")));
        delivery.ack();
    }
    let taken = bus.take(&idle).await.unwrap().unwrap();
    assert!(text(&taken).starts_with("0 "));
    drop(taken);
    assert!(delete(&*bus, &idle).await);
    assert_eq!(own.usage().0, 0, "everything was settled");
}

#[tokio::test]
async fn full_is_said_and_nothing_is_half_stored() {
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    let options = EmbeddedOptions {
        memory: 10_000,
        disk: 100_000,
        ..EmbeddedOptions::default()
    };
    let dir = TempDir::new().unwrap();
    let on_disk = EmbeddedBus::open_with(dir.path(), options).unwrap();
    for bus in [on_disk, EmbeddedBus::in_memory_with(options)] {
        let bus: Arc<dyn Bus> = Arc::new(bus);
        bus.declare(&[], std::slice::from_ref(&reader))
            .await
            .unwrap();
        let target = Target::Topic(topic.clone());
        let mut stored = 0;
        let full = loop {
            match bus.say(&target, &"x".repeat(3000)).await {
                Ok(_) => stored += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(full, BusError::Store);
        let mut ear = bus.listen(&reader, 5).await;
        assert_eq!(ear.texts(stored).await.len(), stored);
        assert!(ear.now().is_none());
    }
}

/// Nobody is left with a queue that nobody reads. The victim is this test in another process, whose files may not grow
/// beyond a few kilobytes.
#[tokio::test]
async fn a_declaration_that_finds_no_room_leaves_nothing_behind() {
    const DIR: &str = "TG_BUS_TEST_FULL";
    let topics: Vec<Topic> = (0..400)
        .map(|n| Topic::system(Class::Flow, &format!("no-room-{n}")))
        .collect();
    let queues: Vec<_> = topics.iter().map(|topic| sub(topic, "reader")).collect();
    let few = sub(&Topic::system(Class::Flow, "room"), "reader");
    if let Ok(dir) = std::env::var(DIR) {
        let bus = open(Path::new(&dir)).await;
        let refused = bus.declare(&topics, &queues).await;
        assert_eq!(refused, Err(BusError::Store));
        for queue in &queues {
            assert_eq!(bus.queue_state(queue).await, Ok(None));
        }
        // What fits is declared after as before, also of the same topics.
        bus.declare(&topics[..1], &[few, queues[1].clone()])
            .await
            .unwrap();
        println!("refused as a whole");
        return;
    }
    let dir = TempDir::new().unwrap();
    let said = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--nocapture", "--exact"])
        .arg("embedded::a_declaration_that_finds_no_room_leaves_nothing_behind")
        .env(DIR, dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains("refused as a whole"), "{said}");
    let bus = open(dir.path()).await;
    for (at, queue) in queues.iter().enumerate() {
        let there = bus.queue_state(queue).await.unwrap();
        assert_eq!(there.is_some(), at == 1, "{at}");
    }
    assert!(bus.queue_state(&few).await.unwrap().is_some());
    // Of the topics, those of the second declaration alone.
    for (at, topic) in topics.iter().enumerate() {
        let gone = bus.delete_topic(topic).await.unwrap();
        assert_eq!(gone, at == 0, "{at}");
    }
}

/// A disk that fails for a while costs nothing but time, and one record that cannot be read holds no other up.
#[tokio::test]
async fn what_could_not_be_read_is_handed_out_once_it_can_be() {
    let dir = TempDir::new().unwrap();
    let options = EmbeddedOptions {
        memory: 0,
        ..EmbeddedOptions::default()
    };
    let bus: Arc<dyn Bus> = Arc::new(EmbeddedBus::open_with(dir.path(), options).unwrap());
    let topic = topic(Class::Flow);
    let (reader, idle) = (sub(&topic, "reader"), sub(&topic, "idle"));
    bus.declare(&[], &[reader.clone(), idle.clone()])
        .await
        .unwrap();
    for text in ["the first", "the second"] {
        bus.send(&topic, text).await;
    }
    let log = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|file| file.unwrap().path())
        .find(|path| path.extension().is_some_and(|ext| ext == "log"))
        .unwrap();
    let whole = std::fs::read(&log).unwrap();
    let word = b"the first";
    let at = whole.windows(word.len()).rposition(|bytes| bytes == word);
    let at = at.unwrap() as u64;
    let file = std::fs::File::options().write(true).open(&log).unwrap();
    file.write_all_at(b"X", at).unwrap();
    let mut ear = bus.listen(&reader, 10).await;
    assert_eq!(ear.texts(1).await, ["the second"]);
    // It waits, and is said to.
    assert!(ear.now().is_none());
    assert_eq!(bus.queue_state(&reader).await.unwrap().unwrap().ready, 1);
    assert_eq!(bus.take(&idle).await.err(), Some(BusError::Store));
    assert_eq!(bus.queue_state(&idle).await.unwrap().unwrap().ready, 2);
    file.write_all_at(&whole[at as usize..=at as usize], at)
        .unwrap();
    assert_eq!(ear.texts(1).await, ["the first"]);
    let mut all = BTreeSet::new();
    for _ in 0..2 {
        let delivery = bus.take(&idle).await.unwrap().unwrap();
        all.insert(text(&delivery));
        delivery.ack();
    }
    assert_eq!(all.len(), 2);
}

/// One old record that nobody takes does not keep everything after it on disk.
#[tokio::test]
async fn disk_is_given_back_around_what_still_waits() {
    let dir = TempDir::new().unwrap();
    let own = EmbeddedBus::open(dir.path(), Durability::Process).unwrap();
    let bus: Arc<dyn Bus> = Arc::new(own.clone());
    let topic = topic(Class::Flow);
    let (fast, slow) = (sub(&topic, "fast"), sub(&topic, "slow"));
    let mut ear = bus.listen(&fast, 10).await;
    bus.declare(&[], std::slice::from_ref(&slow)).await.unwrap();
    bus.send(&topic, "old").await;
    ear.texts(1).await;
    let body = Envelope {
        body: vec![7; 1 << 20].into(),
        ..Envelope::default()
    };
    let target = Target::Subscription(fast.clone());
    for _ in 0..100 {
        let publish = bus.publish(&target, body.clone(), PublishMode::Confirmed);
        assert_eq!(publish.await, Ok(Routed::Queued));
        ear.next().await.ack();
    }
    until(async || own.usage().1 < 70 << 20).await;
    until(async || {
        let publish = bus.publish(&target, Envelope::default(), PublishMode::Confirmed);
        assert_eq!(publish.await, Ok(Routed::Queued));
        ear.next().await.ack();
        own.usage().1 < 40 << 20
    })
    .await;
    ear.stop().await;
    drop((ear, bus, own));
    let bus = open(dir.path()).await;
    let mut ear = bus.listen(&slow, 10).await;
    assert_eq!(ear.texts(1).await, ["old"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn power_safe_records_share_their_syncs() {
    let dir = TempDir::new().unwrap();
    let bus = EmbeddedBus::open(dir.path(), Durability::Power).unwrap();
    let bus: Arc<dyn Bus> = Arc::new(bus);
    let topic = topic(Class::Flow);
    let reader = sub(&topic, "reader");
    bus.declare(&[], std::slice::from_ref(&reader))
        .await
        .unwrap();
    let publishers: Vec<_> = (0..32)
        .map(|_| {
            let (bus, topic) = (bus.clone(), topic.clone());
            tokio::spawn(async move {
                for _ in 0..10 {
                    bus.send(&topic, "x").await;
                }
            })
        })
        .collect();
    for publisher in publishers {
        within(publisher).await.unwrap();
    }
    assert_eq!(bus.queue_state(&reader).await.unwrap().unwrap().ready, 320);
}

#[tokio::test]
async fn nine_thousand_subscriptions_are_nothing() {
    let dir = TempDir::new().unwrap();
    let bus = open(dir.path()).await;
    let classes = [Class::Flow, Class::Request, Class::Notify];
    let topics: Vec<Topic> = (0..9000).map(|n| topic(classes[n % 3])).collect();
    let (sink, mut deliveries) = collector();
    let started = Instant::now();
    let mut consumers = Vec::new();
    for topic in &topics {
        let consumer = bus
            .consume(&sub(topic, "reader"), Consume::prefetch(2), sink.clone())
            .await;
        consumers.push(consumer.unwrap());
    }
    for topic in &topics {
        bus.send(topic, "hello").await;
    }
    for _ in &topics {
        within(deliveries.recv()).await.unwrap().ack();
    }
    let took = started.elapsed();
    assert!(took < Duration::from_secs(60), "{took:?}");
    for consumer in consumers {
        consumer.stop().await;
    }
}

#[tokio::test]
async fn a_slow_reader_delays_nobody() {
    let bus: Arc<dyn Bus> = Arc::new(EmbeddedBus::in_memory());
    let topic = topic(Class::Flow);
    let (slow, quick) = (sub(&topic, "slow"), sub(&topic, "quick"));
    let mut stuck = bus.listen(&slow, 1).await;
    let mut ear = bus.listen(&quick, 1).await;
    for n in 0..1000 {
        bus.send(&topic, &n.to_string()).await;
        assert_eq!(ear.texts(1).await, [n.to_string()]);
    }
    assert_eq!(text(&stuck.next().await), "0");
}

#[tokio::test]
async fn a_panicking_sink_harms_nobody() {
    struct Bomb;
    impl tg_bus::bus::Sink for Bomb {
        fn deliver(&self, _: tg_bus::bus::Delivery) {
            panic!("on purpose");
        }
    }
    let bus: Arc<dyn Bus> = Arc::new(EmbeddedBus::in_memory());
    let topic = topic(Class::Notify);
    let how = Consume::prefetch(1);
    let _bomb = bus.consume(&sub(&topic, "bomb"), how, Arc::new(Bomb)).await;
    let mut ear = bus.listen(&sub(&topic, "ear"), 1).await;
    bus.send(&topic, "hello").await;
    assert_eq!(ear.texts(1).await, ["hello"]);
}

#[tokio::test]
async fn the_faulty_bus_loses_questions_but_no_records() {
    let inner = Arc::new(EmbeddedBus::in_memory());
    let own = FaultyBus::new(inner, 7);
    let bus: Arc<dyn Bus> = Arc::new(own.clone());
    let (records, questions) = (topic(Class::Flow), topic(Class::Request));
    let mut reader = bus.listen(&sub(&records, "reader"), 100).await;
    let mut server = bus.listen(&sub(&questions, "server"), 1).await;
    own.set(Faults {
        lose: 0.3,
        duplicate: 0.2,
        doubt: 0.1,
        refuse: 0.1,
        ..Faults::default()
    });
    let mut confirmed = BTreeSet::new();
    for n in 0..200 {
        let text = n.to_string();
        if bus
            .say(&Target::Topic(records.clone()), &text)
            .await
            .is_ok()
        {
            confirmed.insert(text.clone());
        }
        let _ = bus.say(&Target::Topic(questions.clone()), &text).await;
    }
    let mut asked = BTreeSet::new();
    while let Some(delivery) = server.now() {
        asked.insert(text(&delivery));
    }
    assert!(asked.len() < 180, "some are lost: {}", asked.len());
    own.set(Faults::default());
    let mut got = BTreeSet::new();
    while let Some(delivery) = reader.now() {
        got.insert(text(&delivery));
        delivery.ack();
    }
    assert!(confirmed.is_subset(&got));
    assert!(got.len() < 200 && confirmed.len() < got.len());
}

#[tokio::test]
async fn the_faulty_bus_goes_down_and_comes_back() {
    let own = FaultyBus::new(Arc::new(EmbeddedBus::in_memory()), 1);
    let bus: Arc<dyn Bus> = Arc::new(own.clone());
    let topic = topic(Class::Flow);
    let mut ear = bus.listen(&sub(&topic, "reader"), 5).await;
    bus.send(&topic, "held").await;
    let held = ear.next().await;
    own.go_down().await;
    let target = Target::Topic(topic.clone());
    assert_eq!(bus.say(&target, "x").await, Err(BusError::Down));
    held.ack();
    own.come_up().await;
    assert_eq!(*bus.link().borrow(), Link::Up { generation: 2 });
    let again = ear.next().await;
    assert!(again.redelivered);
    assert_eq!(text(&again), "held");
    again.ack();
    assert_eq!(bus.rules(), Mode::Native.rules());
}
