//! Writing the answer: the model's text with its citations checked, passed on as it comes.

use std::collections::BTreeMap;

use tg_citations::{Cited, Citer};
use tg_mesh::Cx;
use tg_provenance::Usage;
use tg_schemas::Error;
use tokio::time::Instant;

use super::frames::Frames;
use super::stream::AnswerStream;
use crate::ask::{Prompts, Spent};

/// What the model is given.
pub struct Task<'a> {
    /// Prompt.
    pub prompt: &'static str,
    /// Values for it, as JSON texts.
    pub terms: BTreeMap<String, String>,
    /// The numbered texts that can be cited, as the prompt numbers them.
    pub passages: &'a [String],
    /// What is said when there is nothing to answer from.
    pub nothing: &'static str,
}

/// A written answer.
#[derive(Debug, Clone, Default)]
pub struct Written {
    /// Its text.
    pub text: String,
    /// What it cites, the first by number 1.
    pub cited: Vec<Cited>,
    /// It is that there is no answer.
    pub refused: bool,
    /// What it took.
    pub spent: Spent,
}

/// Writes the answer. Without passages the model is not asked: there is nothing it could answer from.
pub async fn write<R: Frames>(
    cx: &Cx,
    stream: &mut AnswerStream<R>,
    task: Task<'_>,
) -> Result<Written, Error> {
    if task.passages.is_empty() {
        stream.piece(task.nothing.to_owned(), true).await?;
        return Ok(Written {
            text: task.nothing.to_owned(),
            refused: true,
            ..Written::default()
        });
    }
    stream.retrieved();
    let started = Instant::now();
    let mut citer = Citer::new(task.passages);
    let mut text = String::new();
    let prompts = Prompts::of_flow(cx);
    let mut model = prompts.stream(task.prompt, task.terms, stream.streams())?;
    loop {
        let piece = match model.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(error) => {
                stream.spent.add(&model.spent());
                return Err(error);
            }
        };
        let piece = citer.push(&piece.text);
        text.push_str(&piece);
        stream.piece(piece, false).await?;
    }
    let rest = citer.finish();
    text.push_str(&rest);
    stream.piece(rest, true).await?;
    let mut spent = model.spent();
    spent.duration_ms = u64::try_from(started.elapsed().as_millis()).ok();
    stream.spent.add(&spent);
    Ok(Written {
        text,
        cited: citer.cited().to_vec(),
        refused: citer.refused(),
        spent,
    })
}

/// What model calls took, as the trace records it.
pub fn usage(spent: &Spent) -> Usage<'_> {
    let known = |count: Option<i64>| count.and_then(|count| u64::try_from(count).ok());
    Usage {
        duration_ms: spent.duration_ms,
        in_token: known(spent.in_token),
        out_token: known(spent.out_token),
        model: spent.model.as_deref(),
    }
}
