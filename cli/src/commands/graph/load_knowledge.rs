//! `tg load-knowledge`: RDF files into the graph, and what they say of their subjects into entity search.
//!
//! A file is read three times and never held whole: for its triples, for the types of its subjects, for
//! what is said of them in words.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use oxigraph::io::RdfFormat;
use serde_json::{Value, json};
use tg_schemas::{Term, Triple};
use tokio::sync::mpsc;

use super::load_turtle::{AHEAD, Loader, Recorded, read_by};
use crate::args::{InCollection, Options};
use crate::client::{Result, Settled};
use crate::registry::Command;
use crate::session::Session;

/// Contexts in one frame.
const FRAME: usize = 100;
/// Subjects whose types are remembered; those after go without.
const TYPED: usize = 1_000_000;

const TYPE: &str = tg_schemas::vocabulary::rdf::TYPE;

/// What the files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Turtle,
    Trig,
}

/// Arguments of `tg load-knowledge`.
#[derive(Debug, Args)]
pub struct LoadKnowledge {
    #[command(flatten)]
    place: InCollection,
    /// Id of the document that the knowledge comes from
    #[arg(short = 'i', long, value_name = "ID")]
    document_id: String,
    /// Graph of triples that name none [default: the default graph]
    #[arg(short = 'g', long, value_name = "IRI")]
    graph: Option<String>,
    /// What the files are [default: what their names say, else turtle]
    #[arg(short = 'F', long, value_enum)]
    format: Option<Format>,
    /// How often a broken import is tried again
    #[arg(long, default_value_t = 2, value_name = "COUNT")]
    retries: u32,
    /// Turtle or TriG files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

impl Command for LoadKnowledge {
    const NAME: &'static str = "load-knowledge";
    const ABOUT: &'static str = "Load RDF files into the graph and into entity search";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let loader = Loader {
            place: &self.place,
            document_id: &self.document_id,
            retries: self.retries,
            source: Recorded::default(),
            graph: self.graph.as_deref().filter(|graph| !graph.is_empty()),
            format: self.format.map(|format| match format {
                Format::Turtle => RdfFormat::Turtle,
                Format::Trig => RdfFormat::TriG,
            }),
        };
        let (mut loaded, mut whole) = loader.run(session, &self.files).await?;
        for (file, shown) in self.files.iter().zip(&mut loaded) {
            let (contexts, mut settled) = self.load_contexts(session, &loader, file).await?;
            let types = Types::default();
            let made = move |triple: &Triple| types.context(triple).is_some();
            loader.look_up(file, settled.as_mut(), made).await?;
            session.tell_settled(settled.as_ref(), "contexts");
            if let Some(settled) = &settled {
                whole = whole.and(settled.check("contexts"));
                shown["settled-contexts"] = settled.show();
            }
            session.out.talk(format!(
                "  {contexts} entity contexts from {}",
                file.display()
            ));
            shown["contexts"] = json!(contexts);
        }
        session
            .out
            .show(&Value::from(loaded), || "Knowledge loaded.".to_owned())?;
        whole
    }
}

impl LoadKnowledge {
    async fn load_contexts(
        &self,
        session: &Session,
        loader: &Loader<'_>,
        file: &Path,
    ) -> Result<(u64, Option<Settled>)> {
        let (typing, parser) = (loader.parser(file)?, loader.parser(file)?);
        let flow = &self.place.flow.flow_id;
        let mut import = session.import(flow, "entity-contexts").await?;
        let (frames, mut ready) = mpsc::channel(AHEAD);
        let reading = tokio::task::spawn_blocking(move || {
            let mut types = Types::default();
            typing.each(|triple| {
                types.note(&triple);
                true
            })?;
            parser.batches(FRAME, &frames, |triple| types.context(&triple))
        });
        let mut sent = 0;
        while let Some(entities) = ready.recv().await {
            sent += entities.len() as u64;
            import.send(&loader.frame("entities", entities)).await?;
        }
        read_by(file, reading).await?;
        import.end().await?;
        Ok((sent, import.into_settled()))
    }
}

/// Types of subjects.
#[derive(Debug, Default)]
struct Types(BTreeMap<Term, Vec<String>>);

impl Types {
    fn note(&mut self, triple: &Triple) {
        let (Some(subject), Some(Term::Iri(predicate)), Some(Term::Iri(object))) =
            (&triple.s, &triple.p, &triple.o)
        else {
            return;
        };
        if predicate != TYPE || (self.0.len() == TYPED && !self.0.contains_key(subject)) {
            return;
        }
        let types = self.0.entry(subject.clone()).or_default();
        if !types.contains(object) {
            types.push(object.clone());
        }
    }

    /// What a triple says of its subject in words.
    fn context(&self, triple: &Triple) -> Option<Value> {
        let (Some(subject), Some(Term::Literal { value, .. })) = (&triple.s, &triple.o) else {
            return None;
        };
        if value.trim().is_empty() {
            return None;
        }
        let mut context = json!({"entity": subject.to_api(), "context": value});
        if let Some(types) = self.0.get(subject) {
            context["rdf_type"] = json!(types);
        }
        Some(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_contexts_with_the_types_of_their_subject() {
        let a = || Term::iri("urn:a");
        let typed = Triple::new(a(), Term::iri(TYPE), Term::iri("urn:T"));
        let words = Triple::new(a(), Term::iri("urn:p"), Term::literal("a tower"));
        let mut types = Types::default();
        types.note(&typed);
        types.note(&typed);
        types.note(&words);
        assert_eq!(types.context(&typed), None);
        assert_eq!(
            types.context(&words),
            Some(
                json!({"entity": {"t": "i", "i": "urn:a"}, "context": "a tower",
                        "rdf_type": ["urn:T"]})
            )
        );
        let other = Triple::new(Term::iri("urn:b"), Term::iri("urn:p"), Term::literal("x"));
        let context = types.context(&other).expect("a context");
        assert!(context.get("rdf_type").is_none());
    }
}
