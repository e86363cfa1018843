//! `kg-extract-definitions` and `kg-extract-relationships`: one prompt about the text, facts from its reply.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tg_mesh::{ConsumeError, Cx, RecordConsumer};
use tg_schemas::msg::Chunk;

use super::chunk::piece;
use super::reply_cache::{Question, Reply, ReplyCache, Usable};
use super::write::write;
use crate::engine::found::How;
use crate::engine::items::Items;
use crate::engine::knowledge::{Content, read};

pub(super) struct Knowledge {
    pub(super) cache: Arc<ReplyCache>,
    pub(super) extractor: &'static str,
    pub(super) prompts: &'static [&'static str],
    pub(super) content: Content,
}

#[async_trait]
impl RecordConsumer<Chunk> for Knowledge {
    async fn consume(&self, cx: Cx, chunk: Chunk) -> Result<(), ConsumeError> {
        let Some(piece) = piece(&cx, chunk)? else {
            return Ok(());
        };
        let question = Question {
            extractor: self.extractor,
            prompts: self.prompts,
            renderer: "prompt",
            text: &piece.text,
            terms: Map::new(),
        };
        let reply = self
            .cache
            .prompt(&cx, question, usable(self.content))
            .await?;
        let found = read(self.content, &reply.items);
        let ontology = cx.parameter("ontology");
        write(&cx, &piece, &how(self.extractor, &reply, ontology), found).await
    }
}

/// Whether an item of a reply says anything of the kind.
pub(super) fn usable(content: Content) -> Usable {
    fn one(content: Content, item: &Value) -> bool {
        let items = Items {
            values: vec![item.clone()],
            bad: 0,
        };
        !read(content, &items).is_empty()
    }
    match content {
        Content::Definitions => |item| one(Content::Definitions, item),
        Content::Relationships => |item| one(Content::Relationships, item),
        Content::Mixed => |item| one(Content::Mixed, item),
    }
}

/// How a reply came to be.
pub(super) fn how<'a>(extractor: &'a str, reply: &'a Reply, ontology: Option<&'a str>) -> How<'a> {
    How {
        extractor,
        version: env!("CARGO_PKG_VERSION"),
        asked_at: &reply.asked_at,
        model: &reply.model,
        prompt_version: &reply.prompt_version,
        ontology,
    }
}
