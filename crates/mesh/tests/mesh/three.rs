//! An asker, one that passes its questions on, and a model that answers them: a process each, on topics of their own.

use std::sync::Arc;

use tg_mesh::{Answer, Ask, Host, RequestHandler};
use tg_schemas::msg::{
    PromptRequest, PromptResponse, TextCompletionRequest, TextCompletionResponse,
};
use tg_schemas::{Class, Topic};

use crate::serving::serving;

/// What the model does.
pub type Model = Arc<dyn RequestHandler<TextCompletionRequest, TextCompletionResponse>>;
/// What whoever passes questions on does.
pub type Passer = Arc<dyn RequestHandler<PromptRequest, PromptResponse>>;

/// The processes.
pub struct Three {
    pub asker: Host,
    pub passer: Host,
    pub model: Host,
    /// Where the passer is asked.
    topic: Topic,
}

impl Three {
    /// Hosts both: the passer is made with the topic of the model, which may be absent.
    pub async fn start(
        [asker, passer, model]: [Host; 3],
        passes: impl FnOnce(Topic) -> Passer,
        says: Option<Model>,
    ) -> Self {
        let base = |what: &str| format!("{what}-{}", uuid::Uuid::new_v4().simple());
        let (of_passer, of_model) = (base("middle"), base("model"));
        if let Some(says) = says {
            let processor = serving(of_model.clone(), says);
            model.host(processor).await.unwrap();
        }
        let passes = passes(Topic::system(Class::Request, &of_model));
        let processor = serving(of_passer.clone(), passes);
        passer.host(processor).await.unwrap();
        Self {
            asker,
            passer,
            model,
            topic: Topic::system(Class::Request, &of_passer),
        }
    }

    /// Asks what may be passed on, as part of a trace.
    pub fn ask(&self, text: &str, traceparent: Option<&str>) -> Answer<PromptResponse> {
        let question = PromptRequest {
            id: text.to_owned(),
            ..PromptRequest::default()
        };
        let options = Ask {
            forward: true,
            traceparent: traceparent.map(str::to_owned),
            ..Ask::default()
        };
        self.asker.ask(&self.topic, &question, options)
    }
}
