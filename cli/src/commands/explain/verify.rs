//! `tg verify-trace`: whether an answer can be followed to its documents. Every link is looked up: answer,
//! what it cites, the fact in the graph, where the fact was found, chunk, page, document, and the library's
//! own record of each. And whether the trace is still what was written: its chain of hashes.
//!
//! Exit code 0 only if the chain holds, the answer cites something, quotes it rightly, and every link holds; with `--chain`
//! or files only the chain counts.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde_json::{Value, json};
use tg_citations::{Judged, sentences};
use tg_schemas::vocabulary::rdf;
use tg_schemas::vocabulary::tg::{DOCUMENT_CLASS as DOCUMENT, LOADED_FILE};
use tg_schemas::{Term, Triple};

use super::chain::{self, Against};
use super::entity::{Entity, Kind};
use super::fetch::{SOURCE, TraceLocation, iri, texts, trace_as_said};
use super::heads;
use super::links::{
    Links, answers, chunk_of, chunks_alone, followed, last_answer, named_by, within,
};
use super::list::meant;
use super::render::edge;
use super::sentences as shown;
use super::trace::Trace;
use crate::args::{InCollection, Options};
use crate::client::{Call, Error, Result, Socket};
use crate::commands::graph::{Pattern, display, triples};
use crate::fields::text;
use crate::registry::Command;
use crate::session::Session;

/// Said of an answer whose text is gone.
const NOT_KEPT: &str =
    "no longer kept: of a workspace the newest 100,000 answers are, and it can be removed";
/// Steps from a chunk up to its document at most.
const MAX_HOPS: usize = 10;

/// Arguments of `tg verify-trace`.
#[derive(Debug, Args)]
pub struct VerifyTrace {
    #[command(flatten)]
    place: InCollection,
    /// IRI of the question or session [default: the newest]
    #[arg(value_name = "SESSION")]
    question_id: Option<String>,
    /// Follow everything that was chosen, not only what is cited
    #[arg(long)]
    all: bool,
    /// Show every link, not only the broken ones
    #[arg(short = 'v', long)]
    verbose: bool,
    #[command(flatten)]
    against: Against,
}

impl Command for VerifyTrace {
    const NAME: &'static str = "verify-trace";
    const ALSO: &'static [&'static str] = &["verify"];
    const ABOUT: &'static str =
        "Check every link from an answer to its documents, and the hashes of its trace";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        if !self.against.files.is_empty() {
            return self.files(session);
        }
        let heads = self.against.heads()?;
        let place = TraceLocation::from(&self.place);
        let mut socket = session.socket().await?;
        let question = meant(&mut socket, &place, self.question_id.clone()).await?;
        let found = trace_as_said(session, &mut socket, &place, &question).await;
        let (trace, said) = found?;
        let chain = chain::online(&mut socket, &place, &question, said, &heads).await?;
        if self.against.chain {
            socket.close().await;
            session.out.show(&chain.json(), || chain.line())?;
            return chain.verdict();
        }
        let mut links = Links::default();
        within(&trace, &question, &mut links);
        let mut way = Way {
            socket: &mut socket,
            place: &place,
            links: &mut links,
            climbed: BTreeSet::new(),
        };
        let Answers { judged, gone, lost } = way.answers(&trace).await?;
        for selection in followed(&trace, self.all) {
            way.selection(selection).await?;
        }
        for chunk in chunks_alone(&trace) {
            way.climb(chunk).await?;
        }
        socket.close().await;
        let refused = last_answer(&trace).is_some_and(|answer| answer.text("refused").is_some());
        let verdict = match lost {
            true => Err(Error::Check(
                "The answer's text is not kept any longer: there is nothing to verify.".to_owned(),
            )),
            false => chain
                .verdict()
                .and_then(|()| verdict_of(&links, &judged, refused)),
        };
        let asked = trace.question().and_then(|asked| asked.text("query"));
        if let Some(asked) = &asked {
            session.out.talk(format!("Answer to: {asked}"));
        }
        let told = json!({
            "trace": question,
            "question": asked,
            "verified": verdict.is_ok(),
            "refused": refused,
            "sentences": judged.sentences(),
            "sources-gone": gone,
            "links": links.json(),
            "chain": chain.json(),
        });
        session.out.show(&told, || {
            let links = links.text(self.verbose);
            let hashes = match self.verbose || chain.verdict().is_err() {
                true => chain.line(),
                false => String::new(),
            };
            let parts = [hashes, links, shown::text(&judged, &gone)];
            let parts = parts.iter().filter(|part| !part.is_empty());
            parts.cloned().collect::<Vec<_>>().join("\n\n")
        })?;
        session.out.talk(verdict?);
        Ok(())
    }
}

impl VerifyTrace {
    /// Checks what files hold, and asks nobody.
    fn files(&self, session: &mut Session) -> Result<()> {
        let run = self.question_id.as_deref();
        let found = chain::offline(&self.against, &self.place.collection, run)?;
        let verdict = chain::verdict(&found);
        let checked = &found.checked;
        let told = json!({
            "verified": verdict.is_ok(),
            "chains": checked.iter().map(chain::Checked::json).collect::<Vec<_>>(),
            "heads": heads::told(&found.heads),
            "signed-elsewhere": found.left,
        });
        session.out.show(&told, || {
            let lines = checked.iter().map(chain::Checked::line);
            lines.collect::<Vec<_>>().join("\n")
        })?;
        session.out.talk(verdict?);
        Ok(())
    }
}

/// Whether the answer is verified, in words.
fn verdict_of(links: &Links, judged: &Judged, refused: bool) -> Result<String> {
    let count = links.count();
    let fault = match (links.faults(), judged.misquoting()) {
        (0, _) if refused => {
            "The answer says that there is none: there is nothing to verify.".to_owned()
        }
        (_, _) if !judged.cite() => {
            "The answer cites nothing: there is nothing to verify.".to_owned()
        }
        (0, 0) => {
            let more = match judged.unsupported() {
                0 => String::new(),
                some => {
                    let all = judged.count();
                    format!(" {some} of {all} sentences rest on nothing.")
                }
            };
            return Ok(format!("All {count} links hold.{more}"));
        }
        (0, wrong) => {
            let all = judged.count();
            format!("{wrong} of {all} sentences quote what does not stand in their passages")
        }
        (1, _) => format!("1 of {count} links does not hold"),
        (faults, _) => format!("{faults} of {count} links do not hold"),
    };
    Err(Error::Check(fault))
}

/// What the answers of a trace say.
#[derive(Default)]
struct Answers {
    /// Of the last one.
    judged: Judged,
    /// Its numbers whose passages the library does not have any more.
    gone: BTreeSet<usize>,
    /// Its text is gone.
    lost: bool,
}

/// The way out of the trace: through the graph and the library.
struct Way<'a> {
    socket: &'a mut Socket,
    place: &'a TraceLocation<'a>,
    links: &'a mut Links,
    /// What was followed upwards already.
    climbed: BTreeSet<String>,
}

impl Way<'_> {
    /// The answers' texts are kept, and cite by the numbers that the trace knows.
    async fn answers(&mut self, trace: &Trace) -> Result<Answers> {
        let mut told = Answers::default();
        let last = last_answer(trace);
        let answers = answers(trace);
        let named = answers.iter().filter_map(|answer| answer.text("document"));
        let kept = texts(self.socket, named.collect()).await?;
        for answer in answers {
            let Some(document) = answer.text("document") else {
                let fault = "its text was not stored";
                self.links
                    .broken("answer -> its text", &answer.iri, "", fault);
                continue;
            };
            let text = kept.get(&document);
            let fault = text.is_none().then(|| NOT_KEPT.to_owned());
            self.links
                .note("answer -> its text", &answer.iri, &document, fault);
            let Some(text) = text else {
                told.lost |= last == Some(answer);
                continue;
            };
            let mut known: BTreeMap<usize, Option<String>> = BTreeMap::new();
            for number in sentences(text).into_iter().flat_map(|one| one.numbers) {
                let to = named_by(trace, answer, number);
                let fault = to
                    .is_none()
                    .then(|| "the trace does not say what is cited".to_owned());
                let named = to.is_some();
                let to = to.unwrap_or_else(|| answer.iri.clone());
                let from = format!("[{number}]");
                self.links.note("number -> citation", &from, &to, fault);
                if named {
                    known.insert(number, chunk_of(trace, answer, number));
                }
            }
            if last == Some(answer) {
                let chunks = known.values().flatten().cloned().collect();
                let kept = texts(self.socket, chunks).await?;
                for (number, chunk) in &mut known {
                    let Some(named) = chunk.take() else { continue };
                    *chunk = kept.get(&named).cloned();
                    // A file that was loaded is in the graph, fact by fact, and not in the library.
                    if chunk.is_none() && !self.is(&named, LOADED_FILE).await? {
                        told.gone.insert(*number);
                    }
                }
                told.judged = Judged::new(text, &known);
            }
        }
        Ok(told)
    }

    /// What was chosen leads to chunks.
    async fn selection(&mut self, selection: &Entity) -> Result<()> {
        if selection.kind == Kind::ChunkSelection {
            // One that names no chunk is a fault of the trace, which was told.
            return match selection.text("document") {
                Some(chunk) => self.climb(chunk).await,
                None => Ok(()),
            };
        }
        let Some([s, p, o]) = edge(selection) else {
            return Ok(());
        };
        let fact = Triple::new(s.clone(), p.clone(), o.clone());
        let told = [Some(s), Some(p), Some(o)].map(display).join(" ");
        let stands = Pattern {
            s: Some(s.clone()),
            p: Some(p.clone()),
            o: Some(o.clone()),
            g: None,
            ..self.place.pattern("", 1)
        };
        let calls = [stands.call(self.place.flow), self.place.holders(fact)];
        let mut replies = self.socket.ask_all(&calls).await?.into_iter();
        let stands = replies.next().transpose()?.unwrap_or_default();
        let fault = triples(&stands)
            .is_empty()
            .then(|| "the graph does not have it".to_owned());
        self.links
            .note("choice -> fact in the graph", &selection.iri, &told, fault);
        let holders = triples(&replies.next().transpose()?.unwrap_or_default());
        let holders: Vec<String> = holders
            .iter()
            .filter_map(|held| iri(held.s.as_ref()))
            .collect();
        if holders.is_empty() {
            let fault = "nothing says where it was found (facts that were loaded without a source have none)";
            self.links
                .broken("fact -> where it was found", &told, "", fault);
        }
        for holder in holders {
            self.links
                .holds("fact -> where it was found", &told, &holder);
            let parents = self.parents(&holder).await?;
            if parents.is_empty() {
                let fault = "no chunk is named";
                self.links.broken("found -> chunk", &holder, "", fault);
            }
            for chunk in parents {
                self.links.holds("found -> chunk", &holder, &chunk);
                self.climb(chunk).await?;
            }
        }
        Ok(())
    }

    /// From a chunk up to its document, each step by the graph and by the library.
    async fn climb(&mut self, chunk: String) -> Result<()> {
        let mut at = chunk;
        for hop in 0..=MAX_HOPS {
            if !self.climbed.insert(at.clone()) {
                return Ok(());
            }
            let record = self.record(&at).await?;
            let Some(record) = record else {
                if self.is(&at, LOADED_FILE).await? {
                    self.links.holds("loaded file -> graph", &at, &at);
                    return Ok(());
                }
                let fault = "the document was removed, or this part of it was replaced";
                self.links.broken("part -> library", &at, "", fault);
                return Ok(());
            };
            let kind = match text(&record, "document-type") {
                kind if kind.is_empty() || kind == "source" => "document".to_owned(),
                kind => kind,
            };
            self.links
                .holds(&format!("{kind} -> library"), &at, &text(&record, "title"));
            let parents = self.parents(&at).await?;
            let inside = text(&record, "parent-id");
            match parents.as_slice() {
                [] if inside.is_empty() && hop > 0 => return self.document(&at).await,
                [] => {
                    let name = format!("{kind} -> what it is part of");
                    let fault = "the graph does not say what it was taken from";
                    self.links.broken(&name, &at, &inside, fault);
                    return Ok(());
                }
                [parent, ..] => {
                    let agree = inside.is_empty() || parents.contains(&inside);
                    let fault = (!agree).then(|| format!("the library says {inside}"));
                    let name = format!("{kind} -> what it is part of");
                    let fault = match fault {
                        None => self.lies_in(&at, parent).await?,
                        fault => fault,
                    };
                    self.links.note(&name, &at, parent, fault);
                    at = parent.clone();
                }
            }
        }
        let fault = "the way up does not end";
        self.links.broken("part -> document", &at, "", fault);
        Ok(())
    }

    /// The top of the way is a document to the graph as well.
    async fn document(&mut self, iri: &str) -> Result<()> {
        let known = self.is(iri, DOCUMENT).await?;
        let fault = (!known).then(|| "the graph does not know it as a document".to_owned());
        self.links.note("document -> graph", iri, iri, fault);
        Ok(())
    }

    /// Whether the graph says that something is of a class.
    async fn is(&mut self, iri: &str, class: &str) -> Result<bool> {
        let pattern = Pattern {
            s: Some(Term::iri(iri)),
            p: Some(Term::iri(rdf::TYPE)),
            o: Some(Term::iri(class)),
            g: None,
            ..self.place.pattern("", 1)
        };
        let reply = self.socket.ask(&pattern.call(self.place.flow)).await?;
        Ok(!triples(&reply).is_empty())
    }

    /// What the library says of a document or part.
    async fn record(&mut self, id: &str) -> Result<Option<Value>> {
        let request = json!({"operation": "get-document-metadata", "document-id": id});
        let reply = self
            .socket
            .ask_all(&[Call::global("librarian", request)])
            .await?;
        match reply.into_iter().next() {
            Some(Ok(reply)) => Ok(reply.get("document-metadata").cloned()),
            Some(Err(error)) if error.exit_code() == NOT_FOUND => Ok(None),
            Some(Err(error)) => Err(error),
            None => Ok(None),
        }
    }

    /// Whether a part's text is in its parent's, where both are plain text small enough to be compared.
    async fn lies_in(&mut self, part: &str, parent: &str) -> Result<Option<String>> {
        let plain = match self.record(parent).await? {
            Some(record) => text(&record, "kind").starts_with("text/plain"),
            None => false,
        };
        if !plain {
            return Ok(None);
        }
        let ids = BTreeSet::from([part.to_owned(), parent.to_owned()]);
        let found: BTreeMap<String, String> = texts(self.socket, ids).await?;
        let words = |id: &str| {
            let text = found.get(id)?;
            Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        Ok(match (words(part), words(parent)) {
            (None, _) => Some("its text is not in the library".to_owned()),
            (Some(inner), Some(outer)) if !outer.contains(&inner) => {
                Some("its text does not stand there".to_owned())
            }
            _ => None,
        })
    }

    /// What something was derived from, by the source graph.
    async fn parents(&mut self, part: &str) -> Result<Vec<String>> {
        let reply = self
            .socket
            .ask(&self.place.parents(part, SOURCE, 10))
            .await?;
        let above = triples(&reply);
        Ok(above
            .iter()
            .filter_map(|triple| iri(triple.o.as_ref()))
            .collect())
    }
}

/// Exit code of what does not exist.
const NOT_FOUND: u8 = 3;
