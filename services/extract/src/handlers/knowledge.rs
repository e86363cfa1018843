//! `kg-extract-definitions` and `kg-extract-relationships`: one prompt about the text, facts from its reply.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Map;
use tg_mesh::{ConsumeError, Cx, RecordConsumer};
use tg_schemas::determinants::Determinants;
use tg_schemas::msg::Chunk;

use crate::chunk::piece;
use crate::engine::knowledge::{Content, read, usable};
use crate::error::ExtractError;
use crate::replies::{Question, ReplyCache};
use crate::write::write;

/// Reads `input` of both.
pub(crate) struct Knowledge {
    pub(crate) cache: Arc<ReplyCache>,
    pub(crate) by: Determinants,
    pub(crate) content: Content,
}

impl Knowledge {
    async fn extract(&self, cx: &Cx, chunk: Chunk) -> Result<(), ExtractError> {
        let Some(piece) = piece(cx, &self.by, chunk)? else {
            return Ok(());
        };
        let question = Question {
            by: self.by,
            text: &piece.read,
            terms: Map::new(),
        };
        let reply = self
            .cache
            .prompt(cx, question, usable(self.content))
            .await?;
        let found = read(self.content, &reply.items);
        let ontology = cx.parameter("ontology");
        Ok(write(cx, &piece, &reply.how(&self.by, ontology), found).await?)
    }
}

#[async_trait]
impl RecordConsumer<Chunk> for Knowledge {
    async fn consume(&self, cx: Cx, chunk: Chunk) -> Result<(), ConsumeError> {
        Ok(self.extract(&cx, chunk).await?)
    }
}
