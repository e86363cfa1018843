//! `document-rag`: a question comes in and is answered from documents.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::Error;
use tg_schemas::msg::{DocumentRagQuery, DocumentRagResponse};
use tg_schemas::processors::document_rag::{KEYWORD_INDEX, RERANKER};

use crate::answers::documents;
use crate::answers::stream::AnswerStream;
use crate::engine::plan::DocumentPlan;
use crate::error::Kind;
use crate::options::Options;

/// Serves `request` of `document-rag`.
pub(crate) struct DocumentRag(pub(crate) Arc<Options>);

#[async_trait]
impl RequestHandler<DocumentRagQuery, DocumentRagResponse> for DocumentRag {
    async fn serve(
        &self,
        cx: Cx,
        ask: DocumentRagQuery,
        out: Responder<DocumentRagResponse>,
    ) -> Result<(), Error> {
        let (index, reranker) = (cx.has(KEYWORD_INDEX), cx.has(RERANKER));
        let plan = DocumentPlan::new(&ask, &self.0, index, reranker)?;
        let mut stream = AnswerStream::new(&cx, out, ask.streaming, &plan.collection);
        let answered = documents::answer(&cx, &ask, &plan, &mut stream).await;
        stream.count("documents", answered.is_ok());
        if let Err(error) = answered {
            let error = Kind::DocumentRag.of(error);
            stream.give_up(&cx, &error).await;
            return Err(error);
        }
        Ok(())
    }
}
