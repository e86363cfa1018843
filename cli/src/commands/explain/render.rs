//! A trace as text and as JSON. Pure: everything needed was fetched before.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tg_schemas::Term;

use super::entity::{Entity, Kind, Session};
use super::links::{cited_numbers, number_of};
use super::trace::{Step, Trace};
use crate::commands::graph::display;
use crate::layout::cut;

/// A trace with all that belongs to its telling.
pub(super) struct View<'a> {
    /// The trace.
    pub(super) trace: &'a Trace,
    /// Texts of documents by id.
    pub(super) texts: &'a BTreeMap<String, String>,
    /// Names of things by IRI.
    pub(super) labels: &'a BTreeMap<String, String>,
    /// Where selected edges and chunks come from, by the selection.
    pub(super) sources: &'a BTreeMap<String, Vec<String>>,
    /// Characters of a text to show.
    pub(super) max_text: usize,
}

impl View<'_> {
    /// The trace for people.
    pub(super) fn text(&self) -> String {
        let Some(question) = self.trace.question() else {
            return "No trace.".to_owned();
        };
        let session = Session::of(&question.iri);
        let mut lines = vec![
            format!("=== {} Session: {} ===", session.title(), question.iri),
            String::new(),
        ];
        lines.extend(question_lines(question));
        lines.push(String::new());
        let steps = self.trace.steps();
        for step in &steps {
            let indent = "    ".repeat(step.depth);
            for line in self.step_lines(*step) {
                lines.push(format!("{indent}{line}").trim_end().to_owned());
            }
        }
        if steps.is_empty() {
            lines.push("No trace steps recorded".to_owned());
        }
        lines.join("\n")
    }

    fn step_lines(&self, step: Step<'_>) -> Vec<String> {
        let entity = step.entity;
        let (title, mut lines) = match entity.kind {
            Kind::Question => {
                let title = format!("{} Question", Session::of(&entity.iri).title());
                (title, question_lines(entity))
            }
            Kind::PatternDecision => (
                "Pattern".to_owned(),
                named(entity, &[("Pattern", "pattern"), ("Task type", "taskType")]),
            ),
            Kind::Thought => ("Thought".to_owned(), self.document(entity, "Content")),
            Kind::Analysis => ("Analysis".to_owned(), analysis(entity)),
            Kind::Observation => {
                let mut lines = self.document(entity, "Content");
                lines.extend(named(entity, &[("Error", "toolError")]));
                ("Observation".to_owned(), lines)
            }
            Kind::Plan => {
                let steps = entity.texts("planStep");
                let head = format!("Plan with {} steps:", steps.len());
                ("Plan".to_owned(), numbered(head, &steps))
            }
            Kind::Decomposition => {
                let goals = entity.texts("subagentGoal");
                let head = format!("Decomposed into {} research threads:", goals.len());
                ("Decomposition".to_owned(), numbered(head, &goals))
            }
            Kind::StepResult => {
                let mut lines = named(entity, &[("Step", "planStep"), ("Tool", "action")]);
                lines.extend(self.document(entity, "Result"));
                lines.extend(named(entity, &[("Error", "toolError")]));
                ("Step Result".to_owned(), lines)
            }
            Kind::Finding => {
                let mut lines = named(entity, &[("Goal", "subagentGoal")]);
                lines.extend(self.document(entity, "Result"));
                ("Finding".to_owned(), lines)
            }
            Kind::Grounding => {
                let concepts = entity.texts("concept").join(", ");
                (
                    "Grounding".to_owned(),
                    vec![format!("Concepts: {concepts}")],
                )
            }
            Kind::Exploration => ("Exploration".to_owned(), exploration(entity)),
            Kind::Focus => self.focus(entity),
            Kind::Synthesis => {
                let mut lines = self.document(entity, "Answer");
                lines.extend(cites(entity));
                ("Synthesis".to_owned(), lines)
            }
            Kind::Conclusion => {
                let mut lines = self.document(entity, "Answer");
                if entity
                    .text("terminationReason")
                    .is_some_and(|why| why != "final-answer")
                {
                    lines.extend(named(entity, &[("Ended by", "terminationReason")]));
                    let why = entity.comment();
                    lines.extend(why.map(|why| format!("Why: {why}")));
                }
                lines.extend(cites(entity));
                ("Conclusion".to_owned(), lines)
            }
            Kind::Guard => {
                let known = [("Did", "guardRung"), ("Found by", "guardDetector")];
                let mut lines = named(entity, &known);
                lines.extend(entity.comment().map(|why| format!("Why: {why}")));
                ("Guard".to_owned(), lines)
            }
            Kind::Compaction => {
                let known = [
                    ("How well", "compactionTier"),
                    ("Steps", "compactedSteps"),
                    ("Tokens before", "tokensBefore"),
                    ("Tokens after", "tokensAfter"),
                    ("By", "llmModel"),
                    ("Summary", "summary"),
                ];
                ("Compaction".to_owned(), named(entity, &known))
            }
            Kind::Confirmation => {
                let known = [("Answer", "confirmationAnswer"), ("By", "confirmationBy")];
                let mut lines = named(entity, &known);
                lines.extend(entity.comment().map(|asked| format!("Asked: {asked}")));
                ("Confirmation".to_owned(), lines)
            }
            // Told as part of the focus.
            Kind::EdgeSelection | Kind::ChunkSelection | Kind::Citation => return Vec::new(),
            Kind::Other => ("Step".to_owned(), vec![entity.iri.clone()]),
        };
        lines.insert(0, format!("--- {title} ---"));
        lines.push(String::new());
        lines
    }

    /// The text of an entity's document, or at least its id.
    fn document(&self, entity: &Entity, label: &str) -> Vec<String> {
        let Some(id) = entity.text("document") else {
            return vec![format!("No {} recorded", label.to_lowercase())];
        };
        let Some(text) = self.texts.get(&id) else {
            return vec![format!("Document: {id}")];
        };
        let shown = cut(text, self.max_text);
        let mut lines = vec![format!("{label}:")];
        lines.extend(shown.lines().map(|line| format!("  {line}")));
        lines
    }

    /// In the order of the numbers they are cited by.
    fn selections(&self, focus: &Entity) -> Vec<&Entity> {
        let mut selections: Vec<&Entity> = focus
            .texts("selectedEdge")
            .iter()
            .chain(&focus.texts("selectedChunk"))
            .filter_map(|iri| self.trace.entity(iri))
            .collect();
        selections.sort_by_key(|selection| number_of(&selection.iri));
        selections
    }

    fn focus(&self, focus: &Entity) -> (String, Vec<String>) {
        let selections = self.selections(focus);
        let chunks = !focus.objects("selectedChunk").is_empty();
        let (title, what) = match chunks {
            true => ("Focus (Chunk Selection)", "chunks"),
            false => ("Focus (Edge Selection)", "edges"),
        };
        let mut lines = vec![format!("Selected {} {what}:", selections.len())];
        for (number, selection) in selections.into_iter().enumerate() {
            match edge(selection) {
                Some([s, p, o]) => {
                    let [s, p, o] = [s, p, o].map(|term| self.name(term));
                    lines.push(format!("  {}. ({s}, {p}, {o})", number + 1));
                }
                None => {
                    let id = selection.text("document").unwrap_or_default();
                    lines.push(format!("  {}. {id}", number + 1));
                }
            }
            let concept = selection.text("concept");
            let concept = concept.map_or(String::new(), |concept| format!("Concept: {concept}  "));
            let score = selection.text("score").unwrap_or_else(|| "?".to_owned());
            lines.push(format!("     {concept}Score: {score}"));
            for source in self.sources.get(&selection.iri).into_iter().flatten() {
                lines.push(format!("     Source: {source}"));
            }
        }
        (title.to_owned(), lines)
    }

    fn name(&self, term: &Term) -> String {
        match term {
            Term::Iri(iri) => self.labels.get(iri).unwrap_or(iri).clone(),
            Term::Literal { value, .. } => value.clone(),
            other => display(Some(other)),
        }
    }

    /// The trace for programs.
    pub(super) fn json(&self) -> Value {
        let Some(question) = self.trace.question() else {
            return Value::Null;
        };
        let session = Session::of(&question.iri);
        let mut shown = json!({
            "type": session.id(),
            "question": question.text("query"),
            "time": question.started(),
        });
        if session == Session::Agent {
            shown["session_id"] = json!(question.iri);
            let steps = self.trace.steps().into_iter();
            shown["steps"] = steps
                .filter(|step| !is_selection(step.entity.kind))
                .map(|step| self.step_json(step))
                .collect();
            return shown;
        }
        shown["question_id"] = json!(question.iri);
        let kinds = [
            Kind::Grounding,
            Kind::Exploration,
            Kind::Focus,
            Kind::Synthesis,
        ];
        for (kind, key) in kinds
            .into_iter()
            .zip(["grounding", "exploration", "focus", "synthesis"])
        {
            shown[key] = match self.trace.first(kind) {
                Some(entity) => self.details(entity),
                None => Value::Null,
            };
        }
        shown
    }

    fn step_json(&self, step: Step<'_>) -> Value {
        let mut shown = self.details(step.entity);
        shown["type"] = json!(type_name(step.entity.kind));
        shown["depth"] = json!(step.depth);
        shown
    }

    fn details(&self, entity: &Entity) -> Value {
        let mut shown = json!({"type": type_name(entity.kind), "id": entity.iri});
        let one = [
            ("question", "query"),
            ("action", "action"),
            ("arguments", "arguments"),
            ("thought", "thought"),
            ("document", "document"),
            ("pattern", "pattern"),
            ("error", "toolError"),
            ("ended_by", "terminationReason"),
            ("rung", "guardRung"),
            ("detector", "guardDetector"),
            ("tier", "compactionTier"),
            ("steps", "compactedSteps"),
            ("tokens_before", "tokensBefore"),
            ("tokens_after", "tokensAfter"),
            ("summary", "summary"),
            ("answer", "confirmationAnswer"),
            ("answered_by", "confirmationBy"),
        ];
        for (key, name) in one {
            if let Some(text) = entity.text(name) {
                shown[key] = json!(text);
            }
        }
        match entity.kind {
            Kind::Conclusion | Kind::Guard => {
                if let Some(why) = entity.comment() {
                    shown["why"] = json!(why);
                }
            }
            Kind::Decomposition => shown["goals"] = json!(entity.texts("subagentGoal")),
            Kind::Finding => shown["goal"] = json!(entity.text("subagentGoal")),
            Kind::Plan => shown["steps"] = json!(entity.texts("planStep")),
            Kind::StepResult => shown["step"] = json!(entity.text("planStep")),
            Kind::Grounding => shown["concepts"] = json!(entity.texts("concept")),
            Kind::Exploration => {
                shown["edge_count"] = json!(entity.text("edgeCount").and_then(count));
                shown["chunk_count"] = json!(entity.text("chunkCount").and_then(count));
            }
            Kind::Focus => {
                shown["selected_edges"] = self
                    .selections(entity)
                    .into_iter()
                    .map(selection_json)
                    .collect();
            }
            _ => {}
        }
        if let Some(text) = entity.text("document").and_then(|id| self.texts.get(&id)) {
            shown["content"] = json!(cut(text, self.max_text));
        }
        shown
    }
}

/// The numbers that an answer cites.
fn cites(answer: &Entity) -> Option<String> {
    if answer.text("refused").is_some() {
        return Some("Refused: it says that there is no answer".to_owned());
    }
    let numbers = cited_numbers(answer);
    let shown: Vec<String> = numbers.iter().map(|number| format!("[{number}]")).collect();
    (!shown.is_empty()).then(|| format!("Cites: {}", shown.join(", ")))
}

fn is_selection(kind: Kind) -> bool {
    matches!(kind, Kind::EdgeSelection | Kind::ChunkSelection)
}

fn selection_json(selection: &Entity) -> Value {
    let edge =
        edge(selection).map(|[s, p, o]| json!({"s": s.to_api(), "p": p.to_api(), "o": o.to_api()}));
    json!({
        "edge": edge,
        "chunk": selection.text("document"),
        "concept": selection.text("concept"),
        "score": selection.text("score").and_then(|score| score.parse::<f64>().ok()),
    })
}

/// The terms of the edge that a selection is about.
pub(super) fn edge(selection: &Entity) -> Option<[&Term; 3]> {
    selection
        .objects("edge")
        .iter()
        .find_map(|term| match term {
            Term::Quoted(edge) => Some([edge.s.as_ref()?, edge.p.as_ref()?, edge.o.as_ref()?]),
            _ => None,
        })
}

fn count(text: String) -> Option<u64> {
    text.parse().ok()
}

fn question_lines(question: &Entity) -> Vec<String> {
    let mut lines = named(question, &[("Question", "query")]);
    lines.extend(question.started().map(|time| format!("Time: {time}")));
    lines
}

fn named(entity: &Entity, fields: &[(&str, &str)]) -> Vec<String> {
    fields
        .iter()
        .filter_map(|(title, name)| Some(format!("{title}: {}", entity.text(name)?)))
        .collect()
}

fn numbered(head: String, items: &[String]) -> Vec<String> {
    let mut lines = vec![head];
    let items = items.iter().enumerate();
    lines.extend(items.map(|(number, item)| format!("  {number}: {item}")));
    lines
}

fn analysis(entity: &Entity) -> Vec<String> {
    let action = entity.text("action").unwrap_or_else(|| "N/A".to_owned());
    let mut lines = vec![format!("  Action: {action}")];
    let Some(arguments) = entity.text("arguments") else {
        return lines;
    };
    match serde_json::from_slice::<Value>(arguments.as_bytes()) {
        Ok(arguments) => {
            let pretty = serde_json::to_string_pretty(&arguments).unwrap_or_default();
            lines.push("  Arguments:".to_owned());
            lines.extend(pretty.lines().map(|line| format!("    {line}")));
        }
        Err(_) => lines.push(format!("  Arguments: {arguments}")),
    }
    lines
}

fn exploration(entity: &Entity) -> Vec<String> {
    match (entity.text("edgeCount"), entity.text("chunkCount")) {
        (Some(count), _) => vec![format!("Retrieved {count} edges from knowledge graph")],
        (None, Some(count)) => vec![format!("Retrieved {count} chunks from document store")],
        (None, None) => vec!["No exploration data found".to_owned()],
    }
}

fn type_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Question => "question",
        Kind::PatternDecision => "pattern-decision",
        Kind::Plan => "plan",
        Kind::Decomposition => "decomposition",
        Kind::Thought => "thought",
        Kind::Analysis => "analysis",
        Kind::Grounding => "grounding",
        Kind::Exploration => "exploration",
        Kind::Focus => "focus",
        Kind::EdgeSelection => "edge-selection",
        Kind::ChunkSelection => "chunk-selection",
        Kind::Observation => "observation",
        Kind::StepResult => "step-result",
        Kind::Finding => "finding",
        Kind::Synthesis => "synthesis",
        Kind::Conclusion => "conclusion",
        Kind::Citation => "citation",
        Kind::Guard => "guard",
        Kind::Compaction => "compaction",
        Kind::Confirmation => "confirmation",
        Kind::Other => "other",
    }
}

#[cfg(test)]
mod tests;
