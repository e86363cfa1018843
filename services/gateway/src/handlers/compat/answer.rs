//! An answer on its way to a client of a model API, whole or in events, with what it cost.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use parking_lot::Mutex;
use serde_json::Value;

use super::{failure, part};
use crate::engine::compat::agents;
use crate::engine::compat::cost::{Cost, HEADERS as COST_HEADERS, MODELS, PRICES, Price, is_local};
use crate::engine::compat::dialect::{Dialect, Head};
use crate::engine::compat::errors::CompatError;
use crate::engine::translate::Body;
use crate::engine::translate::agent::Summary;
use crate::error::json_written;
use crate::handlers::sse;
use crate::running::Running;
use crate::sending::Outlet;
use crate::state::Shared;

/// Who answers.
pub(super) enum Source {
    /// A model: its parts are those of a chat.
    Model,
    /// An agent: its chunks are made into such parts, and summed up for a whole answer.
    Agent(Box<Summary>),
    /// An agent of a file or of the workspace, by the sessions: its events are made into such parts.
    Session,
}

impl Source {
    /// An agent that said nothing yet.
    pub(super) fn agent() -> Self {
        Self::Agent(Box::default())
    }

    /// A part of a stream.
    fn piece(&self, body: Body) -> Body {
        match self {
            Self::Model => body,
            Self::Agent(_) => agents::part(&body),
            Self::Session => agents::session_part(body),
        }
    }

    /// Takes a part of a whole answer.
    fn take(&mut self, body: &Body) {
        if let Self::Agent(summary) = self {
            summary.add(body);
        }
    }

    /// The whole answer, by its last part.
    fn whole(self, last: Body) -> Result<Body, CompatError> {
        let summary = match self {
            Self::Model => return Ok(last),
            Self::Session => return Ok(agents::session_whole(last)),
            Self::Agent(summary) => summary,
        };
        let summed = summary.finish(last);
        match summed.contains_key("error") {
            true => Err(failure(&summed)),
            false => Ok(agents::whole(&summed)),
        }
    }
}

/// An answer on its way. Dropping it cancels the question.
pub(super) struct Answer<D> {
    app: Shared,
    workspace: String,
    head: Head,
    dialect: D,
    source: Source,
    request_id: String,
    /// Events that are to be sent: those of one part.
    pending: VecDeque<Bytes>,
    running: Option<Running>,
    /// What it cost, once that is known: for the end of a stream.
    trailers: Arc<Mutex<HeaderMap>>,
}

impl<D: Dialect> Answer<D> {
    /// Of a request for a workspace.
    pub(super) fn new(
        app: Shared,
        workspace: String,
        (head, dialect): (Head, D),
        source: Source,
        request_id: String,
    ) -> Self {
        Self {
            app,
            workspace,
            head,
            dialect,
            source,
            request_id,
            pending: VecDeque::new(),
            running: None,
            trailers: Arc::default(),
        }
    }

    fn cost(&self, body: &Body) -> Cost {
        if let Some(reported) = body.get("cost").filter(|cost| cost.is_object()) {
            return Cost::reported(reported);
        }
        let model = body.get("model").and_then(Value::as_str);
        let config = self.app.mesh.config();
        let price = |model: &str| {
            let row = config.get(&self.workspace, PRICES, model)?;
            Price::read(&row)
        };
        let price = model.and_then(price).or_else(|| price(&self.head.model));
        let row = |model: &str| config.get(&self.workspace, MODELS, model);
        let row = model.and_then(row).or_else(|| row(&self.head.model));
        let is_local = row.is_some_and(|row| is_local(&row));
        let told = body.get("cost").and_then(Value::as_f64);
        let usage = body.get("usage").unwrap_or(&Value::Null);
        let rate = self.app.options.settings.usd_eur_rate;
        Cost::of(told, price, is_local, usage, rate)
    }

    /// All of it, once the last part is there.
    pub(super) async fn whole(
        mut self,
        mut running: Running,
        first: (Body, bool),
        outlet: &Outlet,
    ) -> Result<Response, CompatError> {
        let (mut body, mut last) = first;
        self.source.take(&body);
        while !last {
            (body, last) = part(running.next().await)?;
            self.source.take(&body);
        }
        let body = std::mem::replace(&mut self.source, Source::Model).whole(body)?;
        let answer = self.dialect.whole(&self.head, &body).to_string();
        let answer = outlet.hold_whole(answer.into()).await;
        let mut response = json_written(StatusCode::OK, answer);
        response.headers_mut().extend(headers_of(&self.cost(&body)));
        Ok(response)
    }

    /// Adds the events that a part is.
    fn add(&mut self, body: Body, last: bool) {
        let body = self.source.piece(body);
        let events = self.dialect.events(&self.head, &body, last);
        self.pending.extend(events);
        if last {
            let cost = self.cost(&body);
            let comment = format!(": cost {}\n\n", cost.json());
            self.pending.push_back(comment.into());
            *self.trailers.lock() = headers_of(&cost);
            self.pending.push_back(Bytes::from_static(D::END));
        }
    }

    /// The next event.
    async fn next(mut self) -> Option<(Bytes, Self)> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some((event, self));
            }
            let mut running = self.running.take()?;
            match part(running.next().await) {
                Ok((body, last)) => {
                    self.add(body, last);
                    self.running = (!last).then_some(running);
                }
                // What was said stands, and that it is not all is said.
                Err(fault) => {
                    let events = self.dialect.broken(&self.head, &fault, &self.request_id);
                    self.pending.extend(events);
                    self.pending.push_back(Bytes::from_static(D::END));
                }
            }
        }
    }

    /// As events, from the first part on.
    pub(super) fn stream(
        mut self,
        running: Running,
        first: (Body, bool),
        outlet: Outlet,
    ) -> Response {
        let (body, last) = first;
        self.add(body, last);
        self.running = (!last).then_some(running);
        let heartbeat = self.app.options.heartbeat;
        let trailers = self.trailers.clone();
        let events = stream::unfold((self, outlet), |(answer, outlet)| async {
            let (event, answer) = answer.next().await?;
            let event = outlet.hold(event).await;
            Some((event, (answer, outlet)))
        });
        sse::kept_alive_until(events, heartbeat, COST_HEADERS, move || {
            std::mem::take(&mut *trailers.lock())
        })
    }
}

/// What a call cost, as headers.
fn headers_of(cost: &Cost) -> HeaderMap {
    let headers = cost.headers().into_iter();
    let headers = headers.filter_map(|(name, value)| {
        let value = HeaderValue::from_str(&value).ok()?;
        Some((HeaderName::from_static(name), value))
    });
    headers.collect()
}
