//! The links of a trace: which were looked at, which hold. Pure.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::entity::{Entity, Kind};
use super::trace::Trace;

/// One link between two things.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    /// What kind of link, e.g. `chunk -> page`.
    pub(super) what: String,
    /// Where it begins.
    pub(super) from: String,
    /// Where it leads; empty if nowhere.
    pub(super) to: String,
    /// What is wrong with it.
    pub(super) fault: Option<String>,
}

/// Links in the order they were looked at, each once.
#[derive(Debug, Default)]
pub(super) struct Links {
    all: Vec<Link>,
}

impl Links {
    /// Notes a link that holds.
    pub(super) fn holds(&mut self, what: &str, from: &str, to: &str) {
        self.note(what, from, to, None);
    }

    /// Notes a link that does not.
    pub(super) fn broken(&mut self, what: &str, from: &str, to: &str, fault: impl Into<String>) {
        self.note(what, from, to, Some(fault.into()));
    }

    /// Notes a link with what was found out.
    pub(super) fn note(&mut self, what: &str, from: &str, to: &str, fault: Option<String>) {
        let link = Link {
            what: what.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            fault,
        };
        if !self.all.contains(&link) {
            self.all.push(link);
        }
    }

    /// How many do not hold.
    pub(super) fn faults(&self) -> usize {
        self.all.iter().filter(|link| link.fault.is_some()).count()
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// For `--json`.
    pub(super) fn json(&self) -> Vec<Value> {
        let link = |link: &Link| {
            json!({
                "link": link.what, "from": link.from, "to": link.to,
                "ok": link.fault.is_none(), "fault": link.fault,
            })
        };
        self.all.iter().map(link).collect()
    }

    /// For people: the broken ones, or all.
    pub(super) fn text(&self, all: bool) -> String {
        let line = |link: &Link| {
            let icon = if link.fault.is_none() { "✓" } else { "✗" };
            let to = match link.to.as_str() {
                "" => "nothing",
                to => to,
            };
            let fault = link.fault.as_ref();
            let fault = fault.map_or(String::new(), |fault| format!("\n    {fault}"));
            format!("{icon} {}: {} -> {to}{fault}", link.what, link.from)
        };
        let shown = self.all.iter().filter(|link| all || link.fault.is_some());
        shown.map(line).collect::<Vec<_>>().join("\n")
    }
}

/// The links within the trace: every entity follows from one that is there, a question leads to an answer,
/// and an answer cites what was chosen.
pub(super) fn within(trace: &Trace, root: &str, links: &mut Links) {
    for step in trace.steps() {
        let entity = step.entity;
        for above in entity.derived_from() {
            let known = trace.entity(&above).is_some();
            let fault = (!known).then(|| "is not in the trace".to_owned());
            links.note("step → previous step", &entity.iri, &above, fault);
        }
        if entity.kind == Kind::Focus {
            chosen_of(trace, entity, links);
        }
    }
    if answers(trace).is_empty() {
        links.broken("question -> answer", root, "", "the trace holds no answer");
    }
    for answer in answers(trace) {
        let chosen = chosen(trace);
        for cited in answer.texts("cites") {
            let known = chosen.contains(&cited);
            let fault = (!known).then(|| "is cited but was not chosen".to_owned());
            links.note("answer -> what it cites", &answer.iri, &cited, fault);
        }
    }
}

fn chosen_of(trace: &Trace, focus: &Entity, links: &mut Links) {
    let kinds = [
        ("selectedEdge", "edge", "choice -> fact"),
        ("selectedChunk", "document", "choice -> chunk"),
    ];
    for (of, what, name) in kinds {
        for selection in focus.texts(of) {
            let there = trace.entity(&selection);
            let whole = there.is_some_and(|selection| {
                is_selection(selection) && !selection.objects(what).is_empty()
            });
            let fault = (!whole).then(|| format!("the selection names no {what}"));
            links.note(name, &focus.iri, &selection, fault);
        }
    }
}

fn is_selection(entity: &Entity) -> bool {
    matches!(entity.kind, Kind::EdgeSelection | Kind::ChunkSelection)
}

/// Everything that was chosen anywhere in the trace.
pub(super) fn chosen(trace: &Trace) -> BTreeSet<String> {
    let focuses = trace.entities().filter(|entity| entity.kind == Kind::Focus);
    let of = |focus: &Entity| [focus.texts("selectedEdge"), focus.texts("selectedChunk")].concat();
    focuses.flat_map(of).collect()
}

/// The answers of a trace: of the question itself and of those below it.
pub(super) fn answers(trace: &Trace) -> Vec<&Entity> {
    let ends = |entity: &&Entity| matches!(entity.kind, Kind::Synthesis | Kind::Conclusion);
    trace.entities().filter(ends).collect()
}

/// The selections that are followed to their documents: the cited ones, or all where none is cited.
pub(super) fn followed(trace: &Trace, all: bool) -> Vec<&Entity> {
    let cited: BTreeSet<String> = answers(trace)
        .iter()
        .flat_map(|answer| answer.texts("cites"))
        .collect();
    let wanted = |entity: &&Entity| all || cited.is_empty() || cited.contains(&entity.iri);
    trace
        .entities()
        .filter(|entity| is_selection(entity))
        .filter(wanted)
        .collect()
}

/// The answer that a trace leads to: of the run, or of the question itself.
pub(super) fn last_answer(trace: &Trace) -> Option<&Entity> {
    let steps = trace.steps();
    let of = |kind| {
        steps
            .iter()
            .rev()
            .find(|step| step.entity.kind == kind && step.depth == 0)
    };
    let found = of(Kind::Conclusion).or_else(|| of(Kind::Synthesis));
    found.map(|step| step.entity)
}

/// What an answer's number names in the trace: its selection, or the chunk where nothing was selected.
pub(super) fn named_by(trace: &Trace, answer: &Entity, number: usize) -> Option<String> {
    let citations = answer.texts("citation");
    let is_it = |entity: &&Entity| {
        entity
            .text("citationNumber")
            .and_then(|text| text.parse().ok())
            == Some(number)
    };
    let known = citations.iter().filter_map(|iri| trace.entity(iri));
    if let Some(citation) = known.into_iter().find(is_it) {
        return citation.text("cites").or_else(|| citation.text("document"));
    }
    if !citations.is_empty() {
        return None;
    }
    // In traces of earlier releases the number is the place of the selection, and an agent's answer repeats the
    // numbers of the answers that its tools gave.
    let answers = match answer.kind {
        Kind::Synthesis => vec![answer],
        _ => answers(trace),
    };
    let cited = answers.iter().flat_map(|answer| answer.texts("cites"));
    cited.into_iter().find(|iri| number_of(iri) == Some(number))
}

/// The chunk that a number names, if the trace says it.
pub(super) fn chunk_of(trace: &Trace, answer: &Entity, number: usize) -> Option<String> {
    let citations = answer.texts("citation");
    let known = citations.iter().filter_map(|iri| trace.entity(iri));
    let mut of_number = known.filter(|entity| {
        entity
            .text("citationNumber")
            .and_then(|text| text.parse().ok())
            == Some(number)
    });
    of_number
        .next()
        .and_then(|citation| citation.text("document"))
}

/// Chunks that are cited without having been selected.
pub(super) fn chunks_alone(trace: &Trace) -> Vec<String> {
    let alone =
        |entity: &&Entity| entity.kind == Kind::Citation && entity.objects("cites").is_empty();
    let alone = trace.entities().filter(alone);
    alone.filter_map(|entity| entity.text("document")).collect()
}

/// The numbers by which an answer cites.
pub(super) fn cited_numbers(answer: &Entity) -> BTreeSet<usize> {
    let citations = answer.texts("citation");
    if citations.is_empty() {
        let cited = answer.texts("cites");
        return cited.iter().filter_map(|iri| number_of(iri)).collect();
    }
    let tail = |iri: &String| iri.rsplit(['/', ':']).next()?.parse().ok();
    citations.iter().filter_map(tail).collect()
}

/// The number by which an answer of an earlier release cites a selection: selections are counted from 0, citations from 1.
pub(super) fn number_of(selection: &str) -> Option<usize> {
    let index: usize = selection.rsplit(':').next()?.parse().ok()?;
    index.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_citations_are_found() {
        assert_eq!(number_of("urn:trustgraph:prov:edge:abc:0"), Some(1));
        assert_eq!(number_of("urn:x"), None);
    }

    #[test]
    fn a_link_is_told_once_with_its_fault() {
        let mut links = Links::default();
        links.holds("chunk -> page", "urn:c", "urn:p");
        links.holds("chunk -> page", "urn:c", "urn:p");
        links.broken("page -> document", "urn:p", "", "no document is named");
        assert_eq!((links.count(), links.faults()), (2, 1));
        assert_eq!(
            links.text(false),
            "✗ page -> document: urn:p -> nothing\n    no document is named"
        );
        assert_eq!(
            links.text(true),
            "✓ chunk -> page: urn:c -> urn:p\n✗ page -> document: urn:p -> nothing\n    no document is named"
        );
        assert_eq!(links.json()[1]["ok"], json!(false));
    }
}
