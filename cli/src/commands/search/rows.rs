//! Rows: `tg invoke-rows-query` (GraphQL), `tg invoke-nlp-query` (a question becomes GraphQL),
//! `tg invoke-structured-query` (a question becomes an answer).

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use crate::args::{Asked, InCollection, InFlow, Options, subject};
use crate::client::{Error, Result};
use crate::fields::{embedded, list, text, texts};
use crate::layout::{Width, fitted, padded, record};
use crate::registry::Command;
use crate::session::Session;

/// Tables named in an error.
const TABLES: usize = 10;

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
    Csv,
}

subject!(
    /// A query of rows.
    GraphQl,
    "GraphQL, e.g. '{ cities(limit: 5) { name } }'" as "QUERY",
    short = 'q',
    long = "query"
);

/// Arguments of `tg invoke-rows-query`.
#[derive(Debug, Args)]
pub struct InvokeRowsQuery {
    #[command(flatten)]
    place: InCollection,
    #[command(flatten)]
    query: GraphQl,
    /// Variables as a JSON object
    #[arg(short = 'v', long, value_name = "JSON")]
    variables: Option<String>,
    /// Which operation of the query
    #[arg(short = 'o', long, value_name = "NAME")]
    operation_name: Option<String>,
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

impl Command for InvokeRowsQuery {
    const NAME: &'static str = "invoke-rows-query";
    const ABOUT: &'static str = "Query rows with GraphQL";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut request = json!({"query": self.query.id(), "collection": self.place.collection});
        if let Some(variables) = &self.variables {
            let read = serde_json::from_slice::<Map<String, Value>>(variables.as_bytes());
            let read = read.map_err(|error| Error::Usage(format!("--variables: {error}")))?;
            request["variables"] = Value::Object(read);
        }
        if let Some(name) = &self.operation_name {
            request["operation_name"] = json!(name);
        }
        let http = session.http()?;
        let reply = http
            .flow_service(&self.place.flow.flow_id, "rows", request)
            .await?;
        answer(session, &reply, self.format).await
    }
}

/// Arguments of `tg invoke-structured-query`.
#[derive(Debug, Args)]
pub struct InvokeStructuredQuery {
    #[command(flatten)]
    place: InCollection,
    #[command(flatten)]
    question: Asked,
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

impl Command for InvokeStructuredQuery {
    const NAME: &'static str = "invoke-structured-query";
    const ABOUT: &'static str = "Ask a question over rows";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"question": self.question.id(), "collection": self.place.collection});
        let http = session.http()?;
        let reply = http
            .flow_service(&self.place.flow.flow_id, "structured-query", request)
            .await?;
        answer(session, &reply, self.format).await
    }
}

/// Arguments of `tg invoke-nlp-query`.
#[derive(Debug, Args)]
pub struct InvokeNlpQuery {
    #[command(flatten)]
    flow: InFlow,
    #[command(flatten)]
    question: Asked,
    /// Most rows the query should ask for
    #[arg(short = 'm', long, default_value_t = 100, value_name = "COUNT")]
    max_results: u64,
    /// What to print
    #[arg(long, value_enum, default_value_t = Shown::Summary)]
    format: Shown,
}

/// What is printed of a generated query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shown {
    Json,
    Graphql,
    Summary,
}

impl Command for InvokeNlpQuery {
    const NAME: &'static str = "invoke-nlp-query";
    const ABOUT: &'static str = "Turn a question into a GraphQL query";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({"question": self.question.id(), "max_results": self.max_results});
        let http = session.http()?;
        let reply = http
            .flow_service(&self.flow.flow_id, "nlp-query", request)
            .await?;
        match self.format {
            Shown::Json => return session.out.json(&reply),
            Shown::Graphql if !session.out.is_json() => {
                return session.out.line(text(&reply, "graphql_query"));
            }
            _ => {}
        }
        session.out.lay(&reply, |width| {
            let rows = [
                ("query", text(&reply, "graphql_query")),
                ("variables", text(&reply, "variables")),
                ("schemas", texts(&reply, "detected_schemas").join(", ")),
                ("confidence", text(&reply, "confidence")),
            ];
            record(&rows, width)
        })
    }
}

/// Prints data; errors go to stderr, and fail the command when there is no data at all.
async fn answer(session: &mut Session, reply: &Value, format: Format) -> Result<()> {
    let data = embedded(reply, "data");
    let faults: Vec<String> = list(reply, "errors").iter().map(fault).collect();
    if session.out.is_json() || format == Format::Json {
        session.out.json(reply)?;
    } else if !data.is_null() {
        let width = session.out.width();
        session.out.line(match format {
            Format::Csv => csv(&data),
            _ => tables(&data, width),
        })?;
    }
    // Without data the faults are the error, which is told once, with what could have been asked for.
    if data.is_null() && !faults.is_empty() {
        let known = known(session).await;
        return Err(Error::Check(format!("{}{known}", faults.join("; "))));
    }
    for fault in &faults {
        session.out.talk(fault);
    }
    Ok(())
}

/// The tables that there are, with their columns; nothing where that cannot be known.
async fn known(session: &Session) -> String {
    let tables = async {
        let http = session.http()?;
        let request = json!({"operation": "getvalues", "type": "schema"});
        http.all("config", request).await
    };
    let Ok(reply) = tables.await else {
        return String::new();
    };
    let table = |row: &Value| {
        let schema: Value =
            serde_json::from_slice(text(row, "value").as_bytes()).unwrap_or_default();
        let columns: Vec<String> = list(&schema, "fields")
            .iter()
            .map(|field| text(field, "name"))
            .collect();
        format!("{}({})", text(row, "key"), columns.join(", "))
    };
    let mut tables: Vec<String> = list(&reply, "values").iter().map(table).collect();
    tables.truncate(TABLES);
    match tables.is_empty() {
        true => "; there are no tables".to_owned(),
        false => format!("; known: {}", tables.join(", ")),
    }
}

fn fault(one: &Value) -> String {
    match one {
        Value::String(text) => text.clone(),
        other => text(other, "message"),
    }
}

/// The columns of rows, in the order in which they first appear.
fn columns(rows: &[Value]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for name in rows.iter().filter_map(Value::as_object).flat_map(Map::keys) {
        if !columns.contains(name) {
            columns.push(name.clone());
        }
    }
    columns
}

fn tables(data: &Value, width: Width) -> String {
    let fields = data.as_object().into_iter().flatten();
    let shown = fields.map(|(name, value)| match value.as_array() {
        None => format!("{name}: {value}"),
        Some(rows) if rows.is_empty() => format!("{name}: no rows"),
        Some(rows) => {
            let columns = columns(rows);
            let widths: Vec<usize> = columns
                .iter()
                .map(|column| {
                    let cells = rows.iter().map(|row| text(row, column).chars().count());
                    cells.chain([column.chars().count()]).max().unwrap_or(0)
                })
                .collect();
            let line = |cells: Vec<String>| {
                let cells = cells.iter().zip(&widths);
                let cells = cells.map(|(cell, width)| padded(cell, *width));
                cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
            };
            let head = line(columns.clone());
            let rule = "-".repeat(head.chars().count());
            let body = rows
                .iter()
                .map(|row| line(columns.iter().map(|column| text(row, column)).collect()));
            let lines = [head, rule].into_iter().chain(body);
            let whole = lines.collect::<Vec<_>>().join("\n");
            let titles: Vec<&str> = columns.iter().map(String::as_str).collect();
            let cells = |row| columns.iter().map(|column| text(row, column)).collect();
            let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
            fitted(whole, &titles, &cells, width)
        }
    });
    shown.collect::<Vec<_>>().join("\n\n")
}

fn csv(data: &Value) -> String {
    let quoted = |cell: String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    };
    let mut lines = Vec::new();
    for rows in data
        .as_object()
        .into_iter()
        .flat_map(Map::values)
        .filter_map(Value::as_array)
    {
        let columns = columns(rows);
        lines.push(
            columns
                .iter()
                .cloned()
                .map(quoted)
                .collect::<Vec<_>>()
                .join(","),
        );
        for row in rows {
            let cells = columns.iter().map(|column| quoted(text(row, column)));
            lines.push(cells.collect::<Vec<_>>().join(","));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_printed_under_their_columns() {
        let data = json!({"cities": [{"id": 1, "name": "Rome, old"}, {"id": 22, "name": null}], "none": []});
        assert_eq!(
            tables(&data, None),
            "id  name\n-------------\n1   Rome, old\n22\n\nnone: no rows"
                .replace("-------------", &"-".repeat("id  name".len()))
        );
        let long = "w".repeat(usize::from(u16::MAX) + 1);
        let shown = tables(&json!({"texts": [{"text": long, "n": 1}]}), None);
        assert!(shown.contains(&long));
        assert_eq!(csv(&data), "id,name\n1,\"Rome, old\"\n22,\n");
    }
}
