//! `graph-rag`: a question comes in and is answered from the graph.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::Error;
use tg_schemas::msg::{GraphRagQuery, GraphRagResponse};

use crate::answers::graph;
use crate::answers::stream::AnswerStream;
use crate::engine::plan::GraphPlan;
use crate::error::Kind;
use crate::options::Options;

/// Serves `request` of `graph-rag`.
pub(crate) struct GraphRag(pub(crate) Arc<Options>);

#[async_trait]
impl RequestHandler<GraphRagQuery, GraphRagResponse> for GraphRag {
    async fn serve(
        &self,
        cx: Cx,
        ask: GraphRagQuery,
        out: Responder<GraphRagResponse>,
    ) -> Result<(), Error> {
        let plan = GraphPlan::new(&ask, &self.0)?;
        let mut stream = AnswerStream::new(&cx, out, ask.streaming, &plan.collection);
        let answered = graph::answer(&cx, &ask, &plan, &mut stream).await;
        stream.count("graph", answered.is_ok());
        if let Err(error) = answered {
            let error = Kind::GraphRag.of(error);
            stream.give_up(&cx, &error).await;
            return Err(error);
        }
        Ok(())
    }
}
