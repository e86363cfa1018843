//! Tools that take a whole question: which of those on offer do, told by what the prompt says of them, and
//! what those that answer it themselves have said. Knows kinds of tools by their descriptions, no subject.

use std::cmp::Reverse;

use super::answer::{Fit, Found};
use super::observation;
use super::question::Question;
use super::react::{Past, Prompt, Step, Tool};
use super::tools::NAMED;
use super::words;

/// Names of the argument that takes a whole question.
const ASKING: &[&str] = &["question", "query", "text", "input", "prompt"];
/// What a tool that answers from documents speaks of.
const DOCUMENTS: &[&str] = &["document", "documents", "passage", "passages"];
/// What a tool that answers from the graph speaks of, which was looked at before.
const GRAPH: &[&str] = &["graph", "knowledge"];
/// What a tool does that answers questions.
const ANSWERING: &[&str] = &[
    "answer",
    "answers",
    "ask",
    "asks",
    "question",
    "questions",
    "query",
    "queries",
    "search",
    "searches",
    "retrieve",
    "retrieves",
];
/// Ways in which an answer says that there is none.
const UNKNOWN: &[&str] = &[
    "not answer",
    "nothing that answers",
    "not know",
    "not contain",
    "not mention",
    "not say",
    "no information",
    "cannot answer",
];

/// What a tool answers a question from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Documents,
    Other,
    Graph,
}

/// Asks the documents the whole question, if a tool on offer does that.
pub(super) fn documents(prompt: &Prompt, question: &Question<'_>) -> Option<Step> {
    let askable = askable(&prompt.tools);
    let mut of_documents = askable.filter(|tool| tool.source == Source::Documents);
    of_documents.next().map(|tool| tool.ask(question))
}

/// Whether the documents were asked.
pub(super) fn documents_asked(prompt: &Prompt) -> bool {
    let of = |past: &Past| Some(Askable::of(prompt.tool(&past.action)?)?.source);
    let mut sources = prompt.steps.iter().map(of);
    sources.any(|source| source == Some(Source::Documents))
}

/// Whether a step was a question to a tool that answers it itself.
pub(super) fn answers(prompt: &Prompt, past: &Past) -> bool {
    let tool = prompt.tool(&past.action).and_then(Askable::of);
    tool.is_some_and(|tool| tool.source != Source::Other)
}

/// What such a tool said, word for word with its citations; none if it does not know. The documents behind it are told
/// by what the citations name.
pub(super) fn told(past: &Past) -> Option<Found> {
    let text = past.observation.trim();
    let text = text
        .split_once("\n\nSources:\n")
        .map_or(text, |(text, _)| text);
    if observation::read(text).is_empty() {
        return None;
    }
    let lower = text.to_lowercase();
    let unknown = UNKNOWN.iter().any(|way| lower.contains(way));
    (cites(text) || !unknown).then(|| Found {
        fit: Fit::Answers,
        score: 0.0,
        text: text.to_owned(),
        chosen: Vec::new(),
        leads_to: None,
    })
}

/// Whether there is a number in brackets.
fn cites(text: &str) -> bool {
    text.split('[').skip(1).any(|part| {
        part.split_once(']').is_some_and(|(number, _)| {
            !number.is_empty() && number.chars().all(|c| c.is_ascii_digit())
        })
    })
}

/// Tools that take a question, best described first; of those described alike the documents come first,
/// and the graph, which was looked at before, last.
pub(super) fn by_description(prompt: &Prompt, question: &Question<'_>) -> Vec<Step> {
    let shared = |tool: &Askable<'_>| {
        let described = described(tool.tool);
        let hit = |word: &&String| described.iter().any(|other| words::alike(other, word));
        match tool.source {
            Source::Other => question.words.iter().filter(hit).count(),
            // It is for questions of any kind: a word of this one in its description tells nothing.
            Source::Documents | Source::Graph => 0,
        }
    };
    let mut tools: Vec<Askable<'_>> = askable(&prompt.tools).collect();
    tools.sort_by_key(|tool| (Reverse(shared(tool)), tool.source));
    tools.into_iter().map(|tool| tool.ask(question)).collect()
}

/// A tool that takes a whole question.
struct Askable<'a> {
    tool: &'a Tool,
    /// The argument that takes it.
    argument: &'a str,
    source: Source,
}

fn askable(tools: &[Tool]) -> impl Iterator<Item = Askable<'_>> {
    tools.iter().filter_map(Askable::of)
}

impl<'a> Askable<'a> {
    fn of(tool: &'a Tool) -> Option<Self> {
        // A language model would be this very reader again.
        let reader = tool.description.to_lowercase().contains("language model");
        if NAMED.contains(&tool.name.as_str()) || reader {
            return None;
        }
        let asking = |name: &&String| ASKING.contains(&name.as_str());
        let only = || tool.arguments.first().filter(|_| tool.arguments.len() == 1);
        let argument = tool.arguments.iter().find(asking).or_else(only)?;
        Some(Self {
            tool,
            argument,
            source: source(tool),
        })
    }

    fn ask(&self, question: &Question<'_>) -> Step {
        let thought = match self.source {
            Source::Documents => "The graph does not settle this; I ask the documents.".to_owned(),
            Source::Graph | Source::Other => format!("{} may know this.", self.tool.name),
        };
        let given = Some((self.argument, question.text));
        Step::call(thought, &self.tool.name, given)
    }
}

fn described(tool: &Tool) -> Vec<String> {
    let mut described = words::content(&tool.description);
    described.extend(words::content(&tool.name));
    described
}

fn source(tool: &Tool) -> Source {
    let described = described(tool);
    let speaks_of = |of: &[&str]| described.iter().any(|word| of.contains(&word.as_str()));
    if !speaks_of(ANSWERING) {
        Source::Other
    } else if speaks_of(DOCUMENTS) {
        Source::Documents
    } else if speaks_of(GRAPH) {
        Source::Graph
    } else {
        Source::Other
    }
}
