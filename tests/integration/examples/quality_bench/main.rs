//! How good retrieval is: the questions of `tests/quality` put to a running system, per embedding option and
//! retrieval mode, without any model but the builtin reader.
//!
//! `quality_bench [works | lexical | directory of a static model]...`, in the target folder of the binaries it measures. Each
//! document goes in by the library, is processed to the end by a flow, and each question is asked at the
//! gateway. A figure below its target is printed, never a failure; an answer that cites what was not
//! retrieved, or an error, is one. `works` asks about works of real length instead, see [`works`].

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tg_testkit::machine::{described, load};
use tg_testkit::process::{Launch, client, root};

mod gateway;
mod works;

use gateway::{Chunk, Found, Gateway, Mode, ask, chunks, process};

/// Passages that an answer may rest on, and the depth of recall and rank.
const TOP: usize = 10;
const CHUNK_SIZE: &str = "400";
const CHUNK_OVERLAP: &str = "40";
const FLOW: &str = "quality";
/// A document is processed by then.
const BOUND: Duration = Duration::from_secs(120);
/// Share of a sentence's words that what it cites must have.
const SUPPORT: f64 = 0.9;
/// What the service and the builtin reader say when nothing answers.
const REFUSALS: [&str; 3] = ["do not answer", "hold nothing", "holds none"];
const TARGET: f64 = 0.9;

const MODES: [(&str, Mode); 6] = [
    ("vector store alone", Mode::Nearest),
    ("keyword index alone", Mode::Words),
    ("vector, reranked", Mode::Asked("vector", "none")),
    ("keyword, reranked", Mode::Asked("keyword", "none")),
    ("hybrid, reranked", Mode::Asked("hybrid", "none")),
    ("hybrid, reranked, MMR", Mode::Asked("hybrid", "mmr")),
];

struct Question {
    text: String,
    /// Document and words of the passage that answers; nothing where nothing does.
    answer: Option<(String, String)>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut options: Vec<String> = std::env::args().skip(1).collect();
    let of_works = options.iter().any(|option| option == "works");
    options.retain(|option| option != "works");
    if options.is_empty() {
        options.push("lexical".to_owned());
    }
    println!("workload 1; machine: {}; load {}", described(), load());
    if of_works {
        return works::all(&options).await;
    }
    let questions = questions()?;
    let open = questions.iter().filter(|q| q.answer.is_none()).count();
    println!(
        "{} questions with an answer, {open} without; chunks of {CHUNK_SIZE} characters; top {TOP}",
        questions.len() - open
    );
    for option in &options {
        let (name, launch) = launched(option)?;
        bench(&name, launch, &questions).await?;
    }
    if options.iter().all(|option| option == "lexical") {
        println!("\nno static model was given: static vectors are not measured");
    }
    Ok(())
}

/// A system with an embedding option, and what that is called.
fn launched(option: &str) -> Result<(String, Launch)> {
    if option == "lexical" {
        return Ok((option.to_owned(), Launch::up()));
    }
    let path = std::fs::canonicalize(option).with_context(|| option.to_owned())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let launch = Launch::up()
        .env("THREADGRAPH_EMBEDDINGS__PROVIDER", "static")
        .env("THREADGRAPH_EMBEDDINGS__PATH", path.to_string_lossy());
    Ok((format!("static/{name}"), launch))
}

fn questions() -> Result<Vec<Question>> {
    let path = root().join("tests/quality/questions.tsv");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let question = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [document, evidence, text] = fields.as_slice() else {
            bail!("not three fields: {line}");
        };
        let answer = (*document != "-").then(|| ((*document).to_owned(), words(evidence)));
        Ok(Question {
            text: (*text).to_owned(),
            answer,
        })
    };
    lines.map(question).collect()
}

fn documents() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in ["tests/quality/documents", "demo/documents"] {
        for entry in std::fs::read_dir(root().join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|of| of == "md" || of == "txt") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Lower case, single blanks.
fn words(text: &str) -> String {
    let text = text.to_lowercase();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn bench(name: &str, launch: Launch, questions: &[Question]) -> Result<()> {
    let server = launch.ready().await?;
    let gateway = Gateway {
        client: client()?,
        url: server.url(),
    };
    let start = json!({
        "operation": "start-flow", "flow-id": FLOW, "blueprint-name": "everything",
        "description": "quality", "parameters": {"chunk-size": CHUNK_SIZE, "chunk-overlap": CHUNK_OVERLAP},
    });
    gateway.post("flow", start).await?;
    let begun = Instant::now();
    let paths = documents()?;
    for path in &paths {
        process(&gateway, path, BOUND)
            .await
            .with_context(|| path.display().to_string())?;
    }
    let chunks = chunks(&gateway).await?;
    let model = gateway.service("embeddings", json!({"texts": []})).await?;
    println!(
        "\n{name} ({}): {} documents, {} chunks, processed in {:.1} s",
        model["model"].as_str().unwrap_or("?"),
        paths.len(),
        chunks.len(),
        begun.elapsed().as_secs_f64()
    );
    let answers = answers(questions, &chunks)?;
    println!(
        "| mode | recall@{TOP} | MRR | cited sentences supported | cited from the right chunk | refused in vain | \
         unanswerable refused | ms a question |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (mode_name, mode) in MODES {
        let mut figures = Figures::default();
        for (question, right) in questions.iter().zip(&answers) {
            let asked = Instant::now();
            let found = ask(&gateway, mode, &question.text, TOP).await?;
            figures.took += asked.elapsed();
            figures.add(right.as_ref(), &found, &chunks);
        }
        println!("| {mode_name} | {}", figures.row());
        ensure!(
            figures.foreign == 0,
            "{} citations of chunks that were not retrieved",
            figures.foreign
        );
    }
    println!("citations of chunks that were not retrieved: 0 (target 0: met)");
    Ok(())
}

/// The chunks that answer each question.
fn answers(
    questions: &[Question],
    chunks: &HashMap<String, Chunk>,
) -> Result<Vec<Option<HashSet<String>>>> {
    let find = |question: &Question| {
        let Some((document, evidence)) = &question.answer else {
            return Ok(None);
        };
        let fits =
            |chunk: &&Chunk| chunk.document == *document && chunk.text.contains(evidence.as_str());
        let right: HashSet<String> = chunks
            .iter()
            .filter(|(_, chunk)| fits(chunk))
            .map(|(id, _)| id.clone())
            .collect();
        // A chunk may end within the words; then the one that has the most of them is meant.
        let right = if right.is_empty() {
            nearest(document, evidence, chunks)
        } else {
            right
        };
        ensure!(!right.is_empty(), "no chunk of {document} has: {evidence}");
        Ok(Some(right))
    };
    questions.iter().map(find).collect()
}

fn nearest(document: &str, evidence: &str, chunks: &HashMap<String, Chunk>) -> HashSet<String> {
    let half = evidence.len() / 2;
    let cut = (0..=half)
        .rfind(|at| evidence.is_char_boundary(*at))
        .unwrap_or(0);
    let (first, second) = evidence.split_at(cut);
    chunks
        .iter()
        .filter(|(_, chunk)| chunk.document == document)
        .filter(|(_, chunk)| {
            chunk.text.contains(first.trim()) || chunk.text.contains(second.trim())
        })
        .map(|(id, _)| id.clone())
        .collect()
}

#[derive(Default)]
struct Figures {
    asked: usize,
    found: usize,
    rank: f64,
    sentences: usize,
    supported: usize,
    right: usize,
    in_vain: usize,
    answered: bool,
    open: usize,
    refused: usize,
    foreign: usize,
    took: Duration,
}

impl Figures {
    fn add(
        &mut self,
        right: Option<&HashSet<String>>,
        found: &Found,
        chunks: &HashMap<String, Chunk>,
    ) {
        let refused = found.answer.as_ref().map(|answer| {
            found.cited.is_empty() && REFUSALS.iter().any(|text| answer.contains(text))
        });
        self.answered |= refused.is_some();
        match right {
            Some(right) => {
                self.asked += 1;
                let place = found
                    .chosen
                    .iter()
                    .take(TOP)
                    .position(|id| right.contains(id));
                if let Some(place) = place {
                    self.found += 1;
                    self.rank += 1.0 / (place as f64 + 1.0);
                }
                self.right += usize::from(found.cited.iter().any(|id| right.contains(id)));
                self.in_vain += usize::from(refused == Some(true));
            }
            None => {
                self.open += 1;
                self.refused += usize::from(refused == Some(true));
            }
        }
        let foreign = |id: &&String| !found.retrieved.contains(*id) || !found.chosen.contains(id);
        self.foreign += found.cited.iter().filter(foreign).count();
        let Some(answer) = &found.answer else {
            return;
        };
        for (sentence, numbers) in cited_sentences(answer) {
            let known: Vec<&String> = numbers
                .iter()
                .filter_map(|number| found.cited.get(number.wrapping_sub(1)))
                .collect();
            self.foreign += numbers.len() - known.len();
            self.sentences += 1;
            let texts: Vec<&str> = known
                .iter()
                .filter_map(|id| Some(chunks.get(*id)?.text.as_str()))
                .collect();
            self.supported += usize::from(supports(&texts, &sentence));
        }
    }

    fn row(&self) -> String {
        let share = |part: usize, of: usize| part as f64 / of.max(1) as f64;
        let recall = share(self.found, self.asked);
        let met = if recall >= TARGET { "met" } else { "missed" };
        let ms = self.took.as_secs_f64() * 1_000.0 / (self.asked + self.open).max(1) as f64;
        let answers = if self.answered {
            format!(
                "{:.3} of {} | {:.3} | {:.3} | {:.3}",
                share(self.supported, self.sentences),
                self.sentences,
                share(self.right, self.asked),
                share(self.in_vain, self.asked),
                share(self.refused, self.open),
            )
        } else {
            "- | - | - | -".to_owned()
        };
        format!(
            "{recall:.3} (target {TARGET}: {met}) | {:.3} | {answers} | {ms:.1} |",
            self.rank / self.asked.max(1) as f64
        )
    }
}

/// Sentences that end with numbers in brackets, without them.
fn cited_sentences(answer: &str) -> Vec<(String, Vec<usize>)> {
    let mut found = Vec::new();
    let mut rest = answer;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((inside, behind)) = after.split_once(']') else {
            break;
        };
        let numbers: Option<Vec<usize>> = inside
            .split([',', ';'])
            .map(|number| number.trim().parse().ok())
            .collect();
        if let Some(numbers) = numbers {
            let sentence = before.trim_start_matches(['.', ' ']).trim().to_owned();
            found.push((sentence, numbers));
        }
        rest = behind;
    }
    found
}

/// Whether texts have nearly all words of a sentence.
fn supports(texts: &[&str], sentence: &str) -> bool {
    let split = |text: &str| -> HashSet<String> {
        text.to_lowercase()
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let said = split(sentence);
    let there: HashSet<String> = texts.iter().flat_map(|text| split(text)).collect();
    let shared = said.intersection(&there).count();
    !said.is_empty() && shared as f64 >= SUPPORT * said.len() as f64
}
