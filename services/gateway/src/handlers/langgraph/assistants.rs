//! Assistants: the agents that the operator's files describe.

use axum::body::Body as HttpBody;
use axum::extract::Path;
use axum::response::Response;
use serde_json::Value;
use tg_schemas::operations::{Empty, GetNamedAgent, ListNamedAgents, NamedAgent};

use super::told::{answered, unfit};
use crate::engine::langgraph::asked::Search;
use crate::engine::langgraph::shown;
use crate::handlers::asked::Asked;

/// `POST /langgraph/assistants/search`.
pub(crate) async fn search(asked: Asked, body: HttpBody) -> Response {
    answered(asked, |caller| async move {
        let (body, _reading) = caller.body(body).await?;
        let search = Search::read(&body).map_err(unfit)?;
        let all = caller.ask::<ListNamedAgents>(&Empty {}).await?;
        let all: Vec<Value> = all.agents.iter().map(shown::listed).collect();
        Ok(caller.reply(&Value::from(search.page(all))).await)
    })
    .await
}

/// `GET /langgraph/assistants/{assistant_id}`.
pub(crate) async fn assistant(asked: Asked, Path(name): Path<String>) -> Response {
    answered(asked, |caller| async move {
        let agent = caller.ask::<GetNamedAgent>(&NamedAgent { name }).await?;
        Ok(caller.reply(&shown::agent(&agent)).await)
    })
    .await
}
