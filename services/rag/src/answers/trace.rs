//! How the trace of an answer is named and dated.

use tg_mesh::Cx;
use tg_provenance::retrieval_id;

/// Names the trace of a question: the same again when it is asked again under its id.
pub fn trace_id(cx: &Cx) -> String {
    if cx.id.is_empty() {
        return uuid::Uuid::new_v4().to_string();
    }
    retrieval_id(cx.workspace(), cx.flow(), &cx.id)
}
