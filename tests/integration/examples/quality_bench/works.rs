//! Works of real length: the questions of `tests/quality/works.tsv` over what `scripts/fetch-works.sh` brought, cut as the product
//! cuts by default. A passage is right when it holds the words of the question's evidence, an answer when it quotes them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tg_testkit::process::{client, root};

use super::gateway::{Chunk, Found, Gateway, ask, chunks, process};
use super::{FLOW, MODES, REFUSALS, launched};

const WORKS: [&str; 3] = ["moby-dick", "jargon", "addresses"];
/// A work is processed by then.
const BOUND: Duration = Duration::from_secs(3_600);
/// What a question asks for by default.
const TOP: usize = 20;

struct Question {
    work: String,
    evidence: String,
    text: String,
}

/// Asks all questions, per option and mode.
pub async fn all(options: &[String]) -> Result<()> {
    let questions = questions()?;
    let folder = root().join(".cache/works");
    let paths = WORKS.map(|work| folder.join(format!("{work}.txt")));
    if !paths.iter().all(|path| path.is_file()) {
        println!("not measured: scripts/fetch-works.sh brings the works");
        return Ok(());
    }
    let only = std::env::var("QUALITY_MODE").ok();
    for option in options {
        let (name, launch) = launched(option)?;
        let server = launch.ready().await?;
        let gateway = Gateway {
            client: client()?,
            url: server.url(),
        };
        start_flow(&gateway).await?;
        let begun = Instant::now();
        for path in &paths {
            process(&gateway, path, BOUND)
                .await
                .with_context(|| path.display().to_string())?;
        }
        let chunks = chunks(&gateway).await?;
        println!(
            "\n{name}: {} works, {} chunks, processed in {:.0} s; {} questions, each second one held back",
            WORKS.len(),
            chunks.len(),
            begun.elapsed().as_secs_f64(),
            questions.len()
        );
        println!(
            "| mode | part | found at 1 | at 5 | right sentence | refused in vain | unanswerable answered | refusals that \
             cite | ms a question: median (spread) |"
        );
        println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
        for (mode_name, mode) in MODES {
            if only.as_ref().is_some_and(|only| only != mode_name) {
                continue;
            }
            let mut parts = [Figures::default(), Figures::default()];
            for (at, question) in questions.iter().enumerate() {
                let asked = Instant::now();
                let found = ask(&gateway, mode, &question.text, TOP).await?;
                parts[at % 2].add(question, &found, &chunks, asked.elapsed());
            }
            for (part, figures) in ["seen", "held back"].into_iter().zip(&mut parts) {
                println!("| {mode_name} | {part} | {}", figures.row());
            }
        }
    }
    Ok(())
}

fn questions() -> Result<Vec<Question>> {
    let path = root().join("tests/quality/works.tsv");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let question = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [work, evidence, text] = fields[..] else {
            bail!("not three fields: {line}");
        };
        Ok(Question {
            work: work.to_owned(),
            evidence: plain(evidence),
            text: text.to_owned(),
        })
    };
    lines.map(question).collect()
}

/// The shipped blueprint without extractors: they find facts, not passages.
async fn start_flow(gateway: &Gateway) -> Result<()> {
    let get = json!({"operation": "get-blueprint", "blueprint-name": "everything"});
    let reply = gateway.post("flow", get).await?;
    let text = reply["blueprint-definition"]
        .as_str()
        .context("no blueprint")?;
    let mut blueprint: Value = serde_json::from_str(text)?;
    let flow = blueprint["flow"].as_object_mut().context("no flow")?;
    flow.retain(|processor, _| !processor.starts_with("kg-extract"));
    let put = json!({
        "operation": "put-blueprint", "blueprint-name": FLOW, "blueprint-definition": blueprint.to_string(),
    });
    gateway.post("flow", put).await?;
    let start = json!({
        "operation": "start-flow", "flow-id": FLOW, "blueprint-name": FLOW, "description": "quality", "parameters": {},
    });
    gateway.post("flow", start).await.map(drop)
}

/// Lower-case words with single blanks between and around.
fn plain(text: &str) -> String {
    let text = text.to_lowercase();
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words = words.filter(|word| !word.is_empty());
    words.fold(" ".to_owned(), |text, word| text + word + " ")
}

#[derive(Default)]
struct Figures {
    asked: usize,
    first: usize,
    five: usize,
    right: usize,
    in_vain: usize,
    open: usize,
    answered: usize,
    citing: usize,
    answers: bool,
    took: Vec<f64>,
}

impl Figures {
    fn add(
        &mut self,
        question: &Question,
        found: &Found,
        chunks: &HashMap<String, Chunk>,
        took: Duration,
    ) {
        self.took.push(took.as_secs_f64() * 1_000.0);
        let answer = found.answer.as_deref();
        self.answers |= answer.is_some();
        let refused = answer.is_some_and(|text| REFUSALS.iter().any(|said| text.contains(said)));
        self.citing += usize::from(refused && !found.cited.is_empty());
        if question.work == "-" {
            self.open += 1;
            self.answered += usize::from(answer.is_some() && !refused);
            return;
        }
        let holds = |id: &String| {
            chunks.get(id).is_some_and(|chunk| {
                chunk.document.starts_with(&question.work)
                    && plain(&chunk.text).contains(&question.evidence)
            })
        };
        let place = found.chosen.iter().take(TOP).position(holds);
        self.asked += 1;
        self.first += usize::from(place == Some(0));
        self.five += usize::from(place.is_some_and(|place| place < 5));
        self.right +=
            usize::from(answer.is_some_and(|text| plain(text).contains(&question.evidence)));
        self.in_vain += usize::from(refused);
    }

    fn row(&mut self) -> String {
        let share =
            |part: usize, of: usize| format!("{:.0} %", 100.0 * part as f64 / of.max(1) as f64);
        self.took.sort_by(f64::total_cmp);
        let at = |percent: usize| self.took[(self.took.len() - 1) * percent / 100];
        let answers = if self.answers {
            format!(
                "{} | {} | {} | {}",
                share(self.right, self.asked),
                share(self.in_vain, self.asked),
                share(self.answered, self.open),
                self.citing
            )
        } else {
            "- | - | - | -".to_owned()
        };
        format!(
            "{} | {} | {answers} | {:.1} ({:.1} to {:.1}) |",
            share(self.first, self.asked),
            share(self.five, self.asked),
            at(50),
            at(0),
            at(100)
        )
    }
}
