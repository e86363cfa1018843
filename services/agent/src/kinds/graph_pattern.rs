//! Matches a triple pattern whose parts are IRIs, names or texts.

use tg_schemas::Error;

use super::sparql::{
    as_iri, iri, literal, naming, no_traces, run, show, show_predicate, with_name,
};
use super::tool_call::{Arguments, Call, Output, limit, text};
use crate::error::AgentError;

/// Triples returned unless asked otherwise.
const TRIPLES: usize = 50;
const MOST_TRIPLES: usize = 500;

pub(super) async fn call(call: &Call<'_>, arguments: &Arguments) -> Result<Output, Error> {
    let limit = limit(arguments, TRIPLES, MOST_TRIPLES);
    let query = query(
        text(arguments, "subject"),
        text(arguments, "predicate"),
        text(arguments, "object"),
        limit,
    )?;
    let results = run(call, query, limit).await?;
    let mut lines = Vec::new();
    for row in &results.rows {
        let [s, p, o, s_name, p_name, o_name] = row.as_slice() else {
            continue;
        };
        let line = format!(
            "{} | {} | {}",
            show(s.as_ref(), s_name.as_ref()),
            show_predicate(p.as_ref(), p_name.as_ref()),
            show(o.as_ref(), o_name.as_ref())
        );
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.is_empty() {
        return Ok("No triples match.".to_owned().into());
    }
    if results.rows.len() >= limit {
        lines.push(format!("(the first {limit}; there may be more)"));
    }
    Ok(lines.join("\n").into())
}

fn query(subject: &str, predicate: &str, object: &str, limit: usize) -> Result<String, Error> {
    if subject.is_empty() && predicate.is_empty() && object.is_empty() {
        return Err(AgentError::EmptyPattern.into());
    }
    let mut conditions = Vec::new();
    for (variable, given) in [("s", subject), ("p", predicate), ("o", object)] {
        if let Some(known) = as_iri(given) {
            conditions.push(format!("VALUES ?{variable} {{ {} }}", iri(&known)?));
        }
    }
    conditions.push("?s ?p ?o .".to_owned());
    if !subject.is_empty() && as_iri(subject).is_none() {
        conditions.push(format!("FILTER({})", named("s", subject)));
    }
    if !predicate.is_empty() && as_iri(predicate).is_none() {
        let plain: String = predicate.chars().filter(|c| c.is_alphanumeric()).collect();
        conditions.push(format!(
            "FILTER(LCASE(REPLACE(REPLACE(STR(?p), \"^.*[/#:]\", \"\"), \"[^\\\\p{{L}}\\\\p{{N}}]\", \"\")) = {} \
             || {})",
            literal(&plain.to_lowercase()),
            named("p", predicate)
        ));
    }
    if !object.is_empty() && as_iri(object).is_none() {
        conditions.push(format!(
            "FILTER((isLiteral(?o) && LCASE(STR(?o)) = {}) || {})",
            literal(&object.to_lowercase()),
            named("o", object)
        ));
    }
    Ok(format!(
        "SELECT ?s ?p ?o ?s_name ?p_name ?o_name WHERE {{ {} {} {} {} {} }} LIMIT {limit}",
        conditions.join(" "),
        no_traces("s"),
        with_name("s"),
        with_name("p"),
        with_name("o"),
    ))
}

/// The variable has this name, in whatever case.
fn named(variable: &str, name: &str) -> String {
    format!(
        "EXISTS {{ VALUES ?{variable}_naming {{ {} }} ?{variable} ?{variable}_naming ?{variable}_text . \
         FILTER(LCASE(STR(?{variable}_text)) = {}) }}",
        naming(),
        literal(&name.to_lowercase())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_needs_a_part_and_cannot_be_broken_out_of() {
        assert!(query("", "", "", 5).is_err());
        assert!(
            query("<urn:a> } DROP", "", "", 5)
                .unwrap()
                .contains("\"<urn:a> } drop\"")
        );
        assert!(query("urn:a> ?x", "", "", 5).is_err());
        let text = query("urn:a", "built in", "14\"29", 5).unwrap();
        assert!(text.contains("VALUES ?s { <urn:a> }"));
        assert!(text.contains("= \"builtin\""));
        assert!(text.contains("= \"14\\\"29\""));
        assert!(text.ends_with("LIMIT 5"));
    }
}
