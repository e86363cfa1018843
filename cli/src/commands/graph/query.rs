//! `tg query-graph`: triples by pattern.

use clap::{Args, ValueEnum};
use serde_json::Value;
use tg_schemas::{Term, Triple};

use super::term::{TermKind, display, read, refine};
use super::{Pattern, each_batch, graph_option};
use crate::args::{InCollection, Options};
use crate::client::{Error, Result};
use crate::output::{JsonArray, Output};
use crate::registry::Command;
use crate::session::Session;

/// How triples are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Space,
    Pipe,
    Json,
    Jsonl,
}

/// Arguments of `tg query-graph`.
#[derive(Debug, Args)]
pub struct QueryGraph {
    #[command(flatten)]
    place: InCollection,
    /// Subject: IRI, literal or a quoted triple as `<<s p o>>`
    #[arg(short = 's', long, value_name = "TERM")]
    subject: Option<String>,
    /// Predicate
    #[arg(short = 'p', long, value_name = "TERM")]
    predicate: Option<String>,
    /// Object: IRI, literal or a quoted triple as `<<s p o>>`
    #[arg(short = 'o', long, value_name = "TERM")]
    object: Option<String>,
    /// What the object is, instead of a guess
    #[arg(long, value_enum, value_name = "KIND", requires = "object")]
    object_type: Option<TermKind>,
    /// Datatype of a literal object, e.g. xsd:integer
    #[arg(long, value_name = "IRI", requires = "object")]
    object_datatype: Option<String>,
    /// Language of a literal object, e.g. en
    #[arg(
        long,
        value_name = "TAG",
        requires = "object",
        conflicts_with = "object_datatype"
    )]
    object_language: Option<String>,
    /// Named graph; "" is the default graph [default: all graphs]
    #[arg(short = 'g', long, value_name = "IRI")]
    graph: Option<String>,
    #[command(flatten)]
    quoted: Quoted,
    /// Maximum number of triples
    #[arg(short = 'l', long, default_value_t = 1000, value_name = "COUNT")]
    limit: u64,
    /// Triples a batch
    #[arg(short = 'b', long, default_value_t = 20, value_name = "COUNT")]
    batch_size: u64,
    /// How triples are printed
    #[arg(long, value_enum, default_value_t = Format::Space)]
    format: Format,
    /// Print a head line
    #[arg(short = 'H', long)]
    headers: bool,
}

/// An object that is a quoted triple, part by part.
#[derive(Debug, Args)]
struct Quoted {
    /// Subject of a quoted triple that is the object
    #[arg(long, value_name = "TERM", conflicts_with = "object", requires_all = ["qt_predicate", "qt_object"])]
    qt_subject: Option<String>,
    /// What that subject is
    #[arg(long, value_enum, value_name = "KIND", requires = "qt_subject")]
    qt_subject_type: Option<TermKind>,
    /// Predicate of that quoted triple
    #[arg(long, value_name = "IRI", requires = "qt_subject")]
    qt_predicate: Option<String>,
    /// Object of that quoted triple
    #[arg(long, value_name = "TERM", requires = "qt_subject")]
    qt_object: Option<String>,
    /// What that object is
    #[arg(long, value_enum, value_name = "KIND", requires = "qt_object")]
    qt_object_type: Option<TermKind>,
    /// Datatype of that object
    #[arg(long, value_name = "IRI", requires = "qt_object")]
    qt_object_datatype: Option<String>,
    /// Language of that object
    #[arg(long, value_name = "TAG", requires = "qt_object")]
    qt_object_language: Option<String>,
}

impl Quoted {
    fn term(&self) -> Result<Option<Term>> {
        let (Some(s), Some(p), Some(o)) = (&self.qt_subject, &self.qt_predicate, &self.qt_object)
        else {
            return Ok(None);
        };
        let object = refine(
            read(o, self.qt_object_type)?,
            self.qt_object_datatype.as_deref(),
            self.qt_object_language.as_deref(),
        )?;
        let triple = Triple::new(
            read(s, self.qt_subject_type)?,
            read(p, Some(TermKind::Iri))?,
            object,
        );
        Ok(Some(Term::Quoted(Box::new(triple))))
    }
}

impl Command for QueryGraph {
    const NAME: &'static str = "query-graph";
    const ABOUT: &'static str = "Find triples by subject, predicate, object and graph";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let pattern = self.pattern()?;
        let call = pattern.streamed(&self.place.flow.flow_id, self.batch_size);
        let format = match session.out.is_json() {
            true => Format::Json,
            false => self.format,
        };
        if self.headers {
            header(&mut session.out, format)?;
        }
        let mut socket = session.socket().await?;
        let mut array = JsonArray::default();
        let out = &mut session.out;
        each_batch(&mut socket, &call, |batch| {
            for triple in batch {
                match format {
                    Format::Json => array.push(out, triple)?,
                    Format::Jsonl => out.line(triple.to_string())?,
                    Format::Space => out.line(row(triple, " "))?,
                    Format::Pipe => out.line(row(triple, "|"))?,
                }
            }
            out.flush()
        })
        .await?;
        if format == Format::Json {
            array.end(out)?;
        }
        socket.close().await;
        Ok(())
    }
}

impl QueryGraph {
    fn pattern(&self) -> Result<Pattern> {
        let plain = |text: &Option<String>| {
            text.as_deref()
                .filter(|text| !text.is_empty())
                .map(|text| read(text, None))
                .transpose()
        };
        let object = match (&self.object, self.quoted.term()?) {
            (_, Some(quoted)) => Some(quoted),
            (Some(text), None) if !text.is_empty() => Some(refine(
                read(text, self.object_type)?,
                self.object_datatype.as_deref(),
                self.object_language.as_deref(),
            )?),
            _ => None,
        };
        if matches!(plain(&self.predicate)?, Some(term) if !matches!(term, Term::Iri(_))) {
            return Err(Error::Usage("--predicate must be an IRI".to_owned()));
        }
        Ok(Pattern {
            s: plain(&self.subject)?,
            p: plain(&self.predicate)?,
            o: object,
            g: graph_option(self.graph.clone()),
            collection: self.place.collection.clone(),
            limit: self.limit,
        })
    }
}

fn header(out: &mut Output, format: Format) -> Result<()> {
    match format {
        Format::Space => out.line("subject predicate object"),
        Format::Pipe => out.line("subject|predicate|object"),
        Format::Json | Format::Jsonl => Ok(()),
    }
}

fn row(triple: &Value, separator: &str) -> String {
    let triple = Triple::from_api(triple).unwrap_or_default();
    [&triple.s, &triple.p, &triple.o]
        .map(|term| display(term.as_ref()))
        .join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Command as Clap, FromArgMatches};
    use serde_json::json;

    fn parse(arguments: &[&str]) -> Result<QueryGraph, clap::Error> {
        let command = QueryGraph::augment_args(Clap::new("query-graph"));
        let argv = std::iter::once("query-graph").chain(arguments.iter().copied());
        QueryGraph::from_arg_matches(&command.try_get_matches_from(argv)?)
    }

    #[test]
    fn a_pattern_sends_only_what_is_bound() {
        let query = parse(&[
            "-p",
            "http://e/p",
            "-o",
            "x",
            "--object-language",
            "en",
            "-g",
            "",
        ]);
        let pattern = query.expect("arguments").pattern().expect("pattern");
        assert_eq!(
            pattern.call("default").request,
            json!({"collection": "default", "limit": 1000, "p": {"t": "i", "i": "http://e/p"},
                "o": {"t": "l", "v": "x", "ln": "en"}, "g": ""})
        );
    }

    #[test]
    fn a_quoted_object_can_be_given_in_parts() {
        let query = parse(&[
            "--qt-subject",
            "http://e/s",
            "--qt-predicate",
            "http://e/p",
            "--qt-object",
            "5",
            "--qt-object-datatype",
            "xsd:integer",
        ]);
        let pattern = query.expect("arguments").pattern().expect("pattern");
        assert_eq!(
            pattern.call("default").request["o"]["tr"]["o"],
            json!({"t": "l", "v": "5", "dt": "http://www.w3.org/2001/XMLSchema#integer"})
        );
        assert!(parse(&["--qt-subject", "http://e/s"]).is_err());
        assert!(
            parse(&[
                "-o",
                "x",
                "--qt-subject",
                "s",
                "--qt-predicate",
                "p",
                "--qt-object",
                "o"
            ])
            .is_err()
        );
    }

    #[test]
    fn a_row_shows_languages() {
        let triple = json!({"s": {"t": "i", "i": "http://e/s"}, "p": {"t": "i", "i": "http://e/p"},
            "o": {"t": "l", "v": "chat", "ln": "fr"}});
        assert_eq!(row(&triple, "|"), "http://e/s|http://e/p|\"chat\"@fr");
    }
}
