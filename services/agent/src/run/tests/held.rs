//! Steps that are held long, and runs that nobody holds any more because their process died.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tg_mesh::{Ask, Cx, Deadline, Processor, RequestHandler, Responder, Tap, clock};
use tg_schemas::msg::{
    AgentRun, AgentRunsRequest, AgentRunsResponse, ToolServiceRequest, ToolServiceResponse,
};
use tg_schemas::processors::agent_manager::{RUNS, STEP};
use tg_schemas::processors::{ProcessorSpec, Serves, Spec};
use tg_schemas::{Class, Error, ErrorCode, Reply, Topic};
use tg_testkit::place::Place;
use tg_testkit::rabbitmq::RabbitNode;
use tokio::sync::Notify;

use super::joined::read;
use super::repeats::{RUN, continued, died, run};
use super::world::{SOON, Say, World, question, rows, topic};
use crate::options::Options;
use crate::store::{Asked, Began, Caller, IsOver, Whose};

const SERVICE: Spec<Serves<ToolServiceRequest, ToolServiceResponse>> =
    Spec::pair("request", "response");
const QUEUE: &str = "request:tg:tool-slow:default";
/// How long steps take; the tool says something so often, as nobody waits for ten minutes of silence.
const FORTY_MINUTES: Duration = Duration::from_secs(40 * 60);
const HOUR: Duration = Duration::from_secs(60 * 60);
const PIECES: u32 = 8;
/// How long the impatient node lets a consumer hold a record, and between two looks at how often it took one back.
const LONGEST: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(50);

/// A tool that says something now and then, and ends when it is told to.
struct Slow {
    takes: Duration,
    times: AtomicUsize,
    begun: Notify,
    go_on: Notify,
}

impl Slow {
    fn taking(takes: Duration) -> Arc<Self> {
        Arc::new(Self {
            takes,
            times: AtomicUsize::default(),
            begun: Notify::default(),
            go_on: Notify::default(),
        })
    }
}

#[async_trait]
impl RequestHandler<ToolServiceRequest, ToolServiceResponse> for Slow {
    async fn serve(
        &self,
        _: Cx,
        _: ToolServiceRequest,
        mut out: Responder<ToolServiceResponse>,
    ) -> Result<(), Error> {
        self.times.fetch_add(1, Ordering::SeqCst);
        self.begun.notify_one();
        let piece = |text: &str, end: bool| ToolServiceResponse {
            response: text.to_owned(),
            end_of_stream: end,
            ..ToolServiceResponse::default()
        };
        for _ in 0..PIECES {
            tokio::time::sleep(self.takes / PIECES).await;
            out.send(piece(".", false)).await?;
        }
        self.go_on.notified().await;
        out.send(piece("at last", true)).await
    }
}

async fn with_a_slow_tool(place: &Place, slow: &Arc<Slow>) -> World {
    let config = rows();
    let queues = json!({"request-queue": QUEUE, "response-queue": "response:tg:tool-slow:default"});
    config.put("tool-service", "slow", &queues.to_string());
    let tool = json!({"name": "slow", "type": "tool-service", "service": "slow", "description": "Takes long."});
    config.put("tool", "slow", &tool.to_string());
    let topics = json!({"topics": {"request": QUEUE}, "parameters": {}, "epoch": 1});
    config.put("processor:slow", "default", &topics.to_string());
    let hosted = Processor::new(ProcessorSpec::unlisted("slow")).serves(SERVICE, slow.clone());
    let script = [
        Say::Text("Thought: it takes its time\nAction: slow\nArgs: {}"),
        Say::Text("Final Answer: done"),
    ];
    let options = Options {
        tool_timeout_seconds: 2 * HOUR.as_secs(),
        ..Options::default()
    };
    let world = World::start(place.connect().await, script, options, config, vec![hosted]).await;
    world.attached(&["slow"]).await;
    world
}

/// Item 8: a step of 40 minutes runs once, under its lease, also where its record is delivered again meanwhile. The time passes
/// while nothing but the tool is waited for, so it can be stopped: on the bus inside the process.
#[tokio::test]
async fn a_step_of_forty_minutes_runs_once() {
    let slow = Slow::taking(FORTY_MINUTES);
    let world = with_a_slow_tool(&Place::embedded(), &slow).await;
    let step = topic(Class::Flow, STEP.name);
    let mut steps: Tap<AgentRun> = world.mesh.tap(&step).await.expect("a tap");
    let ask = Ask {
        deadline: Some(Deadline::after(2 * FORTY_MINUTES)),
        detach: true,
        ..Ask::default()
    };
    let mut answer = world.ask_with(&question("q", false), ask);
    // Who asked hears nothing for longer than anybody waits; the run goes on without them.
    let heard = async { while let Some(Ok(_)) = answer.next().await {} };
    let passing = async {
        let begun = tokio::time::timeout(SOON, slow.begun.notified()).await;
        begun.expect("the tool is asked");
        let first = tokio::time::timeout(SOON, steps.next()).await;
        let first = first.expect("in time").expect("open").expect("read");
        let again = world.mesh.record(&step, &first, Ask::default()).await;
        again.expect("it is written again");
        let again = tokio::time::timeout(SOON, steps.next()).await;
        assert_eq!(again.expect("in time").expect("open").expect("read"), first);
        tokio::time::pause();
        tokio::time::sleep(FORTY_MINUTES).await;
        tokio::time::resume();
        assert!(world.agent.leases.is_under_way(&first.run, 1));
        slow.go_on.notify_one();
    };
    tokio::join!(heard, passing);
    assert_eq!(world.ended().await, "final-answer");
    assert_eq!(slow.times.load(Ordering::SeqCst), 1);
    assert_eq!(world.calls(), 2, "a model call for each step");
}

/// While a tool works for as long as this, a broker takes the record of its step back at least so often: the step runs once.
async fn held_by_an_impatient_node(takes: Duration, times: usize) {
    let node = RabbitNode::start_impatient(LONGEST).await.unwrap();
    let slow = Slow::taking(takes);
    let world = with_a_slow_tool(&Place::RabbitMq(node.url()), &slow).await;
    let ask = Ask {
        deadline: Some(Deadline::after(HOUR)),
        detach: true,
        ..Ask::default()
    };
    let mut answer = world.ask_with(&question("q", false), ask);
    let heard = async { while let Some(Ok(_)) = answer.next().await {} };
    let passing = async {
        let begun = tokio::time::timeout(SOON, slow.begun.notified()).await;
        begun.expect("the tool is asked");
        let before = node.taken_back().unwrap();
        let taken_back = async {
            while node.taken_back().unwrap() < before + times {
                tokio::time::sleep(PAUSE).await;
            }
        };
        let taken_back = tokio::time::timeout(takes + SOON, taken_back);
        let (taken_back, ()) = tokio::join!(taken_back, tokio::time::sleep(takes));
        taken_back.expect("the node takes the record back");
        slow.go_on.notify_one();
    };
    tokio::join!(heard, passing);
    assert_eq!(world.ended().await, "final-answer");
    assert_eq!(slow.times.load(Ordering::SeqCst), 1);
    assert_eq!(world.calls(), 2, "a model call for each step");
}

/// Item 8, over a broker with a small `consumer_timeout`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_is_taken_back_over_a_broker_runs_once() {
    held_by_an_impatient_node(Duration::ZERO, 3).await;
}

/// 34.3: nothing is told of a run for an hour, and then it is over for an hour. Who joins it behind any part hears all that they
/// lack. The time passes as above, and by the clock of the ledger.
#[tokio::test]
async fn a_run_is_joined_after_an_hour_of_silence() {
    let slow = Slow::taking(HOUR);
    let world = with_a_slow_tool(&Place::embedded(), &slow).await;
    let ask = Ask {
        id: Some("q".into()),
        user_id: Some("ann".into()),
        deadline: Some(Deadline::after(2 * HOUR)),
        detach: true,
        ..Ask::default()
    };
    let mut answer = world.ask_with(&question("q", true), ask);
    let heard = async { while let Some(Ok(_)) = answer.next().await {} };
    let passing = async {
        let begun = tokio::time::timeout(SOON, slow.begun.notified()).await;
        begun.expect("the tool is asked");
        tokio::time::pause();
        tokio::time::sleep(HOUR).await;
        tokio::time::resume();
        let (before, _) = read(&world.mesh, "ann", 1, 1).await.unwrap();
        assert!(!before.is_empty(), "what was told before the silence");
        slow.go_on.notify_one();
        let from = 1 + before.len();
        let (after, _) = read(&world.mesh, "ann", from, usize::MAX).await.unwrap();
        [before, after].concat()
    };
    let ((), joined) = tokio::join!(heard, passing);
    assert_eq!(world.ended().await, "final-answer");
    let later = clock::millis() + HOUR.as_millis() as i64;
    while world.ledger.forget(later).await.unwrap() {}
    let (all, _) = read(&world.mesh, "ann", 0, usize::MAX).await.unwrap();
    assert_eq!(all[1..], joined);
    assert!(all.last().unwrap().is_last());
    let (rest, _) = read(&world.mesh, "ann", 3, usize::MAX).await.unwrap();
    assert_eq!(rest, all[3..]);
}

async fn runs(world: &World, operation: &str) -> Result<AgentRunsResponse, Error> {
    let request = AgentRunsRequest {
        operation: operation.to_owned(),
        user: "ann".to_owned(),
        id: "theirs".to_owned(),
        all: true,
        ..AgentRunsRequest::default()
    };
    let topic = Topic::system(Class::Request, RUNS.name);
    let answer = world
        .mesh
        .ask::<_, AgentRunsResponse>(&topic, &request, Ask::default());
    let last = tokio::time::timeout(SOON, answer.last()).await;
    last.expect("an answer in time")
}

/// Item 8: the process died that had a run, and it is cancelled before another one has it. Whoever takes it up ends it, asks nobody,
/// and it stays cancelled.
async fn a_run_whose_owner_died_is_cancelled_for_good(place: Place) {
    let world = World::new(&place, Vec::new()).await;
    let now = clock::millis();
    let theirs = Asked {
        workspace: "default".to_owned(),
        is_over: IsOver::when(|| false),
        key: "theirs".to_owned(),
        text: "q".to_owned(),
        asker: Some(Caller {
            user: "ann".to_owned(),
            question: "theirs".to_owned(),
            flow: "default".to_owned(),
            deadline_ms: now + 3_600_000,
            goes_on: true,
            ..Caller::default()
        }),
    };
    let began = Began {
        run: RUN.to_owned(),
        started_at: run(1, false).started_at,
        route: None,
    };
    let begun = world.ledger.begin(theirs, began, now).await.unwrap();
    assert_eq!(begun.map(|one| one.run).as_deref(), Some(RUN));
    let cancelled = runs(&world, "cancel-run").await.unwrap();
    let happened = cancelled.happened.unwrap();
    assert!(!happened.over, "nobody has it");

    let chunks = continued(&world, died(run(1, false), Vec::new(), 0)).await;
    let error = chunks.last().unwrap().error.clone().expect("an error");
    assert_eq!(error.code(), ErrorCode::Cancelled);
    assert_eq!(world.ended().await, "cancelled");
    assert_eq!((world.calls(), world.tools.asked.lock().len()), (0, 0));
    let whose = Whose::User("ann".to_owned());
    let over = async {
        let known = || world.ledger.of_question(&whose, "theirs");
        while !known().await.unwrap().is_some_and(|run| run.over) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, over).await.expect("an end");
    let listed = runs(&world, "list-runs").await.unwrap();
    assert_eq!(listed.runs[0].state, "cancelled");
    let standing = runs(&world, "why-run").await.unwrap().standing;
    assert_eq!(standing[0].waits_for, "nothing");
    let again = runs(&world, "cancel-run").await.unwrap_err();
    assert_eq!(again.code(), ErrorCode::NotFound);
}

tg_testkit::on_both_buses!(a_run_whose_owner_died_is_cancelled_for_good);

/// What takes long.
mod alone {
    use super::{FORTY_MINUTES, held_by_an_impatient_node};

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_step_of_forty_minutes_over_a_broker_runs_once() {
        held_by_an_impatient_node(FORTY_MINUTES, 100).await;
    }
}
