//! Operations as types, called through the gateway: what is asked and answered has the types that the operation declares.

use serde_json::Value;
use tg_schemas::operations::{Operation, read, write};

use super::error::{Error, Result};
use super::http::Http;

impl Http {
    /// Calls an operation in the workspace of the session.
    ///
    /// # Errors
    /// As [`Http::service`]; [`Error::Protocol`] for an answer of another type.
    pub async fn call<O: Operation>(&self, request: &O::Request) -> Result<O::Reply> {
        let unfit = |why: String| Error::Protocol(why);
        let mut body = write(request).map_err(|error| unfit(error.message))?;
        body.insert("operation".to_owned(), O::META.name.into());
        let mut reply = self.service(O::META.service, Value::Object(body)).await?;
        match reply.get_mut("result").map(Value::take) {
            Some(Value::Object(result)) => read(&result).map_err(unfit),
            _ => Err(unfit("an answer without a result".to_owned())),
        }
    }
}
