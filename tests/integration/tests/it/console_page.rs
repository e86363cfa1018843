//! The page at `/` in a browser, against the whole system: a newcomer's way from three documents to a checked answer, a
//! key that is asked for, how it looks to whom, and fifty answers at once.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::model::{Rule, ScriptedModel, two_step_react};
use tg_testkit::process::{Launch, root};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use crate::world::{Bus, Installation, World, alone, busy, launch, post};

/// How long a story may take.
const BOUND: Duration = Duration::from_secs(240);
/// First paint with data, in milliseconds, the best of several.
const PAINT: f64 = 300.0;
/// What travels for the page, in bytes.
const WEIGHT: u64 = 400 << 10;

/// Its words are found nowhere else.
const LAMPS: &str = "# The lamps of Pellworth\n\nThe Harrowgate lantern is a lamp made of blue glass. The Harrowgate \
    lantern was built by Ottoline Frask in 1887.\n";
const GAUGES: &str = "<!doctype html><html><head><title>Gauges &amp; dials</title></head><body><p>The Corvane gauge was \
    calibrated by Ambrose Tull in 1903.</p></body></html>";
/// Each would do something if it were ever markup.
const HOSTILE: &str = "The Gribble notice says that the Gribble lamp is <b>bold</b> and \
    <img src=x onerror=\"window.ran=1\"> and <script>window.ran=2</script> and <iframe src=\"javascript:window.ran=3\"></iframe>.\n";

/// A story under way.
struct Story {
    child: Child,
    lines: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
}

impl Story {
    fn start(name: &str, args: &[&str]) -> Result<Self> {
        let mut child = Command::new(root().join(".cache/node/bin/node"))
            .arg(root().join("console/test").join(name))
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot run Node.js: run the set-up first")?;
        let stdout = child.stdout.take().context("stdout")?;
        let lines = BufReader::new(stdout).lines();
        Ok(Self { child, lines })
    }

    async fn line(&mut self) -> Result<String> {
        let read = tokio::time::timeout(BOUND, self.lines.next_line()).await;
        if let Some(line) = read.context("the story did not go on")?? {
            return Ok(line);
        }
        let mut errors = String::new();
        let mut stderr = self.child.stderr.take().context("stderr")?;
        stderr.read_to_string(&mut errors).await?;
        anyhow::bail!("the story ended:\n{errors}")
    }

    async fn go_on(&mut self) -> Result<()> {
        let stdin = self.child.stdin.as_mut().context("stdin")?;
        Ok(stdin.write_all(b"go on\n").await?)
    }

    async fn end(mut self) -> Result<Value> {
        let line = self.line().await?;
        let seen: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
        Ok(seen)
    }
}

async fn story(name: &str, args: &[&str]) -> Result<Value> {
    Story::start(name, args)?.end().await
}

/// Fails if any of these texts is not in what was seen of a step.
fn holds(seen: &Value, step: &str, texts: &[&str]) -> Result<()> {
    let got = seen.pointer(step).unwrap_or(&Value::Null).to_string();
    for text in texts {
        ensure!(got.contains(text), "{step}: {got} lacks {text}");
    }
    Ok(())
}

/// The browser complained about nothing, and the policy forbade nothing.
fn is_clean(seen: &Value) -> Result<()> {
    ensure!(seen["faults"] == json!([]), "{}", seen["faults"]);
    let forbidden = seen.get("violations").unwrap_or(&Value::Null);
    ensure!(
        forbidden.is_null() || *forbidden == json!([]),
        "{forbidden}"
    );
    Ok(())
}

fn write_documents(folder: &Path) -> Result<()> {
    std::fs::write(folder.join("lamps.md"), LAMPS)?;
    std::fs::write(folder.join("gauges.html"), GAUGES)?;
    std::fs::write(folder.join("notice.txt"), HOSTILE)?;
    Ok(())
}

async fn newcomer(bus: Bus) -> Result<()> {
    let _shared = busy().await;
    let installation = Installation::new(bus).await?;
    let server = installation.up(None).await?;
    let folder = tempfile::tempdir()?;
    write_documents(folder.path())?;
    let folder = folder.path().to_string_lossy().into_owned();
    let mut story = Story::start("newcomer.mjs", &[&server.url(), &folder])?;
    ensure!(story.line().await? == "first half");
    let port = server.port();
    server.terminate().await?;
    let _server = installation.up(Some(port)).await?;
    story.go_on().await?;
    let seen = story.end().await?;
    is_clean(&seen)?;
    holds(&seen, "/state", &["Ready", "Model", "builtin", "Vectors"])?;
    holds(
        &seen,
        "/sent",
        &[
            "“The lamps of Pellworth”, Markdown",
            "“Gauges & dials”, HTML",
            "“notice.txt”, text",
        ],
    )?;
    holds(
        &seen,
        "/documents",
        &["The lamps of Pellworth", "Gauges & dials", "complete"],
    )?;
    holds(&seen, "/answer", &["Ottoline Frask"])?;
    holds(&seen, "/sources/0", &["The lamps of Pellworth", "Ottoline"])?;
    holds(&seen, "/passage/title", &["The lamps of Pellworth"])?;
    holds(&seen, "/passage/text", &["blue glass", "in 1887"])?;
    holds(&seen, "/passage/mark", &["Ottoline Frask in 1887."])?;
    ensure!(
        seen["closed"] == true && seen["focusBack"] == "cite",
        "{seen}"
    );
    let steps = seen["steps"].as_array().map_or(0, Vec::len);
    ensure!(steps >= 5, "{}", seen["steps"]);
    holds(
        &seen,
        "/opened",
        &["Who built the Harrowgate lantern?", "Ottoline Frask"],
    )?;
    holds(&seen, "/agent/answer", &["Ottoline Frask"])?;
    holds(&seen, "/agent/kinds", &["Thought", "Action", "Observation"])?;
    let same = seen["answer"] == seen["again"];
    ensure!(same, "{} is now {}", seen["answer"], seen["again"]);
    let kept = seen["stored"].as_array().map_or(0, Vec::len);
    ensure!(kept >= 3, "{}", seen["stored"]);
    markup_stays_text(&seen)
}

fn markup_stays_text(seen: &Value) -> Result<()> {
    holds(seen, "/hostile/answer", &["<b>bold</b>"])?;
    holds(
        seen,
        "/hostile/html",
        &["&lt;b&gt;bold", "&lt;img src=x onerror="],
    )?;
    holds(
        seen,
        "/hostile/passage",
        &["<script>window.ran=2</script>", "<iframe"],
    )?;
    ensure!(seen["ran"].is_null() && seen["markup"] == 0, "{seen}");
    Ok(())
}

#[tokio::test]
async fn a_newcomer_gets_a_checked_answer_on_the_embedded_bus() -> Result<()> {
    newcomer(Bus::Embedded).await
}

#[tokio::test]
async fn a_newcomer_gets_a_checked_answer_on_rabbitmq() -> Result<()> {
    newcomer(Bus::Rabbit).await
}

#[tokio::test]
async fn a_key_is_asked_for_and_kept_nowhere() -> Result<()> {
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let model = ScriptedModel::start(rules).await?;
    let server = launch(&model, None)
        .arg("--auth")
        .arg("iam")
        .ready()
        .await?;
    let (status, first) = post(&server.url(), "api/v1/auth/bootstrap", json!({})).await?;
    ensure!(status == 200, "{first}");
    let key = first["bootstrap_admin_api_key"].as_str().context("a key")?;
    let seen = story("signin.mjs", &[&server.url(), key]).await?;
    is_clean(&seen)?;
    ensure!(
        seen["first"] == "" && seen["hidden"] == "password",
        "{seen}"
    );
    holds(&seen, "/wrong", &["That token is not accepted"])?;
    holds(&seen, "/state", &["Ready"])?;
    holds(&seen, "/answer", &["nonce-page-x"])?;
    ensure!(
        seen["kept"] == json!({"found": 0, "bases": 0, "html": false}),
        "{seen}"
    );
    ensure!(seen["signedOut"] == "", "{seen}");
    Ok(())
}

async fn streams(bus: Bus) -> Result<()> {
    let _shared = busy().await;
    let pause = Duration::from_millis(20);
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 12);
    let rules: Vec<Rule> = rules.into_iter().map(|rule| rule.delayed(pause)).collect();
    let world = World::with(bus, rules).await?;
    let seen = story("streams.mjs", &[&world.server.url()]).await?;
    is_clean(&seen)?;
    let streams = seen["streams"].as_array().context("streams")?;
    ensure!(streams.len() == 50, "{seen}");
    for (number, said) in streams.iter().enumerate() {
        let answer = format!("The answer for nonce-page-{number}-x is here.");
        ensure!(
            said["answer"].as_str().map(str::trim) == Some(&*answer),
            "{number}: {said}"
        );
        ensure!(
            said["thought"] == "I should look this up.I know it now.",
            "{number}: {said}"
        );
        ensure!(
            said["observation"] == "42" && said["ends"] == 1,
            "{number}: {said}"
        );
        ensure!(said["pieces"].as_u64() > Some(8), "{number}: {said}");
    }
    Ok(())
}

#[tokio::test]
async fn fifty_answers_at_once_lose_nothing_on_the_embedded_bus() -> Result<()> {
    streams(Bus::Embedded).await
}

#[tokio::test]
async fn fifty_answers_at_once_lose_nothing_on_rabbitmq() -> Result<()> {
    streams(Bus::Rabbit).await
}

#[tokio::test]
async fn everybody_can_use_it() -> Result<()> {
    let _alone = alone().await;
    let server = Launch::up().ready().await?;
    let folder = tempfile::tempdir()?;
    write_documents(folder.path())?;
    let documents = folder.path().to_string_lossy().into_owned();
    let added = tg_testkit::process::tg(&server.url(), &["add", "--wait", &documents]).await?;
    ensure!(added.code == Some(0), "{added:?}");
    // For whoever wants to look at it: a folder for pictures.
    let pictures = std::env::var("TG_CONSOLE_PICTURES").unwrap_or_default();
    let seen = story("look.mjs", &[&server.url(), &pictures]).await?;
    is_clean(&seen)?;
    for look in seen["views"].as_array().context("views")? {
        for rule in ["axe", "wide", "violations"] {
            ensure!(look[rule] == json!([]), "{rule}: {:#}", look[rule]);
        }
    }
    ensure!(
        seen["keys"]
            == json!({"skip": "Skip to content", "back": true, "expanded": "true", "focus": "main"}),
        "{}",
        seen["keys"]
    );
    let weight = seen["weight"].as_u64().context("weight")?;
    ensure!(weight > 0 && weight <= WEIGHT, "{weight} bytes");
    let paint = seen["paint"].as_f64().context("paint")?;
    ensure!(paint > 0.0 && paint <= PAINT, "{paint} ms");
    println!("first paint with data {paint:.0} ms, {weight} bytes");
    Ok(())
}
