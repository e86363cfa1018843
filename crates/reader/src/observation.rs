//! Reading what a tool returned: facts, rows or sentences. Drops nothing and adds nothing.

use serde_json::Value;

/// A line of an observation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Line {
    /// `subject | predicate | object`.
    Fact {
        subject: String,
        predicate: String,
        object: String,
    },
    /// Anything else.
    Text(String),
}

/// Ways in which tools say that they have nothing.
const NOTHING: &[&str] = &[
    "error",
    "no ",
    "not found",
    "nothing",
    "none",
    "[]",
    "{}",
    "null",
    "(empty",
    "empty",
    "0 rows",
    "the graph has nothing",
    "the graph says nothing",
];

/// The lines of an observation; none when it says that there is nothing.
pub(super) fn read(observation: &str) -> Vec<Line> {
    let text = observation.trim();
    let lower = text.to_lowercase();
    if text.is_empty()
        || (NOTHING.iter().any(|start| lower.starts_with(start)) && !text.contains(" | "))
    {
        return Vec::new();
    }
    if text.starts_with(['[', '{'])
        && let Ok(value) = serde_json::from_slice::<Value>(text.as_bytes())
    {
        return of_json(&value);
    }
    let mut lines = Vec::new();
    for line in text
        .lines()
        .map(|line| line.trim().trim_start_matches(['-', '*']).trim())
    {
        if line.is_empty() || line.chars().all(|c| "-=|+ ".contains(c)) {
            continue;
        }
        lines.push(fact(line).unwrap_or_else(|| Line::Text(line.to_owned())));
    }
    lines
}

/// The lines of a table of query results: the first names the columns and is left out.
pub(super) fn rows(observation: &str) -> Vec<Line> {
    match observation.trim().split_once('\n') {
        Some((_, rows)) => read(rows),
        None => read(observation),
    }
}

fn fact(line: &str) -> Option<Line> {
    let mut parts = line.splitn(3, " | ").map(|part| part.trim().to_owned());
    let (subject, predicate, object) = (parts.next()?, parts.next()?, parts.next()?);
    // A row of a wider table is no fact.
    (!object.contains(" | ")).then_some(Line::Fact {
        subject,
        predicate,
        object,
    })
}

fn of_json(value: &Value) -> Vec<Line> {
    match value {
        Value::Array(items) => items.iter().flat_map(of_json).collect(),
        Value::Object(map) => {
            let get = |names: [&str; 3]| names.iter().find_map(|name| map.get(*name)).map(plain);
            if let (Some(subject), Some(predicate), Some(object)) = (
                get(["subject", "s", "subj"]),
                get(["predicate", "p", "pred"]),
                get(["object", "o", "obj"]),
            ) {
                return vec![Line::Fact {
                    subject,
                    predicate,
                    object,
                }];
            }
            let row: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{name}: {}", plain(value)))
                .collect();
            vec![Line::Text(row.join(", "))]
        }
        Value::Null => Vec::new(),
        other => vec![Line::Text(plain(other))],
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The part of a term that people read: an IRI without its path, a literal without quotes and tags.
pub(super) fn readable(term: &str) -> &str {
    let term = term.trim();
    let inner = term
        .strip_prefix('<')
        .and_then(|rest| rest.strip_suffix('>'))
        .unwrap_or(term);
    let iri = inner.contains("://") || inner.starts_with("urn:");
    if iri && !inner.contains(' ') {
        let cut = inner.trim_end_matches(['/', '#']);
        let from = cut.rfind(['/', '#', ':']).map_or(0, |at| at + 1);
        return &cut[from..];
    }
    match inner
        .strip_prefix('"')
        .and_then(|rest| rest.rsplit_once('"'))
    {
        Some((text, _)) => text,
        None => inner,
    }
}

/// Takes `[n] text` apart.
pub(super) fn numbered(line: &str) -> Option<(usize, &str)> {
    let (number, text) = line.strip_prefix('[')?.split_once("] ")?;
    Some((number.parse().ok()?, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_rows_and_nothing() {
        let lines = read("Old Bridge | built | 1429\n- Old Bridge | crosses | Arno");
        assert_eq!(lines.len(), 2);
        assert!(matches!(&lines[1], Line::Fact { object, .. } if object == "Arno"));
        assert!(read("Error: tool failed").is_empty());
        assert!(read("No facts about that.").is_empty());
        assert!(read("[]").is_empty());
        assert_eq!(read(r#"[{"count": 3}]"#), [Line::Text("count: 3".into())]);
        assert_eq!(read("a | b | c | d"), [Line::Text("a | b | c | d".into())]);
    }

    #[test]
    fn terms_are_made_readable() {
        assert_eq!(readable("<http://e.x/v#builtIn>"), "builtIn");
        assert_eq!(readable("urn:x:old-bridge"), "old-bridge");
        assert_eq!(readable("\"1429\"^^<xsd:gYear>"), "1429");
        assert_eq!(readable("plain text"), "plain text");
    }
}
