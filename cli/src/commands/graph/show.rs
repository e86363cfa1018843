//! `tg show-graph`: all triples of a collection, bare.

use clap::Args;
use serde_json::Value;
use tg_schemas::Triple;

use super::term::bare;
use super::{Pattern, each_batch, graph_option};
use crate::args::{InCollection, Options};
use crate::client::Result;
use crate::output::JsonArray;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg show-graph`.
#[derive(Debug, Args)]
pub struct ShowGraph {
    #[command(flatten)]
    place: InCollection,
    /// Maximum number of triples
    #[arg(short = 'l', long, default_value_t = 10_000, value_name = "COUNT")]
    limit: u64,
    /// Triples a batch
    #[arg(short = 'b', long, default_value_t = 20, value_name = "COUNT")]
    batch_size: u64,
    /// Named graph; "" is the default graph [default: all graphs]
    #[arg(short = 'g', long, value_name = "IRI")]
    graph: Option<String>,
    /// Print each triple's graph too
    #[arg(long)]
    show_graph: bool,
}

impl Command for ShowGraph {
    const NAME: &'static str = "show-graph";
    const ABOUT: &'static str = "Print the triples of a collection";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let pattern = Pattern {
            g: graph_option(self.graph),
            collection: self.place.collection,
            limit: self.limit,
            ..Pattern::default()
        };
        let call = pattern.streamed(&self.place.flow.flow_id, self.batch_size);
        let mut socket = session.socket().await?;
        let mut array = JsonArray::default();
        let out = &mut session.out;
        each_batch(&mut socket, &call, |batch| {
            for triple in batch {
                match out.is_json() {
                    true => array.push(out, triple)?,
                    false => out.line(row(triple, self.show_graph))?,
                }
            }
            out.flush()
        })
        .await?;
        if out.is_json() {
            array.end(out)?;
        }
        socket.close().await;
        Ok(())
    }
}

fn row(triple: &Value, with_graph: bool) -> String {
    let triple = Triple::from_api(triple).unwrap_or_default();
    let terms = [&triple.s, &triple.p, &triple.o]
        .map(|term| bare(term.as_ref()))
        .join(" ");
    if !with_graph {
        return terms;
    }
    match triple.g.as_deref() {
        None | Some("") => format!("[(default)] {terms}"),
        Some(graph) => format!("[{graph}] {terms}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_graph_is_shown_on_request() {
        let mut triple = json!({"s": {"t": "i", "i": "x:s"}, "p": {"t": "i", "i": "x:p"},
            "o": {"t": "l", "v": "text"}});
        assert_eq!(row(&triple, false), "x:s x:p text");
        assert_eq!(row(&triple, true), "[(default)] x:s x:p text");
        triple["g"] = json!("urn:g");
        assert_eq!(row(&triple, true), "[urn:g] x:s x:p text");
    }
}
