//! Runs on the page: the tree of subagents fills while the run goes on, and a run that is under way goes on when the page is
//! loaded anew or its connection breaks.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{
    Reply, Rule, ScriptedModel, final_answer, nonce_of, tool_call, two_step_react,
};

use crate::console_page::{Story, holds, is_clean};
use crate::world::{Bus, World, launch, on_both_buses, post};

/// The model waits so long before an answer, unless it is told to hurry.
const HELD: Duration = Duration::from_secs(600);
/// A call of the model ends by then in any case.
const BOUND: Duration = Duration::from_secs(120);
/// Goals that the supervisor's question is split into. The second waits for the model, whose text stays text; the third fails.
const GOALS: [&str; 3] = [
    "What is the height? nonce-t-a",
    "What is the <b>width</b>? nonce-t-b",
    "What is broken? nonce-t-c",
];

/// Whether a tool has returned.
fn observed(prompt: &str) -> bool {
    prompt.lines().any(|line| line.starts_with("Observation:"))
}

/// Holds the answer of questions that contain the text, behind their first tool.
fn held(needle: &'static str) -> Rule {
    let matches = move |prompt: &str| observed(prompt) && prompt.contains(needle);
    let answers = |prompt: &str| {
        let nonce = nonce_of(prompt).unwrap_or_default();
        let answer = format!("The answer for {nonce} is here.");
        Reply::text(final_answer("I know it now.", &answer))
    };
    Rule::computed(matches, answers).delayed(HELD)
}

/// A run that has done nothing yet and whose question contains the text uses this tool.
fn giving(needle: &'static str, tool: &str, args: &Value) -> Rule {
    let text = tool_call("It is best done by others.", tool, args);
    Rule::computed(
        move |prompt| !observed(prompt) && prompt.contains(needle),
        move |_| Reply::text(&*text),
    )
}

/// A model that splits a question into the goals, and gives work to others where it is told to.
fn splitting() -> Vec<Rule> {
    let task = |id: &str, message: &str, after: Value| json!({"id": id, "agent_id": "worker", "message": message, "depends_on": after});
    let graph = json!({"task_graph": {"tasks": [
        task("A", "Find one nonce-d-a", json!([])),
        task("B", "Find two nonce-d-b", json!([])),
        task("C", "Join them nonce-d-c", json!(["A", "B"])),
    ]}});
    let given = |message: &str| json!({"agent_id": "worker", "message": message});
    let mut rules = vec![
        Rule::contains("## Goals wanted", Reply::text(json!(GOALS).to_string())),
        Rule::contains("## Answer from", Reply::text("Both are there.")),
        Rule::contains("nonce-t-c", Reply::status(400, "no")),
        held("nonce-t-b"),
        giving("Dispatch it: three", "dispatch", &graph),
        giving(
            "Delegate it: twice",
            "delegate",
            &given("Delegate it: once"),
        ),
        giving("Delegate it: once", "delegate", &given("Find it nonce-e")),
    ];
    rules.extend(two_step_react(
        "calculator",
        json!({"expression": "6*7"}),
        8,
    ));
    rules
}

/// An agent that work may be given to, and the tools that do.
async fn configured(world: &World) -> Result<()> {
    let row = |kind: &str, key: &str, value: Value| json!({"type": kind, "key": key, "value": value.to_string()});
    let tool = |name: &str| {
        let tool = json!({"name": name, "type": name, "description": "Has work done."});
        row("tool", name, tool)
    };
    let worker = json!({"description": "Works."});
    let values = [
        row("agent-definition", "worker", worker),
        tool("dispatch"),
        tool("delegate"),
    ];
    let put = json!({"operation": "put", "values": values});
    let told = world.socket().await?.ask_service("config", put).await?;
    ensure!(told["error"].is_null(), "{told}");
    Ok(())
}

/// What is shown of the subagent with a goal.
fn node<'a>(shown: &'a Value, goal: &str) -> Result<&'a str> {
    let nodes = shown["nodes"].as_array().context("nodes")?;
    let mut nodes = nodes.iter().filter_map(Value::as_str);
    let found = nodes.find(|node| node.contains(goal));
    found.with_context(|| format!("no {goal} in {shown}"))
}

async fn subagents_are_a_tree_that_fills(bus: Bus) -> Result<()> {
    let world = World::with(bus, splitting()).await?;
    configured(&world).await?;
    let mut story = Story::start("subagents.mjs", &[&world.server.url()])?;
    ensure!(story.line().await? == "under way");
    world.model.hurry();
    story.go_on().await?;
    let seen = story.end().await?;
    is_clean(&seen)?;
    let under_way = &seen["underWay"];
    ensure!(under_way["busy"] == "true", "{under_way}");
    for (shown, states) in [
        (under_way, ["Done", "Thinking", "Failed"]),
        (&seen["end"], ["Done", "Done", "Failed"]),
    ] {
        for (goal, state) in GOALS.iter().zip(states) {
            ensure!(node(shown, goal)?.starts_with(state), "{goal}: {shown}");
        }
    }
    let answer = |nonce: &str| format!("The answer for {nonce} is here.");
    let steps = ["I should look this up.", "calculator", "42"];
    holds(&seen, "/underWay/opened/0", &[&answer("nonce-t-a")])?;
    holds(&seen, "/underWay/opened/0", &steps)?;
    holds(&seen, "/underWay/opened/1", &steps)?;
    ensure!(
        !under_way["opened"]
            .to_string()
            .contains("nonce-t-b is here"),
        "{under_way}"
    );
    holds(&seen, "/end/opened/1", &[&answer("nonce-t-b")])?;
    for goal in &GOALS[..2] {
        let states = &seen["passing"]["states"][*goal];
        let wanted = json!(["Thinking", "Using calculator", "Thinking", "Done"]);
        ensure!(*states == wanted, "{goal}: {states}");
    }
    ensure!(
        seen["end"]["count"] == "3 of 3 subagents done, 1 failed",
        "{seen}"
    );
    holds(&seen, "/end/answer", &["Both are there."])?;
    // Their steps are not among the run's own.
    let own = seen["own"].as_array().context("own")?;
    ensure!(own.len() == 2, "{own:?}");
    holds(&seen, "/html", &["What is the &lt;b&gt;width&lt;/b&gt;?"])?;
    ensure!(seen["markup"] == 0 && seen["closed"] == "false", "{seen}");
    deeper_and_in_order(&seen)
}

/// Subagents of subagents stand below them, and tasks that have not begun count.
fn deeper_and_in_order(seen: &Value) -> Result<()> {
    ensure!(seen["nested"]["count"] == "1 of 1 subagent done", "{seen}");
    let outer = &seen["nested"]["tree"][0];
    ensure!(
        outer["shown"] == "Done Delegate it: once · 1 of 1 subagent done",
        "{outer}"
    );
    let inner = &outer["below"][0];
    ensure!(inner["shown"] == "Done Find it nonce-e", "{outer}");
    let dispatched = &seen["dispatched"];
    ensure!(
        dispatched["count"] == "3 of 3 subagents done",
        "{dispatched}"
    );
    for goal in [
        "Find one nonce-d-a",
        "Find two nonce-d-b",
        "Join them nonce-d-c",
    ] {
        node(dispatched, goal)?;
    }
    let counts = seen["passing"]["counts"].as_array().context("counts")?;
    for count in ["2 of 3 subagents done, 1 failed", "2 of 3 subagents done"] {
        ensure!(counts.contains(&json!(count)), "{counts:?}");
    }
    Ok(())
}

/// Two runs wait for the model; the page is loaded anew, its connection breaks, and one run is stopped. `key`: what the
/// page is signed in with each time.
async fn joined_again(model: &ScriptedModel, url: &str, key: Option<&str>) -> Result<()> {
    let args: Vec<&str> = [url].into_iter().chain(key).collect();
    let mut story = Story::start("rejoin.mjs", &args)?;
    ensure!(story.line().await? == "joined");
    ensure!(model.wait_closed(1, BOUND).await, "the second run is over");
    model.hurry();
    story.go_on().await?;
    let seen = story.end().await?;
    is_clean(&seen)?;
    let before = seen["before"].as_array().context("before")?;
    ensure!(before.len() == 2, "{seen}");
    holds(&seen, "/before/0/work", &["I should look this up.", "42"])?;
    ensure!(
        seen["reloaded"] == seen["before"] && seen["reconnected"] == seen["before"],
        "{seen}"
    );
    ensure!(seen["stopped"] == "Stopped.", "{seen}");
    ensure!(
        seen["answer"] == "The answer for nonce-page-1 is here.",
        "{seen}"
    );
    // Nothing is there twice, and nothing was asked anew.
    let work = seen["work"].as_array().context("work")?;
    ensure!(work.len() == 4, "{work:?}");
    let calls = model.calls();
    let asked = calls
        .iter()
        .filter(|call| call.body.to_string().contains("nonce-page"));
    ensure!(asked.count() == 4, "{calls:?}");
    only_runs_are_stored(&seen)?;
    ensure!(seen["again"] == 0, "{seen}");
    Ok(())
}

/// In the store of the tab are the ids of the runs that are under way, and nothing else anywhere.
fn only_runs_are_stored(seen: &Value) -> Result<()> {
    for (step, runs) in [("stored", 2), ("left", 1), ("over", 0)] {
        let stored = &seen[step];
        ensure!(
            stored["local"] == json!({}) && stored["cookie"] == "",
            "{stored}"
        );
        let session = stored["session"].as_object().context("session")?;
        let kept: Vec<String> = match session.get("threadgraph-runs") {
            Some(kept) => serde_json::from_str(kept.as_str().context("text")?)?,
            None => Vec::new(),
        };
        ensure!(
            kept.len() == runs && session.len() == runs.min(1),
            "{step}: {stored}"
        );
        // Ids, and not a word of what was asked.
        let is_id = |id: &String| {
            id.len() == 36 && id.bytes().all(|one| one == b'-' || one.is_ascii_hexdigit())
        };
        ensure!(kept.iter().all(is_id), "{step}: {stored}");
    }
    Ok(())
}

/// A model that holds the answers of the story's questions.
fn holding() -> Vec<Rule> {
    let mut rules = vec![held("nonce-page")];
    rules.extend(two_step_react(
        "calculator",
        json!({"expression": "6*7"}),
        8,
    ));
    rules
}

async fn a_run_goes_on_after_a_reload(bus: Bus) -> Result<()> {
    let world = World::with(bus, holding()).await?;
    joined_again(&world.model, &world.server.url(), None).await
}

async fn a_run_goes_on_once_the_key_is_given_again(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(holding()).await?;
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref()).arg("--auth").arg("iam");
    let server = launch.ready().await?;
    let (status, first) = post(&server.url(), "api/v1/auth/bootstrap", json!({})).await?;
    ensure!(status == 200, "{first}");
    let key = first["bootstrap_admin_api_key"].as_str().context("a key")?;
    joined_again(&model, &server.url(), Some(key)).await
}

on_both_buses!(
    subagents_are_a_tree_that_fills,
    a_run_goes_on_after_a_reload,
    a_run_goes_on_once_the_key_is_given_again,
);
