//! Prompts of workspaces, kept ready until their configuration changes, and the model that a prompt service passes them on to.
//!
//! A prompt for text is only rendered by the prompt service, which passes the question on to the model. Whoever has the prompts
//! at hand renders it where it is asked for, and asks the same model itself: one crossing of the bus less for each question.

use std::sync::Arc;

use tg_mesh::{Cx, Derived};
use tg_schemas::Topic;
use tg_schemas::determinants::PROMPTS;
use tg_schemas::msg::{PromptRequest, TextCompletionRequest};
use tg_schemas::processors::{prompt, prompt_rag, shared};
use tg_templates::{Kind, PromptSet};

use crate::{flow_records, text_completion};

/// Config types that whoever renders prompts itself watches: the prompts, which model is asked by which prompt service, and which
/// model answers chats.
pub const WATCHED: [&str; 5] = [
    PROMPTS,
    "processor:prompt",
    "processor:prompt-rag",
    "processor:text-completion",
    "processor:text-completion-rag",
];

/// Prompts by workspace.
pub struct ReadyPrompts(Derived<PromptSet>);

impl ReadyPrompts {
    /// Of so many workspaces at most; those of another are read again when they are asked for.
    pub fn new(most: usize) -> Self {
        Self(Derived::of(most))
    }

    /// The prompts of the workspace of a question, as its configuration has them now.
    pub fn get(&self, cx: &Cx) -> Arc<PromptSet> {
        let rows = [cx.config().values(cx.workspace(), PROMPTS)];
        if let Some(set) = self.0.get(cx.workspace(), &rows) {
            return set;
        }
        let texts = rows[0].iter();
        let set = PromptSet::read(texts.map(|(key, value)| (key.as_str(), value.as_ref())));
        self.0.put(cx.workspace(), rows.into(), set)
    }
}

/// What renders the prompts of a flow in place of its prompt service.
#[derive(Clone)]
pub(crate) struct Renderer {
    /// The model behind the prompt service.
    pub(crate) model: Topic,
    prompts: Arc<PromptSet>,
}

impl Renderer {
    /// `None` where the prompt service is not known to be one of ours, which asks a model that the flow names.
    pub(crate) fn of_flow(cx: &Cx, ready: &ReadyPrompts) -> Option<Self> {
        Some(Self {
            model: model(cx)?,
            prompts: ready.get(cx),
        })
    }

    /// The question as the model gets it. `None`: it is for the prompt service, which reads the reply in the shape that the
    /// prompt promises, or says what is wrong with it.
    pub(crate) fn render(&self, asked: &PromptRequest) -> Option<TextCompletionRequest> {
        if self.prompts.kind(&asked.id)? != Kind::Text {
            return None;
        }
        let prompt = self.prompts.render(&asked.id, &asked.terms).ok()?;
        Some(TextCompletionRequest {
            system: prompt.system,
            prompt: prompt.text,
            streaming: asked.streaming,
            thinking: asked.thinking,
            settings: asked.settings.clone(),
            ..TextCompletionRequest::default()
        })
    }
}

/// The topic of the model that the prompt service of this flow asks.
fn model(cx: &Cx) -> Option<Topic> {
    let asked = cx.topic(shared::PROMPT).ok()?;
    let ours = [
        (prompt_rag::PROCESSOR.id, prompt_rag::REQUEST.name),
        (prompt::PROCESSOR.id, prompt::REQUEST.name),
    ];
    let serves = |(id, request): &(&str, &str)| {
        let row = flow_records::processor(cx.config(), cx.workspace(), cx.flow(), id);
        let served = row.and_then(|row| Topic::parse(row.topics.get(*request)?).ok());
        served.is_some_and(|served| served == asked)
    };
    let (id, _) = ours.into_iter().find(serves)?;
    text_completion::behind(cx, id)
}
