//! Rows, table choice and queries over tables, as far as words lead: for the prompts about structured data.

use serde_json::{Map, Value, json};

use super::extract::{definitions, lines, statements};
use super::question::Question;
use super::{definition, words};

/// A field of a table in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) needed: bool,
    pub(super) key: bool,
    pub(super) choices: Vec<String>,
    about: Vec<String>,
}

/// A table in a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Table {
    pub(super) name: String,
    about: Vec<String>,
    pub(super) fields: Vec<Field>,
}

/// Reads `name (kind, marks): description`.
pub(super) fn field(line: &str) -> Option<Field> {
    let (name, rest) = line.split_once(" (")?;
    let (inside, about) = match rest.split_once("): ") {
        Some((inside, about)) => (inside, about),
        None => (rest.strip_suffix(')')?, ""),
    };
    let (marks, choices) = inside.split_once("one of: ").unwrap_or((inside, ""));
    let kind = marks.split(',').next().unwrap_or_default().trim();
    let choices = choices.split(", ").filter(|choice| !choice.is_empty());
    Some(Field {
        name: name.trim().to_owned(),
        kind: kind.to_owned(),
        needed: marks.contains("always needed"),
        key: marks.contains("identifies the row") || marks.contains(", key"),
        choices: choices.map(str::to_owned).collect(),
        about: words::content(about),
    })
}

/// Reads tables: a line with an asterisk each, their fields indented below.
pub(super) fn tables(lines: &[&str]) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for line in lines {
        if let Some(rest) = line.strip_prefix("* ") {
            let (name, about) = rest.split_once(": ").unwrap_or((rest, ""));
            tables.push(Table {
                name: name.trim().to_owned(),
                about: words::content(about),
                fields: Vec::new(),
            });
        } else if let (Some(rest), Some(table)) = (line.strip_prefix("  - "), tables.last_mut()) {
            table.fields.extend(field(rest));
        }
    }
    tables
}

/// Rows of a table that a text describes in plain sentences: things that it says are such, with what it says
/// of them.
pub(super) fn rows(table: &str, fields: &[Field], text: &str) -> String {
    let class = words::content(table);
    let (defined, said) = (definitions(text), statements(text));
    let key = fields.iter().find(|field| field.key).or(fields.first());
    let Some(key) = key.filter(|key| key.kind == "string") else {
        return lines(&[]);
    };
    let mut rows: Vec<Value> = Vec::new();
    for (name, what) in &defined {
        let kind = definition::kind(what);
        let what = words::content(what);
        let is_one = class
            .iter()
            .all(|word| kind.iter().any(|other| words::same(other, word)));
        if !is_one || rows.iter().any(|row| row[&key.name] == *name) {
            continue;
        }
        let mut row = Map::from_iter([(key.name.clone(), json!(name))]);
        for field in fields.iter().filter(|field| field.name != key.name) {
            let of = said.iter().filter(|statement| statement.subject == *name);
            let value = if field.choices.is_empty() {
                of.filter(|statement| meant(field, &statement.predicate))
                    .find_map(|statement| value(field, &statement.object))
            } else {
                field
                    .choices
                    .iter()
                    .find(|choice| {
                        let choice = words::content(choice);
                        !choice.is_empty() && choice.iter().all(|word| what.contains(word))
                    })
                    .map(|choice| json!(choice))
            };
            if let Some(value) = value {
                row.insert(field.name.clone(), value);
            }
        }
        if fields
            .iter()
            .all(|field| !field.needed || row.contains_key(&field.name))
        {
            rows.push(Value::Object(row));
        }
    }
    lines(&rows)
}

fn meant(field: &Field, predicate: &str) -> bool {
    let own = words::content(&field.name);
    words::split(predicate)
        .iter()
        .any(|word| own.iter().any(|other| words::alike(other, word)))
}

fn value(field: &Field, object: &str) -> Option<Value> {
    match field.kind.as_str() {
        "integer" | "float" => {
            let number = object
                .split_whitespace()
                .find_map(|word| word.parse::<f64>().ok())?;
            Some(if field.kind == "integer" && number.fract() == 0.0 {
                json!(number as i64)
            } else {
                json!(number)
            })
        }
        "string" => Some(json!(object)),
        _ => None,
    }
}

/// How much a question speaks of a table.
fn score(table: &Table, asked: &[String]) -> usize {
    let share = |own: &[String]| {
        asked
            .iter()
            .filter(|word| own.iter().any(|other| words::alike(other, word)))
            .count()
    };
    let fields: usize = table
        .fields
        .iter()
        .map(|field| share(&words::split(&field.name)).min(1) + share(&field.about).min(1))
        .sum();
    3 * share(&words::split(&table.name)) + share(&table.about) + fields
}

/// Names of the tables that a question speaks of, the most fitting first.
pub(super) fn choose(tables: &[Table], question: &str) -> String {
    let asked = words::content(question);
    let mut scored: Vec<(usize, &Table)> = tables
        .iter()
        .map(|table| (score(table, &asked), table))
        .filter(|(score, _)| *score > 0)
        .collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let most = scored.first().map_or(0, |(score, _)| *score);
    let names: Vec<&str> = scored
        .iter()
        .filter(|(score, _)| *score * 2 >= most)
        .map(|(_, table)| table.name.as_str())
        .collect();
    json!(names).to_string()
}

/// A query for the table that a question speaks of, filtered by what of the question can be a value.
pub(super) fn query(tables: &[Table], question: &str) -> String {
    let asked = words::content(question);
    let best = tables.iter().max_by_key(|table| score(table, &asked));
    let Some(table) = best.filter(|table| !table.fields.is_empty()) else {
        return json!({"query": "", "variables": {}, "confidence": 0}).to_string();
    };
    let conditions = conditions(table, question);
    let arguments = match conditions.is_empty() {
        true => String::new(),
        false => format!("(where: {{{}}})", conditions.join(", ")),
    };
    let fields: Vec<&str> = table
        .fields
        .iter()
        .map(|field| field.name.as_str())
        .collect();
    let query = format!(
        "query {{ {}{arguments} {{ {} }} }}",
        table.name,
        fields.join(" ")
    );
    json!({"query": query, "variables": {}, "confidence": 0.3}).to_string()
}

fn conditions(table: &Table, question: &str) -> Vec<String> {
    let read = Question::read(question);
    let asked = words::split(question);
    let mut conditions = Vec::new();
    for field in &table.fields {
        if let Some(choice) = field.choices.iter().find(|choice| {
            let choice = words::split(choice);
            choice
                .iter()
                .all(|word| asked.iter().any(|other| words::same(other, word)))
        }) {
            conditions.push(format!("{}: {{eq: {}}}", field.name, json!(choice)));
        } else if matches!(field.kind.as_str(), "integer" | "float")
            && let Some((operator, number)) = comparison(field, &asked)
        {
            conditions.push(format!("{}: {{{operator}: {number}}}", field.name));
        }
    }
    let key = table
        .fields
        .iter()
        .find(|field| field.key && field.kind == "string");
    let quoted = read
        .names
        .iter()
        .find(|name| name.contains(' ') || question.contains(&format!("\"{name}\"")));
    if let (Some(key), Some(name), true) = (key, quoted, conditions.is_empty()) {
        conditions.push(format!("{}: {{contains: {}}}", key.name, json!(name)));
    }
    conditions
}

/// "more than 30", "before 1900", next to a word of the field.
fn comparison(field: &Field, asked: &[String]) -> Option<(&'static str, String)> {
    let own = words::split(&field.name);
    let near = asked
        .iter()
        .any(|word| own.iter().any(|other| words::alike(other, word)));
    let at = asked.iter().position(|word| word.parse::<f64>().is_ok())?;
    let before = asked[..at].iter().rev().take(2);
    let operator = before.into_iter().find_map(|word| match word.as_str() {
        "over" | "above" | "after" | "more" | "exceeding" | "older" | "longer" | "higher" => {
            Some("gt")
        }
        "under" | "below" | "before" | "less" | "fewer" | "than" => Some(match word.as_str() {
            "than" => {
                return asked
                    .get(at.checked_sub(2)?)
                    .map(|word| match word.as_str() {
                        "less" | "fewer" | "smaller" | "shorter" | "younger" | "lower" => "lt",
                        _ => "gt",
                    });
            }
            _ => "lt",
        }),
        "least" => Some("gte"),
        "most" => Some("lte"),
        "in" | "is" | "exactly" => Some("eq"),
        _ => None,
    });
    (near).then_some((operator?, asked[at].clone()))
}

/// How records with these names of fields are read into a table, from a file that is written so.
pub(super) fn mapping(format: &str, options: &Value, table: &Table, sources: &[String]) -> String {
    let mut mappings = Vec::new();
    for field in &table.fields {
        let own = words::split(&field.name);
        let fits = |source: &&String| {
            let words = words::split(source);
            let common = |a: &[String], b: &[String]| {
                a.iter()
                    .all(|word| b.iter().any(|other| words::same(other, word)))
            };
            !words.is_empty() && (common(&own, &words) || common(&words, &own))
        };
        if let Some(source) = sources.iter().find(fits) {
            let number = match field.kind.as_str() {
                "integer" => Some(json!({"type": "to_int"})),
                "float" => Some(json!({"type": "to_float"})),
                _ => None,
            };
            let transforms: Vec<Value> = [json!({"type": "trim"})]
                .into_iter()
                .chain(number)
                .collect();
            mappings.push(json!({
                "source_field": source, "target_field": field.name, "transforms": transforms,
            }));
        }
    }
    let confidence = mappings.len() as f64 / table.fields.len().max(1) as f64;
    json!({
        "format": {"type": format, "encoding": "utf-8", "options": options},
        "mappings": mappings,
        "output": {"schema_name": table.name, "options": {"confidence": (confidence * 100.0).round() / 100.0}},
    })
    .to_string()
}
