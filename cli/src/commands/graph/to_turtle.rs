//! `tg graph-to-turtle`: a collection as Turtle, with datatypes, languages and quoted triples.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use clap::Args;
use oxigraph::io::{RdfFormat, RdfSerializer, WriterQuadSerializer};
use serde_json::Value;
use tg_schemas::Triple;
use tg_schemas::vocabulary::{prov, rdf, rdfs, schema, skos, tg, xsd};

use super::rdf::to_triple;
use super::{Pattern, each_batch, graph_option};
use crate::args::{InCollection, Options};
use crate::client::{Error, Result};
use crate::output::JsonArray;
use crate::registry::Command;
use crate::session::Session;

/// Prefixes that make common IRIs short.
const PREFIXES: &[(&str, &str)] = &[
    ("rdf", rdf::NAMESPACE),
    ("rdfs", rdfs::NAMESPACE),
    ("xsd", xsd::NAMESPACE),
    ("prov", prov::NAMESPACE),
    ("skos", skos::NAMESPACE),
    ("schema", schema::NAMESPACE),
    ("tg", tg::NAMESPACE),
];

/// Arguments of `tg graph-to-turtle`.
#[derive(Debug, Args)]
pub struct GraphToTurtle {
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
}

impl Command for GraphToTurtle {
    const NAME: &'static str = "graph-to-turtle";
    const ABOUT: &'static str = "Print a collection as Turtle";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    fn adjust(command: clap::Command) -> clap::Command {
        command.after_help(
            "With --json, the triples come as a JSON list instead. All graphs come unless -g names one: the facts, where they come \
             from, and the traces of answers. -g \"\" prints the facts alone.",
        )
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
        let mut turtle = Turtle::new()?;
        let mut array = JsonArray::default();
        let progress = session.out.progress("triples", None);
        let out = &mut session.out;
        each_batch(&mut socket, &call, |batch| {
            progress.inc(batch.len() as u64);
            for triple in batch {
                match out.is_json() {
                    true => array.push(out, triple)?,
                    false => turtle.write(triple)?,
                }
            }
            out.bytes(&turtle.take())?;
            out.flush()
        })
        .await?;
        progress.finish_and_clear();
        socket.close().await;
        if out.is_json() {
            return array.end(out);
        }
        let skipped = turtle.skipped;
        out.bytes(&turtle.finish()?)?;
        if skipped > 0 {
            out.talk(format!(
                "{skipped} triples left out: they cannot be written as RDF"
            ));
        }
        Ok(())
    }
}

/// A Turtle document in the making; what is written so far can be taken at any time.
struct Turtle {
    serializer: WriterQuadSerializer<Buffer>,
    buffer: Buffer,
    skipped: u64,
}

impl Turtle {
    fn new() -> Result<Self> {
        let mut serializer = RdfSerializer::from_format(RdfFormat::Turtle);
        for (name, iri) in PREFIXES {
            serializer = serializer
                .with_prefix(*name, *iri)
                .map_err(|error| Error::Protocol(error.to_string()))?;
        }
        let buffer = Buffer::default();
        Ok(Self {
            serializer: serializer.for_writer(buffer.clone()),
            buffer,
            skipped: 0,
        })
    }

    fn write(&mut self, triple: &Value) -> Result<()> {
        match Triple::from_api(triple).as_ref().and_then(to_triple) {
            Some(triple) => self.serializer.serialize_triple(&triple)?,
            None => self.skipped += 1,
        }
        Ok(())
    }

    fn take(&self) -> Vec<u8> {
        self.buffer.take()
    }

    fn finish(self) -> Result<Vec<u8>> {
        self.serializer.finish()?;
        Ok(self.buffer.take())
    }
}

/// The serialiser owns its writer; this one can be emptied from outside.
#[derive(Debug, Clone, Default)]
struct Buffer(Rc<RefCell<Vec<u8>>>);

impl Buffer {
    fn take(&self) -> Vec<u8> {
        self.0.take()
    }
}

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn datatypes_languages_and_quoted_triples_are_kept() {
        let iri = |name: &str| json!({"t": "i", "i": format!("http://e/{name}")});
        let mut turtle = Turtle::new().expect("a document");
        let objects = [
            json!({"t": "l", "v": "1.5", "dt": "http://www.w3.org/2001/XMLSchema#double"}),
            json!({"t": "l", "v": "chat", "ln": "fr"}),
            json!({"t": "t", "tr": {"s": iri("s"), "p": iri("p"), "o": iri("o")}}),
            json!({"t": "b", "d": "x1"}),
        ];
        for object in objects {
            let triple = json!({"s": iri("a"), "p": iri("b"), "o": object});
            turtle.write(&triple).expect("written");
        }
        turtle
            .write(&json!({"s": {"t": "i", "i": "not an iri"}, "p": iri("b"), "o": iri("c")}))
            .expect("left out");
        assert_eq!(turtle.skipped, 1);
        let text = String::from_utf8(turtle.finish().expect("finished")).expect("text");
        for part in ["\"1.5\"^^xsd:double", "\"chat\"@fr", "<<(", "_:x1"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
