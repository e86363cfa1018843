//! A consumer whose server this process also asks without the broker.

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_bus::Consumer;
use tg_rpc::near::NearServer;

/// Takes questions from the broker, and those of this process without it.
pub(crate) struct NearConsumer {
    consumer: Box<dyn Consumer>,
    near: Mutex<Option<NearServer>>,
}

impl NearConsumer {
    pub(crate) fn new(consumer: Box<dyn Consumer>, near: NearServer) -> Self {
        Self {
            consumer,
            near: Mutex::new(Some(near)),
        }
    }
}

#[async_trait]
impl Consumer for NearConsumer {
    async fn stop(&self) {
        // First: from here on questions wait in the queue.
        let near = self.near.lock().take();
        drop(near);
        self.consumer.stop().await;
    }
}
