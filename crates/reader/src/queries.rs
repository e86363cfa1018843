//! Queries for questions: found in the question, or made for a kind of things or for words. What goes
//! into a query from a question is always text inside quotes or letters and digits.

use super::question::Question;
use super::react::Step;
use super::tools::SPARQL;
use super::words;
use tg_schemas::vocabulary::{foaf, known_things, rdfs, schema, schema_http, skos};

/// Most words of a question that a search looks for.
const SEARCHED: usize = 4;

/// Predicates that name things, as a path of alternatives.
fn naming() -> String {
    let names = [
        rdfs::LABEL,
        skos::PREF_LABEL,
        foaf::NAME,
        schema::NAME,
        schema_http::NAME,
    ];
    names.map(|name| format!("<{name}>")).join("|")
}

/// Lists or counts the things of a kind, by the kind's label or the end of its IRI; only those directly
/// linked with a named thing, if there is one.
pub(super) fn by_class(class: &str, near: Option<&str>, count: bool) -> Step {
    let naming = naming();
    let name = literal(class);
    let local: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    let (head, tail) = if count {
        ("(COUNT(DISTINCT ?item) AS ?count)", "")
    } else {
        ("DISTINCT ?item ?label", " LIMIT 100")
    };
    let linked = near.map_or(String::new(), |near| {
        let near = literal(&near.to_lowercase());
        format!(
            "{{ ?item ?link ?near }} UNION {{ ?near ?link ?item }} ?near {naming} ?nearName \
             FILTER (LCASE(STR(?nearName)) = \"{near}\") "
        )
    });
    let query = format!(
        "SELECT {head} WHERE {{ {linked}?item a ?class . OPTIONAL {{ ?class {naming} ?name }} \
         OPTIONAL {{ ?item {naming} ?label }} FILTER (LCASE(STR(?name)) = \"{name}\" || \
         REGEX(REPLACE(STR(?class), \"[-_]\", \"\"), \"[/#:]{local}$\", \"i\")) }}{tail}"
    );
    let thought = format!("This is about things of the kind {class}; I query for them.");
    Step::call(thought, SPARQL, Some(("query", &query)))
}

/// Searches all texts for the words of the question that say most.
pub(super) fn by_words(question: &Question<'_>) -> Step {
    let mut wanted: Vec<&String> = question.words.iter().collect();
    // Numbers and long words say more.
    wanted.sort_by_key(|word| {
        let number = word.chars().all(char::is_numeric);
        std::cmp::Reverse((number, word.chars().count()))
    });
    let filters: Vec<String> = wanted
        .iter()
        .take(SEARCHED)
        .map(|word| {
            let stem = literal(words::stem(word));
            format!("CONTAINS(LCASE(STR(?object)), \"{stem}\")")
        })
        .collect();
    let naming = naming();
    let query = format!(
        "SELECT (COALESCE(?name, ?thing) AS ?subject) ?predicate ?object WHERE {{ \
         ?thing ?predicate ?object . FILTER (isLiteral(?object) && ({})) {} \
         OPTIONAL {{ ?thing {naming} ?name }} }} LIMIT 60",
        filters.join(" || "),
        known_things("thing"),
    );
    let thought = "I search the texts of the graph for the words of the question.".to_owned();
    Step::call(thought, SPARQL, Some(("query", &query)))
}

/// A query that stands in the question.
pub(super) fn sparql_in(question: &str) -> Option<&str> {
    let at = ["PREFIX ", "SELECT ", "ASK ", "CONSTRUCT ", "DESCRIBE "]
        .iter()
        .filter_map(|word| question.find(word))
        .min()?;
    let query = question[at..].trim().trim_end_matches(['?', '`']).trim();
    query.contains('{').then_some(query)
}

/// An IRI that stands in the question.
pub(super) fn iri_in(question: &str) -> Option<&str> {
    question
        .split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '(' | ')'))
        .map(|word| word.trim_end_matches(['?', '.', ',', '!', ';']))
        .find(|word| {
            ["http://", "https://", "urn:"]
                .iter()
                .any(|start| word.strip_prefix(start).is_some_and(|rest| rest.len() > 2))
        })
}

/// Text inside a SPARQL string.
fn literal(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() && !matches!(c, '"' | '\\'))
        .collect()
}
