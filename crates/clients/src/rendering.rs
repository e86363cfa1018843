//! Prompts of workspaces, kept ready until their configuration changes, and the model that a prompt service passes them on to.
//!
//! A prompt for text is only rendered by the prompt service, which passes the question on to the model. Whoever has the prompts
//! at hand renders it where it is asked for, and asks the same model itself: one crossing of the bus less for each question.

use std::collections::BTreeMap;
use std::sync::Arc;

use tg_mesh::{Cx, Derived};
use tg_schemas::Topic;
use tg_schemas::determinants::PROMPTS;
use tg_schemas::msg::TextCompletionRequest;
use tg_schemas::processors::{prompt, prompt_rag, shared};
use tg_templates::{Kind, PromptSet};

use crate::flow_records::ProcessorRow;
use crate::neighbours::Neighbours;

/// Config types that whoever renders prompts itself watches: the prompts, which model is asked by which prompt service, and which
/// model answers chats.
pub const WATCHED: [&str; 5] = [
    PROMPTS,
    "processor:prompt",
    "processor:prompt-rag",
    "processor:text-completion",
    "processor:text-completion-rag",
];

/// Config types of the prompt services' rows, and the spec by which each is asked.
const SERVICES: [(&str, &str); 2] = [
    ("processor:prompt-rag", prompt_rag::REQUEST.name),
    ("processor:prompt", prompt::REQUEST.name),
];

/// Prompts by workspace, and who passes them on to which model by flow.
pub struct ReadyPrompts {
    sets: Derived<PromptSet>,
    /// Topics of the prompt services of a flow, each with that of the model which it asks.
    served: Derived<Vec<(Topic, Option<Topic>)>>,
}

impl ReadyPrompts {
    /// Of so many workspaces, and so many flows, at most; those of another are read again when they are asked for.
    pub fn new(most: usize) -> Self {
        Self {
            sets: Derived::of(most),
            served: Derived::of(most),
        }
    }

    /// The prompts of the workspace of a question, as its configuration has them now.
    pub fn get(&self, cx: &Cx) -> Arc<PromptSet> {
        let rows = [cx.config().values(cx.workspace(), PROMPTS)];
        if let Some(set) = self.sets.get(cx.workspace(), &rows) {
            return set;
        }
        let texts = rows[0].iter();
        let set = PromptSet::read(texts.map(|(key, value)| (key.as_str(), value.as_ref())));
        self.sets.put(cx.workspace(), rows.into(), set)
    }

    /// The topic of the model that the prompt service of this flow asks. `None` when nobody can tell, as with foreign services.
    fn model(&self, cx: &Cx) -> Option<Topic> {
        if !Neighbours::of(&cx.mesh).say_how_they_are() {
            return None;
        }
        let asked = cx.topic(shared::PROMPT).ok()?;
        let rows = SERVICES.map(|(kind, _)| cx.config().values(cx.workspace(), kind));
        let flow = format!("{}/{}", cx.workspace(), cx.flow());
        let served = match self.served.get(&flow, &rows) {
            Some(served) => served,
            None => {
                let of_flow = rows.iter().map(|rows| rows.get(cx.flow()));
                let both = of_flow.zip(SERVICES).filter_map(|(row, (_, request))| {
                    let row = ProcessorRow::read(row?)?;
                    let topic = |name: &str| Topic::parse(row.topics.get(name)?).ok();
                    Some((topic(request)?, topic(shared::TEXT_COMPLETION.name)))
                });
                let both = both.collect();
                self.served.put(&flow, rows.into(), both)
            }
        };
        let (_, model) = served.iter().find(|(topic, _)| *topic == asked)?;
        model.clone()
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
            model: ready.model(cx)?,
            prompts: ready.get(cx),
        })
    }

    /// A question to the model with the prompt as it is rendered. `None`: it is for the prompt service, which reads the reply in the shape that the
    /// prompt promises, or says what is wrong with it.
    pub(crate) fn render(
        &self,
        id: &str,
        terms: &BTreeMap<String, String>,
    ) -> Option<TextCompletionRequest> {
        if self.prompts.kind(id)? != Kind::Text {
            return None;
        }
        let prompt = self.prompts.render(id, terms).ok()?;
        Some(TextCompletionRequest {
            system: prompt.system,
            prompt: prompt.text,
            ..TextCompletionRequest::default()
        })
    }
}
