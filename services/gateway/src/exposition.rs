//! The metrics of a process as text: who records them gives a function, who is asked calls it.

use std::fmt;
use std::sync::Arc;

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// What `/metrics` serves, in the exposition format of Prometheus.
#[derive(Clone)]
pub struct Exposition(Arc<dyn Fn() -> String + Send + Sync>);

impl Exposition {
    /// Around a function that writes all metrics of the process. It may block for a moment.
    pub fn new(tell: impl Fn() -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    /// The text, made off the runtime's threads.
    pub(crate) async fn text(&self) -> String {
        let tell = self.0.clone();
        let made = tokio::task::spawn_blocking(move || tell());
        made.await.unwrap_or_default()
    }

    /// A text as Prometheus asks for it.
    pub(crate) fn response(text: String) -> Response {
        let kind = [(
            header::CONTENT_TYPE,
            "text/plain; version=0.0.4; charset=utf-8",
        )];
        (kind, text).into_response()
    }
}

impl fmt::Debug for Exposition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exposition")
    }
}
