//! What a question is about, by the model.

use std::collections::BTreeMap;

use serde_json::Value;
use tg_mesh::Cx;
use tg_schemas::{Error, ErrorCode};
use tokio::time::Instant;

use super::model::{Prompts, Spent};
use crate::engine::concepts;

const PROMPT: &str = "extract-concepts";

/// The concepts of a question, and what finding them took. A workspace without the prompt has the question
/// as its only concept.
pub async fn concepts(cx: &Cx, question: &str) -> Result<(Vec<String>, Spent), Error> {
    match ask(cx, question).await {
        Ok((reply, spent)) => Ok((concepts::read(&reply, question), spent)),
        Err(error) if error.code() == ErrorCode::NotFound || error.kind == "no-configuration" => {
            Ok((vec![question.to_owned()], Spent::default()))
        }
        Err(error) => Err(error),
    }
}

async fn ask(cx: &Cx, question: &str) -> Result<(String, Spent), Error> {
    let started = Instant::now();
    let terms = BTreeMap::from([("query".to_owned(), Value::from(question).to_string())]);
    let mut reply = Prompts::of_flow(cx).whole(PROMPT, terms).await?;
    reply.spent.duration_ms = u64::try_from(started.elapsed().as_millis()).ok();
    Ok((reply.text, reply.spent))
}
