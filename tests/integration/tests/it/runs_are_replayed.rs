//! A recorded run of the agent is run again when its model is gone, also one over which the process was killed: it tells the same,
//! byte for byte. Two runs are held against each other, and it is said where they part.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{
    Reply, Rule, ScriptedModel, final_answer, nonce_of, tool_call, two_step_react,
};
use tg_testkit::process::Output;
use tg_testkit::socket::{Socket, brief};

use crate::shared::Workspace;
use crate::traces::slow;
use crate::world::{Bus, launch, on_both_buses};

/// Whatever these tests wait for comes within this.
const BOUND: Duration = Duration::from_secs(60);
/// Pause of the model before each piece of a run that is killed.
const PAUSE: Duration = Duration::from_millis(40);
/// After so many frames the process is killed.
const KILLS: [usize; 4] = [1, 4, 11, 15];

fn question(text: &str, streaming: bool, record: bool) -> Value {
    json!({"service": "agent", "flow": "default", "on-disconnect": "detach",
        "request": {"question": text, "streaming": streaming, "record": record}})
}

/// All frames of a run, and its id.
async fn run(socket: &Socket, envelope: Value) -> Result<(String, Vec<Value>)> {
    let frames = socket.send(envelope).await?.all(BOUND).await?;
    let run = frames.first().context("no part")?["run"].clone();
    Ok((run.as_str().context("no run")?.to_owned(), frames))
}

/// What clients are told, without the ids of their frames.
fn told(frames: &[Value]) -> Vec<String> {
    let told = |frame: &Value| json!([frame["offset"], frame["response"], frame["error"]]);
    frames.iter().map(|frame| told(frame).to_string()).collect()
}

/// What a run tells when an operation is asked for it.
async fn read(socket: &Socket, operation: &str, run: &str) -> Result<Vec<Value>> {
    let request = json!({"operation": operation, "run": run});
    let envelope = json!({"service": "requests", "request": request});
    socket.send(envelope).await?.all(BOUND).await
}

/// One that says of which number the question is, and then answers.
fn numbers() -> Vec<Rule> {
    let observed = |prompt: &str| prompt.lines().any(|line| line.starts_with("Observation:"));
    vec![
        Rule::computed(observed, |_| {
            Reply::text(final_answer("I know it now.", "It is done."))
        }),
        Rule::computed(
            |_: &str| true,
            |prompt| {
                let nonce = nonce_of(prompt).unwrap_or_default();
                let number = nonce.rsplit('-').next().unwrap_or_default();
                let call = json!({"expression": format!("6*{number}")});
                Reply::text(tool_call("I should look this up.", "calculator", &call))
            },
        ),
    ]
}

async fn a_run_is_told_again_without_its_model(bus: Bus) -> Result<()> {
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let (place, model) = Workspace::scripted(bus, rules).await?;
    let socket = place.socket().await?;
    let mut runs = Vec::new();
    for (streaming, text) in [(true, "what is nonce-1"), (false, "what is nonce-2")] {
        runs.push(run(&socket, question(text, streaming, true)).await?);
    }
    let (plain, _) = run(&socket, question("what is nonce-3", true, false)).await?;
    let asked = ["invoke-agent", "--record", "-q", "what is nonce-4"];
    let asked = place.tg(&asked).await?;
    ensure!(asked.stderr.contains("tg replay "), "{asked:?}");
    drop(model);
    for (id, frames) in &runs {
        let then = read(&socket, "read-run", id).await?;
        let again = read(&socket, "replay-run", id).await?;
        ensure!(
            told(&again) == told(&then),
            "{} is not {}",
            brief(&again),
            brief(&then)
        );
        if then.len() == frames.len() {
            ensure!(told(&again) == told(frames), "{}", brief(&again));
        }
        for more in [&[][..], &["-v"], &["--json"]] {
            let printed = async |command: &'static str| -> Result<Output> {
                place.tg(&[&[command, &**id], more].concat()).await
            };
            let (then, again) = (printed("attach").await?, printed("replay").await?);
            ensure!(
                again.code == Some(0) && again.stdout == then.stdout,
                "{again:?}"
            );
            again.expect("nonce-")?;
        }
    }
    let none = place.tg(&["replay", &plain]).await?;
    ensure!(
        none.code == Some(3) && none.stderr.contains("--record"),
        "{none:?}"
    );
    let none = place.tg(&["replay", "another"]).await?;
    ensure!(
        none.code == Some(3) && none.stderr.contains("run not found"),
        "{none:?}"
    );
    Ok(())
}

async fn a_run_over_which_the_process_was_killed_is_told_again(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(slow(PAUSE)).await?;
    let node = bus.broker().await?;
    let data = tempfile::tempdir()?;
    let launch = launch(&model, node.as_ref()).data(data.path());
    let mut server = launch.clone().ready().await?;
    let mut runs = Vec::new();
    for (n, frames) in KILLS.into_iter().enumerate() {
        let socket = Socket::connect(&server.url(), "").await?;
        let text = format!("What is it? nonce-{n}");
        let mut shown = socket.send(question(&text, true, true)).await?;
        let mut first = None;
        for _ in 0..frames {
            let frame = shown.next().await.context("no part")?;
            first.get_or_insert(frame);
        }
        let run = first.context("no part")?["run"].clone();
        runs.push(run.as_str().context("no run")?.to_owned());
        server.kill9().await?;
        server = launch.clone().ready().await?;
    }
    let socket = Socket::connect(&server.url(), "").await?;
    for run in &runs {
        // It goes on, and its end is waited for.
        let then = read(&socket, "read-run", run).await?;
        let last = then.last().context("no part")?;
        ensure!(
            last["response"]["end_of_dialog"] == true,
            "{}",
            brief(&then)
        );
        let again = read(&socket, "replay-run", run).await?;
        ensure!(
            told(&again) == told(&then),
            "{} is not {}",
            brief(&again),
            brief(&then)
        );
    }
    Ok(())
}

async fn it_is_said_where_two_runs_part(bus: Bus) -> Result<()> {
    let (place, _model) = Workspace::scripted(bus, numbers()).await?;
    let socket = place.socket().await?;
    let (mut ids, mut traces) = (Vec::new(), Vec::new());
    for (n, record) in [(7, true), (7, false), (8, true)] {
        let text = format!("what is nonce-{n}");
        let (id, frames) = run(&socket, question(&text, true, record)).await?;
        let last = frames.last().context("no part")?;
        let trace = last["response"]["trace"].as_str();
        traces.push(trace.context("no trace")?.to_owned());
        ids.push(id);
    }
    let diff = async |other: &str, more: &[&str]| -> Result<Output> {
        let all = [&["diff-traces", &*ids[0], other], more].concat();
        place.tg(&all).await
    };
    let same = diff(&ids[1], &[]).await?;
    ensure!(same.code == Some(0), "{same:?}");
    same.expect("the same in 2 steps")?;
    let part = diff(&ids[2], &[]).await?;
    ensure!(part.code == Some(1), "{part:?}");
    part.expect("The runs part at step 1.")?;
    part.expect("- arguments: {\"expression\":\"6*7\"}")?;
    part.expect("+ arguments: {\"expression\":\"6*8\"}")?;
    part.expect("- observation: 42")?;
    part.expect("  thought: I should look this up.")?;
    let part = diff(&ids[2], &["--json"]).await?;
    ensure!(part.code == Some(1), "{part:?}");
    let json: Value = serde_json::from_str(&part.stdout)?;
    ensure!(json["same"] == false && json["step"] == 1, "{json}");
    ensure!(
        json["differs"] == json!(["arguments", "observation"]),
        "{json}"
    );
    ensure!(json["runs"][1]["step"]["observation"] == "48", "{json}");
    let none = diff("another", &[]).await?;
    ensure!(none.code == Some(3), "{none:?}");
    // The same of their traces, once these are stored.
    let end = Instant::now() + BOUND;
    loop {
        let part = ["diff-traces", &traces[0], &traces[2], "--json"];
        let part = place.tg(&part).await?;
        let same = place.tg(&["diff-traces", &traces[0], &traces[1]]).await?;
        let json: Value = serde_json::from_str(&part.stdout).unwrap_or_default();
        let differs = json["differs"] == json!(["arguments", "observation"]);
        if part.code == Some(1) && differs && json["step"] == 1 && same.code == Some(0) {
            same.expect("the same in 2 steps")?;
            return Ok(());
        }
        ensure!(Instant::now() < end, "{part:?}\n{same:?}");
        tokio::time::sleep(PAUSE).await;
    }
}

on_both_buses!(
    a_run_is_told_again_without_its_model,
    a_run_over_which_the_process_was_killed_is_told_again,
    it_is_said_where_two_runs_part,
);
