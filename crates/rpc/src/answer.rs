//! The reading end of an answer.

use std::marker::PhantomData;
use std::sync::Arc;

use tg_bus::Envelope;
use tg_schemas::codec::CodecError;
use tg_schemas::{Error, ErrorCode, Reply};

use crate::client::{Got, InFlight, RequestClient};

/// The parts of an answer, in order and without repeats. Lazy: the question is sent when the first part
/// is asked for. Dropping it cancels the question unless it is detached.
pub struct Answer<R> {
    parts: Parts,
    kind: PhantomData<fn() -> R>,
}

/// The parts as they came, whatever their type is.
struct Parts {
    client: RequestClient,
    /// `Err` holds a fault found before anything was sent.
    question: Result<Arc<InFlight>, Option<Error>>,
    finished: bool,
}

impl<R: Reply> Answer<R> {
    pub(crate) fn new(client: RequestClient, question: Result<Arc<InFlight>, Error>) -> Self {
        Self {
            parts: Parts {
                client,
                question: question.map_err(Some),
                finished: false,
            },
            kind: PhantomData,
        }
    }

    /// The next part. After an `Err` or the last part: `None`. A part that carries a service error is `Ok`.
    pub async fn next(&mut self) -> Option<Result<R, Error>> {
        let (envelope, numbered_last) = match self.parts.next().await? {
            Ok(part) => part,
            Err(error) => return Some(Err(error)),
        };
        match envelope.read::<R>() {
            Ok(part) => {
                if numbered_last || part.is_last() {
                    self.parts.end(part.error().map(Error::code));
                }
                Some(Ok(part))
            }
            Err(fault) => Some(Err(self.parts.unreadable(&fault))),
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
}

impl Parts {
    /// The next part, and whether its number says that it is the last.
    async fn next(&mut self) -> Option<Result<(Envelope, bool), Error>> {
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
        Some(match self.client.next(&question).await {
            Got::Part(envelope, numbered_last) => Ok((envelope, numbered_last)),
            Got::Failed(error) => Err(self.fail(error)),
        })
    }

    fn unreadable(&mut self, fault: &CodecError) -> Error {
        tracing::warn!(%fault, "unreadable part of an answer");
        self.fail(Error::new(
            ErrorCode::Internal,
            "a service sent a reply that cannot be read",
        ))
    }

    fn fail(&mut self, error: Error) -> Error {
        self.end(Some(error.code()));
        error
    }

    fn end(&mut self, code: Option<ErrorCode>) {
        self.finished = true;
        if let Ok(question) = &self.question {
            self.client.ended(question, code);
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if let (false, Ok(question)) = (self.finished, &self.question) {
            self.client.abandon(question);
        }
    }
}
