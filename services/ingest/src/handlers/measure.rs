//! `measure-text`: what a document would become in this flow.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use tg_clients::library::{BASE64, Content, Library};
use tg_mesh::fair::Pool;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::limits::STREAM_PIECE;
use tg_schemas::msg::{MeasureRequest, MeasureResponse};
use tg_schemas::{Error, ErrorCode};

use crate::child::Children;
use crate::engine::chunks::Cutting;
use crate::error::IngestError;
use crate::measure::Measuring;
use crate::parts::TakesParts;
use crate::source::About;
use crate::take_apart::TakeApart;

/// Documents measured at once, and of them those of one workspace.
const AT_ONCE: usize = 4;
const OF_ONE: usize = 2;

/// Serves `measure-text`.
pub(crate) struct Measure {
    children: Arc<Children>,
    /// Documents that are measured at once, of all and of one workspace.
    at_once: Pool,
}

impl Measure {
    pub(crate) fn new(children: Arc<Children>) -> Arc<Self> {
        Arc::new(Self {
            children,
            at_once: Pool::new(AT_ONCE, OF_ONE),
        })
    }

    async fn measure(&self, cx: &Cx, ask: MeasureRequest) -> Result<MeasureResponse, Error> {
        let cutting = Cutting::read(|name| cx.parameter(name)).map_err(IngestError::from)?;
        let busy = || Error::new(ErrorCode::Busy, "other documents are being measured");
        let _turn = self.at_once.try_take(&Arc::from(cx.workspace()), 1);
        let _turn = _turn.ok_or_else(busy)?;
        let pieces = match ask.content.is_empty() {
            true => Library::of_flow(cx).stream(&ask.document_id, STREAM_PIECE)?,
            false => Content::here(BASE64.decode(&ask.content).map_err(not_base64)?),
        };
        let about = About::new(None, &ask.document_id);
        let mut measuring = Measuring::new(cutting, ask.title);
        if !ask.take_apart {
            measuring.text(&about.id, pieces).await?;
            return Ok(measuring.told());
        }
        let document = TakeApart {
            children: &self.children,
            workspace: cx.workspace(),
            about: &about,
            pieces,
            head: Vec::new(),
        };
        match document.run(&ask.kind, &mut measuring).await {
            // What could be read would go on, also of a document that is refused in the end.
            Err(IngestError::Unreadable { .. }) if !measuring.is_empty() => Ok(measuring.told()),
            Ok(()) => Ok(measuring.told()),
            Err(error) => Err(error.into()),
        }
    }
}

fn not_base64(_: impl std::error::Error) -> Error {
    Error::new(ErrorCode::BadRequest, "content: must be base64")
}

#[async_trait]
impl RequestHandler<MeasureRequest, MeasureResponse> for Measure {
    async fn serve(
        &self,
        cx: Cx,
        ask: MeasureRequest,
        mut out: Responder<MeasureResponse>,
    ) -> Result<(), Error> {
        let told = tokio::select! {
            told = self.measure(&cx, ask) => told?,
            () = cx.cancel.cancelled() => return Err(Error::new(ErrorCode::Timeout, "the time is over")),
        };
        out.send(told).await
    }
}
