//! Runs that are joined at any part, by who asked for them, from another process.

use std::time::Duration;

use tg_mesh::{Ask, Host};
use tg_schemas::msg::{AgentResponse, AgentRunsRequest, AgentRunsResponse, RunToolCall};
use tg_schemas::processors::agent_manager::RUNS;
use tg_schemas::{Class, Error, ErrorCode, Reply, Topic};
use tg_testkit::chance::Chance;
use tg_testkit::place::Place;
use tokio::time::Instant;

use super::endings::ADD;
use super::world::*;
use crate::options::Options;
use crate::store::Whose;

/// How many join a run that is under way, and one that is over, and how many are cancelled: `alone` has more, and measures them.
const JOIN: usize = 30;
const CANCELS: usize = 5;

fn of(user: &str, operation: &str) -> AgentRunsRequest {
    AgentRunsRequest {
        operation: operation.into(),
        user: user.into(),
        id: "q".into(),
        ..AgentRunsRequest::default()
    }
}

fn asks(user: &str, detach: bool) -> Ask {
    Ask {
        id: Some("q".into()),
        user_id: Some(user.into()),
        detach,
        ..Ask::default()
    }
}

async fn ask(mesh: &Host, request: &AgentRunsRequest) -> Result<AgentRunsResponse, Error> {
    let topic = Topic::system(Class::Request, RUNS.name);
    let answer = mesh.ask::<_, AgentRunsResponse>(&topic, request, Ask::default());
    answer.last().await
}

/// What is told of the run `q` from a part on, until so many parts are there or nothing more comes; and how soon the first was.
pub(super) async fn read(
    mesh: &Host,
    user: &str,
    from: usize,
    most: usize,
) -> Result<(Vec<AgentResponse>, Duration), Error> {
    let topic = Topic::system(Class::Request, RUNS.name);
    let request = AgentRunsRequest {
        from: from as i64,
        ..of(user, "read-run")
    };
    let began = Instant::now();
    let mut first = None;
    let mut answer = mesh.ask::<_, AgentRunsResponse>(&topic, &request, Ask::default());
    let mut parts = Vec::new();
    while let Some(some) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
        let some = some?;
        if let Some(error) = some.error {
            return Err(error);
        }
        first.get_or_insert_with(|| began.elapsed());
        if !some.parts.is_empty() {
            assert_eq!(some.first as usize, from + parts.len());
        }
        let read = some.parts.iter().map(|part| serde_json::from_str(part));
        parts.extend(read.map(Result::unwrap));
        if parts.len() >= most {
            break;
        }
    }
    Ok((parts, first.unwrap_or_default()))
}

async fn whole(answer: &mut tg_mesh::Answer<AgentResponse>) -> Vec<AgentResponse> {
    let mut parts = Vec::new();
    while let Some(part) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
        parts.push(part.unwrap());
    }
    parts
}

async fn a_run_is_joined_at_any_part_without_a_gap_or_repeat(place: Place) {
    joined(&place, JOIN).await;
}

/// Joins a run that often, at parts that are drawn; how soon the first part came.
async fn joined(place: &Place, times: usize) -> Vec<Duration> {
    let answer = "Thought: I know it well by now and say it\nFinal Answer: one two three four five";
    let script = [Say::Text(ADD), Say::Text(answer)];
    let world = World::new(place, script).await;
    let other = tg_testkit::place::host(place.connect().await).await;
    let mut asking = world.ask_with(&question("q", true), asks("ann", false));
    let first = asking.next().await.unwrap().unwrap();
    // While it is under way.
    let live: Vec<_> = (0..4).map(|from| read(&other, "ann", from, 999)).collect();
    let (rest, live) = tokio::join!(whole(&mut asking), futures::future::join_all(live));
    let all: Vec<_> = std::iter::once(first).chain(rest).collect();
    assert!(all.len() > 12 && all.last().unwrap().is_last());
    for (from, joined) in live.into_iter().enumerate() {
        assert_eq!(joined.unwrap().0, all[from..], "from {from}");
    }
    // When it is over.
    let mut chance = Chance::of_this_run();
    let mut took = Vec::new();
    for _ in 0..times {
        let from = chance.below(all.len());
        let (parts, first) = read(&other, "ann", from, 999).await.unwrap();
        assert_eq!(parts, all[from..], "from {from}");
        took.push(first);
    }
    // Who has it all is told so; who says that they have more is told otherwise.
    let (nothing, _) = read(&other, "ann", all.len(), 999).await.unwrap();
    assert!(nothing.is_empty());
    let beyond = read(&other, "ann", all.len() + 1, 999).await.unwrap_err();
    assert_eq!(beyond.code(), ErrorCode::BadRequest);
    assert!(beyond.message.starts_with("offset: "), "{beyond}");
    let (nothing, _) = read(&other, "ann", all.len(), 999).await.unwrap();
    assert!(nothing.is_empty());
    let stranger = read(&other, "bob", 0, 999).await.unwrap_err();
    assert_eq!(stranger.code(), ErrorCode::NotFound);
    took
}

async fn a_run_under_way_is_joined_while_nobody_else_listens(place: Place) {
    joined_under_way(&place, JOIN).await;
}

/// The same with a run that hangs behind what it has told.
async fn joined_under_way(place: &Place, times: usize) -> Vec<Duration> {
    let words =
        "Thought: the quick brown fox jumps over the lazy dog and then it rests for a while";
    let world = World::new(place, [Say::Text(ADD), Say::Hang(words)]).await;
    let other = tg_testkit::place::host(place.connect().await).await;
    let mut asking = world.ask_with(&question("q", true), asks("ann", true));
    let mut all = Vec::new();
    while all.len() < 6 {
        let part = tokio::time::timeout(SOON, asking.next()).await.unwrap();
        all.push(part.unwrap().unwrap());
    }
    while let Ok(part) = tokio::time::timeout(Duration::from_millis(400), asking.next()).await {
        all.push(part.unwrap().unwrap());
    }
    drop(asking);
    let mut chance = Chance::of_this_run();
    let mut took = Vec::new();
    for _ in 0..times {
        let from = chance.below(all.len());
        let (parts, first) = read(&other, "ann", from, all.len() - from).await.unwrap();
        assert_eq!(parts[..all.len() - from], all[from..], "from {from}");
        took.push(first);
    }
    ask(&other, &of("ann", "cancel-run")).await.unwrap();
    let (parts, _) = read(&other, "ann", 0, 999).await.unwrap();
    assert_eq!(parts[..all.len()], all);
    assert_eq!(
        parts.last().unwrap().error.as_ref().unwrap().code(),
        ErrorCode::Cancelled
    );
    took
}

async fn a_cancel_says_what_had_happened(place: Place) {
    let world = World::new(&place, [Say::Text(ADD), Say::Hang("Thought: ")]).await;
    let mut asking = world.ask_with(&question("q", true), asks("ann", false));
    let observed = async {
        while let Some(part) = asking.next().await {
            if part.unwrap().message_type == "observation" {
                break;
            }
        }
    };
    tokio::time::timeout(SOON, observed).await.unwrap();
    let stranger = ask(&world.mesh, &of("bob", "cancel-run")).await;
    assert_eq!(stranger.unwrap_err().code(), ErrorCode::NotFound);
    let list = AgentRunsRequest {
        all: true,
        ..of("ann", "list-runs")
    };
    let listed = ask(&world.mesh, &list).await.unwrap().runs;
    let shown = (&*listed[0].state, &*listed[0].on_disconnect);
    assert_eq!((listed.len(), shown), (1, ("running", "cancel")));
    let of_workspace = |key: &str| AgentRunsRequest {
        workspace: key.into(),
        ..of("", "cancel-run")
    };
    // The next of that name is another workspace.
    let next = ask(&world.mesh, &of_workspace("default#1")).await;
    assert_eq!(next.unwrap_err().code(), ErrorCode::NotFound);
    let of_workspace = of_workspace("default");
    let happened = ask(&world.mesh, &of_workspace).await.unwrap().happened;
    let happened = happened.unwrap();
    let call = RunToolCall {
        tool: "calculator".into(),
        returned: true,
        failed: false,
    };
    assert!(happened.over);
    assert_eq!((happened.steps, &happened.calls[..]), (1, &[call][..]));
    assert_eq!(
        ask(&world.mesh, &list).await.unwrap().runs[0].state,
        "cancelled"
    );
    let again = ask(&world.mesh, &of("ann", "cancel-run")).await;
    assert_eq!(again.unwrap_err().code(), ErrorCode::NotFound);
}

async fn a_cancel_stops_the_model(place: Place) {
    cancelled(&place, CANCELS).await;
}

/// From the word of who asked until what asks the provider has stopped, of that many; its connection closes with that.
async fn cancelled(place: &Place, times: usize) -> Vec<Duration> {
    let script = (0..times).map(|_| Say::Hang("Thought: hm"));
    let world = World::new(place, script).await;
    let mut took = Vec::new();
    for n in 0..times {
        let (id, detach) = (format!("q{n:03}"), n % 2 == 0);
        let own = Ask {
            id: Some(id.clone()),
            ..asks("ann", detach)
        };
        let mut asking = world.ask_with(&question("q", true), own);
        asking.next().await.unwrap().unwrap();
        world.model.hanging.notified().await;
        let began = Instant::now();
        let cancel = AgentRunsRequest {
            id,
            ..of("ann", "cancel-run")
        };
        let stopped = async {
            world.model.cancelled.notified().await;
            began.elapsed()
        };
        let (cancelled, stopped) = tokio::join!(ask(&world.mesh, &cancel), stopped);
        assert!(cancelled.unwrap().happened.unwrap().over);
        took.push(stopped);
        whole(&mut asking).await;
    }
    took
}

async fn a_run_waits_for_its_asker_as_long_as_it_was_told_to(place: Place) {
    let world = World::new(&place, [Say::Hang("Thought: hm")]).await;
    let mut asked = question("q", true);
    // On a busy machine it needs a moment to be joined before that.
    asked.grace = 5;
    let mut asking = world.ask_with(&asked, asks("ann", true));
    asking.next().await.unwrap().unwrap();
    drop(asking);
    ask(&world.mesh, &of("ann", "leave-run")).await.unwrap();
    // Who joins it holds it.
    let joined = read(&world.mesh, "ann", 0, 999);
    tokio::select! {
        joined = joined => panic!("it goes on: {joined:?}"),
        () = tokio::time::sleep(Duration::from_millis(5_600)) => {}
    }
    let (parts, _) = read(&world.mesh, "ann", 0, 1).await.unwrap();
    assert!(!parts.is_empty());
    // Nobody does from now on.
    assert_eq!(world.ended().await, "cancelled");
}

async fn what_is_not_kept_is_not_there(place: Place) {
    let settings = Options {
        replay_mb: 0,
        ..Options::default()
    };
    let world = World::with(&place, [Say::Text("Final Answer: yes")], settings).await;
    whole(&mut world.ask_with(&question("q", true), asks("ann", false))).await;
    let error = read(&world.mesh, "ann", 0, 999).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::NotFound);
}

/// 34.3: a reader slower than the writer.
async fn parts_that_are_not_kept_are_announced_and_the_rest_follows(place: Place) {
    let world = World::new(&place, [Say::Hang("Thought: hm")]).await;
    let mut asking = world.ask_with(&question("q", true), asks("ann", true));
    asking.next().await.unwrap().unwrap();
    world.model.hanging.notified().await;
    let topic = Topic::system(Class::Request, RUNS.name);
    let mut reading =
        world
            .mesh
            .ask::<_, AgentRunsResponse>(&topic, &of("ann", "read-run"), Ask::default());
    let mut next = async || {
        let some = tokio::time::timeout(SOON, reading.next()).await.unwrap();
        some.unwrap().unwrap()
    };
    let before = next().await;
    assert_eq!(before.first, 0);
    // All that the run says is there: it says nothing behind what follows.
    let mut said = before.parts;
    while !said.iter().any(|part| part.contains("hm")) {
        said.extend(next().await.parts);
    }
    // The writer is so far ahead that memory has none of what the reader needs next.
    let ledger = world.agent.ledger().await.unwrap();
    let run = ledger.of_question(&Whose::User("ann".into()), "q").await;
    let run = run.unwrap().unwrap();
    drop(ledger);
    let far = AgentResponse {
        message_type: "thought".into(),
        content: "far ahead".into(),
        ..AgentResponse::default()
    };
    let far = serde_json::to_string(&far).unwrap();
    let transcript = world.agent.transcripts.of(&run.run, &run.workspace);
    transcript.add(1_000, vec![far.clone()]);
    let after = loop {
        let some = next().await;
        if some.parts.contains(&far) {
            break some;
        }
    };
    assert_eq!((after.first, after.more), (1_000, true));
}

tg_testkit::on_both_buses!(
    a_run_is_joined_at_any_part_without_a_gap_or_repeat,
    a_run_under_way_is_joined_while_nobody_else_listens,
    a_cancel_says_what_had_happened,
    a_cancel_stops_the_model,
    a_run_waits_for_its_asker_as_long_as_it_was_told_to,
    what_is_not_kept_is_not_there,
    parts_that_are_not_kept_are_announced_and_the_rest_follows,
);

/// As many as the promise says, within its bounds of time.
mod alone {
    use std::time::Duration;

    use tg_testkit::place::Place;

    /// How many join, and how soon the first part that they missed comes, of 95 in 100.
    const JOIN: usize = 500;
    const FIRST: Duration = Duration::from_millis(50);
    /// How many are cancelled, and how soon 99 in 100 have stopped: half of what a closed connection may take.
    const CANCELS: usize = 100;
    const STOPPED: Duration = Duration::from_millis(100);

    /// That many are the slowest of a hundred.
    fn slowest(mut took: Vec<Duration>, of_hundred: usize) -> Duration {
        took.sort_unstable();
        took[took.len() * (100 - of_hundred) / 100]
    }

    async fn a_run_is_joined_at_once(place: Place) {
        for took in [
            super::joined(&place.another().await, JOIN).await,
            super::joined_under_way(&place.another().await, JOIN).await,
        ] {
            let slow = slowest(took, 5);
            assert!(slow <= FIRST, "{slow:?}");
        }
    }

    async fn a_cancel_stops_the_model_at_once(place: Place) {
        let slow = slowest(super::cancelled(&place, CANCELS).await, 1);
        assert!(slow <= STOPPED, "{slow:?}");
    }

    tg_testkit::on_both_buses!(a_run_is_joined_at_once, a_cancel_stops_the_model_at_once);
}
