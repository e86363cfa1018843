//! How long a forward between listeners takes beside a plain request: `threads_bench [embedded|rabbitmq|both]`.
//!
//! A forward is counted from when a listener returns it until the next one has it, a plain request from the question to a
//! listener until its answer: each crosses the bus twice. They take turns, in one process. Three rounds.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tg_clients::listeners::{listen, topic};
use tg_mesh::{Ask, Deadline, Responder};
use tg_schemas::msg::{
    ListenerMessage, ListenerRequest, ListenerResponse, ThreadsRequest, ThreadsResponse,
};
use tg_schemas::{Class, FlowId, Topic, WorkspaceId};
use tg_testkit::bench::{ROUNDS, Rounds, headline};
use tg_testkit::config::Config;
use tg_testkit::flow::{SOON, TestFlow};
use tg_testkit::place::Place;
use tg_threads_service::{Options, processors};

/// Forwards and requests of a round, and how many before them do not count.
const TURNS: usize = 500;
const FIRST: usize = 50;
/// The figure, its unit, and what it is to be at most.
const FORWARD: (&str, &str, f64) = ("a forward, to a plain request", "x", 1.3);

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    println!("{}", headline(1));
    let which = std::env::args().nth(1);
    let which = which.unwrap_or_else(|| "both".to_owned());
    if which != "rabbitmq" {
        bench("embedded", Place::embedded()).await?;
    }
    if which != "embedded" {
        bench("RabbitMQ, one process", Place::rabbitmq().await).await?;
    }
    Ok(())
}

async fn bench(name: &str, place: Place) -> Result<(), Failure> {
    let config = Config::new();
    config.put("flow", "default", "{}");
    let row = json!({"description": "Listens.", "types": {"textinput": {"type": "object"}}});
    for name in ["front", "last"] {
        config.put("listener", name, &row.to_string());
    }
    let host = |mesh: &_| processors(mesh, Options::default());
    let flow = TestFlow::start(&place, config, &[], host).await;
    let ids = (WorkspaceId::new("default")?, FlowId::new("default")?);
    let returned = Arc::new(Mutex::new(Instant::now()));
    let forwards: Arc<Mutex<Vec<f64>>> = Arc::default();
    let (since, noted) = (returned.clone(), forwards.clone());
    let last = move |got: ListenerRequest, mut out: Responder<ListenerResponse>| {
        if got.from_id == "front" {
            let took = millis(since.lock().elapsed());
            noted.lock().push(took);
        }
        async move { out.send(respond()).await }
    };
    let front = move |got: ListenerRequest, mut out: Responder<ListenerResponse>| {
        let returned = returned.clone();
        let turn = match got.from_id.as_str() {
            "last" => respond(),
            _ => forward(),
        };
        async move {
            *returned.lock() = Instant::now();
            out.send(turn).await
        }
    };
    let of = (&ids.0, &ids.1);
    let _last = listen(&flow.mesh, of, "last", last).await?;
    let _front = listen(&flow.mesh, of, "front", front).await?;
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        round(&flow, of, &forwards, &mut rounds).await?;
    }
    println!("\n{name}");
    rounds.print();
    let (name, unit, most) = FORWARD;
    let median = rounds.median(name).ok_or("a figure is missing")?;
    let verdict = if median <= most { "met" } else { "MISSED" };
    println!("  {name}: at most {most} {unit}: {verdict}");
    Ok(())
}

async fn round(
    flow: &TestFlow,
    of: (&WorkspaceId, &FlowId),
    forwards: &Mutex<Vec<f64>>,
    rounds: &mut Rounds,
) -> Result<(), Failure> {
    let mut requests = Vec::new();
    for n in 0..FIRST + TURNS {
        forwarded(flow, of.0).await?;
        let took = requested(flow, of).await?;
        if n >= FIRST {
            requests.push(took);
        }
    }
    let forwards = std::mem::take(&mut *forwards.lock());
    if forwards.len() != FIRST + TURNS {
        return Err(format!("{} forwards", forwards.len()).into());
    }
    let forwards = forwards[FIRST..].to_vec();
    let (plain, forward) = (median(requests), median(forwards));
    rounds.add("a plain request, p50", "ms", plain);
    rounds.add("a forward, p50", "ms", forward);
    rounds.add(FORWARD.0, FORWARD.1, forward / plain);
    Ok(())
}

/// A message from outside that `front` forwards to `last`, to its end.
async fn forwarded(flow: &TestFlow, workspace: &WorkspaceId) -> Result<(), Failure> {
    let request = ThreadsRequest {
        operation: "send-message".to_owned(),
        flow: "default".to_owned(),
        to: "front".to_owned(),
        r#type: "textinput".to_owned(),
        payload: json!({"text": "x"}).to_string(),
        ..ThreadsRequest::default()
    };
    let threads = Topic::workspace(Class::Request, "threads", workspace);
    let answer = flow
        .mesh
        .ask::<_, ThreadsResponse>(&threads, &request, asked());
    let told = answer.last().await?;
    match told.messages.first() {
        Some(message) if message.r#type == "textinput" => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// The same message, as a question to `last`; milliseconds.
async fn requested(flow: &TestFlow, of: (&WorkspaceId, &FlowId)) -> Result<f64, Failure> {
    let question = ListenerRequest {
        from_id: "outside".to_owned(),
        r#type: "textinput".to_owned(),
        payload: text(),
        ..ListenerRequest::default()
    };
    let to = topic(of.0, of.1, "last");
    let began = Instant::now();
    let answer = flow
        .mesh
        .ask::<_, ListenerResponse>(&to, &question, asked());
    answer.last().await?;
    Ok(millis(began.elapsed()))
}

fn asked() -> Ask {
    Ask {
        deadline: Some(Deadline::after(SOON)),
        user_id: Some("ann".to_owned()),
        ..Ask::default()
    }
}

fn text() -> Map<String, Value> {
    [("text".to_owned(), json!("x"))].into_iter().collect()
}

fn says(to: &str) -> ListenerMessage {
    ListenerMessage {
        to: to.to_owned(),
        r#type: "textinput".to_owned(),
        payload: text(),
    }
}

fn respond() -> ListenerResponse {
    ListenerResponse {
        respond: Some(says("")),
        end_of_stream: true,
        ..ListenerResponse::default()
    }
}

fn forward() -> ListenerResponse {
    ListenerResponse {
        forwards: vec![says("last")],
        end_of_stream: true,
        ..ListenerResponse::default()
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}
