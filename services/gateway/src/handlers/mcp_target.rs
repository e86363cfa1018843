//! Which kind of request, or which operation, a tool of `/mcp` is.

use crate::call::Target;
use crate::engine::mcp::tools::{Of, Tool};
use crate::engine::translate::Body;
use crate::error::RequestError;

/// What answers a tool.
pub(crate) fn target(tool: &Tool, flow: &str) -> Result<Target, RequestError> {
    match tool.of {
        Of::Kind(kind) => Target::kind(kind, flow),
        Of::Operation(service, operation) => {
            let mut body = Body::new();
            body.insert("operation".to_owned(), operation.into());
            Target::service(service, &body)
        }
    }
}
