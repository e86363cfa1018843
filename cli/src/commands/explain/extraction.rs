//! `tg show-extraction-provenance`: what was made of a document, from pages and chunks down to the facts that
//! were read from each. A level of the tree is fetched at once; what one record says of two parents is shown
//! below the first.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tg_schemas::vocabulary::{dcterms, rdf, rdfs, tg};
use tg_schemas::{Term, Triple};

use super::fetch::{SOURCE, TraceLocation};
use crate::args::{InCollection, Options};
use crate::client::{Call, Error, Result, Socket};
use crate::commands::graph::{display, triples};
use crate::fields::text;
use crate::layout::cut;
use crate::registry::Command;
use crate::session::Session;

const TG: &str = tg::NAMESPACE;
const TYPE: &str = rdf::TYPE;
const LABEL: &str = rdfs::LABEL;
const DC: &str = dcterms::NAMESPACE;

/// More than any sensible document has.
const MOST: usize = 100_000;
/// Triples of one node.
const TRIPLES: u64 = 10_000;

/// How the tree is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Tree,
    Json,
}

/// Arguments of `tg show-extraction-provenance`.
#[derive(Debug, Args)]
pub struct ShowExtractionProvenance {
    #[command(flatten)]
    place: InCollection,
    /// Document
    #[arg(value_name = "DOCUMENT-ID")]
    document_id: String,
    /// Show what pages and chunks say
    #[arg(long)]
    show_content: bool,
    /// Characters of it
    #[arg(long, default_value_t = 200, value_name = "COUNT")]
    max_content: usize,
    /// Shape of the output
    #[arg(long, value_enum, default_value = "tree")]
    format: Format,
}

impl Command for ShowExtractionProvenance {
    const NAME: &'static str = "show-extraction-provenance";
    const ABOUT: &'static str = "Show what was made of a document, down to the facts";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let place = TraceLocation::from(&self.place);
        let mut socket = session.socket().await?;
        let mut tree = fetch(&mut socket, &place, &self.document_id).await?;
        let known = tree.nodes.get(&self.document_id);
        if known.is_none_or(Node::is_unknown) && tree.nodes.len() < 2 {
            return Err(Error::Missing(format!(
                "no record of document {} in collection {}",
                self.document_id, self.place.collection
            )));
        }
        if self.show_content {
            contents(&mut socket, &mut tree, self.max_content).await?;
        }
        socket.close().await;
        if session.out.is_json() || self.format == Format::Json {
            let value = tree.json(&self.document_id);
            return session.out.json(&value);
        }
        let mut lines = Vec::new();
        tree.lines(&self.document_id, 0, &mut lines);
        session.out.line(lines.join("\n"))
    }
}

/// One thing that a document was made into.
#[derive(Debug, Default)]
struct Node {
    types: Vec<String>,
    label: String,
    title: String,
    format: String,
    content: String,
    /// Facts read from it.
    edges: Vec<Triple>,
    children: Vec<String>,
}

impl Node {
    fn kind(&self) -> String {
        let known = ["Document", "Page", "Section", "Image", "Chunk", "Subgraph"];
        let named = self.types.iter().filter_map(|kind| kind.strip_prefix(TG));
        let named: Vec<&str> = named.collect();
        let kind = known.into_iter().find(|kind| named.contains(kind));
        kind.unwrap_or("unknown").to_lowercase()
    }

    fn is_unknown(&self) -> bool {
        self.types.is_empty() && self.children.is_empty()
    }

    fn note(&mut self, triple: &Triple) {
        let (Some(Term::Iri(predicate)), Some(object)) = (&triple.p, &triple.o) else {
            return;
        };
        match (predicate.as_str(), object) {
            (TYPE, Term::Iri(kind)) => self.types.push(kind.clone()),
            (LABEL, Term::Literal { value, .. }) => self.label.clone_from(value),
            (other, Term::Literal { value, .. }) if other.strip_prefix(DC) == Some("title") => {
                self.title.clone_from(value);
            }
            (other, Term::Literal { value, .. }) if other.strip_prefix(DC) == Some("format") => {
                self.format.clone_from(value);
            }
            (other, Term::Quoted(edge)) if other.strip_prefix(TG) == Some("contains") => {
                self.edges.push((**edge).clone());
            }
            _ => {}
        }
    }
}

/// All that was made of a document.
#[derive(Debug, Default)]
struct Tree {
    nodes: BTreeMap<String, Node>,
}

impl Tree {
    /// Facts of a node and of the subgraphs below it.
    fn edges<'a>(&'a self, node: &'a Node) -> Vec<&'a Triple> {
        let below = self
            .children(node)
            .filter(|(_, child)| child.kind() == "subgraph");
        let below = below.flat_map(|(_, child)| &child.edges);
        node.edges.iter().chain(below).collect()
    }

    fn children<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = (&'a String, &'a Node)> {
        node.children
            .iter()
            .filter_map(|id| Some((id, self.nodes.get(id)?)))
    }

    fn parts<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a String> {
        self.children(node)
            .filter(|(_, child)| child.kind() != "subgraph")
            .map(|(id, _)| id)
    }

    fn json(&self, id: &str) -> Value {
        let Some(node) = self.nodes.get(id) else {
            return Value::Null;
        };
        let mut metadata = json!({"uri": id, "types": node.types});
        for (key, value) in [
            ("label", &node.label),
            ("title", &node.title),
            ("format", &node.format),
        ] {
            if !value.is_empty() {
                metadata[key] = json!(value);
            }
        }
        let edges: Vec<Value> = self.edges(node).into_iter().map(Triple::to_api).collect();
        let children: Vec<Value> = self.parts(node).map(|child| self.json(child)).collect();
        let mut shown = json!({
            "uri": id,
            "type": node.kind(),
            "metadata": metadata,
            "edges": edges,
            "children": children,
        });
        if !node.content.is_empty() {
            shown["content"] = json!(node.content);
        }
        shown
    }

    fn lines(&self, id: &str, depth: usize, lines: &mut Vec<String>) {
        let Some(node) = self.nodes.get(id) else {
            return;
        };
        let indent = "  ".repeat(depth);
        let kind = node.kind();
        let mut line = format!("{indent}{kind}: {id}");
        for said in [&node.title, &node.label] {
            if !said.is_empty() {
                line.push_str(&format!("  \"{said}\""));
                break;
            }
        }
        if !node.format.is_empty() {
            line.push_str(&format!("  [{}]", node.format));
        }
        lines.push(line);
        for said in node.content.lines().filter(|said| !said.trim().is_empty()) {
            lines.push(format!("{indent}  | {said}"));
        }
        for edge in self.edges(node) {
            lines.push(format!("{indent}  edge: {}", fact(edge)));
        }
        for child in self.parts(node) {
            self.lines(child, depth + 1, lines);
        }
    }
}

/// `(subject, predicate, object)` by the last part of each IRI.
fn fact(edge: &Triple) -> String {
    let short = |term: &Option<Term>| match term {
        Some(Term::Iri(iri)) => iri.rsplit(['/', '#']).next().unwrap_or(iri).to_owned(),
        Some(other) => display(Some(other)),
        None => "?".to_owned(),
    };
    format!(
        "({}, {}, {})",
        short(&edge.s),
        short(&edge.p),
        short(&edge.o)
    )
}

async fn fetch(socket: &mut Socket, place: &TraceLocation<'_>, root: &str) -> Result<Tree> {
    let mut tree = Tree::default();
    let mut seen = BTreeSet::from([root.to_owned()]);
    let mut frontier = vec![root.to_owned()];
    while !frontier.is_empty() {
        let calls: Vec<Call> = frontier
            .iter()
            .flat_map(|id| {
                [
                    place.about(id, SOURCE, TRIPLES),
                    place.children(id, SOURCE, TRIPLES),
                ]
            })
            .collect();
        let replies = socket.ask_all(&calls).await?;
        let mut next = Vec::new();
        let mut replies = replies.into_iter();
        for id in frontier {
            let mut node = Node::default();
            if let Some(reply) = replies.next() {
                triples(&reply?).iter().for_each(|triple| node.note(triple));
            }
            if let Some(reply) = replies.next() {
                for triple in triples(&reply?) {
                    if let Some(Term::Iri(child)) = triple.s
                        && seen.insert(child.clone())
                    {
                        node.children.push(child);
                    }
                }
            }
            node.children.sort();
            next.extend(node.children.iter().cloned());
            tree.nodes.insert(id, node);
        }
        if seen.len() > MOST {
            let why = format!("the document was made into more than {MOST} parts");
            return Err(Error::Check(why));
        }
        frontier = next;
    }
    Ok(tree)
}

/// What the parts say, as far as the library has it.
async fn contents(socket: &mut Socket, tree: &mut Tree, most: usize) -> Result<()> {
    let ids: Vec<String> = tree
        .nodes
        .iter()
        .filter(|(_, node)| node.kind() != "subgraph")
        .map(|(id, _)| id.clone())
        .collect();
    let calls: Vec<Call> = ids
        .iter()
        .map(|id| {
            let request = json!({"operation": "get-document-content", "document-id": id});
            Call::global("librarian", request)
        })
        .collect();
    for (id, reply) in ids.iter().zip(socket.ask_all(&calls).await?) {
        let Some(node) = tree.nodes.get_mut(id) else {
            continue;
        };
        node.content = match reply {
            Ok(reply) => shown(&text(&reply, "content"), most),
            // The graph outlives the library's documents.
            Err(Error::Service { message, .. }) => format!("[{message}]"),
            Err(other) => return Err(other),
        };
    }
    Ok(())
}

fn shown(content: &str, most: usize) -> String {
    let Ok(bytes) = STANDARD.decode(content) else {
        return "[no content]".to_owned();
    };
    match String::from_utf8(bytes) {
        Ok(text) => cut(&text, most),
        Err(error) => format!("[{} bytes]", error.as_bytes().len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let mut tree = Tree::default();
        let mut add = |id: &str, kind: &str, children: &[&str]| {
            let mut node = Node::default();
            node.note(&Triple::new(
                Term::iri(id),
                Term::iri(TYPE),
                Term::iri(format!("{TG}{kind}")),
            ));
            node.children = children.iter().map(|id| (*id).to_owned()).collect();
            tree.nodes.insert(id.to_owned(), node);
        };
        add("urn:d", "Document", &["urn:c"]);
        add("urn:c", "Chunk", &["urn:s"]);
        add("urn:s", "Subgraph", &[]);
        let edge = Triple::new(
            Term::iri("http://e/ada"),
            Term::iri("http://e/wrote"),
            Term::literal("notes"),
        );
        let contains = Term::iri(format!("{TG}contains"));
        let said = Triple::new(Term::iri("urn:s"), contains, Term::Quoted(Box::new(edge)));
        tree.nodes.get_mut("urn:s").expect("a node").note(&said);
        tree
    }

    #[test]
    fn facts_of_subgraphs_are_shown_with_their_chunk() {
        let tree = tree();
        let mut lines = Vec::new();
        tree.lines("urn:d", 0, &mut lines);
        let text = lines.join("\n");
        assert!(
            text.starts_with("document: urn:d\n  chunk: urn:c\n"),
            "{text}"
        );
        assert!(text.contains("    edge: (ada, wrote, "), "{text}");
        assert!(!text.contains("subgraph"), "{text}");
        let json = tree.json("urn:d");
        let chunk = &json["children"][0];
        assert_eq!(chunk["type"], "chunk");
        assert_eq!(chunk["edges"][0]["o"], json!({"t": "l", "v": "notes"}));
        assert_eq!(chunk["children"], json!([]));
    }

    #[test]
    fn content_that_is_no_text_is_only_measured() {
        assert_eq!(shown(&STANDARD.encode([0xff, 0xfe]), 9), "[2 bytes]");
        assert_eq!(shown(&STANDARD.encode("hello"), 9), "hello");
    }
}
