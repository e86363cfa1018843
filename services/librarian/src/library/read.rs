//! Reading documents: metadata, lists, content whole, in pieces, in batches.

use std::sync::Arc;

use tg_schemas::msg::{Criteria, DocumentMetadata};
use tg_schemas::{Error, ErrorCode, limits};
use tg_storage::StorageError;
use tg_storage::blob::BlobId;

use super::{Library, damaged};
use crate::engine::asker::Asker;
use crate::engine::criteria;
use crate::engine::estimate::Measure;
use crate::error::{invalid, missing_document, wire};
use crate::store::ContentStore;
use crate::store::documents::{ContentLocation, Listing, Which};
use tg_schemas::paging::{Asked, Page};

/// Most bytes of content that one message carries.
const WHOLE: u64 = limits::CONTENT as u64;
/// Most documents of one batch.
const BATCH: usize = 1000;
/// Most bytes of one batch.
const BATCH_BYTES: usize = limits::CONTENT;
/// Bytes read at once when content is only measured.
const STEP: u64 = 1 << 20;
/// Documents looked at in one step of a listing.
const STRIDE: u32 = 512;

/// Which documents a listing shows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Listed {
    /// Parts of others and answers too.
    pub(crate) everything: bool,
    pub(crate) criteria: Vec<Criteria>,
    /// Only those processed into it; empty for all.
    pub(crate) collection: String,
}

/// A piece of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    pub(crate) index: u64,
    pub(crate) pieces: u64,
    /// Bytes up to the end of this piece.
    pub(crate) received: u64,
    pub(crate) total: u64,
}

/// A document to be read piece by piece.
pub(crate) struct Pieces {
    /// Of the document.
    id: String,
    content: Arc<dyn ContentStore>,
    hash: BlobId,
    /// Small content, at hand.
    body: Option<Vec<u8>>,
    size: u64,
    piece: u64,
    next: u64,
}

/// A walk through all of these, from the first one on.
fn all(which: Which) -> Listing {
    Listing {
        which,
        collection: String::new(),
        id: String::new(),
        after: 0,
        most: STRIDE,
    }
}

impl Library {
    /// A document's metadata.
    pub(crate) async fn metadata(
        &self,
        asker: &Asker,
        id: &str,
    ) -> Result<DocumentMetadata, Error> {
        let found = self.rows.document(&asker.workspace, id);
        found.await.map_err(wire)?.ok_or_else(missing_document)
    }

    /// A document's content as a whole.
    pub(crate) async fn content(&self, asker: &Asker, id: &str) -> Result<Vec<u8>, Error> {
        let (place, size) = self.place(asker, id).await?;
        if size > WHOLE {
            let text = format!("the document has {size} bytes: read it with stream-document");
            return Err(Error::new(ErrorCode::TooLarge, text));
        }
        match place.body {
            Some(body) => Ok(body),
            None => self.file(id, place.hash).await,
        }
    }

    /// The content of a file, which is what its name says.
    async fn file(&self, id: &str, hash: BlobId) -> Result<Vec<u8>, Error> {
        match self.content.get(hash).await {
            Ok(Some(content)) => Ok(content),
            Ok(None) | Err(StorageError::Corrupt(_)) => Err(damaged(id)),
            Err(fault) => Err(wire(fault)),
        }
    }

    /// A document's content in pieces.
    pub(crate) async fn pieces(
        &self,
        asker: &Asker,
        id: &str,
        piece: u64,
    ) -> Result<Pieces, Error> {
        let (place, size) = self.place(asker, id).await?;
        Ok(Pieces {
            id: id.to_owned(),
            content: self.content.clone(),
            hash: place.hash,
            body: place.body,
            size,
            piece: piece.max(1),
            next: 0,
        })
    }

    /// Content of several documents in the order of their ids, `None` for those that are not there, and
    /// the metadata of those that are.
    pub(crate) async fn contents(
        &self,
        asker: &Asker,
        ids: Vec<String>,
    ) -> Result<(Vec<Option<Vec<u8>>>, Vec<DocumentMetadata>), Error> {
        if ids.len() > BATCH {
            return Err(invalid(format!(
                "document-ids: must not have more than {BATCH} entries"
            )));
        }
        let most = BATCH_BYTES as u64;
        let found = self.rows.located(&asker.workspace, ids, most);
        let found = found.await.map_err(wire)?.ok_or_else(too_much)?;
        let (mut contents, mut documents) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        for one in found {
            let Some((document, place)) = one else {
                contents.push(None);
                continue;
            };
            let place = place.ok_or_else(|| damaged(&document.id))?;
            let content = match place.body {
                Some(body) => Some(body),
                None => Some(self.file(&document.id, place.hash).await?),
            };
            bytes += content.as_ref().map_or(0, Vec::len);
            if bytes > BATCH_BYTES {
                return Err(too_much());
            }
            contents.push(content);
            documents.push(document);
        }
        Ok((contents, documents))
    }

    /// Documents of the workspace, in the order they came, or a page of them.
    pub(crate) async fn list(
        &self,
        asker: &Asker,
        listed: Listed,
        asked: Asked,
    ) -> Result<Page<DocumentMetadata>, Error> {
        let criteria = criteria::read(listed.criteria)?;
        let which = match listed.everything {
            true => Which::Everything,
            false => Which::OnTop,
        };
        let id = criteria.iter().find_map(criteria::Criterion::id);
        let from = Listing {
            collection: listed.collection,
            id: id.unwrap_or_default().to_owned(),
            ..all(which)
        };
        let wanted = |one: &DocumentMetadata| criteria.iter().all(|criterion| criterion.holds(one));
        self.page(asker, from, asked, wanted).await
    }

    /// Direct parts of a document, or a page of them.
    pub(crate) async fn children(
        &self,
        asker: &Asker,
        parent: &str,
        asked: Asked,
    ) -> Result<Page<DocumentMetadata>, Error> {
        let parts = all(Which::PartsOf(parent.to_owned()));
        self.page(asker, parts, asked, |_| true).await
    }

    /// The wanted documents after a number, as many as a page has room for.
    async fn page(
        &self,
        asker: &Asker,
        mut walk: Listing,
        asked: Asked,
        wanted: impl Fn(&DocumentMetadata) -> bool + Send,
    ) -> Result<Page<DocumentMetadata>, Error> {
        walk.after = asked.after_as()?.unwrap_or(0);
        let mut page = Page::new(asked);
        loop {
            let found = self.rows.walk(&asker.workspace, walk.clone());
            let found = found.await.map_err(wire)?;
            let Some((last, _)) = found.last() else {
                return Ok(page);
            };
            walk.after = *last;
            for (number, document) in found {
                if !wanted(&document) {
                    continue;
                }
                if page.is_full() {
                    return Ok(page);
                }
                page.add(number, document)?;
            }
        }
    }

    /// Bytes of a document.
    pub(crate) async fn size(&self, asker: &Asker, id: &str) -> Result<u64, Error> {
        Ok(self.place(asker, id).await?.1)
    }

    /// Looks through a document to tell what processing it will cost. Returns its size and what was seen.
    pub(crate) async fn measure(
        &self,
        asker: &Asker,
        id: &str,
        kind: &str,
    ) -> Result<(u64, Measure), Error> {
        let mut pieces = self.pieces(asker, id, STEP).await?;
        let mut measure = Measure::of(kind);
        if measure.looks() {
            while let Some(piece) = pieces.next().await? {
                measure.feed(&piece.bytes);
            }
        }
        Ok((pieces.size, measure))
    }

    async fn place(&self, asker: &Asker, id: &str) -> Result<(ContentLocation, u64), Error> {
        let found = self
            .rows
            .located(&asker.workspace, vec![id.to_owned()], u64::MAX);
        let found = found.await.map_err(wire)?.unwrap_or_default().pop();
        let (_, place) = found.flatten().ok_or_else(missing_document)?;
        let place = place.ok_or_else(|| damaged(id))?;
        let size = match (&place.body, place.size) {
            (Some(body), _) => body.len() as u64,
            (None, Some(size)) => size,
            (None, None) => {
                let size = self.content.size(place.hash).await.map_err(wire)?;
                size.ok_or_else(|| damaged(id))?
            }
        };
        Ok((place, size))
    }
}

impl Pieces {
    /// The next piece; an empty document has one empty piece.
    pub(crate) async fn next(&mut self) -> Result<Option<Piece>, Error> {
        if self.ended() {
            return Ok(None);
        }
        let index = self.next;
        self.next += 1;
        self.piece(index).await.map(Some)
    }

    /// One piece by its index.
    pub(crate) async fn at(&self, index: i64) -> Result<Piece, Error> {
        let pieces = self.count();
        let index = u64::try_from(index).ok().filter(|index| *index < pieces);
        let index = index.ok_or_else(|| {
            let last = pieces - 1;
            invalid(format!("chunk-index: must be 0 to {last}"))
        })?;
        self.piece(index).await
    }

    async fn piece(&self, index: u64) -> Result<Piece, Error> {
        let from = index * self.piece;
        let length = self.piece.min(self.size.saturating_sub(from));
        let bytes = match &self.body {
            Some(body) => body[from as usize..(from + length) as usize].to_vec(),
            None => {
                let range = self.content.get_range(self.hash, from, length as usize);
                range.await.map_err(wire)?.ok_or_else(missing_document)?
            }
        };
        if bytes.len() as u64 != length {
            return Err(damaged(&self.id));
        }
        Ok(Piece {
            received: from + length,
            bytes,
            index,
            pieces: self.count(),
            total: self.size,
        })
    }

    /// Whether all pieces were read.
    pub(crate) fn ended(&self) -> bool {
        self.next >= self.count()
    }

    fn count(&self) -> u64 {
        self.size.div_ceil(self.piece).max(1)
    }
}

fn too_much() -> Error {
    let text = format!("document-ids: have more than {BATCH_BYTES} bytes together; ask for fewer");
    Error::new(ErrorCode::TooLarge, text)
}
