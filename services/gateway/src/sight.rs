//! What is for whoever looks on, where a collection has policies: of the triples that pass by, and of the entities that vectors
//! stand for. The store judges, as it does whatever is asked of it: what it does not show to somebody does not pass by for
//! them either, and an entity of which it shows nothing is not named. So nothing is shown before it is stored, and to who is
//! not known to the policies nothing at all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use tg_mesh::{Ask, Deadline, Mesh};
use tg_schemas::msg::{
    DEFAULT_COLLECTION, Metadata, Triples, TriplesQueryRequest, TriplesQueryResponse,
};
use tg_schemas::vocabulary::POLICY_GRAPH;
use tg_schemas::{Error, ErrorCode, Term, Topic, Triple};
use tokio::time::Instant;

use crate::ask::{Part, Parts};
use crate::engine::scrub::scrub;
use crate::engine::translate::{Body, triples};
use crate::error::RequestError;
use crate::flows::Flow;
use crate::judging::JudgeRoom;
use crate::state::App;

/// What entities are listed under: those that were found, and those of a page of all.
const ENTITIES: &str = "entities";
const STORED: &str = "stored";
/// What is said of an entity's vector that may name, or quote, what is hidden.
const SAYS_MORE: [&str; 3] = ["chunk_id", "text", "made_by"];
/// Pauses before each look at what is not shown: it is hidden, or not stored yet. What is not shown then is not shown.
const LOOKS: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(400),
    Duration::from_millis(1_500),
    Duration::from_secs(3),
];
/// Questions to the store at once for one record.
const AT_ONCE: usize = 16;
/// Records that are judged at once.
pub(crate) const RECORDS: usize = 128;
/// How long the store may take for a question.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A store that does not answer is asked again after this.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// For whom it is judged, and where.
#[derive(Clone)]
pub(crate) struct Judge {
    mesh: Mesh,
    /// Who answers for the graph of the flow.
    topic: Topic,
    /// As the caller asks; with what policies know of them.
    ask: Ask,
    workspace: Arc<str>,
    room: JudgeRoom,
}

impl Judge {
    /// The graph of a flow, for who asks so. Where there is none nobody judges, and nothing is judged for who is held to no
    /// policies.
    ///
    /// # Errors
    /// Where nobody judges, for who is held to policies.
    pub(crate) fn of(app: &App, flow: &Flow, ask: Ask) -> Result<Option<Self>, RequestError> {
        match flow.request("triples") {
            Ok(topic) => Ok(Some(Self {
                mesh: app.mesh.clone(),
                topic,
                ask: Ask {
                    id: None,
                    detach: false,
                    streaming: false,
                    ..ask
                },
                workspace: flow.workspace.as_str().into(),
                room: app.judges.clone(),
            })),
            Err(_) if ask.user_context.is_none() => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// Whether policies know of whoever asks.
    pub(crate) fn is_known(&self) -> bool {
        self.ask.user_context.is_some()
    }

    /// The record as the caller sees it, once it is stored.
    ///
    /// # Errors
    /// What the store says to who may see nothing. Nothing of the record is shown then, or where nobody says.
    pub(crate) async fn seen(&self, mut record: Triples) -> Result<Triples, Error> {
        let collection = record.metadata.as_ref().map(|of| of.collection.clone());
        let collection = collection.filter(|name| !name.is_empty());
        let collection = collection.unwrap_or_else(|| DEFAULT_COLLECTION.to_owned());
        if self.is_known() {
            record.triples = self.shown(&collection, record.triples).await?;
            // Ids of documents and chunks are what policies may hide, too.
            record.metadata = Some(Metadata {
                collection,
                ..Metadata::default()
            });
            return Ok(record);
        }
        let passes = record.triples.iter().any(is_of_policies);
        // The store decides what is a policy: a triple that only says so, it refuses.
        let looks = if passes { &LOOKS[..] } else { &LOOKS[..1] };
        for pause in looks {
            tokio::time::sleep(*pause).await;
            self.has_none(&collection).await?;
        }
        if passes {
            record.triples.clear();
        }
        Ok(record)
    }

    /// That a collection has no policies: it is read by somebody of whom they know nothing.
    async fn has_none(&self, collection: &str) -> Result<(), Error> {
        // It is the store, too, that refuses whoever is not known to policies.
        if self
            .asked(&triples::any_policy(collection))
            .await?
            .is_empty()
        {
            return Ok(());
        }
        let why = "this collection has policies: ask with a token that has a user context";
        Err(Error::typed("policy-enforcement-error", why))
    }

    /// Whether each of some entities may be named: the graph shows something of it.
    ///
    /// # Errors
    /// As [`Self::seen`].
    async fn named(
        &self,
        collection: &str,
        entities: Vec<Option<Term>>,
    ) -> Result<Vec<bool>, Error> {
        if !self.is_known() {
            self.has_none(collection).await?;
            return Ok(vec![true; entities.len()]);
        }
        let looks = entities.into_iter().map(|entity| async move {
            let Some(entity) = entity else {
                return Ok(false);
            };
            for question in triples::about(collection, &entity) {
                match self.asked(&question).await {
                    Ok(found) if found.is_empty() => {}
                    Ok(_) => return Ok(true),
                    // A literal is no subject.
                    Err(error) if error.code() == ErrorCode::BadRequest => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(false)
        });
        stream::iter(looks).buffered(AT_ONCE).try_collect().await
    }

    /// A part of an answer, or a frame, without the entities that are not for whoever asked.
    ///
    /// # Errors
    /// As [`Self::seen`].
    pub(crate) async fn without_hidden(
        &self,
        collection: &str,
        body: &mut Body,
    ) -> Result<(), Error> {
        for list in [ENTITIES, STORED] {
            let Some(Value::Array(all)) = body.get_mut(list) else {
                continue;
            };
            let entities = all.iter().map(|one| entity_of(&one["entity"])).collect();
            let mut named = self.named(collection, entities).await?.into_iter();
            all.retain(|_| named.next().unwrap_or(false));
            if self.is_known() {
                let entities = all.iter_mut().filter_map(Value::as_object_mut);
                entities.for_each(|one| one.retain(|name, _| !SAYS_MORE.contains(&name.as_str())));
            }
        }
        Ok(())
    }

    /// An answer that names entities, as it is for whoever asked.
    pub(crate) fn judged(self, parts: Parts, collection: String) -> Parts {
        let state = (parts, self, collection, false);
        let judged = stream::unfold(state, |(mut parts, judge, collection, over)| async move {
            if over {
                return None;
            }
            let part = match parts.next().await? {
                Part::Body {
                    body,
                    last,
                    failed: false,
                } => {
                    let mut body = body.into_tree();
                    let judged = judge.without_hidden(&collection, &mut body).await;
                    if let Err(error) = judged {
                        let part = Part::Error(scrub(error));
                        return Some((part, (parts, judge, collection, true)));
                    }
                    let body = body.into();
                    Part::Body {
                        body,
                        last,
                        failed: false,
                    }
                }
                part => part,
            };
            Some((part, (parts, judge, collection, false)))
        });
        judged.boxed()
    }

    /// Those of the triples that are stored and shown.
    async fn shown(&self, collection: &str, triples: Vec<Triple>) -> Result<Vec<Triple>, Error> {
        let mut shown: HashMap<usize, Triple> = HashMap::new();
        // What lacks something, or names all graphs, is not stored as it is, and would be a question for more than itself.
        let whole = |triple: &Triple| {
            let terms = [&triple.s, &triple.p, &triple.o];
            terms.iter().all(|term| term.is_some()) && triple.g.as_deref() != Some("*")
        };
        let all = triples.into_iter().enumerate();
        let mut left: Vec<(usize, Triple)> = all.filter(|(_, triple)| whole(triple)).collect();
        let mut stored = false;
        for (look, pause) in LOOKS.into_iter().enumerate() {
            // The store may still be writing what passed.
            tokio::time::sleep(pause).await;
            let looks = left.into_iter().map(|(at, triple)| async move {
                let question = triples::one(collection, &triple);
                let found = match self.asked(&question).await {
                    // What is not RDF is never stored.
                    Err(error) if error.code() == ErrorCode::BadRequest => Vec::new(),
                    told => told?,
                };
                Ok::<_, Error>((at, triple, !found.is_empty()))
            });
            let looked = stream::iter(looks).buffered(AT_ONCE);
            let looked: Vec<_> = looked.try_collect().await?;
            let before = shown.len();
            left = Vec::new();
            for (at, triple, is_shown) in looked {
                match is_shown {
                    true => drop(shown.insert(at, triple)),
                    false => left.push((at, triple)),
                }
            }
            if left.is_empty() || stored {
                break;
            }
            // What is shown now and was not before has just been stored, and all of its record with it: what is not shown at the
            // next look either is hidden. What was shown at once may have been there before.
            stored = look > 0 && shown.len() > before;
        }
        let mut shown: Vec<_> = shown.into_iter().collect();
        shown.sort_unstable_by_key(|(at, _)| *at);
        Ok(shown.into_iter().map(|(_, triple)| triple).collect())
    }

    /// What the store finds. One that is away is waited for.
    async fn asked(&self, question: &TriplesQueryRequest) -> Result<Vec<Triple>, Error> {
        let end = Instant::now() + TIMEOUT;
        let mut question = question.clone();
        // Where no header travels, the question says for whom it is.
        let context = self.ask.user_context.as_deref();
        question.user_context =
            context.and_then(|text| serde_json::from_slice(text.as_bytes()).ok());
        loop {
            let ask = Ask {
                deadline: Some(Deadline::after(TIMEOUT)),
                ..self.ask.clone()
            };
            let place = self.room.take(&self.workspace).await;
            let answer = self
                .mesh
                .ask::<_, TriplesQueryResponse>(&self.topic, &question, ask);
            let part = answer.last().await;
            let part = part.and_then(|part| match part.error {
                Some(error) => Err(error),
                None => Ok(part.triples),
            });
            drop(place);
            let away =
                |error: &Error| matches!(error.code(), ErrorCode::Unavailable | ErrorCode::Busy);
            match part {
                Err(error) if away(&error) && Instant::now() < end => {
                    // Until the store is back, or its standby has taken over.
                    tokio::time::sleep(RETRY_DELAY).await;
                }
                told => return told,
            }
        }
    }
}

/// An entity as clients read it, or as the bus has it, where what is no term reads as an empty IRI.
fn entity_of(value: &Value) -> Option<Term> {
    let entity = Term::from_api(value).or_else(|| serde_json::from_value(value.clone()).ok());
    entity.filter(|entity| *entity != Term::Iri(String::new()))
}

fn is_of_policies(triple: &Triple) -> bool {
    triple.g.as_deref() == Some(POLICY_GRAPH)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_is_told_by_its_graph() {
        let triple = Triple::new(Term::iri("urn:s"), Term::iri("urn:p"), Term::literal("o"));
        let named = triple.in_graph("urn:g");
        assert!(!is_of_policies(&named));
        assert!(is_of_policies(&named.in_graph(POLICY_GRAPH)));
    }

    #[test]
    fn an_entity_is_read_in_either_form() {
        let entity = Term::iri("urn:x");
        assert_eq!(entity_of(&entity.to_api()), Some(entity.clone()));
        assert_eq!(entity_of(&json!(entity)), Some(entity));
        assert_eq!(entity_of(&json!({"t": "nothing"})), None);
        assert_eq!(entity_of(&Value::Null), None);
    }
}
