//! Operations as types, called through the gateway: what is asked and answered has the types that the operation declares.

use serde_json::Value;
use tg_schemas::operations::{Object, Operation, read, write};

use super::error::{Error, Result};
use super::http::Http;
use super::socket::{Call, Socket};

fn unfit(why: String) -> Error {
    Error::Protocol(why)
}

/// The request of an operation as the gateway takes it.
fn body<O: Operation>(request: &O::Request) -> Result<Object> {
    let mut body = write(request).map_err(|error| unfit(error.message))?;
    body.insert("operation".to_owned(), O::META.name.into());
    Ok(body)
}

impl Http {
    /// Calls an operation in the workspace of the session.
    ///
    /// # Errors
    /// As [`Http::service`]; [`Error::Protocol`] for an answer of another type.
    pub async fn call<O: Operation>(&self, request: &O::Request) -> Result<O::Reply> {
        let body = Value::Object(body::<O>(request)?);
        let mut reply = self.service(O::META.service, body).await?;
        match reply.get_mut("result").map(Value::take) {
            Some(Value::Object(result)) => read(&result).map_err(unfit),
            _ => Err(unfit("an answer without a result".to_owned())),
        }
    }
}

impl Socket {
    /// Calls an operation that reports events, and passes these on as they come. The last event is the reply.
    ///
    /// # Errors
    /// As [`super::Replies::next`], what `told` says, and [`Error::Protocol`] for an answer of another type.
    pub async fn follow<O: Operation>(
        &mut self,
        request: &O::Request,
        mut told: impl FnMut(&str, &Object) -> Result<()>,
    ) -> Result<O::Reply> {
        let mut body = body::<O>(request)?;
        body.insert("streaming".to_owned(), true.into());
        let call = Call::global(O::META.service, Value::Object(body));
        let mut replies = self.start(&call).await?;
        while let Some(mut reply) = replies.next().await? {
            let data = match reply.get_mut("data").map(Value::take) {
                Some(Value::Object(data)) => data,
                _ => continue,
            };
            match reply.get("event").and_then(Value::as_str) {
                Some("done" | "error") => return read(&data).map_err(unfit),
                event => told(event.unwrap_or_default(), &data)?,
            }
        }
        Err(unfit("an answer without an end".to_owned()))
    }
}
