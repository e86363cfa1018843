//! `kill -9` of the agent after each frame of a run that plans, of one with subagents, and of one that gives a graph of tasks to
//! other agents: its successor goes on, and there is one answer. What subagents found, and the chain of the trace, is there once,
//! and no subagent that was done begins again. When the service of models, of prompts or of tools is killed instead, the agent asks
//! its successor, and there is one answer as well. When the graph, documents, configuration, flows or users are, a run ends once: in
//! its answer, or in a clear error. A run that its caller leaves to itself is not ended by a kill of the gateway: the next gateway
//! has all of it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel, final_answer, nonce_of, tool_call};
use tg_testkit::services::{ANSWERING, without};
use tg_testkit::shared_node::VirtualHost;
use tg_testkit::socket::{Socket, brief, text_of};

use crate::traces::{chains, expected, slow};
use crate::world::serving;

/// Pause of the model before each piece.
const PAUSE: Duration = Duration::from_millis(5);
/// A run ends by then in any case.
const BOUND: Duration = Duration::from_secs(60);
/// Frames between two kills of another process than the agent, and most frames of a run.
const EACH: usize = 8;
const MOST: usize = 200;
/// Whatever of these is killed, a run ends in its answer.
const ANSWERED: [&str; 4] = ["agent", "llm", "prompt", "tool"];
/// How a question begins that is answered by a graph of tasks.
const GRAPH: &str = "Dispatch it:";
/// How long a trace may lag behind its answer.
const LAG: Duration = Duration::from_secs(60);

/// The goals of the subagents of a run. Tasks of a graph begin with the same words.
fn goals(nonce: &str) -> [String; 3] {
    ["a", "b", "c"].map(|part| format!("What is it? {nonce}-{part}"))
}

/// A model that plans two steps side by side and one after both, splits into two goals, and otherwise is that of two steps.
fn model() -> Vec<Rule> {
    let about = |heading: &'static str| move |prompt: &str| prompt.contains(heading);
    let mut rules = vec![
        Rule::computed(about("## Plan wanted"), |_| {
            Reply::text(r#"["first", "beside", {"goal": "second", "depends_on": [0, 1]}]"#)
        }),
        Rule::computed(about("## Tool for a step wanted"), |_| {
            Reply::text(r#"{"tool": "calculator", "arguments": {"expression": "6*7"}}"#)
        }),
        Rule::computed(about("## Goals wanted"), |prompt| {
            let nonce = nonce_of(prompt).unwrap_or_default();
            Reply::text(json!(goals(nonce)).to_string())
        }),
        Rule::computed(about("## Answer from"), |prompt| {
            // The question stands at the end.
            let from = prompt.rfind("## Question").unwrap_or_default();
            let nonce = nonce_of(&prompt[from..]).unwrap_or_default();
            Reply::text(expected(nonce))
        }),
    ];
    rules.extend(dispatching());
    rules.extend(slow(PAUSE));
    rules
}

/// Of a question that begins with [`GRAPH`]: two tasks side by side, a third after both, and the answer.
fn dispatching() -> Vec<Rule> {
    let own = |prompt: &str| {
        let from = prompt.find(GRAPH)?;
        nonce_of(&prompt[from..]).map(str::to_owned)
    };
    let observed = |prompt: &str| prompt.lines().any(|line| line.starts_with("Observation:"));
    let answers = move |prompt: &str| own(prompt).is_some() && observed(prompt);
    vec![
        Rule::computed(answers, move |prompt| {
            let nonce = own(prompt).unwrap_or_default();
            Reply::text(final_answer("All is there.", &expected(&nonce)))
        }),
        Rule::computed(
            move |prompt: &str| own(prompt).is_some(),
            move |prompt| {
                let nonce = own(prompt).unwrap_or_default();
                let task = |id: &str, message: String, after: Value| json!({"id": id, "agent_id": "worker", "message": message, "depends_on": after});
                let graph = json!({"tasks": [
                    task("A", format!("What is it? {nonce}-a"), json!([])),
                    task("B", format!("What is it? {nonce}-b"), json!([])),
                    task("C", format!("What is it? {nonce}-c, as {{{{A.output}}}}"), json!(["A", "B"])),
                ]});
                let call = json!({"task_graph": graph});
                Reply::text(tool_call("It is best done in parts.", "dispatch", &call))
            },
        ),
    ]
}

/// An agent that tasks may be given to, and the tool that does.
async fn configured(socket: &Socket) -> Result<()> {
    let row = |kind: &str, key: &str, value: Value| json!({"type": kind, "key": key, "value": value.to_string()});
    let tool = json!({"name": "dispatch", "type": "dispatch", "description": "Has tasks done."});
    let values = [
        row(
            "agent-definition",
            "worker",
            json!({"description": "Works."}),
        ),
        row("tool", "dispatch", tool),
    ];
    let put = json!({"operation": "put", "values": values});
    let told = socket.ask_service("config", put).await?;
    ensure!(told["error"].is_null(), "{told}");
    Ok(())
}

async fn killed_after_each_frame(pattern: &str, asks: &str, least: usize) -> Result<()> {
    killed("agent", (pattern, asks), least).await
}

/// Kills the victim after each frame of a run, which has so many at least; another victim than the agent after each few.
async fn killed(victim: &str, (pattern, asks): (&str, &str), least: usize) -> Result<()> {
    let is_own = victim == "agent";
    let node = VirtualHost::new().await?;
    let model = ScriptedModel::start(model()).await?;
    let serve = |services: &[&str]| serving(services, &model, &node);
    let mut rest = serve(&without(&ANSWERING, &[victim])).spawn().await?;
    let launch = serve(&[victim]).data(&rest.data().join("killed"));
    let mut process = launch.clone().spawn().await?;
    rest.wait_ready().await?;
    let socket = Socket::connect(&rest.url(), "").await?;
    configured(&socket).await?;
    let (mut sessions, mut found) = (Vec::new(), 0);
    for step in (0..).step_by(if is_own { 1 } else { EACH }) {
        ensure!(step <= MOST, "no run was over before a kill");
        let nonce = format!("nonce-{step}");
        let envelope = json!({
            "service": "agent", "flow": "default",
            "request": {"question": format!("{asks} {nonce}"), "pattern": pattern},
        });
        let mut shown = socket.send(envelope.clone()).await?;
        let mut frames = Vec::new();
        while frames.len() < step
            && let Some(frame) = shown.next().await
        {
            frames.push(frame);
        }
        let over = frames.last().is_some_and(|frame| frame["complete"] == true);
        let done = done(&frames, &nonce);
        found += done.len();
        process.kill9().await?;
        process = launch.clone().spawn().await?;
        if !over {
            frames.extend(shown.all(BOUND).await?);
        }
        // Whoever has no word of the answer yet is notified within a second that nobody serves, and asks again.
        let asked = tokio::time::Instant::now();
        while is_own && is_unserved(&frames) && asked.elapsed() < BOUND {
            frames = socket.send(envelope.clone()).await?.all(BOUND).await?;
        }
        let told = || {
            format!(
                "{victim} killed after frame {step}: {}\n{}",
                brief(&frames),
                process.log()
            )
        };
        nothing_twice(&frames).with_context(told)?;
        begun_once(&model, &done).with_context(told)?;
        let failure = failure(&frames);
        match &failure {
            Some(message) => {
                let answered = ANSWERED.contains(&victim);
                ensure!(!answered && !message.is_empty(), "{}", told());
            }
            None => ensure!(
                text_of(&frames, "answer").trim() == expected(&nonce),
                "{}",
                told()
            ),
        }
        let session = frames
            .iter()
            .find_map(|frame| frame["response"]["explain_id"].as_str());
        match session {
            Some(session) => sessions.push(session.to_owned()),
            None => ensure!(failure.is_some(), "no session: {}", told()),
        }
        if over && failure.is_none() {
            ensure!(!is_own || step >= least, "a run of {step} frames");
            break;
        }
        rest.wait_ready().await?;
    }
    ensure!(
        found > 0 || pattern == "plan-then-execute",
        "no subagent was done before a kill"
    );
    let end = tokio::time::Instant::now() + LAG;
    while let Err(why) = chains(&socket).await? {
        ensure!(tokio::time::Instant::now() < end, "{why}");
        tokio::time::sleep(PAUSE).await;
    }
    let different: BTreeSet<&String> = sessions.iter().collect();
    ensure!(different.len() == sessions.len(), "one session a run");
    Ok(())
}

/// Kills the gateway after each few frames of a detached run. The run goes on, and is joined at the gateway that comes next.
async fn gateway_killed((pattern, asks): (&str, &str)) -> Result<()> {
    let node = VirtualHost::new().await?;
    let model = ScriptedModel::start(model()).await?;
    let serve = |services: &[&str]| serving(services, &model, &node);
    let _rest = serve(&without(&ANSWERING, &["gateway"])).spawn().await?;
    let mut gateway = serve(&["gateway"]).ready().await?;
    // The run has its id from its first frame.
    for step in (1..).step_by(EACH) {
        ensure!(step <= MOST, "no run was over before a kill");
        let nonce = format!("nonce-{step}");
        let envelope = json!({
            "service": "agent", "flow": "default", "on-disconnect": "detach",
            "request": {"question": format!("{asks} {nonce}"), "pattern": pattern},
        });
        let socket = Socket::connect(&gateway.url(), "").await?;
        let mut shown = socket.send(envelope).await?;
        let mut frames = Vec::new();
        while frames.len() < step
            && let Some(frame) = shown.next().await
        {
            frames.push(frame);
        }
        let over = frames.last().is_some_and(|frame| frame["complete"] == true);
        let run = frames.first().context("no frame")?["run"].clone();
        gateway.kill9().await?;
        gateway = serve(&["gateway"]).ready().await?;
        let socket = Socket::connect(&gateway.url(), "").await?;
        let joined = socket.send(json!({"resume": {"run": run}})).await?;
        let whole = joined.all(BOUND).await?;
        let told = || {
            let (before, after) = (brief(&frames), brief(&whole));
            format!("the gateway killed after frame {step}: {before}\n{after}")
        };
        nothing_twice(&whole).with_context(told)?;
        begun_once(&model, &done(&whole, &nonce)).with_context(told)?;
        let answer = text_of(&whole, "answer");
        ensure!(answer.trim() == expected(&nonce), "{}", told());
        let same = |(before, after): (&Value, &Value)| before["response"] == after["response"];
        ensure!(frames.iter().zip(&whole).all(same), "{}", told());
        if over {
            break;
        }
    }
    Ok(())
}

/// Whether a run ended without a word, as no process served it.
fn is_unserved(frames: &[Value]) -> bool {
    matches!(frames, [only] if only["error"]["type"] == "nobody-serves")
}

/// What the error says that a run ended in.
fn failure(frames: &[Value]) -> Option<String> {
    let last = frames.last()?;
    let errors = [&last["error"], &last["response"]["error"]];
    let error = errors.into_iter().find(|error| !error.is_null())?;
    Some(error["message"].as_str().unwrap_or_default().to_owned())
}

/// No entity is told twice, no message either, and the run ends once.
fn nothing_twice(frames: &[Value]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for frame in frames {
        let part = &frame["response"];
        let id = [&part["explain_id"], &part["message_id"]];
        let id = id.into_iter().find_map(Value::as_str).unwrap_or_default();
        let kind = part["message_type"].as_str().unwrap_or_default();
        if !id.is_empty() {
            ensure!(
                seen.insert((kind.to_owned(), id.to_owned())),
                "{kind} {id} twice"
            );
        }
    }
    let ends = frames.iter().filter(|frame| frame["complete"] == true);
    ensure!(ends.count() == 1, "ends more than once");
    Ok(())
}

/// The goals of a run of which an entity says what was found.
fn done(frames: &[Value], nonce: &str) -> Vec<String> {
    let told: Vec<String> = frames.iter().map(Value::to_string).collect();
    let is_done = |goal: &String| {
        let label = format!("Finding: {goal}");
        told.iter().any(|frame| frame.contains(&label))
    };
    goals(nonce).into_iter().filter(is_done).collect()
}

/// The model was asked once for the first step of each of these goals.
fn begun_once(model: &ScriptedModel, goals: &[String]) -> Result<()> {
    let calls = model.calls();
    for goal in goals {
        let first = calls.iter().filter(|call| begins(&call.body, goal));
        let first = first.count();
        ensure!(first == 1, "{goal}: begun {first} times");
    }
    Ok(())
}

/// Whether a model is asked for the first step of a goal: nothing was observed yet.
fn begins(body: &Value, goal: &str) -> bool {
    let messages = body["messages"].as_array().into_iter().flatten();
    let texts: Vec<&str> = messages.filter_map(|one| one["content"].as_str()).collect();
    let prompt = texts.join("\n");
    let observed = prompt.lines().any(|line| line.starts_with("Observation:"));
    prompt.contains(goal) && !observed && !prompt.contains("## Answer from")
}

#[tokio::test]
async fn a_plan() -> Result<()> {
    killed_after_each_frame("plan-then-execute", "What is it?", 10).await
}

#[tokio::test]
async fn subagents() -> Result<()> {
    killed_after_each_frame("supervisor", "What is it?", 30).await
}

#[tokio::test]
async fn a_plan_whose_model_dies() -> Result<()> {
    killed("llm", ("plan-then-execute", "What is it?"), 0).await
}

#[tokio::test]
async fn subagents_whose_model_dies() -> Result<()> {
    killed("llm", ("supervisor", "What is it?"), 0).await
}

#[tokio::test]
async fn a_plan_whose_prompts_die() -> Result<()> {
    killed("prompt", ("plan-then-execute", "What is it?"), 0).await
}

#[tokio::test]
async fn subagents_whose_prompts_die() -> Result<()> {
    killed("prompt", ("supervisor", "What is it?"), 0).await
}

#[tokio::test]
async fn a_plan_whose_tools_die() -> Result<()> {
    killed("tool", ("plan-then-execute", "What is it?"), 0).await
}

#[tokio::test]
async fn subagents_whose_tools_die() -> Result<()> {
    killed("tool", ("supervisor", "What is it?"), 0).await
}

#[tokio::test]
async fn a_plan_whose_gateway_dies() -> Result<()> {
    gateway_killed(("plan-then-execute", "What is it?")).await
}

#[tokio::test]
async fn subagents_whose_gateway_dies() -> Result<()> {
    gateway_killed(("supervisor", "What is it?")).await
}

/// The services around a run, beside its model, prompts and tools; each is killed and started many times.
mod alone {
    use anyhow::Result;

    const PLAN: (&str, &str) = ("plan-then-execute", "What is it?");
    const SUBAGENTS: (&str, &str) = ("supervisor", "What is it?");

    #[tokio::test]
    async fn a_plan_whose_graph_dies() -> Result<()> {
        super::killed("graph", PLAN, 0).await
    }

    #[tokio::test]
    async fn subagents_whose_graph_dies() -> Result<()> {
        super::killed("graph", SUBAGENTS, 0).await
    }

    #[tokio::test]
    async fn a_plan_whose_librarian_dies() -> Result<()> {
        super::killed("librarian", PLAN, 0).await
    }

    #[tokio::test]
    async fn subagents_whose_librarian_dies() -> Result<()> {
        super::killed("librarian", SUBAGENTS, 0).await
    }

    #[tokio::test]
    async fn a_plan_whose_configuration_dies() -> Result<()> {
        super::killed("config", PLAN, 0).await
    }

    #[tokio::test]
    async fn subagents_whose_configuration_dies() -> Result<()> {
        super::killed("config", SUBAGENTS, 0).await
    }

    #[tokio::test]
    async fn a_plan_whose_flows_die() -> Result<()> {
        super::killed("flow", PLAN, 0).await
    }

    #[tokio::test]
    async fn subagents_whose_flows_die() -> Result<()> {
        super::killed("flow", SUBAGENTS, 0).await
    }

    #[tokio::test]
    async fn a_plan_whose_users_die() -> Result<()> {
        super::killed("iam", PLAN, 0).await
    }

    #[tokio::test]
    async fn subagents_whose_users_die() -> Result<()> {
        super::killed("iam", SUBAGENTS, 0).await
    }
}

/// Line 119 with deaths: no task's work is done twice.
#[tokio::test]
async fn a_graph_of_tasks() -> Result<()> {
    killed_after_each_frame("react", GRAPH, 40).await
}
