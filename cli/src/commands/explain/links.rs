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

    /// For people.
    pub(super) fn text(&self) -> String {
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
        self.all.iter().map(line).collect::<Vec<_>>().join("\n")
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
            links.note("step -> step before", &entity.iri, &above, fault);
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

/// The answers that cite something.
pub(super) fn citing(trace: &Trace) -> Vec<&Entity> {
    let mut answers = answers(trace);
    answers.retain(|answer| !answer.objects("cites").is_empty());
    answers
}

/// Whether an answer cites something by this number.
pub(super) fn cites(answer: &Entity, number: usize) -> bool {
    let cited = answer.texts("cites");
    cited.iter().any(|iri| number_of(iri) == Some(number))
}

/// Numbers in brackets in an answer's text.
pub(super) fn numbers(text: &str) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for part in text.split('[').skip(1) {
        let Some((inside, _)) = part.split_once(']') else {
            continue;
        };
        let numbers: Option<Vec<usize>> = inside
            .split([',', ';'])
            .map(|number| number.trim().parse().ok())
            .collect();
        found.extend(numbers.unwrap_or_default());
    }
    found
}

/// The number that an answer cites a selection by: selections are counted from 0, citations from 1.
pub(super) fn number_of(selection: &str) -> Option<usize> {
    let index: usize = selection.rsplit(':').next()?.parse().ok()?;
    index.checked_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_citations_are_found() {
        let text = "One [1]. Two [2, 3] and [x] or [4;5] but not 6 [";
        assert_eq!(numbers(text), BTreeSet::from([1, 2, 3, 4, 5]));
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
            links.text(),
            "✓ chunk -> page: urn:c -> urn:p\n✗ page -> document: urn:p -> nothing\n    no document is named"
        );
        assert_eq!(links.json()[1]["ok"], json!(false));
    }
}
