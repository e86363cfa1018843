//! `kg-extract-agent`: an agent is asked what the text says; definitions and relationships from its answer.

use std::sync::Arc;

use async_trait::async_trait;
use minijinja::{Environment, UndefinedBehavior, context};
use serde::Deserialize;
use serde_json::Map;
use tg_mesh::{Ask, ConsumeError, Cx, Deadline, RecordConsumer};
use tg_schemas::Error;
use tg_schemas::determinants::AGENT;
use tg_schemas::msg::{AgentRequest, Chunk};
use tg_schemas::processors::kg_extract_agent;

use crate::chunk::piece;
use crate::engine::items::{self, Items};
use crate::engine::knowledge::{Content, read, usable};
use crate::error::ExtractError;
use crate::replies::keys::PROMPTS;
use crate::replies::{BEGINS, Paid, Question, ReplyCache, TIMEOUT, Tokens};
use crate::write::write;

const PROMPT: &str = AGENT.prompts[0];
/// Longest part of an unusable answer that is shown again, in characters.
const SHOWN_AGAIN: usize = 4 << 10;
/// Instructions that rendering may take.
const FUEL: u64 = 100_000;

/// Reads `input` of `kg-extract-agent`.
pub(crate) struct Agent {
    cache: Arc<ReplyCache>,
}

impl Agent {
    pub(crate) fn new(cache: Arc<ReplyCache>) -> Self {
        Self { cache }
    }

    async fn extract(&self, cx: &Cx, chunk: Chunk) -> Result<(), ExtractError> {
        let Some(piece) = piece(cx, &AGENT, chunk)? else {
            return Ok(());
        };
        let question = Question {
            by: AGENT,
            text: &piece.read,
            terms: Map::new(),
        };
        let collection = piece.source.metadata.collection.as_str();
        let usable = usable(Content::Mixed);
        let pay = async {
            let asked = render(cx, &piece.read)?;
            let (answer, model, spent) = ask(cx, asked.clone(), collection).await?;
            let items = items::of_text(&answer);
            if items.values.iter().any(usable) || !is_unreadable(&items) {
                return Ok(Paid {
                    items,
                    model,
                    unusable: String::new(),
                    spent,
                });
            }
            let (answer, model, again) = ask(cx, repair(&asked, &answer), collection).await?;
            let items = items::of_text(&answer);
            let unusable = answer.trim().chars().take(BEGINS).collect();
            Ok(Paid {
                items,
                model,
                unusable,
                spent: Tokens {
                    read: spent.read + again.read,
                    written: spent.written + again.written,
                },
            })
        };
        let reply = self.cache.reply(cx, question, usable, pay).await?;
        let found = read(Content::Mixed, &reply.items);
        Ok(write(cx, &piece, &reply.how(&AGENT, None), found).await?)
    }
}

#[async_trait]
impl RecordConsumer<Chunk> for Agent {
    async fn consume(&self, cx: Cx, chunk: Chunk) -> Result<(), ConsumeError> {
        Ok(self.extract(&cx, chunk).await?)
    }
}

/// Whether something was answered, but nothing of the promised form.
fn is_unreadable(items: &Items) -> bool {
    items.bad > 0 || !items.values.is_empty()
}

async fn ask(
    cx: &Cx,
    question: String,
    collection: &str,
) -> Result<(String, String, Tokens), Error> {
    let request = AgentRequest {
        question,
        collection: collection.to_owned(),
        ..AgentRequest::default()
    };
    let options = Ask {
        deadline: Some(Deadline::after(TIMEOUT)),
        ..cx.ask_options()
    };
    let mut parts = cx.ask_with(kg_extract_agent::AGENT, &request, options)?;
    let (mut answer, mut model, mut spent) = (String::new(), String::new(), Tokens::default());
    while let Some(part) = parts.next().await {
        let part = part?;
        if let Some(error) = part.error {
            return Err(error);
        }
        if part.message_type == "answer" {
            answer += &part.content;
        }
        // What all steps took together stands in the last part.
        if part.in_token.is_some() || part.out_token.is_some() {
            spent = Tokens::told(part.in_token, part.out_token);
        }
        model = part.model.unwrap_or(model);
    }
    Ok((answer, model, spent))
}

fn repair(asked: &str, answer: &str) -> String {
    let answer: String = answer.chars().take(SHOWN_AGAIN).collect();
    format!(
        "{asked}\n\nAn earlier final answer to this was:\n\n{answer}\n\nIt cannot be used, because it is not \
         in the form asked for. Give the final answer again: JSON objects, one a line, and nothing else."
    )
}

#[derive(Deserialize)]
struct Row {
    prompt: String,
}

/// The prompt with the text in it.
pub(super) fn render(cx: &Cx, text: &str) -> Result<String, ExtractError> {
    let key = format!("template.{PROMPT}");
    let row = cx.config().get(cx.workspace(), PROMPTS, &key);
    let row = row.ok_or(ExtractError::UnknownPrompt(PROMPT))?;
    let broken = |why: String| ExtractError::BrokenPrompt { id: PROMPT, why };
    let row: Row =
        serde_json::from_slice(row.as_bytes()).map_err(|error| broken(error.to_string()))?;
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_fuel(Some(FUEL));
    environment
        .render_str(&row.prompt, context! { text })
        .map_err(|error| broken(error.kind().to_string()))
}
