//! Stores with one owner: who serves holds the claim and the file, and lets both go.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_mesh::WireRules;
use tg_mesh::bus::{
    Bus, BusError, Claim, Consume, Consumer, Delete, Deleted, Delivery, Envelope, Link,
    PublishMode, QueueState, Routed, Sink, Target,
};
use tg_mesh::{Ask, Cx, Host, LeasedStore, PresenceView, RequestHandler, Responder};
use tg_schemas::msg::{TextCompletionRequest, TextCompletionResponse};
use tg_schemas::{Class, Error, ErrorCode, Subscription, Topic};
use tg_storage::{Database, Durability};
use tg_testkit::place::Place;
use tokio::sync::watch;

use crate::dialogs::mesh;
use crate::serving::serving;

const BOUND: Duration = Duration::from_secs(60);

/// Who has which claim; moved by the test as a broker might after an outage.
type Holders = Arc<Mutex<HashMap<String, &'static str>>>;

/// A process's line to a bus, with claims that the test decides about.
struct Line {
    bus: Arc<dyn Bus>,
    name: &'static str,
    holders: Holders,
}

struct Held {
    claim: String,
    name: &'static str,
    holders: Holders,
}

impl Claim for Held {
    fn holds(&self) -> bool {
        self.holders.lock().get(&self.claim) == Some(&self.name)
    }
}

#[async_trait]
impl Bus for Line {
    fn rules(&self) -> &'static WireRules {
        self.bus.rules()
    }
    async fn declare(&self, topics: &[Topic], queues: &[Subscription]) -> Result<(), BusError> {
        self.bus.declare(topics, queues).await
    }
    async fn publish(
        &self,
        target: &Target,
        envelope: Envelope,
        promise: PublishMode,
    ) -> Result<Routed, BusError> {
        self.bus.publish(target, envelope, promise).await
    }
    async fn consume(
        &self,
        subscription: &Subscription,
        how: Consume,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        self.bus.consume(subscription, how, sink).await
    }
    async fn open_inbox(
        &self,
        name: &str,
        sink: Arc<dyn Sink>,
    ) -> Result<Box<dyn Consumer>, BusError> {
        self.bus.open_inbox(name, sink).await
    }
    async fn queue_state(&self, of: &Subscription) -> Result<Option<QueueState>, BusError> {
        self.bus.queue_state(of).await
    }
    async fn take(&self, from: &Subscription) -> Result<Option<Delivery>, BusError> {
        self.bus.take(from).await
    }
    async fn delete_queue(&self, of: &Subscription, when: Delete) -> Result<Deleted, BusError> {
        self.bus.delete_queue(of, when).await
    }
    async fn delete_topic(&self, topic: &Topic) -> Result<bool, BusError> {
        self.bus.delete_topic(topic).await
    }
    async fn claim(&self, name: &str) -> Result<Option<Box<dyn Claim>>, BusError> {
        let mut holders = self.holders.lock();
        let holder = *holders.entry(name.to_owned()).or_insert(self.name);
        let held = Held {
            claim: name.to_owned(),
            name: self.name,
            holders: self.holders.clone(),
        };
        Ok((holder == self.name).then(|| Box::new(held) as Box<dyn Claim>))
    }
    fn link(&self) -> watch::Receiver<Link> {
        self.bus.link()
    }
    async fn close(&self) {}
}

/// Answers with the name of its process, from a store.
struct Named {
    name: &'static str,
    store: Arc<LeasedStore<Database>>,
}

#[async_trait]
impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for Named {
    async fn serve(
        &self,
        _cx: Cx,
        _ask: TextCompletionRequest,
        mut out: Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        let store = self.store.get().await?;
        store.read(|_| Ok(())).await?;
        out.send(TextCompletionResponse {
            response: self.name.to_owned(),
            end_of_stream: true,
            ..Default::default()
        })
        .await
    }
}

struct World {
    place: Place,
    holders: Holders,
    file: PathBuf,
    _dir: tempfile::TempDir,
}

struct Process {
    mesh: Host,
    store: Arc<LeasedStore<Database>>,
}

fn open(file: &Path) -> Result<Database, tg_storage::StorageError> {
    Database::open(
        file,
        &["CREATE TABLE note (text TEXT)"],
        Durability::Process,
    )
}

impl World {
    fn new(place: Place) -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self {
            place,
            holders: Holders::default(),
            file: dir.path().join("store.sqlite"),
            _dir: dir,
        }
    }

    /// A process with two processors over one store.
    async fn process(&self, name: &'static str) -> Process {
        let line = Line {
            bus: self.place.connect().await,
            name,
            holders: self.holders.clone(),
        };
        let mesh = tg_testkit::place::host(Arc::new(line)).await;
        let file = self.file.clone();
        let store = LeasedStore::blocking("the-store", move || open(&file));
        for id in ["one", "two"] {
            let handler = Named {
                name,
                store: store.clone(),
            };
            let processor = serving(id, Arc::new(handler)).owns(store.clone());
            mesh.host(processor).await.unwrap();
        }
        Process { mesh, store }
    }
}

async fn ask(mesh: &Host, of: &str) -> Result<String, Error> {
    let topic = Topic::system(Class::Request, of);
    let question = TextCompletionRequest::default();
    let answer = mesh.ask::<_, TextCompletionResponse>(&topic, &question, Ask::default());
    Ok(answer.last().await?.response)
}

/// Whether some process says this of both processors.
fn says(view: &PresenceView, state: &str) -> bool {
    view.snapshot().iter().any(|process| {
        process.processors.len() == 2 && process.processors.iter().all(|one| one.state == state)
    })
}

/// On one bus: the claims are the test's own wherever the messages go, and a move that is looked for twice a second takes
/// long enough without a broker.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_moves_takes_the_store_along() {
    let world = World::new(Place::embedded());
    let first = world.process("first").await;
    assert_eq!(ask(&first.mesh, "one").await.unwrap(), "first");
    let second = world.process("second").await;
    assert!(second.store.opened().is_none());
    assert!(says(second.mesh.presence(), "standby"));
    assert_eq!(ask(&second.mesh, "two").await.unwrap(), "first");

    for (to, store) in [("second", &first.store), ("first", &second.store)] {
        world.holders.lock().insert("the-store".to_owned(), to);
        let end = tokio::time::Instant::now() + BOUND;
        loop {
            assert!(tokio::time::Instant::now() < end, "the store did not move");
            match ask(&first.mesh, "one").await {
                Ok(name) if name == to => break,
                Ok(_) => {}
                // For a moment nobody has it; never does somebody serve without it.
                Err(error) => assert_eq!(error.code(), ErrorCode::NobodyServes, "{error}"),
            }
        }
        assert!(store.opened().is_none());
        assert_eq!(ask(&second.mesh, "two").await.unwrap(), to);
    }
}

async fn a_store_that_another_program_holds_is_waited_for(place: Place) {
    let world = World::new(place);
    let file = open(&world.file).unwrap();
    let process = world.process("first").await;
    assert!(says(process.mesh.presence(), "standby"));
    let error = ask(&process.mesh, "one").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::NobodyServes);
    drop(file);
    let serving = |view: &PresenceView| says(view, "serving");
    assert!(process.mesh.presence().until(BOUND, serving).await);
    assert_eq!(ask(&process.mesh, "one").await.unwrap(), "first");
    // A stop lets it go.
    process.mesh.stop(Duration::from_secs(5)).await;
    drop(process);
    open(&world.file).unwrap();
}

async fn a_store_that_cannot_be_opened_is_said_to_who_asks(place: Place) {
    let world = World::new(place);
    std::fs::create_dir(&world.file).unwrap();
    let process = world.process("first").await;
    let error = ask(&process.mesh, "one").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Storage, "{error}");
    assert!(!error.message.contains("store.sqlite"));
}

async fn a_store_that_opens_slowly_is_served_meanwhile(place: Place) {
    let mesh = mesh(&place).await;
    let (go, gone) = watch::channel(false);
    let store = LeasedStore::new("slow", move || {
        let mut gone = gone.clone();
        async move {
            let _ = gone.wait_for(|go| *go).await;
            Ok(Database::in_memory(&["CREATE TABLE note (text TEXT)"])?)
        }
    });
    let handler = Named {
        name: "slow",
        store: store.clone(),
    };
    let processor = serving("one", Arc::new(handler)).owns(store);
    mesh.host(processor).await.unwrap();
    let asking = ask(&mesh, "one");
    tokio::pin!(asking);
    tokio::select! {
        answer = &mut asking => panic!("{answer:?}"),
        () = tokio::task::yield_now() => go.send(true).unwrap(),
    }
    assert_eq!(asking.await.unwrap(), "slow");
}

tg_testkit::on_both_buses!(
    a_store_that_another_program_holds_is_waited_for,
    a_store_that_cannot_be_opened_is_said_to_who_asks,
    a_store_that_opens_slowly_is_served_meanwhile,
);
