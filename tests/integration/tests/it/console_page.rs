//! The page at `/` in a browser, against the whole system: a newcomer's way from three documents to checked answers, a
//! key that is asked for, how it looks to whom, what it says of the system, and fifty answers at once.

use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use tg_testkit::machine::Machine;
use tg_testkit::model::{Reply, Rule, ScriptedModel, final_answer, two_step_react};
use tg_testkit::process::{Launch, free_port, root};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use crate::shared::system;
use crate::world::{Bus, Installation, World, launch, post};

/// How long a story may take.
const BOUND: Duration = Duration::from_secs(240);
/// First paint with data, in milliseconds: four of seven, or of up to 21 on a machine that has more to do; on a slower one
/// more by as much.
const PAINT: f64 = 300.0;
/// What travels for the page, in bytes.
const WEIGHT: u64 = 400_000;

/// Its words are found nowhere else.
const LAMPS: &str = "# The lamps of Pellworth\n\nThe Harrowgate lantern is a lamp made of blue glass. The Harrowgate \
    lantern was built by Ottoline Frask in 1887.\n";
const GAUGES: &str = "<!doctype html><html><head><title>Gauges &amp; dials</title></head><body><p>The Corvane gauge was \
    calibrated by Ambrose Tull in 1903.</p></body></html>";
/// Each would do something if it were ever markup.
const HOSTILE: &str = "The Gribble notice says that the Gribble lamp is <b>bold</b> and \
    <img src=x onerror=\"window.ran=1\"> and <script>window.ran=2</script> and <iframe src=\"javascript:window.ran=3\"></iframe>.\n";

/// A story under way.
pub(crate) struct Story {
    child: Child,
    lines: tokio::io::Lines<BufReader<tokio::process::ChildStdout>>,
}

impl Story {
    pub(crate) fn start(name: &str, args: &[&str]) -> Result<Self> {
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

    pub(crate) async fn line(&mut self) -> Result<String> {
        let read = tokio::time::timeout(BOUND, self.lines.next_line()).await;
        if let Some(line) = read.context("the story did not go on")?? {
            return Ok(line);
        }
        let mut errors = String::new();
        let mut stderr = self.child.stderr.take().context("stderr")?;
        stderr.read_to_string(&mut errors).await?;
        anyhow::bail!("the story ended:\n{errors}")
    }

    pub(crate) async fn go_on(&mut self) -> Result<()> {
        let stdin = self.child.stdin.as_mut().context("stdin")?;
        Ok(stdin.write_all(b"go on\n").await?)
    }

    pub(crate) async fn end(mut self) -> Result<Value> {
        let line = self.line().await?;
        let seen: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
        Ok(seen)
    }
}

pub(crate) async fn story(name: &str, args: &[&str]) -> Result<Value> {
    Story::start(name, args)?.end().await
}

/// Fails if any of these texts is not in what was seen of a step.
pub(crate) fn holds(seen: &Value, step: &str, texts: &[&str]) -> Result<()> {
    let got = seen.pointer(step).unwrap_or(&Value::Null).to_string();
    for text in texts {
        ensure!(got.contains(text), "{step}: {got} lacks {text}");
    }
    Ok(())
}

/// The browser complained about nothing, and the policy forbade nothing.
pub(crate) fn is_clean(seen: &Value) -> Result<()> {
    ensure!(seen["faults"] == json!([]), "{}", seen["faults"]);
    let forbidden = seen.get("violations").unwrap_or(&Value::Null);
    ensure!(
        forbidden.is_null() || *forbidden == json!([]),
        "{forbidden}"
    );
    Ok(())
}

/// The first is long enough to be seen under way.
fn write_documents(folder: &Path) -> Result<()> {
    let shelf = |number: usize| {
        let boxes = format!(
            "Shelf {number} has {} boxes of wick and {number} of oil. ",
            3 * number
        );
        format!("## Shelf {number}\n\n{}\n\n", boxes.repeat(6))
    };
    let shelves: String = (1..=1_600).map(shelf).collect();
    std::fs::write(folder.join("lamps.md"), format!("{LAMPS}\n{shelves}"))?;
    std::fs::write(folder.join("gauges.html"), GAUGES)?;
    std::fs::write(folder.join("notice.txt"), HOSTILE)?;
    Ok(())
}

async fn newcomer(bus: Bus) -> Result<()> {
    let installation = Installation::new(bus).await?;
    // The page finds the next one there.
    let port = free_port()?;
    let server = installation.up(Some(port)).await?;
    let folder = tempfile::tempdir()?;
    write_documents(folder.path())?;
    let folder = folder.path().to_string_lossy().into_owned();
    let mut story = Story::start("newcomer.mjs", &[&server.url(), &folder])?;
    ensure!(story.line().await? == "first half");
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
    under_way_was_seen(&seen)?;
    every_answer_is_verified_and_stays(&seen)?;
    let kept = seen["stored"].as_array().map_or(0, Vec::len);
    ensure!(kept >= 3, "{}", seen["stored"]);
    markup_stays_text(&seen)
}

/// How far it was with a document, in words and as a bar, while it was processed; and what the agent thought while it
/// answered.
fn under_way_was_seen(seen: &Value) -> Result<()> {
    let runs = seen["passing"]["runs"].as_array().context("runs")?;
    let told = |run: &&Value| {
        let text = run.as_str().unwrap_or_default();
        let words: Vec<&str> = text.split(' ').collect();
        let number = |at: usize| {
            words
                .get(at)
                .and_then(|word| word.trim_start_matches('(').parse::<u64>().ok())
        };
        // `processing, 3 of 9 chunks (7 of 30 records)`
        let chunks = number(1) <= number(3) && number(3) > Some(0);
        text.starts_with("processing, ") && chunks && number(5) < number(7)
    };
    ensure!(runs.iter().filter(told).count() > 0, "{runs:?}");
    holds(seen, "/passing/status", &["is being processed."])?;
    holds(seen, "/thinking/0", &["I"])
}

/// Each document answers a question with itself as the source, before and after the restart.
fn every_answer_is_verified_and_stays(seen: &Value) -> Result<()> {
    let wanted = [
        ("Ottoline Frask", "The lamps of Pellworth"),
        ("Ambrose Tull", "Gauges & dials"),
        ("<b>bold</b>", "notice.txt"),
    ];
    for (at, (words, title)) in wanted.into_iter().enumerate() {
        let (before, after) = (&seen["before"][at], &seen["after"][at]);
        holds(before, "/answer", &[words])?;
        let first = &before["sources"][0];
        ensure!(
            first["number"] == "1" && first["title"] == title,
            "{before}"
        );
        ensure!(
            first["quotation"]
                .as_str()
                .is_some_and(|text| !text.is_empty()),
            "{before}"
        );
        ensure!(
            before["verdict"]
                .as_str()
                .is_some_and(|told| told.contains("Every sentence is supported.")),
            "{before}"
        );
        let sentences = before["sentences"].as_array().context("sentences")?;
        let supported = |told: &Value| {
            told.as_str()
                .is_some_and(|told| told.contains("supported by [1]"))
        };
        ensure!(
            !sentences.is_empty() && sentences.iter().all(supported),
            "{before}"
        );
        ensure!(before == after, "{before} is now {after}");
    }
    Ok(())
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

async fn signed_in(bus: Bus) -> Result<()> {
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let model = ScriptedModel::start(rules).await?;
    let node = bus.broker().await?;
    let server = launch(&model, node.as_ref())
        .arg("--auth")
        .arg("iam")
        .ready()
        .await?;
    let (status, first) = post(&server.url(), "api/v1/auth/bootstrap", json!({})).await?;
    ensure!(status == 200, "{first}");
    let key = first["bootstrap_admin_api_key"].as_str().context("a key")?;
    let user = json!({"username": "paula", "password": "a horse of stone", "roles": ["reader"]});
    let ask = json!({"operation": "create-user", "workspace": "default", "user": user});
    let made = reqwest::Client::new().post(format!("{}api/v1/iam", server.url()));
    let made = made.bearer_auth(key).json(&ask).send().await?;
    ensure!(made.status().is_success(), "{}", made.text().await?);
    let seen = story(
        "signin.mjs",
        &[&server.url(), key, "paula", "a horse of stone"],
    )
    .await?;
    is_clean(&seen)?;
    holds(&seen, "/byPassword", &["Ready"])?;
    ensure!(seen["passwordKept"] == seen["kept"], "{seen}");
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

#[tokio::test]
async fn a_key_is_asked_for_and_kept_nowhere_on_the_embedded_bus() -> Result<()> {
    signed_in(Bus::Embedded).await
}

#[tokio::test]
async fn a_key_is_asked_for_and_kept_nowhere_on_rabbitmq() -> Result<()> {
    signed_in(Bus::Rabbit).await
}

/// An agent that is like a template is talked to; the conversation is there when the page comes again.
async fn conversation(bus: Bus) -> Result<()> {
    // What was said before is told with the next question: the later one is looked for first.
    let rules = ["And a lantern?", "What is a lamp?"].map(|asked| {
        let answer = final_answer("it is known.", &format!("About '{asked}': a light."));
        Rule::contains(asked, Reply::text(answer))
    });
    let world = World::with(bus, rules.to_vec()).await?;
    let seen = story("agents.mjs", &[&world.server.url()]).await?;
    is_clean(&seen)?;
    let said = |asked: &str| {
        let answer = format!("About '{asked}': a light.");
        [json!(["said user", asked]), json!(["said agent", answer])]
    };
    let first = said("What is a lamp?");
    let both = [first.clone(), said("And a lantern?")].concat();
    ensure!(seen["first"] == json!(first), "{seen}");
    ensure!(seen["both"] == json!(both), "{seen}");
    ensure!(seen["again"] == json!(both), "{seen}");
    ensure!(seen["violations"] == json!([]), "{seen}");
    Ok(())
}

#[tokio::test]
async fn a_conversation_is_there_again_on_the_embedded_bus() -> Result<()> {
    conversation(Bus::Embedded).await
}

#[tokio::test]
async fn a_conversation_is_there_again_on_rabbitmq() -> Result<()> {
    conversation(Bus::Rabbit).await
}

async fn streams(bus: Bus) -> Result<()> {
    let pause = Duration::from_millis(20);
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 12);
    let rules: Vec<Rule> = rules.into_iter().map(|rule| rule.delayed(pause)).collect();
    let world = World::with(bus, rules).await?;
    let seen = story("streams.mjs", &[&world.server.url()]).await?;
    is_clean(&seen)?;
    let streams = seen["streams"].as_array().context("streams")?;
    ensure!(streams.len() == 50, "{seen}");
    let control = &seen["control"];
    let ended = json!(["thought", "action", "observation", "thought", "answer"]);
    ensure!(control["ended"] == ended, "{control}");
    let explained = control["explained"].as_array().context("explained")?;
    ensure!(
        explained.len() > 2 && !explained.contains(&json!(0)),
        "{control}"
    );
    for said in streams.iter().chain([control]) {
        said_whole(said)?;
        ensure!(said["pieces"].as_u64() > Some(5), "{said}");
        for same in ["thought", "action", "observation", "ended", "explained"] {
            ensure!(
                said[same] == control[same],
                "{same}: {said} is not as {control}"
            );
        }
    }
    Ok(())
}

/// Everything that the model wrote and the tool answered.
fn said_whole(said: &Value) -> Result<()> {
    let nonce = said["nonce"].as_str().context("nonce")?;
    let answer = format!("The answer for {nonce} is here.");
    ensure!(
        said["answer"].as_str().map(str::trim) == Some(&*answer),
        "{said}"
    );
    ensure!(
        said["thought"] == "I should look this up.I know it now.",
        "{said}"
    );
    let action: Value = serde_json::from_str(said["action"].as_str().context("action")?)?;
    ensure!(
        action == json!({"name": "calculator", "arguments": {"expression": "6*7"}}),
        "{said}"
    );
    ensure!(said["observation"] == "42" && said["ends"] == 1, "{said}");
    Ok(())
}

async fn views(bus: Bus) -> Result<()> {
    let nobody = format!("http://127.0.0.1:{}/v1", free_port()?);
    let launch = Launch::up()
        .env("OPENAI_BASE_URL", nobody)
        .env("OPENAI_API_KEY", "sk-test")
        .env("OPENAI_MODEL", "none");
    let broker = bus.broker().await?;
    let launch = launch.over(broker.as_ref());
    let server = launch.ready().await?;
    let folder = tempfile::tempdir()?;
    write_documents(folder.path())?;
    let file = folder.path().join("lamps.md");
    let seen = story("views.mjs", &[&server.url(), &file.to_string_lossy()]).await?;
    is_clean(&seen)?;
    asks_what_it_shows_first(&seen)?;
    holds(&seen, "/underWay/word", &["processing, ", " chunks"])?;
    ensure!(seen["underWay"]["most"].as_u64() > Some(1), "{seen}");
    holds(
        &seen,
        "/underWay/status",
        &["1 document, 1 is being processed."],
    )?;
    ensure!(seen["failed"]["name"] == "language model", "{seen}");
    holds(&seen, "/failed/advice", &["Try: ", "llm.url"])?;
    holds(&seen, "/state", &["checks failed"])?;
    ensure!(seen["flow"]["name"] == "default", "{seen}");
    holds(&seen, "/flow/text", &["everything"])?;
    ensure!(
        seen["shown"] == seen["wanted"],
        "{} is not {}",
        seen["shown"],
        seen["wanted"]
    );
    for part in ["rest", "socket"] {
        let shown = seen["shown"][part].as_array().map_or(0, Vec::len);
        ensure!(shown > 10, "{part}: {shown}");
    }
    Ok(())
}

/// The checks, which are many questions, follow the data of the view.
fn asks_what_it_shows_first(seen: &Value) -> Result<()> {
    let asked = seen["asked"].as_array().context("asked")?;
    let place = |wanted: &str| asked.iter().position(|one| one == wanted);
    let checks = place("flow doctor").context("no checks")?;
    for shown in ["librarian list-documents", "librarian list-processing"] {
        ensure!(
            place(shown).is_some_and(|at| at < checks),
            "{shown}: {asked:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn flows_checks_and_endpoints_are_shown_on_the_embedded_bus() -> Result<()> {
    views(Bus::Embedded).await
}

#[tokio::test]
async fn flows_checks_and_endpoints_are_shown_on_rabbitmq() -> Result<()> {
    views(Bus::Rabbit).await
}

/// What is served is what was built, whole, and within its limit.
#[tokio::test]
async fn the_page_that_is_served_is_the_one_that_was_built() -> Result<()> {
    let url = system(Bus::Embedded).await?.url();
    let built = root().join("console/dist");
    let mut sum = 0;
    let mut files = 0;
    for entry in std::fs::read_dir(&built)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name.ends_with(".br") {
            continue;
        }
        let path = match name.as_str() {
            "index.html" => String::new(),
            "docs.html" => "docs".to_owned(),
            file => format!("assets/{file}"),
        };
        let asked = tg_testkit::process::client()?.get(format!("{url}{path}"));
        let answer = asked.header("accept-encoding", "gzip").send().await?;
        ensure!(answer.status() == 200, "{name}: {}", answer.status());
        let how = answer.headers().get("content-encoding");
        ensure!(how.is_some_and(|how| how == "gzip"), "{name}: {how:?}");
        let body = answer.bytes().await?;
        let mut content = Vec::new();
        GzDecoder::new(&body[..]).read_to_end(&mut content)?;
        let plain = tg_testkit::process::client()?.get(format!("{url}{path}"));
        let plain = plain.send().await?.bytes().await?;
        ensure!(
            content == std::fs::read(built.join(&name))? && plain == content,
            "{name} is not what was built: build the page, then the binary"
        );
        sum += body.len() as u64;
        files += 1;
    }
    ensure!(files > 6, "the page was not built: make console");
    ensure!(sum <= WEIGHT, "{sum} bytes");
    println!("{sum} bytes by gzip in {files} files");
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

/// Held to seconds or less: these have the machine to themselves (`make test`).
mod alone {
    use super::*;

    #[tokio::test]
    async fn everybody_can_use_it() -> Result<()> {
        let server = Launch::up().ready().await?;
        let folder = tempfile::tempdir()?;
        write_documents(folder.path())?;
        let documents = folder.path().to_string_lossy().into_owned();
        let added = tg_testkit::process::tg(&server.url(), &["add", "--wait", &documents]).await?;
        ensure!(added.code == Some(0), "{added:?}");
        // For whoever wants to look at it: a folder for pictures.
        let pictures = std::env::var("TG_CONSOLE_PICTURES").unwrap_or_default();
        let slower = Machine::measured().slower();
        let allowed = PAINT * slower;
        let seen = story(
            "look.mjs",
            &[&server.url(), &allowed.to_string(), &pictures],
        )
        .await?;
        is_clean(&seen)?;
        for look in seen["views"].as_array().context("views")? {
            for rule in ["axe", "wide", "violations"] {
                ensure!(look[rule] == json!([]), "{rule}: {:#}", look[rule]);
            }
        }
        ensure!(
            seen["keys"]
                == json!({"skip": "Skip to content", "back": true, "judged": "✓\nThe Harrowgate lantern was built by Ottoline Frask in 1887.\n\nsupported by [1]",
                "expanded": "true", "focus": "main"}),
            "{}",
            seen["keys"]
        );
        let weight = seen["weight"].as_u64().context("weight")?;
        ensure!(weight > 0 && weight <= WEIGHT, "{weight} bytes");
        let after = |what: &str| seen["paint"][what].as_f64().context("paint");
        let paint = after("data")?;
        println!(
            "first paint with data: took {paint:.0} ms of {allowed:.0} ms allowed, machine x{slower:.1}; {weight} bytes; the page \
             began after {:.0} ms, its files were there after {:.0}, something was seen after {:.0}",
            after("begun")?,
            after("files")?,
            after("first")?,
        );
        ensure!(
            paint > 0.0 && paint <= allowed,
            "{paint} ms of {allowed} ms"
        );
        Ok(())
    }
}
