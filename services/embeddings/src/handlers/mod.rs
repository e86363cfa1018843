//! Handlers: questions for vectors, and the stages, with texts in and vectors out. What the stages share is
//! here: asking for vectors in batches, and what becomes of failures. A text is never passed on without its vector.

pub(crate) mod batch;
pub(crate) mod chunks;
pub(crate) mod embeddings;
pub(crate) mod entities;
pub(crate) mod rows;

use std::collections::HashMap;

use tg_clients::embeddings::{chunk_of, embed};
use tg_mesh::{ConsumeError, Cx};
use tg_runs::RunContext;
use tg_schemas::msg::Metadata;
use tg_schemas::{Error, Retry};

use crate::engine::portion::portion;

/// How long an answer may take.
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(300);
/// Records that may share a question and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    workspace: String,
    flow: String,
    epoch: u64,
    run: Option<String>,
    root: String,
    collection: String,
    /// Set when a record of this kind must stay alone or with its like.
    extra: String,
}

impl Group {
    fn of(cx: &Cx, metadata: &Metadata, extra: &str) -> Self {
        let id = chunk_of(&cx.mesh, metadata).unwrap_or_default();
        Self {
            workspace: cx.workspace().to_owned(),
            flow: cx.flow().to_owned(),
            epoch: cx.scope.epoch,
            run: cx.run().map(ToString::to_string),
            root: metadata.root.clone(),
            collection: metadata.collection.clone(),
            extra: format!("{}:{extra}:{id}", extra.len()),
        }
    }
}

/// Asks the flow's embeddings service: a vector for each text, in order, and the model that made them.
async fn ask(cx: &Cx, texts: &[&str]) -> Result<(Vec<Vec<f32>>, String), Error> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut unique: Vec<&str> = Vec::new();
    for text in texts {
        places.entry(text).or_insert_with(|| {
            unique.push(text);
            unique.len() - 1
        });
    }
    let mut vectors: Vec<Vec<f32>> = Vec::with_capacity(unique.len());
    let mut model: Option<String> = None;
    let mut rest = unique.as_slice();
    while !rest.is_empty() {
        let (now, later) = rest.split_at(portion(rest));
        rest = later;
        let texts = now.iter().map(|text| (*text).to_owned()).collect();
        let answer = embed(cx, texts, Some(TIMEOUT)).await?;
        let complete = answer.vectors.iter().all(|vector| !vector.is_empty());
        let same = model.as_ref().is_none_or(|model| *model == answer.model);
        if !complete || !same {
            return Err(Error::typed(
                crate::error::FAULT,
                "the embeddings service did not answer for every text",
            ));
        }
        model = Some(answer.model);
        vectors.extend(answer.vectors);
    }
    let found = texts.iter().map(|text| vectors[places[text]].clone());
    let found = found.collect();
    Ok((found, model.unwrap_or_default()))
}

/// What becomes of a record whose texts were not embedded: it is tried again, unless it is at fault itself.
fn fault(error: Error) -> ConsumeError {
    match error.code().retry() {
        Retry::Never => ConsumeError::Dead(error),
        _ => ConsumeError::Retry { error, after: None },
    }
}
