//! What the extractive reader makes of passages of real texts, without a system: the questions of
//! `tests/quality/works.tsv` with the 20 chunks of the works that share most words with each.
//!
//! `reader_bench [folder of the works]`; `scripts/fetch-works.sh` brings them. Every second question is looked at while the reader
//! is changed (`seen`), the others are held back.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::Instant;

use tg_reader::{Shape, reply};
use tg_testkit::bench::{ROUNDS, headline, spread};

const WORKS: [&str; 3] = ["moby-dick", "jargon", "addresses"];
const PASSAGES: usize = 20;
/// The product's default.
const CHUNK: usize = 2_000;

fn main() {
    println!("{}", headline(1));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::args()
        .nth(1)
        .map_or_else(|| root.join(".cache/works"), Into::into);
    let mut chunks: Vec<(&str, String)> = Vec::new();
    for work in WORKS {
        let Ok(text) = std::fs::read_to_string(folder.join(format!("{work}.txt"))) else {
            println!("not measured: {work} is not there, scripts/fetch-works.sh brings it");
            return;
        };
        chunks.extend(cut(&text).into_iter().map(|chunk| (work, chunk)));
    }
    let index = Index::new(&chunks);
    let questions =
        std::fs::read_to_string(root.join("tests/quality/works.tsv")).expect("questions");
    let (mut seen, mut held) = (Figures::default(), Figures::default());
    let mut prompts: Vec<String> = Vec::new();
    let lines = questions.lines().filter(|line| !line.starts_with('#'));
    for (at, line) in lines.enumerate() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [work, evidence, question] = fields[..] else {
            panic!("not three fields: {line}");
        };
        let found = index.best(question);
        let passages: Vec<&str> = found.iter().map(|at| chunks[*at].1.as_str()).collect();
        prompts.push(prompt(&passages, question));
        let reply = ask(&prompts[at]);
        let figures = if at % 2 == 0 { &mut seen } else { &mut held };
        figures.add(
            work,
            evidence,
            &reply,
            found.iter().any(|at| {
                chunks[*at].0 == work && plain(&chunks[*at].1).contains(&plain(evidence))
            }),
        );
        if at % 2 == 0 && std::env::args().any(|arg| arg == "--told") {
            println!("{question}\n    {evidence}\n    {reply}");
        }
    }
    println!(
        "{} chunks of at most {CHUNK} characters; {PASSAGES} passages a question",
        chunks.len()
    );
    println!(
        "| part | passage there | right sentence | another | unanswerable answered | refusals that cite |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    println!("| seen | {}", seen.row());
    println!("| held back | {}", held.row());
    told(&prompts);
}

/// How long reading takes, three times for all questions: what is found is the same each time, the time is not.
fn told(prompts: &[String]) {
    let (mut middle, mut late, mut most) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let timed = |prompt: &String| {
            let begun = Instant::now();
            ask(prompt);
            begun.elapsed().as_secs_f64() * 1_000.0
        };
        let mut times: Vec<f64> = prompts.iter().map(timed).collect();
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        middle.push(at(0.5));
        late.push(at(0.95));
        most.push(at(1.0));
    }
    println!("reading, p50, ms: {}", spread(&middle));
    println!("reading, p95, ms: {}", spread(&late));
    println!("reading, slowest, ms: {}", spread(&most));
}

fn ask(prompt: &str) -> String {
    reply(prompt, Shape::Text)
}

/// As the prompt `document-prompt` is rendered.
fn prompt(passages: &[&str], question: &str) -> String {
    let mut text = "## Answer from passages\nAnswer.\n\n## Passages\n".to_owned();
    for (at, passage) in passages.iter().enumerate() {
        text.push_str(&format!("[{}] {passage}\n\n", at + 1));
    }
    text.push_str(&format!(
        "\n## Rules\n* Cite.\n\n## Question\n{question}\n\n## Your answer\n"
    ));
    text
}

/// Paragraphs, together up to the length of a chunk.
fn cut(text: &str) -> Vec<String> {
    let mut chunks = vec![String::new()];
    for paragraph in text.replace("\r\n", "\n").split("\n\n") {
        for line in paragraph.split_inclusive('\n').chain(["\n\n"]) {
            let last = chunks.last_mut().expect("one");
            if last.len() + line.len() > CHUNK {
                chunks.push(line.to_owned());
            } else {
                last.push_str(line);
            }
        }
    }
    chunks.retain(|chunk| !chunk.trim().is_empty());
    chunks
}

/// Lower-case words with single blanks between and around.
fn plain(text: &str) -> String {
    let text = text.to_lowercase();
    let words = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words.fold(" ".to_owned(), |text, word| text + word + " ")
}

/// BM25 over the chunks.
struct Index {
    postings: HashMap<String, Vec<(usize, f64)>>,
    lengths: Vec<f64>,
    average: f64,
}

impl Index {
    fn new(chunks: &[(&str, String)]) -> Self {
        let mut postings: HashMap<String, Vec<(usize, f64)>> = HashMap::new();
        let mut lengths = Vec::new();
        for (at, (_, text)) in chunks.iter().enumerate() {
            let words = stems(text);
            lengths.push(words.len() as f64);
            for word in words {
                let found = postings.entry(word).or_default();
                match found.last_mut() {
                    Some((last, count)) if *last == at => *count += 1.0,
                    _ => found.push((at, 1.0)),
                }
            }
        }
        let average = lengths.iter().sum::<f64>() / lengths.len().max(1) as f64;
        Self {
            postings,
            lengths,
            average,
        }
    }

    fn best(&self, question: &str) -> Vec<usize> {
        let asked: HashSet<String> = stems(question).into_iter().collect();
        let all = self.lengths.len() as f64;
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for found in asked.iter().filter_map(|word| self.postings.get(word)) {
            let holders = found.len() as f64;
            let weight = ((all - holders + 0.5) / (holders + 0.5) + 1.0).ln();
            for (at, count) in found {
                let length = 1.2 * (0.6 + 0.4 * self.lengths[*at] / self.average);
                *scores.entry(*at).or_default() += weight * count * 2.2 / (count + length);
            }
        }
        let mut ranked: Vec<(usize, f64)> = scores.into_iter().collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        ranked
            .into_iter()
            .take(PASSAGES)
            .map(|(at, _)| at)
            .collect()
    }
}

/// Words without their commonest endings.
fn stems(text: &str) -> Vec<String> {
    let plain = plain(text);
    let stem = |word: &str| {
        let ends = ["ing", "ies", "ed", "es", "s", "y", "e"];
        let cut = ends.iter().find_map(|end| word.strip_suffix(end));
        cut.filter(|stem| stem.chars().count() >= 3)
            .unwrap_or(word)
            .to_owned()
    };
    plain.split_whitespace().map(stem).collect()
}

#[derive(Default)]
struct Figures {
    asked: usize,
    there: usize,
    right: usize,
    wrong: usize,
    open: usize,
    answered: usize,
    citing_refusals: usize,
}

impl Figures {
    fn add(&mut self, work: &str, evidence: &str, reply: &str, there: bool) {
        let refused = reply.contains("do not answer");
        self.citing_refusals +=
            usize::from(refused && (1..=PASSAGES).any(|n| reply.contains(&format!("[{n}]"))));
        if work == "-" {
            self.open += 1;
            self.answered += usize::from(!refused);
            return;
        }
        let right = plain(reply).contains(&plain(evidence));
        self.asked += 1;
        self.there += usize::from(there);
        self.right += usize::from(right);
        self.wrong += usize::from(!refused && !right);
    }

    fn row(&self) -> String {
        format!(
            "{} of {} | {} ({:.0} %) | {} | {} of {} ({:.0} %) | {} |",
            self.there,
            self.asked,
            self.right,
            100.0 * self.right as f64 / self.asked.max(1) as f64,
            self.wrong,
            self.answered,
            self.open,
            100.0 * self.answered as f64 / self.open.max(1) as f64,
            self.citing_refusals,
        )
    }
}
