//! `tg invoke-sparql-query`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};
use serde_json::{Map, Value, json};
use tg_schemas::{Term, Triple};

use super::term::{bare, turtle};
use crate::args::{InCollection, Options};
use crate::client::{Call, Result};
use crate::fields::{list, text, texts};
use crate::files::read_text;
use crate::layout::{Width, fitted, padded};
use crate::registry::Command;
use crate::session::Session;

/// How the result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Json,
}

/// Arguments of `tg invoke-sparql-query`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true).args(["words", "query", "input"])))]
pub struct InvokeSparqlQuery {
    #[command(flatten)]
    place: InCollection,
    /// The query
    #[arg(value_name = "SPARQL")]
    words: Option<String>,
    /// The argument, given as a flag
    #[arg(
        short = 'q',
        long,
        value_name = "SPARQL",
        help = "Same as <SPARQL>, given as a flag"
    )]
    query: Option<String>,
    /// File that holds the query; `-` is standard input
    #[arg(short = 'i', long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Maximum number of results
    #[arg(short = 'l', long, default_value_t = 10_000, value_name = "COUNT")]
    limit: u64,
    /// Results a batch
    #[arg(short = 'b', long, default_value_t = 20, value_name = "COUNT")]
    batch_size: u64,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

impl Command for InvokeSparqlQuery {
    const NAME: &'static str = "invoke-sparql-query";
    const ABOUT: &'static str = "Run a SPARQL query";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let query = match (self.words.or(self.query), &self.input) {
            (None, Some(path)) => read_text(path)?,
            (query, _) => query.unwrap_or_default(),
        };
        let request = json!({
            "query": query,
            "collection": self.place.collection,
            "limit": self.limit,
            "batch-size": self.batch_size,
            "streaming": true,
        });
        let call = Call::in_flow(&self.place.flow.flow_id, "sparql", request);
        let mut socket = session.socket().await?;
        let mut replies = socket.start(&call).await?;
        let mut answer = Answer::default();
        while let Some(reply) = replies.next().await? {
            answer.add(&reply);
        }
        socket.close().await;
        match self.format == Format::Json || session.out.is_json() {
            true => session.out.json(&answer.json()),
            false => session
                .out
                .line(answer.text(session.out.width()).trim_end_matches('\n')),
        }
    }
}

/// The result of a query, of whichever kind.
#[derive(Debug, Default)]
struct Answer {
    ask: Option<bool>,
    graph: bool,
    triples: Vec<Value>,
    variables: Vec<String>,
    rows: Vec<Vec<Option<Term>>>,
}

impl Answer {
    fn add(&mut self, reply: &Value) {
        match text(reply, "query-type").as_str() {
            "ask" => self.ask = Some(reply["ask-result"] == json!(true)),
            "construct" | "describe" => {
                self.graph = true;
                self.triples.extend_from_slice(list(reply, "triples"));
            }
            _ => {
                if self.variables.is_empty() {
                    self.variables = texts(reply, "variables");
                }
                let row =
                    |binding: &Value| list(binding, "values").iter().map(Term::from_api).collect();
                self.rows.extend(list(reply, "bindings").iter().map(row));
            }
        }
    }

    fn json(&self) -> Value {
        if let Some(answer) = self.ask {
            return json!(answer);
        }
        if self.graph {
            return Value::from(self.triples.as_slice());
        }
        let row = |row: &Vec<Option<Term>>| {
            let cells = row.iter().map(|term| match term {
                Some(term) => json!(bare(Some(term))),
                None => Value::Null,
            });
            let fields: Map<String, Value> = self.variables.iter().cloned().zip(cells).collect();
            Value::Object(fields)
        };
        self.rows.iter().map(row).collect()
    }

    fn text(&self, width: Width) -> String {
        if let Some(answer) = self.ask {
            return answer.to_string();
        }
        if self.graph {
            return self.graph_text();
        }
        if self.rows.is_empty() {
            return "No results.".to_owned();
        }
        self.table(width)
    }

    fn graph_text(&self) -> String {
        if self.triples.is_empty() {
            return "No triples.".to_owned();
        }
        self.triples
            .iter()
            .filter_map(Triple::from_api)
            .map(|triple| {
                let terms = [&triple.s, &triple.p, &triple.o].map(|term| turtle(term.as_ref()));
                format!("{} .\n", terms.join(" "))
            })
            .collect()
    }

    fn table(&self, columns: Width) -> String {
        let rows: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(|term| bare(term.as_ref())).collect())
            .collect();
        let width = |column: usize, name: &String| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            widest.max(name.chars().count())
        };
        let widths: Vec<usize> = self
            .variables
            .iter()
            .enumerate()
            .map(|(column, name)| width(column, name))
            .collect();
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells
                .iter()
                .zip(&widths)
                .map(|(cell, width)| padded(cell, *width))
                .collect();
            format!("{}\n", cells.join(" | "))
        };
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let mut table = line(&self.variables);
        table.push_str(&format!("{}\n", rule.join("-+-")));
        table.extend(rows.iter().map(|row| line(row)));
        let head: Vec<&str> = self.variables.iter().map(String::as_str).collect();
        fitted(table, &head, &rows, columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(replies: &[Value]) -> Answer {
        let mut answer = Answer::default();
        replies.iter().for_each(|reply| answer.add(reply));
        answer
    }

    #[test]
    fn batches_of_bindings_become_one_table() {
        let answer = answer(&[
            json!({"query-type": "select", "variables": ["name", "n"],
                "bindings": [{"values": [{"t": "l", "v": "Ann", "ln": "en"}, null]}]}),
            json!({"query-type": "select", "variables": ["name", "n"],
                "bindings": [{"values": [{"t": "i", "i": "x:bob"}, {"t": "l", "v": "12"}]}]}),
        ]);
        assert_eq!(
            answer.text(None),
            "name  | n \n------+---\nAnn   |   \nx:bob | 12\n"
        );
        assert_eq!(
            answer.json(),
            json!([{"name": "Ann", "n": null}, {"name": "x:bob", "n": "12"}])
        );
    }

    #[test]
    fn a_long_text_is_shown_in_its_table() {
        let long = "w".repeat(usize::from(u16::MAX) + 1);
        let answer = answer(&[json!({"query-type": "select", "variables": ["text", "n"],
            "bindings": [{"values": [{"t": "l", "v": long}, {"t": "l", "v": "1"}]}]})]);
        for width in [None, Some(80)] {
            assert!(answer.text(width).contains(&long), "{width:?}");
        }
    }

    #[test]
    fn the_other_kinds_of_query_have_their_own_forms() {
        assert_eq!(
            answer(&[json!({"query-type": "ask", "ask-result": true})]).text(None),
            "true"
        );
        let built = answer(&[json!({"query-type": "construct", "triples": [
            {"s": {"t": "i", "i": "x:s"}, "p": {"t": "i", "i": "x:p"},
             "o": {"t": "l", "v": "5", "dt": "x:int"}}]})]);
        assert_eq!(built.text(None), "<x:s> <x:p> \"5\"^^<x:int> .\n");
        assert_eq!(answer(&[]).text(None), "No results.");
    }
}
