//! `reembed-vectors`: has the vectors of a collection made again by another model, and reports the progress.

use std::sync::Arc;

use async_trait::async_trait;
use tg_collections::CollectionKey;
use tg_mesh::{Cx, LeasedStore, RequestHandler, Responder};
use tg_schemas::msg::{ReembedRequest, ReembedResponse, Reembedding};
use tg_schemas::{Error, ErrorCode, Topic};

use crate::reembedder::Doing;
use crate::store::reembed::{Begin, Progress, ReembedStore, State};

/// The endpoint.
pub(crate) struct Reembed<S> {
    pub(crate) store: Arc<LeasedStore<S>>,
    pub(crate) doing: Arc<Doing>,
}

#[async_trait]
impl<S: ReembedStore> RequestHandler<ReembedRequest, ReembedResponse> for Reembed<S> {
    async fn serve(
        &self,
        _: Cx,
        ask: ReembedRequest,
        mut out: Responder<ReembedResponse>,
    ) -> Result<(), Error> {
        let store = self.store.get().await?;
        let key = named(&ask)?;
        let mut given_up = false;
        match ask.operation.as_str() {
            "show" => {}
            "begin" => {
                store.begin(begun(ask, key.clone())?).await?;
                self.doing.wake(&key);
            }
            "abandon" => given_up = store.abandon(&key).await?,
            _ => {
                let text = "operation: must be begin, show or abandon";
                return Err(Error::new(ErrorCode::BadOperation, text));
            }
        }
        let told = match store.progress(&key).await? {
            Some(progress) => self.told(&key, progress),
            None => Reembedding {
                state: if given_up { "abandoned" } else { "nothing" }.to_owned(),
                serving: store.serving(&key).await?,
                ..Reembedding::default()
            },
        };
        out.send(ReembedResponse {
            error: None,
            reembedding: Some(told),
        })
        .await
    }
}

impl<S> Reembed<S> {
    fn told(&self, key: &CollectionKey, of: Progress) -> Reembedding {
        let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let (state, reason) = match of.state {
            State::Running => ("running", self.doing.why_not(key)),
            State::Waiting => ("waiting", why_it_waits(&of)),
            State::Switched => ("switched", String::new()),
        };
        Reembedding {
            state: state.to_owned(),
            model: of.model,
            serving: of.serving,
            done: number(of.done),
            total: number(of.total),
            textless: number(of.textless),
            refused: number(of.refused),
            refusal: of.refusal,
            reason,
        }
    }
}

fn why_it_waits(of: &Progress) -> String {
    let textless = "vectors are kept without the text they were made of: process their documents again, or leave them out";
    let refused = || {
        format!(
            "the new model refuses texts ({}): begin again when it takes them, or leave them out",
            of.refusal
        )
    };
    match (of.textless, of.refused) {
        (_, 0) => textless.to_owned(),
        (0, _) => refused(),
        _ => format!("{textless}; and {}", refused()),
    }
}

fn required(field: &str, value: &str) -> Result<(), Error> {
    match value {
        "" => Err(Error::new(
            ErrorCode::BadRequest,
            format!("{field}: is required"),
        )),
        _ => Ok(()),
    }
}

fn named(ask: &ReembedRequest) -> Result<CollectionKey, Error> {
    required("workspace", &ask.workspace)?;
    required("collection", &ask.collection)?;
    Ok(CollectionKey::new(&ask.workspace, &ask.collection).in_generation(ask.generation))
}

fn begun(ask: ReembedRequest, key: CollectionKey) -> Result<Begin, Error> {
    required("model", &ask.model)?;
    required("topic", &ask.topic)?;
    Topic::parse(&ask.topic)?;
    Ok(Begin {
        key,
        model: ask.model,
        topic: ask.topic,
        leave_out: ask.leave_out,
    })
}
