//! The reading end of an answer.

use std::marker::PhantomData;
use std::sync::Arc;

use tg_schemas::{Error, ErrorCode, Reply};

use crate::client::{Got, InFlight, RequestClient};

/// The parts of an answer, in order and without repeats. Lazy: the question is sent when the first part
/// is asked for. Dropping it cancels the question unless it is detached.
pub struct Answer<R> {
    client: RequestClient,
    /// `Err` holds a fault found before anything was sent.
    question: Result<Arc<InFlight>, Option<Error>>,
    finished: bool,
    kind: PhantomData<fn() -> R>,
}

impl<R: Reply> Answer<R> {
    pub(crate) fn new(client: RequestClient, question: Result<Arc<InFlight>, Error>) -> Self {
        Self {
            client,
            question: question.map_err(Some),
            finished: false,
            kind: PhantomData,
        }
    }

    /// The next part. After an `Err` or the last part: `None`. A part that carries a service error is `Ok`.
    pub async fn next(&mut self) -> Option<Result<R, Error>> {
        if self.finished {
            return None;
        }
        let question = match &mut self.question {
            Ok(question) => question.clone(),
            Err(fault) => {
                self.finished = true;
                return fault.take().map(Err);
            }
        };
        match self.client.next(&question).await {
            Got::Part(envelope, numbered_last) => {
                let part = envelope.read::<R>();
                match part {
                    Ok(part) => {
                        self.finished = numbered_last || part.is_last();
                        if self.finished {
                            self.client.ended(&question, part.error().map(Error::code));
                        }
                        Some(Ok(part))
                    }
                    Err(fault) => {
                        tracing::warn!(%fault, "unreadable part of an answer");
                        Some(Err(self.fail(Error::new(
                            ErrorCode::Internal,
                            "a service sent a reply that cannot be read",
                        ))))
                    }
                }
            }
            Got::Failed(error) => Some(Err(self.fail(error))),
        }
    }

    /// Reads to the end.
    ///
    /// # Errors
    /// How the question ended, or the error that the last part carries.
    pub async fn last(mut self) -> Result<R, Error> {
        let mut last = None;
        while let Some(part) = self.next().await {
            last = Some(part?);
        }
        let part = last.ok_or_else(|| Error::new(ErrorCode::Internal, "empty answer"))?;
        match part.error() {
            Some(error) => Err(error.clone()),
            None => Ok(part),
        }
    }

    fn fail(&mut self, error: Error) -> Error {
        self.finished = true;
        if let Ok(question) = &self.question {
            self.client.ended(question, Some(error.code()));
        }
        error
    }
}

impl<R> Drop for Answer<R> {
    fn drop(&mut self) {
        if let (false, Ok(question)) = (self.finished, &self.question) {
            self.client.abandon(question);
        }
    }
}
