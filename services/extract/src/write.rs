//! Writing what was found: one record of triples and one of contexts for a chunk, unless it is very much.

use tg_mesh::Cx;
use tg_runs::RunContext;
use tg_schemas::Error;
use tg_schemas::msg::{EntityContext, EntityContexts, Triples};
use tg_schemas::processors::shared::{ENTITY_CONTEXTS, TRIPLES};

use crate::chunk::Piece;
use crate::engine::found::{Found, How, RECORD};

/// Writes facts, labels, provenance and contexts. Nothing was found: nothing is written.
pub(crate) async fn write(
    cx: &Cx,
    piece: &Piece,
    how: &How<'_>,
    found: Found,
) -> Result<(), Error> {
    if found.bad > 0 {
        cx.effect("bad-lines", found.bad as i64);
    }
    let triples = found.triples(&piece.source, how);
    if !triples.is_empty() {
        cx.effect("triples", triples.len() as i64);
    }
    for part in triples.chunks(RECORD) {
        let record = Triples {
            metadata: Some(piece.source.metadata.clone()),
            triples: part.to_vec(),
        };
        cx.record(TRIPLES, &record).await?;
    }
    let contexts = found.into_contexts(&piece.source, how.extractor);
    // Flows made for other releases lack it for some extractors.
    if !cx.has(ENTITY_CONTEXTS) {
        return Ok(());
    }
    for part in contexts.chunks(RECORD) {
        let entities: Vec<EntityContext> = part.to_vec();
        let record = EntityContexts {
            metadata: Some(piece.source.metadata.clone()),
            entities,
        };
        cx.record(ENTITY_CONTEXTS, &record).await?;
    }
    Ok(())
}
