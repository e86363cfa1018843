//! Runs of the agent that are joined again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_schemas::msg::{
    AgentResponse, AgentRunsRequest, AgentRunsResponse, AgentTask, DetachedRun, RunHappened,
    RunSummary, RunToolCall, SummedStep,
};
use tg_schemas::{Error, ErrorCode, Reply};
use tg_testkit::fakes::{Play, Played};
use tg_testkit::place::Place;

use crate::fakes::Fakes;
use crate::socket::{agent, hear, raw, say};
use crate::world::World;

const AGENT: &str = "/api/v1/flow/default/service/agent";

/// An agent with the runs `r`, which is over, `away`, whose agent goes away at every second part, `silent`, at whose every second
/// part the question ends, `gap`, of which parts are not kept, and `hang`, which tells no more than its first part.
pub fn runs(fakes: &Fakes) -> Arc<Played<AgentRunsRequest, AgentRunsResponse>> {
    let (cancelled, left) = (fakes.runs_cancelled.clone(), fakes.runs_left.clone());
    let unheard = fakes.runs_unheard.clone();
    let is_unheard = move || {
        let one_less = |more: usize| more.checked_sub(1);
        unheard
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
    };
    let part = |number: i64| AgentResponse {
        message_type: "answer".into(),
        content: format!("part {number}"),
        end_of_dialog: number == 3,
        ..AgentResponse::default()
    };
    let told = move |numbers: std::ops::Range<i64>| AgentRunsResponse {
        first: numbers.start,
        parts: numbers
            .map(|n| serde_json::to_string(&part(n)).unwrap())
            .collect(),
        more: true,
        ..AgentRunsResponse::default()
    };
    Played::new(move |_, ask: AgentRunsRequest| {
        let last = AgentRunsResponse::default();
        let unknown = Error::new(ErrorCode::NotFound, "run not found");
        Ok(match (ask.operation.as_str(), ask.id.as_str()) {
            ("read-run", "r") if ask.from > 3 => Play::from(last),
            ("read-run", "r") => Play::of(vec![told(ask.from..4), last]),
            ("read-run", "away" | "silent") if ask.from > 2 => Play::of(vec![told(3..4), last]),
            ("read-run", id @ ("away" | "silent")) => {
                let ended = match id {
                    "away" => Error::new(ErrorCode::Unavailable, "away"),
                    _ => Error::new(ErrorCode::Timeout, "no answer in time"),
                };
                let some = told(ask.from..ask.from + 1);
                Play::of(vec![some, AgentRunsResponse::failure(ended)])
            }
            // It is slower than what writes: parts 1 and 2 are not kept when it asks for more.
            ("read-run", "gap") if ask.from > 3 => Play::from(last),
            ("read-run", "gap") => Play::of(vec![told(0..1), told(3..4), last]),
            ("read-run", "hang") => Play::of(vec![told(ask.from..1)]).hanging(),
            ("replay-run", "r") => Play::of(vec![told(ask.from..4), last]),
            ("replay-run", "hang") => Play::of(vec![told(ask.from..1)]).hanging(),
            ("replay-run", "differs") => {
                let other = Error::new(ErrorCode::Conflict, "step 2: it is another");
                Play::of(vec![told(0..2), AgentRunsResponse::failure(other)])
            }
            ("cancel-run", "other") | ("read-run" | "replay-run", _) => return Err(unknown),
            ("cancel-run", _) if is_unheard() => return Err(unknown),
            ("cancel-run", _) => {
                cancelled.lock().push(ask.id);
                Play::from(AgentRunsResponse {
                    happened: Some(happened()),
                    ..last
                })
            }
            ("leave-run", _) => {
                left.lock().push(ask.id);
                Play::from(last)
            }
            ("list-tasks", _) => Play::from(tasks(&ask)),
            ("expand-summary" | "remake-summary", _) => Play::from(summaries(&ask)),
            _ if !ask.all => Play::from(last),
            _ => {
                let id = match (&*ask.id, &*ask.workspace) {
                    ("other", _) => return Ok(Play::from(last)),
                    ("", "") => "r".to_owned(),
                    ("", workspace) => format!("of {workspace}"),
                    (id, _) => id.to_owned(),
                };
                let run = DetachedRun {
                    workspace: match &*id {
                        "closed" => "elsewhere".to_owned(),
                        _ => "default".to_owned(),
                    },
                    generation: i64::from(id == "before"),
                    flow: "default".to_owned(),
                    id,
                    ..DetachedRun::default()
                };
                Play::from(AgentRunsResponse {
                    runs: vec![run],
                    // The page is the agent's.
                    next: match ask.limit {
                        0 => String::new(),
                        limit => format!("after {limit}"),
                    },
                    ..last
                })
            }
        })
    })
}

/// What a run did until it was cancelled.
fn happened() -> RunHappened {
    let call = RunToolCall {
        tool: "mail".into(),
        returned: true,
        failed: false,
    };
    RunHappened {
        over: true,
        steps: 2,
        calls: vec![call],
        in_token: 3,
        out_token: 1,
    }
}

/// The summary before step 4 with the step that it stands for; and one that was made again.
fn summaries(ask: &AgentRunsRequest) -> AgentRunsResponse {
    let first = RunSummary {
        step: 4,
        trace: "urn:old".into(),
        tier: "full".into(),
        text: format!("of {} before {}", ask.id, ask.step),
        tokens_before: 9,
        tokens_after: 2,
        ..RunSummary::default()
    };
    let again = RunSummary {
        trace: "urn:new".into(),
        model: ask.model.clone(),
        prompt: "compact-summarise".into(),
        created_ms: 7,
        ..first.clone()
    };
    let step = SummedStep {
        step: 1,
        thought: "hm".into(),
        action: "search".into(),
        arguments: "{}".into(),
        observation: "found".into(),
    };
    let given = SummedStep {
        step: 0,
        ..step.clone()
    };
    let (summaries, summed) = match ask.operation.as_str() {
        "remake-summary" => (vec![again], Vec::new()),
        _ => (vec![first], vec![given, step]),
    };
    AgentRunsResponse {
        summaries,
        summed,
        ..AgentRunsResponse::default()
    }
}

/// Ids and bodies of events, the end left out.
/// One task, and a page of the agent's.
/// Those of a workspace, or those of a user: one in `acme` and one in `beta`.
fn tasks(ask: &AgentRunsRequest) -> AgentRunsResponse {
    let task = |workspace: &str| AgentTask {
        id: "t".into(),
        agent: format!("bee of {}", ask.workspace),
        workspace: workspace.into(),
        status: "failed".into(),
        error: "interrupted by restart".into(),
        created_ms: 7,
        ..AgentTask::default()
    };
    AgentRunsResponse {
        tasks: match &*ask.workspace {
            "" => vec![task("acme"), task("beta")],
            workspace => vec![task(workspace)],
        },
        next: match ask.limit {
            0 => String::new(),
            limit => format!("after {limit}"),
        },
        ..AgentRunsResponse::default()
    }
}

fn events(text: &str) -> Vec<(String, Value)> {
    let field = |event: &str, name: &str| {
        let line = event.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim().to_owned()
    };
    text.split("\n\n")
        .filter(|event| !event.is_empty() && !event.starts_with("event: end"))
        .map(|event| {
            let data = serde_json::from_str(&field(event, "data:")).unwrap();
            (field(event, "id:"), data)
        })
        .collect()
}

pub async fn streamed(request: reqwest::RequestBuilder) -> Vec<(String, Value)> {
    let request = request.header("accept", "text/event-stream");
    let text = request.send().await.unwrap().text().await.unwrap();
    assert!(text.trim_end().ends_with("event: end\ndata: {}"), "{text}");
    events(&text)
}

fn contents(events: &[(String, Value)]) -> Vec<&str> {
    let all = events.iter();
    all.filter_map(|(_, data)| data["response"]["content"].as_str())
        .collect()
}

async fn events_bear_the_place_behind_which_a_run_is_joined(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let asked = world
        .http
        .post(world.url(AGENT))
        .json(&json!({"question": "q"}));
    let all = streamed(asked).await;
    let ids: Vec<_> = all
        .iter()
        .map(|(id, _)| id.rsplit_once(':').unwrap())
        .collect();
    let numbers: Vec<_> = ids.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, ["0", "1", "2", "3", "4"]);
    assert!(
        ids.iter()
            .all(|(run, _)| *run == ids[0].0 && run.len() == 36)
    );
    // The same request with the last id asks nothing anew.
    let questions = world.fakes.agent.seen.lock().len();
    let again = world
        .http
        .post(world.url(AGENT))
        .json(&json!({"question": "q"}));
    let rest = streamed(again.header("last-event-id", "r:1")).await;
    assert_eq!(rest[0].0, "r:2");
    assert_eq!(contents(&rest), ["part 2", "part 3"]);
    assert_eq!(world.fakes.agent.seen.lock().len(), questions);
    // Also as one reply.
    let again = world
        .http
        .post(world.url(AGENT))
        .json(&json!({"question": "q"}));
    let again = again.header("last-event-id", "r:1").send().await.unwrap();
    let reply: Value = again.json().await.unwrap();
    assert_eq!(reply["answer"], "part 2part 3", "{reply}");
    assert_eq!(world.fakes.agent.seen.lock().len(), questions);
    let whole = streamed(world.http.get(world.url("/api/v1/runs/r"))).await;
    assert_eq!(contents(&whole), ["part 0", "part 1", "part 2", "part 3"]);
    let rest = world.http.get(world.url("/api/v1/runs/r?offset=2"));
    assert_eq!(streamed(rest).await[0].0, "r:3");
    // Who has it all is told that nothing comes.
    let nothing = streamed(world.http.get(world.url("/api/v1/runs/r?offset=3"))).await;
    let end = json!({"response": {}, "complete": true});
    assert_eq!(nothing, [(String::new(), end)]);
    let (_, reply) = world.get("/api/v1/runs/r", "").await;
    assert_eq!(reply["answer"], "part 0part 1part 2part 3");
    let wrong = world
        .http
        .post(world.url(AGENT))
        .json(&json!({"question": "q"}));
    let wrong = wrong
        .header("accept", "text/event-stream")
        .header("last-event-id", "r");
    let refused: Value = wrong.send().await.unwrap().json().await.unwrap();
    assert_eq!(refused["error"]["type"], "bad-request", "{refused}");
}

async fn an_agent_that_goes_away_is_asked_again_from_the_part_that_is_missing(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let whole = streamed(world.http.get(world.url("/api/v1/runs/away"))).await;
    assert_eq!(contents(&whole), ["part 0", "part 1", "part 2", "part 3"]);
    // One of nobody, of another workspace, of one that is there no more under that name: all the same.
    for run in ["other", "closed", "before"] {
        let (status, reply) = world.get(&format!("/api/v1/runs/{run}"), "").await;
        assert_eq!(
            (status, &reply["error"]["message"]),
            // As whatever a service refuses: the error is the body.
            (200, &json!("run not found")),
            "{run}"
        );
        let cancel = json!({"operation": "cancel-run", "run": run});
        let (_, reply) = world.post("/api/v1/requests", "", cancel).await;
        assert_eq!(reply["error"]["message"], "run not found", "{run}");
    }
    assert!(world.fakes.runs_cancelled.lock().is_empty());
}

/// What reads a run is asked anew after ten minutes of silence and after an hour in all, at the part that is missing.
async fn a_run_that_is_silent_for_long_is_read_on(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let whole = streamed(world.http.get(world.url("/api/v1/runs/silent"))).await;
    assert_eq!(contents(&whole), ["part 0", "part 1", "part 2", "part 3"]);
    let mut socket = raw(&world, "/api/v1/socket").await;
    let resumed = json!({"id": "s", "resume": {"run": "silent", "offset": 0}});
    say(&mut socket, resumed).await;
    for offset in [1, 2, 3] {
        let frame = hear(&mut socket).await;
        assert_eq!(frame["offset"], offset, "{frame}");
    }
}

async fn a_run_is_resumed_on_a_socket(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    say(&mut socket, agent(json!("q"), "nonce")).await;
    let first = hear(&mut socket).await;
    assert!(first["offset"] == 0 && first["run"].is_string(), "{first}");
    while hear(&mut socket).await["complete"] != true {}
    let resumed = json!({"id": "r", "resume": {"run": "r", "offset": 1}});
    say(&mut socket, resumed).await;
    for (offset, last) in [(2, false), (3, true)] {
        let frame = hear(&mut socket).await;
        assert_eq!(
            (&frame["run"], &frame["offset"]),
            (&json!("r"), &json!(offset))
        );
        assert_eq!(
            (&frame["id"], &frame["complete"]),
            (&json!("r"), &json!(last))
        );
    }
    // The client's own word ends the run, not that the socket goes.
    say(&mut socket, json!({"id": "h", "resume": {"run": "hang"}})).await;
    assert_eq!(hear(&mut socket).await["offset"], 0);
    say(&mut socket, json!({"type": "cancel", "id": "h"})).await;
    assert_eq!(hear(&mut socket).await["error"]["type"], "cancelled");
    assert_eq!(*world.fakes.runs_cancelled.lock(), ["hang"]);
    say(&mut socket, json!({"id": "h", "resume": {"run": "hang"}})).await;
    assert_eq!(hear(&mut socket).await["offset"], 0);
    socket.close(None).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert_eq!(world.fakes.runs_cancelled.lock().len(), 1);
}

async fn a_run_is_replayed_and_who_ends_that_ends_no_run(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    let replay = |run: &str, offset: Value| {
        let request = json!({"operation": "replay-run", "run": run, "offset": offset});
        json!({"id": run, "service": "requests", "request": request})
    };
    say(&mut socket, replay("r", json!(1))).await;
    for offset in [2, 3] {
        let frame = hear(&mut socket).await;
        assert_eq!(
            (&frame["run"], &frame["offset"], &frame["complete"]),
            (&json!("r"), &json!(offset), &json!(offset == 3))
        );
    }
    say(&mut socket, replay("differs", Value::Null)).await;
    for offset in [0, 1] {
        assert_eq!(hear(&mut socket).await["offset"], offset);
    }
    let error = hear(&mut socket).await["error"].clone();
    assert_eq!(
        error,
        json!({"type": "conflict", "message": "step 2: it is another"})
    );
    say(&mut socket, replay("hang", Value::Null)).await;
    assert_eq!(hear(&mut socket).await["offset"], 0);
    say(&mut socket, json!({"type": "cancel", "id": "hang"})).await;
    assert_eq!(hear(&mut socket).await["error"]["type"], "cancelled");
    assert!(world.fakes.runs_cancelled.lock().is_empty());
    let other = json!({"operation": "replay-run", "run": "other"});
    let (_, reply) = world.post("/api/v1/requests", "", other).await;
    assert_eq!(reply["error"]["message"], "run not found");
    let asked = json!({"question": "q", "record": true});
    world.post(AGENT, "", asked).await;
    assert!(world.fakes.agent.seen.lock().last().unwrap().record);
}

async fn summaries_are_expanded_and_made_again(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let ask = async |body: Value| world.post("/api/v1/requests", "", body).await;
    let (_, reply) = ask(json!({"operation": "expand-summary", "run": "r", "step": 4})).await;
    let step =
        json!({"thought": "hm", "action": "search", "arguments": "{}", "observation": "found"});
    let mut own = step.clone();
    own["step"] = json!(1);
    let first = json!({"step": 4, "trace": "urn:old", "tier": "full", "text": "of r before 4",
        "tokens-before": 9, "tokens-after": 2});
    assert_eq!(
        reply,
        json!({"summaries": [first], "summed": [step, own]}),
        "what came with the question has no number"
    );
    let again = json!({"operation": "remake-summary", "run": "r", "model": "large"});
    let (_, reply) = ask(again).await;
    let made = json!({"step": 4, "trace": "urn:new", "tier": "full", "text": "of r before 0", "model": "large",
        "prompt": "compact-summarise", "tokens-before": 9, "tokens-after": 2, "created-ms": 7});
    assert_eq!(reply, json!({"summaries": [made]}));
    for (body, text) in [
        (
            json!({"operation": "remake-summary", "run": "r"}),
            "model: is required",
        ),
        (json!({"operation": "expand-summary"}), "run: is required"),
        (
            json!({"operation": "expand-summary", "run": "r", "step": -1}),
            "step: must be a step, or 0",
        ),
        (
            json!({"operation": "expand-summary", "run": "other"}),
            "run not found",
        ),
        (
            json!({"operation": "expand-summary", "run": "closed"}),
            "run not found",
        ),
    ] {
        let (_, reply) = ask(body).await;
        assert_eq!(reply["error"]["message"], text);
    }
}

async fn a_cancel_says_what_had_happened(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let cancel = json!({"operation": "cancel-run", "run": "r"});
    let (_, reply) = world.post("/api/v1/requests", "", cancel).await;
    let expected = json!({"cancelled": "r", "ended": true, "steps": 2, "in-token": 3, "out-token": 1,
        "tool-calls": [{"tool": "mail", "returned": true, "failed": false}]});
    assert_eq!(reply, expected);
    let list = json!({"operation": "list-runs"});
    let (_, reply) = world.post("/api/v1/requests", "", list).await;
    assert_eq!(reply["runs"][0]["id"], "r", "{reply}");
    let paged = json!({"operation": "list-runs", "limit": 7});
    let (_, reply) = world.post("/api/v1/requests", "", paged).await;
    assert_eq!(reply["next"], "after 7", "{reply}");
    let other = json!({"operation": "cancel-run", "run": "other"});
    let (_, reply) = world.post("/api/v1/requests", "", other).await;
    assert_eq!(reply["error"]["message"], "run not found");
    let graced = world
        .http
        .post(world.url("/api/v1/flow/default/service/triples"));
    let graced = graced
        .header("x-on-disconnect", "grace=9")
        .json(&json!({"limit": 1}));
    let refused: Value = graced.send().await.unwrap().json().await.unwrap();
    assert!(
        refused["error"].to_string().contains("on-disconnect"),
        "{refused}"
    );
}

async fn runs_of_everybody_are_for_administrators(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let list = json!({"operation": "list-runs", "all": true});
    let (status, _) = world
        .post("/api/v1/requests", "tg_reader", list.clone())
        .await;
    assert_eq!(status, 403);
    let (_, reply) = world.post("/api/v1/requests", "tg_admin", list).await;
    assert_eq!(reply["runs"][0]["id"], "of default", "{reply}");
    // What a run says is for who may ask the agent, whoever's it is.
    for (token, status) in [("tg_reader", 200), ("tg_scoped", 403)] {
        let (came, reply) = world.get("/api/v1/runs/r", token).await;
        assert_eq!(came, status, "{token}: {reply}");
    }
}

/// Line 118: tasks are listed page by page, those of everybody for administrators.
async fn tasks_are_listed(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let list = json!({"operation": "list-tasks", "limit": 7});
    let (_, reply) = world
        .post("/api/v1/requests", "tg_reader", list.clone())
        .await;
    let expected = json!({"tasks": [{"id": "t", "kind": "", "agent": "bee of ", "session": "", "workspace": "acme",
        "message": "", "status": "failed", "error": "interrupted by restart", "created-ms": 7}], "next": "after 7"});
    assert_eq!(
        reply, expected,
        "others are where the caller may not ask the agent"
    );
    // A key that may not ask the agent reads nothing of what its user asked.
    let (_, reply) = world.post("/api/v1/requests", "tg_scoped", list).await;
    assert_eq!(reply, json!({"tasks": [], "next": "after 7"}));
    let all = json!({"operation": "list-tasks", "all": true});
    let (status, _) = world
        .post("/api/v1/requests", "tg_reader", all.clone())
        .await;
    assert_eq!(status, 403);
    let (_, reply) = world.post("/api/v1/requests", "tg_admin", all).await;
    assert_eq!(reply["tasks"][0]["agent"], "bee of default", "{reply}");
}

async fn a_run_is_told_that_its_asker_is_gone(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let mut socket = raw(&world, "/api/v1/socket").await;
    let mut asked = agent(json!("g"), "hang");
    asked["on-disconnect"] = json!("grace=9");
    say(&mut socket, asked).await;
    let run = hear(&mut socket).await["run"].clone();
    assert_eq!(world.fakes.agent.seen.lock()[0].grace, 9);
    socket.close(None).await.unwrap();
    let left = async {
        while world.fakes.runs_left.lock().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::world::BOUND, left)
        .await
        .unwrap();
    assert_eq!(json!(world.fakes.runs_left.lock()[0]), run);
    assert_eq!(*world.fakes.agent.cancelled.borrow(), 0);
}

/// The agent is away when a run of it is cancelled: it hears of it later.
async fn a_cancel_that_the_agent_did_not_hear_is_sent_again(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    world.fakes.runs_unheard.store(2, Ordering::Relaxed);
    let mut socket = raw(&world, "/api/v1/socket").await;
    let mut asked = agent(json!("d"), "hang");
    asked["detach"] = json!(true);
    say(&mut socket, asked).await;
    let run = hear(&mut socket).await["run"].clone();
    let cancel = json!({"operation": "cancel-request", "id": run});
    let (_, reply) = world.post("/api/v1/requests", "", cancel).await;
    assert_eq!(reply["cancelled"], run, "{reply}");
    let heard = async {
        while world.fakes.runs_cancelled.lock().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(crate::world::BOUND, heard)
        .await
        .unwrap();
    assert_eq!(json!(world.fakes.runs_cancelled.lock()[0]), run);
}

/// 34.3: a reader slower than the writer.
async fn a_gap_is_announced_and_the_stream_goes_on(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let all = streamed(world.http.get(world.url("/api/v1/runs/gap"))).await;
    let ids: Vec<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
    // Whoever has the announcement goes on behind it.
    assert_eq!(ids[..3], ["gap:0", "gap:2", "gap:3"]);
    let announced = &all[1].1["response"];
    assert_eq!(announced["message_type"], "gap");
    assert_eq!(announced["gap"], json!({"first": 1, "next": 3}));
    assert_eq!(all[1].1["complete"], false);
    assert_eq!(contents(&all), ["part 0", "", "part 3"]);
    let mut socket = raw(&world, "/api/v1/socket").await;
    let resume = json!({"id": "s", "resume": {"run": "gap"}});
    say(&mut socket, resume).await;
    let mut offsets = Vec::new();
    for _ in 0..3 {
        offsets.push(hear(&mut socket).await["offset"].clone());
    }
    assert_eq!(offsets, [0, 2, 3]);
    // One reply says that it is not all.
    let (_, reply) = world.get("/api/v1/runs/gap", "").await;
    assert_eq!(reply["answer"], "part 0part 3");
    assert!(reply["warnings"][0].to_string().contains("gaps"), "{reply}");
}

tg_testkit::on_both_buses!(
    events_bear_the_place_behind_which_a_run_is_joined,
    an_agent_that_goes_away_is_asked_again_from_the_part_that_is_missing,
    a_run_that_is_silent_for_long_is_read_on,
    a_run_is_resumed_on_a_socket,
    a_run_is_replayed_and_who_ends_that_ends_no_run,
    summaries_are_expanded_and_made_again,
    a_cancel_says_what_had_happened,
    runs_of_everybody_are_for_administrators,
    a_run_is_told_that_its_asker_is_gone,
    a_cancel_that_the_agent_did_not_hear_is_sent_again,
    tasks_are_listed,
    a_gap_is_announced_and_the_stream_goes_on,
);
