//! A process that stops: what is in progress may end, what does not end is not waited for long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tg_mesh::{Ask, Cx, Mesh, RequestHandler, Responder};
use tg_schemas::Error;
use tg_schemas::msg::{TextCompletionRequest, TextCompletionResponse};
use tg_testkit::fakes::Played;
use tg_testkit::place::Place;
use tokio::sync::{Notify, Semaphore, mpsc};

use crate::dialogs::mesh;
use crate::serving::{at, serving};

async fn ask(mesh: &Mesh, of: &str) -> Result<TextCompletionResponse, Error> {
    let question = TextCompletionRequest::default();
    mesh.ask(&at(of), &question, Ask::default()).last().await
}

fn last() -> TextCompletionResponse {
    TextCompletionResponse {
        end_of_stream: true,
        ..Default::default()
    }
}

/// Never ends, whatever it is told.
struct Stubborn(mpsc::UnboundedSender<()>);

#[async_trait]
impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for Stubborn {
    async fn serve(
        &self,
        _cx: Cx,
        _ask: TextCompletionRequest,
        _out: Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        self.0.send(()).unwrap();
        std::future::pending().await
    }
}

async fn all_waiting_shares_one_bound(place: Place) {
    let mesh = mesh(&place).await;
    let (started, mut begun) = mpsc::unbounded_channel();
    let names: Vec<_> = (0..6).map(|n| format!("stubborn-{n}")).collect();
    for name in &names {
        let processor = serving(name.clone(), Arc::new(Stubborn(started.clone())));
        mesh.host(processor).await.unwrap();
        let (mesh, name) = (mesh.clone(), name.clone());
        tokio::spawn(async move { ask(&mesh, &name).await });
    }
    for _ in &names {
        begun.recv().await.unwrap();
    }
    let told = Instant::now();
    mesh.stop(Duration::from_millis(500)).await;
    assert!(
        told.elapsed() < Duration::from_secs(60),
        "{:?}",
        told.elapsed()
    );
}

/// Answers once somebody else has: that one was hosted before it.
struct Leaning {
    begun: Notify,
    go: Semaphore,
}

#[async_trait]
impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for Leaning {
    async fn serve(
        &self,
        cx: Cx,
        _ask: TextCompletionRequest,
        mut out: Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        self.begun.notify_one();
        let _go = self.go.acquire().await;
        let asked: TextCompletionResponse = cx
            .ask_topic(&at("base"), &TextCompletionRequest::default())
            .last()
            .await?;
        out.send(asked).await
    }
}

async fn what_is_in_progress_can_still_ask_what_it_needs(place: Place) {
    let mesh = mesh(&place).await;
    let base = serving(
        "base",
        Played::<_, TextCompletionResponse>::new(|_, _: TextCompletionRequest| Ok(last())),
    );
    mesh.host(base).await.unwrap();
    let leaning = Arc::new(Leaning {
        begun: Notify::new(),
        go: Semaphore::new(0),
    });
    let upper = serving("upper", leaning.clone());
    mesh.host(upper).await.unwrap();
    let asker = mesh.clone();
    let answer = tokio::spawn(async move { ask(&asker, "upper").await });
    leaning.begun.notified().await;
    let stopping = mesh.clone();
    let stopped = tokio::spawn(async move { stopping.stop(Duration::from_secs(20)).await });
    mesh.stopping().cancelled().await;
    leaning.go.add_permits(1);
    assert!(answer.await.unwrap().unwrap().end_of_stream);
    stopped.await.unwrap();
}

tg_testkit::on_both_buses!(
    all_waiting_shares_one_bound,
    what_is_in_progress_can_still_ask_what_it_needs,
);
