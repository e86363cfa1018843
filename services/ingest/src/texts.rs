//! A text that comes in pieces, as windows that end where it may be cut.

use tg_clients::library::Content;
use tg_document::text::TextDecoder;

use crate::engine::window::Windows;
use crate::error::{IngestError, Unreadable};

/// Text that is cut at once: longer documents are cut window by window.
const WINDOW: usize = 4 << 20;

/// The windows of one text.
pub(crate) struct Texts<'a> {
    root: &'a str,
    pieces: Content,
    windows: Windows,
    /// None: the text is at its end.
    decoder: Option<TextDecoder>,
    /// Whether there was anything.
    some: bool,
    ended: bool,
}

impl<'a> Texts<'a> {
    /// Of a document of this name.
    pub(crate) fn new(root: &'a str, pieces: Content) -> Self {
        Self {
            root,
            pieces,
            windows: Windows::new(WINDOW),
            decoder: Some(TextDecoder::default()),
            some: false,
            ended: false,
        }
    }

    /// The next window.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, IngestError> {
        let unreadable = |why: Unreadable| IngestError::unreadable(self.root, why);
        loop {
            if let Some(window) = self.windows.full() {
                return Ok(Some(window));
            }
            let Some(decoder) = &mut self.decoder else {
                if std::mem::replace(&mut self.ended, true) {
                    return Ok(None);
                }
                let windows = std::mem::replace(&mut self.windows, Windows::new(WINDOW));
                return Ok(Some(windows.last()));
            };
            let piece = self.pieces.next().await;
            match piece.map_err(|error| IngestError::asked(self.root, error))? {
                Some(piece) => {
                    self.some |= !piece.is_empty();
                    let pushed = decoder.push(&piece, self.windows.text());
                    pushed.map_err(|why| unreadable(why.into()))?;
                }
                None if !self.some => return Err(unreadable(Unreadable::Empty)),
                None => {
                    let decoder = self.decoder.take().unwrap_or_default();
                    let finished = decoder.finish(self.windows.text());
                    finished.map_err(|why| unreadable(why.into()))?;
                }
            }
        }
    }
}
