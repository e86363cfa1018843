//! What a rule made: whether something is hidden.

use std::collections::HashSet;

use oxigraph::model::vocab::rdf;
use oxigraph::model::{NamedOrBlankNode, Term, Triple};
use tg_schemas::vocabulary::{policy, sh};

/// What a policy says of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: the next one is asked.
    Silent,
    /// It may be seen, whatever further policies would say.
    Shown,
    /// It is hidden.
    Hidden,
}

/// Reads what a rule made. A result blocks unless it says that it does not; of several, one that blocks counts.
pub(crate) fn read(made: &[Triple]) -> Verdict {
    let results: HashSet<&NamedOrBlankNode> = made
        .iter()
        .filter(|triple| {
            triple.predicate == rdf::TYPE
                && matches!(&triple.object, Term::NamedNode(class) if class.as_str() == sh::VALIDATION_RESULT)
        })
        .map(|triple| &triple.subject)
        .collect();
    if results.is_empty() {
        return Verdict::Silent;
    }
    let lets_pass = |result: &NamedOrBlankNode| {
        let mut says = made
            .iter()
            .filter(|one| one.subject == *result && one.predicate.as_str() == policy::BLOCKS)
            .peekable();
        let said = says.peek().is_some();
        said && says.all(|one| match &one.object {
            Term::Literal(value) => matches!(value.value(), "false" | "0"),
            _ => false,
        })
    };
    match results.into_iter().all(lets_pass) {
        true => Verdict::Shown,
        false => Verdict::Hidden,
    }
}
