//! Writes an answer in the syntax that its reader wants, piece by piece as its parts come.

use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use oxrdf::Variable;
use oxrdfio::{RdfFormat, RdfSerializer, WriterQuadSerializer};
use parking_lot::Mutex;
use serde_json::Value;
use sparesults::{QueryResultsSerializer, WriterSolutionsSerializer};
use tg_schemas::{Term, Triple, vocabulary};

use super::media::{Accept, BOOLEANS, GRAPHS, RESULTS, graph_is_xml, rows_are_xml};
use super::terms;
use super::xml::{self, NoXml};
use crate::engine::translate::Body;

/// What the serialisers write into; it is emptied after each part.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Kind {
    Rows(Vec<Variable>, WriterSolutionsSerializer<Buffer>),
    Graph(Box<WriterQuadSerializer<Buffer>>),
    /// Everything is said.
    Done,
}

/// An answer that is being written.
pub(crate) struct Writer {
    kind: Kind,
    buffer: Buffer,
    /// What is written is XML, which cannot say all of RDF.
    xml: bool,
    /// Media type of what is written.
    pub(crate) media: &'static str,
}

/// An error of the syntax, which another syntax may not have.
fn no_xml(why: NoXml) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}

fn not_rdf() -> io::Error {
    io::Error::other("the answer has a term that RDF does not know")
}

impl Writer {
    /// Begins an answer by its first part; `None` when its reader accepts no syntax of such answers.
    pub(crate) fn of_answer(accept: &Accept, first: &Body) -> Option<io::Result<Self>> {
        match first.get("query-type").and_then(Value::as_str) {
            Some("construct" | "describe") => Self::of_graph(accept).map(Ok),
            Some("ask") => {
                let (media, format) = accept.best(BOOLEANS)?;
                let buffer = Buffer::default();
                let yes = first.get("ask-result") == Some(&Value::Bool(true));
                let written = QueryResultsSerializer::from_format(format)
                    .serialize_boolean_to_writer(buffer.clone(), yes);
                Some(written.map(|_| Self {
                    kind: Kind::Done,
                    buffer,
                    xml: false,
                    media,
                }))
            }
            _ => {
                let (media, format) = accept.best(RESULTS)?;
                let buffer = Buffer::default();
                let names = first.get("variables").and_then(Value::as_array);
                let names = names.into_iter().flatten().filter_map(Value::as_str);
                let variables = names.map(Variable::new).collect::<Result<Vec<_>, _>>();
                let begun = variables.map_err(io::Error::other).and_then(|variables| {
                    let rows = QueryResultsSerializer::from_format(format)
                        .serialize_solutions_to_writer(buffer.clone(), variables.clone())?;
                    Ok(Kind::Rows(variables, rows))
                });
                Some(begun.map(|kind| Self {
                    kind,
                    buffer,
                    xml: rows_are_xml(format),
                    media,
                }))
            }
        }
    }

    /// Begins a graph; `None` when its reader accepts no syntax of graphs.
    pub(crate) fn of_graph(accept: &Accept) -> Option<Self> {
        let (media, format) = accept.best(GRAPHS)?;
        let buffer = Buffer::default();
        Some(Self {
            kind: Kind::Graph(Box::new(serializer(format).for_writer(buffer.clone()))),
            buffer,
            xml: graph_is_xml(format),
            media,
        })
    }

    /// Writes a part: rows or triples, as the doors of services say them.
    ///
    /// # Errors
    /// When the syntax cannot say what is in it ([`io::ErrorKind::Unsupported`]: another one can), or RDF cannot.
    pub(crate) fn part(&mut self, part: &Body) -> io::Result<()> {
        let items = |key| part.get(key).and_then(Value::as_array);
        match &mut self.kind {
            Kind::Rows(variables, rows) => {
                for row in items("bindings").into_iter().flatten() {
                    let bound = bound(variables, row)?;
                    if self.xml {
                        let mut terms = bound.iter().map(|(_, term)| term);
                        terms.try_for_each(xml::term).map_err(no_xml)?;
                    }
                    rows.serialize(bound.iter().map(|(name, term)| {
                        let name: &Variable = name;
                        (name, term)
                    }))?;
                }
            }
            Kind::Graph(graph) => {
                for triple in items("triples").into_iter().flatten() {
                    let triple = Triple::from_api(triple);
                    let triple = triple.as_ref().and_then(terms::triple);
                    let triple = triple.ok_or_else(not_rdf)?;
                    if self.xml {
                        xml::triple(&triple).map_err(no_xml)?;
                    }
                    graph.serialize_triple(&triple)?;
                }
            }
            Kind::Done => {}
        }
        Ok(())
    }

    /// Writes what closes the answer.
    ///
    /// # Errors
    /// When the syntax cannot be closed.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.kind, Kind::Done) {
            Kind::Rows(_, rows) => rows.finish().map(drop),
            Kind::Graph(graph) => graph.finish().map(drop),
            Kind::Done => Ok(()),
        }
    }

    /// Writes a part, and what closes the answer after the last; and takes what was written.
    ///
    /// # Errors
    /// As of [`Self::part`] and [`Self::finish`].
    pub(crate) fn written(mut self, part: &Body, last: bool) -> io::Result<(Self, Bytes)> {
        self.part(part)?;
        if last {
            self.finish()?;
        }
        let piece = self.take();
        Ok((self, piece))
    }

    /// What was written since it was taken last.
    pub(crate) fn take(&self) -> Bytes {
        std::mem::take(&mut *self.buffer.0.lock()).into()
    }
}

/// A serialiser of graphs, with the prefixes that nearly every graph has.
pub(super) fn serializer(format: RdfFormat) -> RdfSerializer {
    let prefixes = [
        ("rdf", vocabulary::rdf::NAMESPACE),
        ("rdfs", vocabulary::rdfs::NAMESPACE),
        ("xsd", vocabulary::xsd::NAMESPACE),
    ];
    let mut serializer = RdfSerializer::from_format(format);
    for (prefix, iri) in prefixes {
        let plain = serializer.clone();
        serializer = serializer.with_prefix(prefix, iri).unwrap_or(plain);
    }
    serializer
}

/// The variables of a row that have a value.
fn bound<'a>(
    variables: &'a [Variable],
    row: &Value,
) -> io::Result<Vec<(&'a Variable, oxrdf::Term)>> {
    let values = row.get("values").and_then(Value::as_array);
    let values = values.into_iter().flatten();
    let pairs = variables
        .iter()
        .zip(values)
        .filter(|pair| !pair.1.is_null());
    let read = |(name, value): (&'a Variable, &Value)| {
        let term = Term::from_api(value);
        let term = term.as_ref().and_then(terms::term);
        Ok((name, term.ok_or_else(not_rdf)?))
    };
    pairs.map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn written(accept: &str, parts: &[Value]) -> Option<(String, String)> {
        let accept = Accept::read([accept]);
        let bodies: Vec<&Body> = parts.iter().map(|part| part.as_object().unwrap()).collect();
        let mut writer = Writer::of_answer(&accept, bodies[0])?.unwrap();
        let mut all = Vec::new();
        for body in bodies {
            writer.part(body).unwrap();
            all.extend(writer.take());
        }
        writer.finish().unwrap();
        all.extend(writer.take());
        Some((writer.media.to_owned(), String::from_utf8(all).unwrap()))
    }

    fn rows() -> Vec<Value> {
        let part = |values: Value| {
            json!({"query-type": "select", "variables": ["a", "b"],
                   "bindings": [{"values": values}]})
        };
        vec![
            part(json!([{"t": "i", "i": "urn:a"}, {"t": "l", "v": "x, \"y\"", "ln": "en"}])),
            part(json!([null, {"t": "b", "d": "n0"}])),
        ]
    }

    #[test]
    fn rows_come_in_each_syntax_of_their_standards() {
        let (kind, text) = written("*/*", &rows()).unwrap();
        assert_eq!(kind, "application/sparql-results+json");
        let told: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(told["head"]["vars"], json!(["a", "b"]));
        let bindings = told["results"]["bindings"].as_array().unwrap();
        assert_eq!(bindings[0]["b"]["xml:lang"], "en");
        assert_eq!(bindings[1], json!({"b": {"type": "bnode", "value": "n0"}}));
        let text = |accept| written(accept, &rows()).unwrap().1;
        let xml = text("application/sparql-results+xml");
        assert!(
            xml.contains("<variable name=\"a\"/>") && xml.ends_with("</sparql>"),
            "{xml}"
        );
        assert_eq!(
            text("text/csv"),
            "a,b\r\nurn:a,\"x, \"\"y\"\"\"\r\n,_:n0\r\n"
        );
        assert_eq!(
            text("text/tab-separated-values"),
            "?a\t?b\n<urn:a>\t\"x, \\\"y\\\"\"@en\n\t_:n0\n"
        );
        assert_eq!(written("text/turtle", &rows()), None);
    }

    #[test]
    fn an_answer_of_ask_has_the_syntaxes_that_know_it() {
        let yes = [json!({"query-type": "ask", "ask-result": true})];
        let (_, text) = written("application/json", &yes).unwrap();
        assert_eq!(text, r#"{"head":{},"boolean":true}"#);
        assert!(
            written("application/xml", &yes)
                .unwrap()
                .1
                .contains("<boolean>true</boolean>")
        );
        assert_eq!(written("text/csv", &yes), None);
    }

    #[test]
    fn graphs_come_in_each_syntax_and_read_back() {
        let iri = |text: &str| json!({"t": "i", "i": text});
        let parts = [json!({"query-type": "construct", "triples": [
            {"s": iri("urn:a"), "p": iri("http://e/p"), "o": {"t": "l", "v": "1",
                "dt": "http://www.w3.org/2001/XMLSchema#integer"}},
            {"s": {"t": "b", "d": "x"}, "p": iri("http://e/p"), "o": iri("urn:b")}]})];
        for (kind, format) in GRAPHS {
            let (media, text) = written(kind, &parts).unwrap();
            assert_eq!(media, *kind);
            let back = oxrdfio::RdfParser::from_format(*format).for_slice(&text);
            assert_eq!(back.filter_map(Result::ok).count(), 2, "{kind}: {text}");
        }
        assert_eq!(written("text/csv", &parts), None);
        // None at all is a graph, too.
        let (_, text) =
            written("application/rdf+xml", &[json!({"query-type": "describe"})]).unwrap();
        assert!(text.contains("RDF"), "{text}");
    }

    #[test]
    fn what_xml_cannot_say_is_an_error_there_and_written_elsewhere() {
        let triple = |p: &str, o: &str| {
            json!({"query-type": "construct", "triples": [{"s": {"t": "i", "i": "urn:a"},
                "p": {"t": "i", "i": p}, "o": {"t": "l", "v": o}}]})
        };
        let row = json!({"query-type": "select", "variables": ["a"],
            "bindings": [{"values": [{"t": "l", "v": "\u{1}"}]}]});
        let error = |accept: &str, part: &Value| {
            let part = part.as_object().unwrap();
            let writer = Writer::of_answer(&Accept::read([accept]), part).unwrap();
            writer
                .unwrap()
                .part(part)
                .err()
                .map(|error| (error.kind(), error.to_string()))
        };
        for part in [triple("http://e/p/123", "x"), triple("http://e/p", "\u{b}")] {
            let (kind, text) = error("application/rdf+xml", &part).unwrap();
            assert_eq!(kind, io::ErrorKind::Unsupported, "{text}");
            for other in [
                "text/turtle",
                "application/n-triples",
                "application/ld+json",
            ] {
                assert_eq!(error(other, &part), None, "{other}");
            }
        }
        let (kind, text) = error("application/sparql-results+xml", &row).unwrap();
        assert!(
            kind == io::ErrorKind::Unsupported && text.contains("U+0001"),
            "{text}"
        );
        assert_eq!(error("application/sparql-results+json", &row), None);
        let kind = json!({"query-type": "construct", "triples": [{"s": {"t": "i", "i": "urn:a"},
            "p": {"t": "i", "i": "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"},
            "o": {"t": "i", "i": "http://e/kind/7"}}]});
        assert!(error("application/rdf+xml", &kind).is_some());
        let plain = triple("http://e/123abc", "a\tb");
        assert_eq!(error("application/rdf+xml", &plain), None);
    }

    #[test]
    fn what_rdf_cannot_say_is_never_written() {
        let parts = [json!({"query-type": "construct", "triples": [
            {"s": {"t": "i", "i": "urn:a> <urn:x"}, "p": {"t": "i", "i": "urn:b"}, "o": {"t": "i", "i": "urn:c"}}]})];
        let mut writer = Writer::of_graph(&Accept::default()).unwrap();
        assert!(writer.part(parts[0].as_object().unwrap()).is_err());
    }
}
