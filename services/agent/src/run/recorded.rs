//! Whether the record of a step is durable. A step that begins before that may ask its model, and neither keeps nor sends
//! anything until the record is there: no process could go on with a step that has no record.

use tokio::sync::oneshot;

/// What a step knows of its record.
#[derive(Debug)]
pub(crate) enum Recorded {
    /// It is in its queue.
    Durable,
    /// It is on its way: `true` will come, or that it was not written.
    Written(oneshot::Receiver<bool>),
    /// It was not written.
    Failed,
}

impl Recorded {
    /// Whether there is nothing to wait for.
    pub(crate) fn is_durable(&self) -> bool {
        matches!(self, Self::Durable)
    }

    /// Waits until it is known whether it is durable. Whoever writes it and is gone has not written it.
    pub(crate) async fn wait(&mut self) -> bool {
        if let Self::Written(known) = self {
            *self = match known.await {
                Ok(true) => Self::Durable,
                Ok(false) | Err(_) => Self::Failed,
            };
        }
        self.is_durable()
    }
}
