//! The knowledge graph: patterns, SPARQL, Turtle in and out.

mod by_line;
#[cfg(test)]
mod fuzz;
pub mod load_knowledge;
pub mod load_turtle;
mod loaded_from;
pub mod query;
mod rdf;
mod rdf_file;
pub mod show;
pub mod sparql;
mod term;
pub mod to_turtle;

use serde_json::{Value, json};
use tg_schemas::{Term, Triple};

use crate::client::{Call, Result, Socket};
use crate::fields::list;

pub(crate) use rdf::{each_quad, quad_line, quads_of};
pub(crate) use term::display;

/// A pattern of triples and how to fetch what matches.
#[derive(Debug, Default)]
pub(crate) struct Pattern {
    /// Subject, any if `None`.
    pub(crate) s: Option<Term>,
    /// Predicate, any if `None`.
    pub(crate) p: Option<Term>,
    /// Object, any if `None`.
    pub(crate) o: Option<Term>,
    /// Graph: `None` for all, empty for the default graph.
    pub(crate) g: Option<String>,
    /// Collection.
    pub(crate) collection: String,
    /// Maximum number of triples.
    pub(crate) limit: u64,
}

impl Pattern {
    /// The call that answers in one reply.
    pub(crate) fn call(&self, flow: &str) -> Call {
        Call::in_flow(flow, "triples", self.request())
    }

    /// The call that answers in batches.
    pub(crate) fn streamed(&self, flow: &str, batch_size: u64) -> Call {
        let mut request = self.request();
        request["streaming"] = json!(true);
        request["batch-size"] = json!(batch_size);
        Call::in_flow(flow, "triples", request)
    }

    fn request(&self) -> Value {
        let mut request = json!({"collection": self.collection, "limit": self.limit});
        for (key, term) in [("s", &self.s), ("p", &self.p), ("o", &self.o)] {
            if let Some(term) = term {
                request[key] = term.to_api();
            }
        }
        if let Some(graph) = &self.g {
            request["g"] = json!(graph);
        }
        request
    }
}

/// Fetches batches and hands each one to `take`.
pub(crate) async fn each_batch(
    socket: &mut Socket,
    call: &Call,
    mut take: impl FnMut(&[Value]) -> Result<()>,
) -> Result<()> {
    let mut replies = socket.start(call).await?;
    while let Some(reply) = replies.next().await? {
        take(list(&reply, "response"))?;
    }
    Ok(())
}

/// The triples of a reply of the triples service.
pub(crate) fn triples(reply: &Value) -> Vec<Triple> {
    triples_of(reply, "response")
}

/// The triples that a field of a reply lists; what is no triple is left out.
pub(crate) fn triples_of(reply: &Value, key: &str) -> Vec<Triple> {
    list(reply, key)
        .iter()
        .filter_map(Triple::from_api)
        .collect()
}

/// A graph option: both kinds of empty quotes mean the default graph.
fn graph_option(graph: Option<String>) -> Option<String> {
    graph.map(|graph| match graph.as_str() {
        "\"\"" | "''" => String::new(),
        _ => graph,
    })
}
