//! `tg invoke-reranker`: texts in the order in which they fit a question.

use clap::Args;
use serde_json::{Value, json};

use crate::args::{InFlow, Options};
use crate::client::{Call, Result};
use crate::fields::{list, text};
use crate::layout::table;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg invoke-reranker`.
#[derive(Debug, Args)]
pub struct InvokeReranker {
    #[command(flatten)]
    flow: InFlow,
    /// A question; may be given several times
    #[arg(short = 'q', long, required = true, value_name = "TEXT")]
    query: Vec<String>,
    /// Texts
    #[arg(required = true, value_name = "TEXT")]
    documents: Vec<String>,
    /// Maximum number of results
    #[arg(short = 'l', long, default_value_t = 10, value_name = "COUNT")]
    limit: u64,
}

impl Command for InvokeReranker {
    const NAME: &'static str = "invoke-reranker";
    const ABOUT: &'static str = "Order texts by how well they fit a question";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let numbered = |texts: &[String], id: &str, field: &str| -> Vec<Value> {
            let all = texts.iter().enumerate();
            all.map(|(at, text)| json!({id: at.to_string(), field: text}))
                .collect()
        };
        let request = json!({
            "queries": numbered(&self.query, "query_id", "query_text"),
            "documents": numbered(&self.documents, "document_id", "document_text"),
            "limit": self.limit,
        });
        let mut socket = session.socket().await?;
        let call = Call::in_flow(&self.flow.flow_id, "reranker", request);
        let reply = socket.ask(&call).await?;
        socket.close().await;
        let results = list(&reply, "results").to_vec();
        session.out.lay(&Value::from(results.clone()), |width| {
            let named = |texts: &[String], id: String| {
                let at = id.parse::<usize>().ok();
                at.and_then(|at| texts.get(at)).cloned().unwrap_or(id)
            };
            let rows = results.iter().map(|one| {
                let score = one.get("score").and_then(Value::as_f64).unwrap_or(0.0);
                [
                    format!("{score:.4}"),
                    named(&self.query, text(one, "query_id")),
                    named(&self.documents, text(one, "document_id")),
                ]
            });
            table(["Score", "Query", "Document"], rows, width)
        })
    }
}
