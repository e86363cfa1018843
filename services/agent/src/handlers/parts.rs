//! Parts of runs as answers: how many go in one message, and the error where there are none.

use tg_schemas::{Error, ErrorCode};

/// Bytes of parts in one message.
pub(super) const TOGETHER: usize = 256 << 10;

/// Who asks says that they have more than there is.
pub(super) fn beyond() -> Error {
    let text = "offset: is beyond the end of the run's answer";
    Error::new(ErrorCode::BadRequest, text)
}
