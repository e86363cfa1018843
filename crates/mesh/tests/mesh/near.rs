//! What a process asks itself does not pass through the broker, as long as no other process serves the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tg_bus::{Delivery, Sink};
use tg_mesh::{Ask, Bus, Cx, Deadline, Host, MeshOptions, RequestHandler, Responder};
use tg_schemas::msg::{TextCompletionRequest, TextCompletionResponse};
use tg_schemas::{Error, ErrorCode};
use tg_testkit::bus::{until, within};
use tg_testkit::faults::FaultyBus;
use tg_testkit::place::{Place, host_with};
use tokio::sync::Notify;

use crate::serving::{at, serving};

const ID: &str = "near";
/// How long a process that stops may wait for its work.
const STOPPING: Duration = Duration::from_secs(5);

/// A consumer that takes nothing for so long is reported.
const IDLE: Duration = Duration::from_millis(300);

/// A question ends so soon after it was asked.
const LATE: Duration = Duration::from_secs(1);

/// Answers with its name.
struct Named(&'static str);

#[async_trait]
impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for Named {
    async fn serve(
        &self,
        _: Cx,
        _: TextCompletionRequest,
        mut out: Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        out.send(TextCompletionResponse {
            response: self.0.to_owned(),
            end_of_stream: true,
            ..TextCompletionResponse::default()
        })
        .await
    }
}

/// Works until it is stopped.
#[derive(Default)]
struct Hangs {
    started: Notify,
    stopped: Notify,
}

#[async_trait]
impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for Hangs {
    async fn serve(
        &self,
        cx: Cx,
        _: TextCompletionRequest,
        _: Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        self.started.notify_one();
        cx.cancel.cancelled().await;
        self.stopped.notify_one();
        Ok(())
    }
}

/// Panics at a question without a prompt.
struct Panics;

#[async_trait]
impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for Panics {
    async fn serve(
        &self,
        _: Cx,
        question: TextCompletionRequest,
        _: Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        assert!(!question.prompt.is_empty(), "on purpose");
        Ok(())
    }
}

/// Notes whether a message lay beside the body of what it was handed.
#[derive(Default)]
struct Beside {
    found: AtomicBool,
    handed: Notify,
}

impl Sink for Beside {
    fn deliver(&self, delivery: Delivery) {
        let found = delivery.envelope.handover.is_some();
        self.found.store(found, Ordering::Relaxed);
        self.handed.notify_one();
    }
}

fn near() -> MeshOptions {
    MeshOptions {
        near: true,
        ..MeshOptions::default()
    }
}

async fn host(bus: Arc<dyn Bus>, name: &'static str) -> Host {
    let host = host_with(bus, near()).await;
    host.host(serving(ID, Arc::new(Named(name)))).await.unwrap();
    host
}

/// Who answers, and whether the bus had the question.
async fn asked(host: &Host, bus: &FaultyBus) -> (String, bool) {
    let topic = at(ID);
    let published = || bus.published().iter().filter(|one| **one == topic).count();
    let before = published();
    let question = TextCompletionRequest::default();
    let answer = host.ask::<_, TextCompletionResponse>(&topic, &question, Ask::default());
    let answer = within(answer.last()).await.unwrap();
    (answer.response, published() > before)
}

async fn a_question_of_its_own_passes_no_broker_while_a_process_serves_alone(place: Place) {
    let bus = FaultyBus::new(place.connect().await, 1);
    let one = host(Arc::new(bus.clone()), "one").await;
    until(async || asked(&one, &bus).await == ("one".to_owned(), false)).await;
    let two = host(place.connect().await, "two").await;
    until(async || one.presence().serving(ID).len() == 2).await;
    // Now the broker chooses who answers.
    let mut answered = (false, false);
    until(async || {
        let (name, on_the_bus) = asked(&one, &bus).await;
        assert!(on_the_bus, "{name}");
        answered.0 |= name == "one";
        answered.1 |= name == "two";
        answered == (true, true)
    })
    .await;
    two.stop(STOPPING).await;
    until(async || asked(&one, &bus).await == ("one".to_owned(), false)).await;
}

/// A full server refuses it, who leaves stops it, and it ends by its deadline.
async fn a_question_of_its_own_ends_as_one_of_others(place: Place) {
    let bus = FaultyBus::new(place.connect().await, 1);
    let one = host_with(Arc::new(bus.clone()), near()).await;
    let hangs = Arc::new(Hangs::default());
    let processor = serving(ID, hangs.clone()).concurrency(1);
    one.host(processor).await.unwrap();
    let (topic, question) = (at(ID), TextCompletionRequest::default());
    let ask = |ask: Ask| one.ask::<_, TextCompletionResponse>(&topic, &question, ask);
    let mut answer = ask(Ask::default());
    tokio::select! {
        _ = answer.next() => panic!("no part expected"),
        () = within(hangs.started.notified()) => {}
    }
    let busy = within(ask(Ask::default()).last()).await.unwrap_err();
    assert_eq!(busy.code(), ErrorCode::Busy);
    drop(answer);
    within(hangs.stopped.notified()).await;
    // Its place is free a moment later.
    until(async || {
        let late = Ask {
            deadline: Some(Deadline::after(LATE)),
            ..Ask::default()
        };
        let ended = within(ask(late).last()).await.unwrap_err();
        ended.code() == ErrorCode::Timeout
    })
    .await;
    within(hangs.stopped.notified()).await;
    assert!(!bus.published().contains(&topic));
}

/// A handler that panics fails the question, and gives its place back.
async fn a_question_of_its_own_fails_where_the_handler_panics(place: Place) {
    let bus = FaultyBus::new(place.connect().await, 1);
    let one = host_with(Arc::new(bus.clone()), near()).await;
    let processor = serving(ID, Arc::new(Panics)).concurrency(1);
    one.host(processor).await.unwrap();
    let (topic, question) = (at(ID), TextCompletionRequest::default());
    for _ in 0..2 {
        // The place is free a moment after the answer.
        until(async || {
            let answer = one.ask::<_, TextCompletionResponse>(&topic, &question, Ask::default());
            let failed = within(answer.last()).await.unwrap_err();
            assert_ne!(failed.code(), ErrorCode::Timeout);
            failed.code() == ErrorCode::Internal
        })
        .await;
    }
    assert!(!bus.published().contains(&topic));
}

/// Nobody reads what was written of a question that a process asks itself.
async fn a_question_of_its_own_is_handed_over_beside_its_body(place: Place) {
    let one = host_with(place.connect().await, near()).await;
    let (topic, beside) = (at(ID), Arc::new(Beside::default()));
    let alone = Box::new(|| true);
    let _server = one.port().near().add(topic.clone(), beside.clone(), alone);
    let question = TextCompletionRequest::default();
    let mut answer = one.ask::<_, TextCompletionResponse>(&topic, &question, Ask::default());
    tokio::select! {
        _ = answer.next() => panic!("no part expected"),
        () = within(beside.handed.notified()) => {}
    }
    assert!(beside.found.load(Ordering::Relaxed));
}

/// What a process asks itself does not hide that its consumer takes nothing of what others ask.
async fn a_consumer_that_takes_nothing_is_reported_whatever_its_own_process_asks(place: Place) {
    let bus = FaultyBus::new(place.connect().await, 1);
    let one = host(Arc::new(bus.clone()), "one").await;
    bus.has_waiting(1);
    one.watch_intake(IDLE);
    until(async || {
        assert_eq!(asked(&one, &bus).await, ("one".to_owned(), false));
        one.idle_consumers() == [ID]
    })
    .await;
}

async fn a_process_that_is_not_to_asks_by_the_broker(place: Place) {
    let bus = FaultyBus::new(place.connect().await, 1);
    let host = host_with(Arc::new(bus.clone()), MeshOptions::default()).await;
    host.host(serving(ID, Arc::new(Named("one"))))
        .await
        .unwrap();
    assert_eq!(asked(&host, &bus).await, ("one".to_owned(), true));
}

mod rabbitmq {
    use super::Place;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_question_of_its_own_passes_no_broker_while_a_process_serves_alone() {
        let place = Place::rabbitmq().await;
        super::a_question_of_its_own_passes_no_broker_while_a_process_serves_alone(place).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_question_of_its_own_ends_as_one_of_others() {
        super::a_question_of_its_own_ends_as_one_of_others(Place::rabbitmq().await).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_question_of_its_own_fails_where_the_handler_panics() {
        let place = Place::rabbitmq().await;
        super::a_question_of_its_own_fails_where_the_handler_panics(place).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_question_of_its_own_is_handed_over_beside_its_body() {
        let place = Place::rabbitmq().await;
        super::a_question_of_its_own_is_handed_over_beside_its_body(place).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_consumer_that_takes_nothing_is_reported_whatever_its_own_process_asks() {
        let place = Place::rabbitmq().await;
        super::a_consumer_that_takes_nothing_is_reported_whatever_its_own_process_asks(place).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_process_that_is_not_to_asks_by_the_broker() {
        super::a_process_that_is_not_to_asks_by_the_broker(Place::rabbitmq().await).await;
    }
}
