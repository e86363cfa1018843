//! Runs the model's own query.

use tg_schemas::Error;

use super::sparql::{Results, run, show};
use super::tool_call::{Arguments, Call, Output, text};

/// Rows or triples returned.
const ROWS: usize = 100;

pub(super) async fn call(call: &Call<'_>, arguments: &Arguments) -> Result<Output, Error> {
    let results = run(call, text(arguments, "query").to_owned(), ROWS).await?;
    Ok(render(&results).into())
}

fn render(results: &Results) -> String {
    let mut lines: Vec<String> = match results.kind.as_str() {
        "ask" => return if results.yes { "yes" } else { "no" }.to_owned(),
        "construct" | "describe" => results
            .triples
            .iter()
            .map(|t| {
                [&t.s, &t.p, &t.o]
                    .map(|part| show(part.as_ref(), None))
                    .join(" | ")
            })
            .collect(),
        _ => results
            .rows
            .iter()
            .map(|row| {
                let values: Vec<_> = row.iter().map(|value| show(value.as_ref(), None)).collect();
                values.join(" | ")
            })
            .collect(),
    };
    if lines.is_empty() {
        return "No results.".to_owned();
    }
    if lines.len() >= ROWS {
        lines.push(format!("(the first {ROWS}; there may be more)"));
    }
    if !results.variables.is_empty() {
        lines.insert(0, results.variables.join(" | "));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use tg_schemas::Term;

    use super::*;

    #[test]
    fn results_read_as_lines() {
        let select = Results {
            kind: "select".into(),
            variables: vec!["a".into(), "b".into()],
            rows: vec![
                vec![Some(Term::iri("urn:x")), None],
                vec![None, Some(Term::literal("y"))],
            ],
            ..Results::default()
        };
        assert_eq!(render(&select), "a | b\nurn:x | \n | y");
        let none = Results {
            kind: "select".into(),
            variables: vec!["a".into()],
            ..Results::default()
        };
        assert_eq!(render(&none), "No results.");
        let ask = Results {
            kind: "ask".into(),
            yes: true,
            ..Results::default()
        };
        assert_eq!(render(&ask), "yes");
    }
}
