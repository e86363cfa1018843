//! Takes records in that processes put aside.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Cx, Read, ReadFault};
use tg_schemas::msg::PutAside;

use crate::service::Service;

/// Reads the system's queue of them.
pub(crate) struct Reading(pub(crate) Arc<Service>);

#[async_trait]
impl Read<PutAside> for Reading {
    async fn read(&self, cx: Cx, record: PutAside) -> Result<(), ReadFault> {
        let outcome = self.0.take_in(&cx.mesh, record).await;
        // Whatever stands in the way, the record stays where it is and comes again.
        outcome.map_err(|error| ReadFault::Retry { error, after: None })
    }
}
