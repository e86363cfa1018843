//! The tool `rag-query`: passages of a collection that fit a question, as they stand in the documents. No model is asked for them.

use tg_clients::embeddings::Embedded;
use tg_clients::library::{Library, Passage};
use tg_schemas::msg::{ChunkMatch, DEFAULT_COLLECTION, DocumentEmbeddingsRequest};
use tg_schemas::processors::agent_manager::DOCUMENT_EMBEDDINGS;
use tg_schemas::{Error, ErrorCode};

use super::tool_call::{Arguments, Call, Output, count, text};

/// Times that a question is embedded again because the vectors of its collection are of another model: they may be switched
/// over in between.
const RETRIES: usize = 2;
/// Passages, where neither the model nor the agent says how many, and at most.
const USUAL: usize = 5;
const MOST: usize = 50;

/// Finds them.
pub(super) async fn call(call: &Call<'_>, arguments: &Arguments) -> Result<Output, Error> {
    let usual = usize::try_from(call.passages).unwrap_or_default();
    let usual = if usual == 0 { USUAL } else { usual };
    let collection = collection(call, text(arguments, "index"))?;
    let most = count(arguments, "top_k", usual, MOST);
    let texts = vec![text(arguments, "query").to_owned()];
    let mut embedded = tg_clients::embeddings::embed(call.cx, texts, None).await?;
    let found = search(call, &mut embedded, (collection, most)).await?;
    let ids: Vec<String> = found.into_iter().map(of_chunk).collect();
    let passages = Library::of_flow(call.cx).texts(&ids).await?;
    Ok(shown(&passages).into())
}

/// The collection that is searched: the one that the model names, where the call may look into that one. What a run reads leads it to
/// no other collection than its request named.
fn collection<'a>(call: &'a Call<'_>, named: &'a str) -> Result<&'a str, Error> {
    let may = match call.collections {
        // A request that names none comes with this one.
        [] => call.collection == DEFAULT_COLLECTION || named == call.collection,
        all => all.iter().any(|one| one == named),
    };
    match named {
        "" => Ok(call.collection),
        named if may => Ok(named),
        _ => {
            let text = "index: there is no such collection";
            Err(Error::new(ErrorCode::NotFound, text))
        }
    }
}

/// The chunks of a collection that fit an embedded question best.
pub(super) async fn search(
    call: &Call<'_>,
    embedded: &mut Embedded,
    (collection, most): (&str, usize),
) -> Result<Vec<ChunkMatch>, Error> {
    let limit = i64::try_from(most).unwrap_or(i64::MAX);
    for left in (0..=RETRIES).rev() {
        let request = DocumentEmbeddingsRequest {
            vector: embedded.vectors.first().cloned().unwrap_or_default(),
            limit,
            collection: collection.to_owned(),
            model: embedded.model.clone(),
            tell_model: left > 0,
            ..DocumentEmbeddingsRequest::default()
        };
        let found = call.cx.ask(DOCUMENT_EMBEDDINGS, &request)?.last().await?;
        if found.model.is_empty() {
            return Ok(found.chunks);
        }
        embedded.again_as(call.cx, &found.model).await?;
    }
    let text = "the collection is being changed to another embeddings model: ask again";
    Err(Error::new(ErrorCode::Unavailable, text))
}

fn of_chunk(found: ChunkMatch) -> String {
    found.chunk_id
}

/// As the model reads them, the best first. What the library no longer has is left out.
fn shown(passages: &[Option<Passage>]) -> String {
    let there = passages.iter().flatten().zip(1..);
    let lines: Vec<String> = there
        .map(|(passage, number)| {
            let stands = match passage.context.trim() {
                "" => String::new(),
                context => format!(" ({context})"),
            };
            format!("Passage {number}{stands}:\n{}", passage.text.trim())
        })
        .collect();
    match lines.is_empty() {
        true => "No passages found".to_owned(),
        false => lines.join("\n\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_are_shown_with_where_they_stand() {
        let passage = |text: &str, context: &str| {
            Some(Passage {
                text: text.to_owned(),
                context: context.to_owned(),
            })
        };
        assert_eq!(shown(&[]), "No passages found");
        let all = [passage(" a\n", ""), None, passage("b", "Title")];
        assert_eq!(shown(&all), "Passage 1:\na\n\nPassage 2 (Title):\nb");
    }
}
