//! Takes records in that processes dead-lettered.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{ConsumeError, Cx, RecordConsumer};
use tg_schemas::msg::DeadLetter;

use crate::operations::Service;

/// Reads the system's queue of them.
pub(crate) struct Reading(pub(crate) Arc<Service>);

#[async_trait]
impl RecordConsumer<DeadLetter> for Reading {
    async fn consume(&self, cx: Cx, record: DeadLetter) -> Result<(), ConsumeError> {
        let outcome = self
            .0
            .take_in(&cx.mesh, record, cx.headers.id.clone())
            .await;
        // Whatever stands in the way, the record stays where it is and comes again.
        outcome.map_err(|error| ConsumeError::Retry { error, after: None })
    }
}
