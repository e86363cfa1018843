//! What is nearest to a text: `tg invoke-graph-embeddings`, `tg invoke-document-embeddings`,
//! `tg invoke-row-embeddings`.

use clap::Args;
use serde_json::{Map, Value, json};

use super::embeddings::vectors;
use crate::args::{InFlow, Options};
use crate::client::{Call, Error, Result};
use crate::fields::{list, text, texts};
use crate::layout::table;
use crate::registry::Command;
use crate::session::Session;

/// Options of all three.
#[derive(Debug, Args)]
struct Near {
    #[command(flatten)]
    flow: InFlow,
    /// Text to look for
    #[arg(value_name = "TEXT")]
    text: String,
    /// Collection to look in
    #[arg(
        short = 'C',
        long,
        visible_short_alias = 'c',
        default_value = "default",
        value_name = "ID"
    )]
    collection: String,
    /// Maximum number of results
    #[arg(short = 'l', long, default_value_t = 10, value_name = "COUNT")]
    limit: u64,
    /// An attribute that must hold; may be given several times
    #[arg(short = 'a', long = "attribute", value_name = "KEY=VALUE", value_parser = pair)]
    attributes: Vec<(String, String)>,
}

fn pair(text: &str) -> std::result::Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl Near {
    /// Attributes as they are sent; values of the same key must all hold.
    fn attributes(&self) -> Value {
        let mut all = Map::new();
        for (key, value) in &self.attributes {
            match all.get_mut(key) {
                None => {
                    all.insert(key.clone(), json!(value));
                }
                Some(Value::Array(values)) => values.push(json!(value)),
                Some(one) => *one = json!([one.clone(), value]),
            }
        }
        if all.is_empty() {
            Value::Null
        } else {
            Value::Object(all)
        }
    }

    async fn ask(
        &self,
        session: &Session,
        service: &'static str,
        more: Vec<(&'static str, Value)>,
        field: &str,
    ) -> Result<Vec<Value>> {
        let mut socket = session.socket().await?;
        let flow = &self.flow.flow_id;
        let mut vectors = vectors(&mut socket, flow, std::slice::from_ref(&self.text)).await?;
        let vector = vectors
            .pop()
            .ok_or_else(|| Error::Protocol("no vector".to_owned()))?;
        let mut request = json!({
            "vector": vector,
            "collection": self.collection,
            "limit": self.limit,
            "attributes": self.attributes(),
        });
        for (name, value) in more {
            request[name] = value;
        }
        let reply = socket.ask(&Call::in_flow(flow, service, request)).await?;
        socket.close().await;
        Ok(list(&reply, field).to_vec())
    }
}

fn score(found: &Value) -> String {
    let score = found.get("score").and_then(Value::as_f64).unwrap_or(0.0);
    format!("{score:.4}")
}

/// Arguments of `tg invoke-graph-embeddings`.
#[derive(Debug, Args)]
pub struct InvokeGraphEmbeddings {
    #[command(flatten)]
    near: Near,
    /// Only entities of this RDF type
    #[arg(long, value_name = "IRI")]
    rdf_type: Option<String>,
}

impl Command for InvokeGraphEmbeddings {
    const NAME: &'static str = "invoke-graph-embeddings";
    const ABOUT: &'static str = "Find entities by meaning";

    fn options(&self) -> Options {
        Options::from(&self.near.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let more = vec![("rdf_type", json!(self.rdf_type))];
        let found = self
            .near
            .ask(session, "graph-embeddings", more, "entities")
            .await?;
        session.out.lay(&Value::from(found.clone()), |width| {
            let entity = |one: &Value| {
                let term = one.get("entity").cloned().unwrap_or_default();
                let iri = text(&term, "i");
                if iri.is_empty() {
                    text(&term, "v")
                } else {
                    iri
                }
            };
            table(
                ["Entity", "Score"],
                found.iter().map(|one| [entity(one), score(one)]),
                width,
            )
        })
    }
}

/// Arguments of `tg invoke-document-embeddings`.
#[derive(Debug, Args)]
pub struct InvokeDocumentEmbeddings {
    #[command(flatten)]
    near: Near,
}

impl Command for InvokeDocumentEmbeddings {
    const NAME: &'static str = "invoke-document-embeddings";
    const ABOUT: &'static str = "Find passages of documents by meaning";

    fn options(&self) -> Options {
        Options::from(&self.near.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let found = self
            .near
            .ask(session, "document-embeddings", Vec::new(), "chunks")
            .await?;
        session.out.lay(&Value::from(found.clone()), |width| {
            let rows = found.iter().map(|one| [text(one, "chunk_id"), score(one)]);
            table(["Chunk", "Score"], rows, width)
        })
    }
}

/// Arguments of `tg invoke-row-embeddings`.
#[derive(Debug, Args)]
pub struct InvokeRowEmbeddings {
    #[command(flatten)]
    near: Near,
    /// Schema of the rows
    #[arg(short = 's', long, visible_alias = "schema", value_name = "NAME")]
    schema_name: String,
    /// Only this index of the schema
    #[arg(short = 'i', long, value_name = "NAME")]
    index_name: Option<String>,
}

impl Command for InvokeRowEmbeddings {
    const NAME: &'static str = "invoke-row-embeddings";
    const ABOUT: &'static str = "Find rows by meaning";

    fn options(&self) -> Options {
        Options::from(&self.near.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut more = vec![("schema_name", json!(self.schema_name))];
        more.extend(
            self.index_name
                .as_ref()
                .map(|name| ("index_name", json!(name))),
        );
        let found = self
            .near
            .ask(session, "row-embeddings", more, "matches")
            .await?;
        session.out.lay(&Value::from(found.clone()), |width| {
            let rows = found.iter().map(|one| {
                [
                    text(one, "index_name"),
                    texts(one, "index_value").join(", "),
                    text(one, "text"),
                    score(one),
                ]
            });
            table(["Index", "Value", "Text", "Score"], rows, width)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_the_same_key_must_all_hold() {
        #[derive(Debug, clap::Parser)]
        struct Tool {
            #[command(flatten)]
            near: Near,
        }
        let parse = |args: &[&str]| {
            let argv = std::iter::once("x").chain(args.iter().copied());
            <Tool as clap::Parser>::try_parse_from(argv).map(|tool| tool.near)
        };
        let near = parse(&["word", "-a", "a=1", "-a", "b=2", "-a", "a=3"]).expect("arguments");
        assert_eq!(near.attributes(), json!({"a": ["1", "3"], "b": "2"}));
        assert_eq!(
            parse(&["word"]).expect("arguments").attributes(),
            Value::Null
        );
        assert!(parse(&["word", "-a", "a"]).is_err());
    }
}
