//! Large questions: a process holds so many bytes of them at once, and of one workspace half of that.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;
use tg_mesh::{Answer, Ask, Cx, Host, MeshOptions, RequestHandler, Responder};
use tg_schemas::msg::{TextCompletionRequest, TextCompletionResponse};
use tg_schemas::{Class, Error, ErrorCode, Topic, WorkspaceId};
use tg_testkit::bus::{until, within};
use tg_testkit::on_both_buses;
use tg_testkit::place::{Place, host_with};
use tokio::sync::Semaphore;

use crate::serving::serving;

/// What large questions in progress may take, and one of them: a quarter of it, for it counts twice.
const ROOM: usize = 8 << 20;
const LARGE: usize = (1 << 20) - (8 << 10);

/// Holds each question until it may go on, or is cancelled.
#[derive(Debug)]
struct Slow {
    begun: Semaphore,
    ends: Semaphore,
}

#[async_trait]
impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for Slow {
    async fn serve(
        &self,
        cx: Cx,
        question: TextCompletionRequest,
        mut out: Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        assert!(!question.prompt.starts_with("panic"), "on purpose");
        if question.prompt.starts_with("hold") {
            self.begun.add_permits(1);
            tokio::select! {
                permit = self.ends.acquire() => permit.expect("it is open").forget(),
                () = cx.cancel.cancelled() => return Ok(()),
            }
        }
        out.send(TextCompletionResponse {
            response: "done".to_owned(),
            end_of_stream: true,
            ..TextCompletionResponse::default()
        })
        .await
    }
}

/// An asker and a process of two services, which share what there is.
struct World {
    asker: Host,
    server: Host,
    slow: Arc<Slow>,
    topics: [Topic; 2],
}

impl World {
    async fn new(place: &Place) -> Self {
        let options = MeshOptions {
            questions: ROOM,
            ..MeshOptions::default()
        };
        let server = host_with(place.connect().await, options).await;
        let slow = Arc::new(Slow {
            begun: Semaphore::new(0),
            ends: Semaphore::new(0),
        });
        for id in ["slow-one", "slow-two"] {
            let processor = serving(id, slow.clone()).concurrency(64);
            server.host(processor).await.unwrap();
        }
        Self {
            asker: tg_testkit::place::host(place.connect().await).await,
            server,
            slow,
            topics: ["slow-one", "slow-two"].map(|id| Topic::system(Class::Request, id)),
        }
    }

    fn ask(
        &self,
        of: usize,
        workspace: &str,
        word: &str,
        bytes: usize,
    ) -> Answer<TextCompletionResponse> {
        let question = TextCompletionRequest {
            prompt: format!("{word} {}", "x".repeat(bytes)),
            ..TextCompletionRequest::default()
        };
        let options = Ask {
            workspace: Some(WorkspaceId::new(workspace).unwrap()),
            ..Ask::default()
        };
        self.asker.ask(&self.topics[of], &question, options)
    }

    async fn say(&self, workspace: &str, bytes: usize) -> Result<String, ErrorCode> {
        let said = within(self.ask(0, workspace, "say", bytes).last()).await;
        said.map(|said| said.response).map_err(|error| error.code())
    }

    /// One that is in progress until it is let go on; of nobody else's service but `of`.
    async fn hold(
        &self,
        of: usize,
        workspace: &str,
    ) -> tokio::task::JoinHandle<Result<TextCompletionResponse, Error>> {
        let answer = self.ask(of, workspace, "hold", LARGE);
        let asked = tokio::spawn(answer.last());
        within(self.slow.begun.acquire()).await.unwrap().forget();
        asked
    }

    /// Until a workspace's large questions are let in again.
    async fn until_let_in(&self, workspace: &str) {
        until(async || self.say(workspace, LARGE).await.is_ok()).await;
    }
}

async fn a_workspaces_large_questions_are_refused_while_others_and_small_ones_are_served(
    place: Place,
) {
    let world = World::new(&place).await;
    // Half of what there is, over both services.
    let held = [world.hold(0, "acme").await, world.hold(1, "acme").await];
    let busy = Err(ErrorCode::Busy);
    assert_eq!(world.say("acme", LARGE).await, busy);
    assert_eq!(world.say("acme", 100 << 10).await, busy);
    let done = Ok("done".to_owned());
    assert_eq!(world.say("acme", 8 << 10).await, done, "a small one");
    assert_eq!(world.say("other", LARGE).await, done, "others have theirs");
    let others = [world.hold(0, "other").await, world.hold(1, "third").await];
    assert_eq!(world.say("fourth", LARGE).await, busy, "all is taken");
    assert_eq!(world.say("fourth", 8 << 10).await, done);
    world.slow.ends.add_permits(4);
    for held in held.into_iter().chain(others) {
        assert_eq!(within(held).await.unwrap().unwrap().response, "done");
    }
    // Nothing is left behind: as much is let in at once as at first.
    world.until_let_in("acme").await;
    until(async || world.server.load().1 == 0).await;
    let all = join_all([0, 1].map(|of| world.hold(of, "acme"))).await;
    assert_eq!(world.say("acme", LARGE).await, busy);
    world.slow.ends.add_permits(2);
    for held in all {
        assert!(within(held).await.unwrap().is_ok());
    }
}

async fn room_comes_back_from_what_is_cancelled_or_panics(place: Place) {
    let world = World::new(&place).await;
    for _ in 0..3 {
        // Dropping an answer cancels it.
        let held = [world.hold(0, "acme").await, world.hold(1, "acme").await];
        assert_eq!(world.say("acme", LARGE).await, Err(ErrorCode::Busy));
        held.iter().for_each(tokio::task::JoinHandle::abort);
        world.until_let_in("acme").await;
        until(async || world.server.load().1 == 0).await;
        for of in [0, 1, 0, 1] {
            let fault = within(world.ask(of, "acme", "panic", LARGE).last()).await;
            let code = fault.unwrap_err().code();
            assert!(
                matches!(code, ErrorCode::Internal | ErrorCode::Busy),
                "{code:?}"
            );
        }
        world.until_let_in("acme").await;
    }
    let whole = within(world.ask(0, "acme", "say", 3 * LARGE).last()).await;
    assert!(
        whole.is_ok(),
        "who has nothing in progress may have one more"
    );
}

on_both_buses!(
    a_workspaces_large_questions_are_refused_while_others_and_small_ones_are_served,
    room_comes_back_from_what_is_cancelled_or_panics,
);
