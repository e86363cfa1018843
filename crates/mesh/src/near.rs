//! A server whose process also asks it without the broker.

use std::sync::Arc;

use async_trait::async_trait;
use tg_bus::{Consumer, Delivery, Sink};
use tg_rpc::near::NearServer;

use crate::serve_sink::ServeSink;

/// Takes questions from the broker, and those of this process without it.
pub(crate) struct NearConsumer {
    consumer: Box<dyn Consumer>,
    near: NearServer,
}

impl NearConsumer {
    pub(crate) fn new(consumer: Box<dyn Consumer>, near: NearServer) -> Self {
        Self { consumer, near }
    }
}

#[async_trait]
impl Consumer for NearConsumer {
    async fn stop(&self) {
        // First: from here on questions wait in the queue.
        self.near.stop().await;
        self.consumer.stop().await;
    }
}

/// Takes the questions of this process. They waited in no queue, so they say nothing of whether the consumer takes what waits there.
pub(crate) struct NearSink(pub(crate) Arc<ServeSink>);

impl Sink for NearSink {
    fn deliver(&self, delivery: Delivery) {
        self.0.accept(delivery);
    }
}
