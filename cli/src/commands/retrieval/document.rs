//! `tg invoke-document-rag`: a question that is answered from the texts of documents.

use clap::Args;
use serde_json::json;

use super::ask::Ask;
use crate::args::Options;
use crate::client::Result;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg invoke-document-rag`.
#[derive(Debug, Args)]
pub struct InvokeDocumentRag {
    #[command(flatten)]
    ask: Ask,
    /// Passages the answer may rest on [default: 20]
    #[arg(short = 'd', long, value_name = "COUNT")]
    doc_limit: Option<u64>,
    /// Passages to choose them from [default: three times as many]
    #[arg(long, value_name = "COUNT")]
    fetch_limit: Option<u64>,
}

impl Command for InvokeDocumentRag {
    const NAME: &'static str = "invoke-document-rag";
    const ABOUT: &'static str = "Ask a question over the documents";

    fn options(&self) -> Options {
        Options::from(&self.ask.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let given = [
            ("doc-limit", self.doc_limit),
            ("fetch-limit", self.fetch_limit),
        ];
        let given = given.into_iter();
        let options = given
            .filter_map(|(name, limit)| Some((name, json!(limit?))))
            .collect();
        self.ask.run(session, "document-rag", options).await
    }
}
