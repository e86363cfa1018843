//! The prompt service.

use std::collections::BTreeMap;

use serde_json::Value;
use tg_mesh::{Answer, Cx};
use tg_schemas::msg::{PromptRequest, PromptResponse};
use tg_schemas::{Error, ErrorCode};

const PROMPTS: &str = "prompt-request";

/// What model calls took.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    /// Input tokens, where the model told them.
    pub in_token: Option<i64>,
    /// Output tokens, where the model told them.
    pub out_token: Option<i64>,
    /// Model that answered last.
    pub model: Option<String>,
    /// How long it took.
    pub duration_ms: Option<u64>,
}

impl Spent {
    /// Adds another call.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        self.in_token = sum(self.in_token, other.in_token);
        self.out_token = sum(self.out_token, other.out_token);
        if other.model.is_some() {
            self.model.clone_from(&other.model);
        }
    }
}

/// A text that a model writes.
pub struct Model {
    answer: Answer<PromptResponse>,
    spent: Spent,
}

impl Model {
    /// Asks for a text by a prompt.
    pub fn ask(
        cx: &Cx,
        prompt: &str,
        terms: BTreeMap<String, String>,
        streaming: bool,
    ) -> Result<Self, Error> {
        let request = PromptRequest {
            id: prompt.to_owned(),
            terms,
            streaming,
        };
        Ok(Self {
            answer: cx.ask(PROMPTS, &request)?,
            spent: Spent::default(),
        })
    }

    /// The next piece.
    pub async fn next(&mut self) -> Result<Option<String>, Error> {
        let Some(part) = self.part().await? else {
            return Ok(None);
        };
        // A prompt that was made for JSON answers with an object.
        Ok(Some(if part.text.is_empty() {
            part.object
        } else {
            part.text
        }))
    }

    /// What it took so far.
    pub fn spent(&self) -> Spent {
        self.spent.clone()
    }

    async fn part(&mut self) -> Result<Option<PromptResponse>, Error> {
        let Some(part) = self.answer.next().await else {
            return Ok(None);
        };
        let part = part?;
        if let Some(error) = part.error {
            return Err(error);
        }
        self.spent.add(&Spent {
            in_token: part.in_token,
            out_token: part.out_token,
            model: part.model.clone(),
            duration_ms: None,
        });
        Ok(Some(part))
    }
}

/// Asks for one JSON value by a prompt.
pub async fn object(
    cx: &Cx,
    prompt: &str,
    terms: BTreeMap<String, String>,
) -> Result<Value, Error> {
    let mut model = Model::ask(cx, prompt, terms, false)?;
    let mut text = String::new();
    while let Some(part) = model.part().await? {
        text.push_str(if part.object.is_empty() {
            &part.text
        } else {
            &part.object
        });
    }
    serde_json::from_str(text.trim()).map_err(|_| {
        Error::new(
            ErrorCode::Provider,
            format!("the model's answer to '{prompt}' is not JSON"),
        )
    })
}
