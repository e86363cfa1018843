//! `document-rag`: what the question is about → chunks by meaning and by words → their texts → the best of
//! them → an answer that cites them.

use std::collections::BTreeMap;

use serde_json::json;
use tg_clients::traces::{Text, answer_title};
use tg_mesh::{Cx, clock};
use tg_provenance::{
    Numbered, Retrieval, SelectedChunk, SessionFacts, Synthesis, asked, explored_chunks,
    focused_on_chunks, grounded, synthesised,
};
use tg_schemas::msg::{DocumentRagQuery, DocumentRagResponse};
use tg_schemas::processors::document_rag::RERANKER;
use tg_schemas::{Error, ErrorCode};

use super::citations::{self, Named};
use super::frames::End;
use super::stream::AnswerStream;
use super::synthesis::{self, Task, usage};
use super::trace::trace_id;
use crate::ask::{self, Judge, Library, Spent};
use crate::engine::budget::{fitting, shorten};
use crate::engine::concepts;
use crate::engine::documents::{Chosen, Passage, choose, in_order, pool};
use crate::engine::facts::Origin;
use crate::engine::plan::DocumentPlan;

const PROMPT: &str = "document-prompt";
/// What is said when no document has anything.
const NOTHING: &str = "The documents of this collection hold nothing that answers this question.";
/// Warnings: what an answer goes on without.
const NO_RERANKER: &str = "the reranker did not answer: the order of the searches decided";
const WORDS_DIVERSE: &str = "the reranker did not answer: words decided which chunks fit";
const NO_KEYWORDS: &str = "the keyword index did not answer: searched by meaning only";
const NO_MEANING: &str = "the search by meaning failed: searched by words only";
/// Characters of a chunk that the reranker sees.
const RERANKED: usize = 4_000;
/// Characters of one chunk, and bytes of all chunks, that the model is given.
const CHUNK: usize = 20_000;
const CHUNKS: usize = 240 << 10;

type Stream = AnswerStream<DocumentRagResponse>;

/// Answers a question by its plan, step by step along `stream`.
///
/// # Errors
/// What a service that had to be asked said; what is optional is done without.
pub async fn answer(
    cx: &Cx,
    ask: &DocumentRagQuery,
    plan: &DocumentPlan,
    stream: &mut Stream,
) -> Result<(), Error> {
    let started_at = clock::rfc3339();
    let names = Retrieval::documents(&trace_id(cx, &started_at));
    let facts = SessionFacts {
        question: &plan.question,
        started_at: &started_at,
        parent: Some(ask.parent_uri.as_str()).filter(|parent| !parent.is_empty()),
    };
    stream.tell(asked(&names, &facts)).await?;

    let (concepts, spent) = concepts(cx, plan).await?;
    stream.spent.add(&spent);
    stream
        .tell(grounded(&names, &concepts, &usage(&spent)))
        .await?;

    let (found, embeddings) = search(cx, plan, &concepts, stream).await?;
    let passages = Library::of(cx).texts(&found).await?;
    let looked_at: Vec<String> = passages.iter().map(|p| p.chunk.clone()).collect();
    stream.tell(explored_chunks(&names, &looked_at)).await?;

    let (chosen, focused) = select(cx, plan, &passages, stream).await?;
    let texts = texts(&passages, &chosen);
    let count = fitting(&texts, CHUNKS);
    let (chosen, texts) = (&chosen[..count], &texts[..count]);
    if focused {
        let selected = selected(&passages, chosen);
        stream
            .store_and_tell(focused_on_chunks(&names, &selected))
            .await?;
    }

    let chunks: Vec<String> = chosen
        .iter()
        .map(|chosen| passages[chosen.passage].chunk.clone())
        .collect();
    let traced = citations::traced(cx, &plan.collection, &chunks).await?;
    let read: Vec<String> = (0..count)
        .map(|at| passages[chosen[at].passage].read(&texts[at], traced[at].page))
        .collect();
    let task = Task {
        prompt: PROMPT,
        terms: BTreeMap::from([
            ("query".to_owned(), json!(plan.question).to_string()),
            ("documents".to_owned(), json!(read).to_string()),
        ]),
        passages: texts,
        nothing: NOTHING,
    };
    let written = synthesis::write(cx, stream, task).await?;

    let document = names.answer_document();
    let answer = Text {
        id: document.clone(),
        title: answer_title("DocumentRAG", &plan.question),
        text: &written.text,
    };
    let cited = written.cited.iter().map(|cited| cited.passage);
    let (chunks, traced): (Vec<String>, Vec<Origin>) = cited
        .map(|passage| (chunks[passage].clone(), traced[passage].clone()))
        .unzip();
    let (stored, origins) = tokio::join!(
        stream.traces.save(&answer),
        citations::completed(cx, &chunks, traced)
    );
    let named = written.cited.iter().enumerate().map(|(at, cited)| Named {
        cited,
        chunk: &chunks[at],
        text: &texts[cited.passage],
        selection: focused.then(|| names.selection(cited.passage)),
    });
    let citations = citations::all(named, &origins);
    let end = Synthesis {
        focused,
        stored,
        cites: &citations.iter().map(Numbered::from).collect::<Vec<_>>(),
        refused: written.refused,
        usage: usage(&written.spent),
    };
    let text = stored.then_some(written.text.as_str());
    stream.tell_with(synthesised(&names, &end), text).await?;
    let end = End {
        spent: stream.spent.clone(),
        sources: citations::sources(&citations),
        embeddings,
        citations,
        refused: written.refused,
        trace: names.question(),
        ..End::default()
    };
    stream.end(written.text, end).await
}

/// What the question is about; where words alone are searched, the question itself.
async fn concepts(cx: &Cx, plan: &DocumentPlan) -> Result<(Vec<String>, Spent), Error> {
    match plan.mode.vectors() {
        true => ask::concepts(cx, &plan.question).await,
        false => Ok((vec![plan.question.clone()], Spent::default())),
    }
}

/// The texts of what was chosen, as far as a model reads them.
fn texts(passages: &[Passage], chosen: &[Chosen]) -> Vec<String> {
    let texts = chosen.iter().map(|chosen| &passages[chosen.passage].text);
    texts.map(|text| shorten(text.trim(), CHUNK)).collect()
}

/// What was chosen, as the trace tells it.
fn selected(passages: &[Passage], chosen: &[Chosen]) -> Vec<SelectedChunk> {
    let selected = chosen.iter().map(|chosen| SelectedChunk {
        chunk: passages[chosen.passage].chunk.clone(),
        score: chosen.score,
    });
    selected.collect()
}

/// Chunks that may answer, best first, and the model whose vectors were searched. One search that fails for now leaves
/// the other; one that is refused, such as with vectors of another model, would be refused each time, and is told.
async fn search(
    cx: &Cx,
    plan: &DocumentPlan,
    concepts: &[String],
    stream: &mut Stream,
) -> Result<(Vec<String>, Option<String>), Error> {
    let by_meaning = async {
        if !plan.mode.vectors() {
            return Ok((Vec::new(), None));
        }
        let searches = concepts::searches(&plan.question, concepts);
        let (found, embedded) = ask::by_meaning(cx, &plan.collection, searches, plan.pool).await?;
        Ok((found, embedded.told()))
    };
    let by_words = async {
        if !plan.mode.keywords() {
            return Ok(Vec::new());
        }
        ask::by_words(cx, &plan.collection, &plan.question, plan.pool).await
    };
    let (meaning, words) = tokio::join!(by_meaning, by_words);
    let both = plan.mode.vectors() && plan.mode.keywords();
    let ((meaning, embeddings), words) = match (meaning, words) {
        (Ok(meaning), Ok(words)) => (meaning, words),
        (Err(error), _) | (_, Err(error)) if !both || lasts(error.code()) => return Err(error),
        (Err(error), Err(_)) => return Err(error),
        (Ok(meaning), Err(error)) => {
            tg_mesh::warn_of!(cx, %error, "the keyword index did not answer; searching by meaning only");
            stream.warn(NO_KEYWORDS);
            (meaning, Vec::new())
        }
        (Err(error), Ok(words)) => {
            tg_mesh::warn_of!(cx, %error, "the search by meaning failed; searching by words only");
            stream.warn(NO_MEANING);
            ((Vec::new(), None), words)
        }
    };
    Ok((pool(plan, meaning, words), embeddings))
}

/// Whether a search fails so each time, or nothing else is to be tried.
fn lasts(code: ErrorCode) -> bool {
    code.is_over() || matches!(code, ErrorCode::Conflict | ErrorCode::BadRequest)
}

/// The chunks for the model, and whether a reranker chose them.
async fn select(
    cx: &Cx,
    plan: &DocumentPlan,
    passages: &[Passage],
    stream: &mut Stream,
) -> Result<(Vec<Chosen>, bool), Error> {
    if !cx.has(RERANKER) && plan.diversity.is_none() {
        let mut chosen = in_order(passages);
        chosen.truncate(plan.documents);
        return Ok((chosen, false));
    }
    let texts: Vec<String> = passages
        .iter()
        .map(|passage| passage.read(&shorten(passage.text.trim(), RERANKED), 0))
        .collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let limit = if plan.diversity.is_some() {
        passages.len()
    } else {
        plan.documents
    };
    let question = std::slice::from_ref(&plan.question);
    let (ranked, judge) = ask::rerank(cx, question, &texts, limit).await?;
    if judge == Judge::WordsInstead {
        stream.warn(match plan.diversity {
            None => NO_RERANKER,
            Some(_) => WORDS_DIVERSE,
        });
    }
    if judge != Judge::Reranker && plan.diversity.is_none() {
        // The searches know more than words alone.
        let mut chosen = in_order(passages);
        chosen.truncate(plan.documents);
        return Ok((chosen, false));
    }
    let scored = ranked
        .into_iter()
        .map(|ranked| Chosen {
            passage: ranked.text,
            score: ranked.score,
        })
        .collect();
    Ok((choose(plan, passages, scored), true))
}
