//! `tg chat`: a question may refer to what was said before, until that is to be forgotten; one that fails or is stopped
//! does not end the conversation.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tg_testkit::model::{Reply, Rule, cut, final_answer};
use tg_testkit::process::{bin_dir, root};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::shared::Workspace;
use crate::world::Bus;

const BOUND: Duration = Duration::from_secs(90);

fn says(words: &'static [&'static str], answer: &'static str) -> Rule {
    Rule::computed(
        move |prompt| words.iter().all(|word| prompt.contains(word)),
        move |_| Reply::text(final_answer("it is known.", answer)),
    )
}

fn rules() -> Vec<Rule> {
    let slow = final_answer(
        "slowly.",
        &format!("first-piece {}", "and more ".repeat(200)),
    );
    vec![
        says(&["Who built the bridge?"], "Tobias Kell did."),
        Rule::contains(
            "Fail now",
            Reply::status(400, r#"{"error":{"message":"no"}}"#),
        ),
        Rule::contains(
            "Tell me slowly",
            Reply::pieces(cut(&slow, 200)).delayed(Duration::from_millis(100)),
        ),
        says(
            &["How old was she?", "You: Ada Brisk built it."],
            "She was forty.",
        ),
        says(&["How old was she?"], "Who?"),
        says(&["Who built the lamp?"], "Ada Brisk built it."),
    ]
}

async fn piped(bus: Bus) -> Result<()> {
    let (place, _model) = Workspace::scripted(bus, rules()).await?;
    let mut chat = Command::new(bin_dir()?.join("tg"))
        .args(["chat", "--json"])
        .env("TRUSTGRAPH_URL", &place.url)
        .env("THREADGRAPH_WORKSPACE", &place.id)
        .env("XDG_CONFIG_HOME", "/nowhere")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut input = chat.stdin.take().context("no input")?;
    let said = "Who built the lamp?\n\nHow old was she?\n/new\nHow old was she?\nFail now\n/nosuch\nWho built the bridge?";
    input.write_all(said.as_bytes()).await?;
    drop(input);
    let output = tokio::time::timeout(BOUND, chat.wait_with_output()).await??;
    let errors = String::from_utf8_lossy(&output.stderr);
    let shown = String::from_utf8(output.stdout)?;
    let told: Vec<Value> = shown
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .with_context(|| shown.clone())?;
    let answers: Vec<&str> = told
        .iter()
        .filter_map(|one| one["answer"].as_str())
        .collect();
    let expected = [
        "Ada Brisk built it.",
        "She was forty.",
        "Who?",
        "Tobias Kell did.",
    ];
    ensure!(answers == expected, "{shown}\n{errors}");
    let of = |at: usize| told[at]["conversation"].as_str().context("no id");
    ensure!(
        of(0)? == of(1)? && of(1)? != of(2)? && of(2)? == of(3)?,
        "{shown}"
    );
    ensure!(told[1]["question"] == "How old was she?", "{shown}");
    // The one that failed is told, and makes the command fail at its end.
    ensure!(errors.contains("There is no /nosuch."), "{errors}");
    ensure!(errors.contains("llm-error"), "{errors}");
    ensure!(
        output.status.code() == Some(9),
        "{:?}\n{errors}",
        output.status
    );
    Ok(())
}

#[tokio::test]
async fn piped_on_the_embedded_bus() -> Result<()> {
    piped(Bus::Embedded).await
}

#[tokio::test]
async fn piped_over_rabbitmq() -> Result<()> {
    piped(Bus::Rabbit).await
}

#[tokio::test]
async fn at_a_terminal() -> Result<()> {
    let (place, model) = Workspace::scripted(Bus::Embedded, rules()).await?;
    let work = Command::new(root().join(".cache/venv/bin/python3"))
        .arg(root().join("tests/integration/clients/chat_terminal.py"))
        .arg(bin_dir()?.join("tg"))
        .arg(&place.url)
        .env("THREADGRAPH_WORKSPACE", &place.id)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work).await??;
    let shown = String::from_utf8_lossy(&output.stdout);
    let last = shown.trim_end().lines().next_back();
    ensure!(
        last == Some("0"),
        "{shown}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // What was stopped costs nothing more.
    ensure!(
        model.wait_closed(1, Duration::from_secs(60)).await,
        "{shown}"
    );
    let asked = model.calls();
    let nonsense = asked
        .iter()
        .filter(|call| call.body.to_string().contains("nonsense"));
    ensure!(nonsense.count() == 0, "{shown}");
    Ok(())
}
