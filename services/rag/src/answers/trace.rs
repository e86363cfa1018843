//! How the trace of an answer is named.

use tg_mesh::Cx;
use tg_provenance::retrieval_id;

/// Names the trace of an attempt to answer a question. One that is made again after its process died finds other times and
/// may find other words: it has a trace of its own, so that what is said of an entity is said by one attempt alone, and
/// its hashes hold.
pub fn trace_id(cx: &Cx, started_at: &str) -> String {
    match cx.id.is_empty() {
        true => uuid::Uuid::new_v4().to_string(),
        false => retrieval_id(
            cx.workspace(),
            cx.flow(),
            &format!("{} {started_at}", cx.id),
        ),
    }
}
