//! What a model wrote, within the longest text of one that is read. A provider that goes on beyond it is hung up on: whoever
//! holds the stream lets it go with the error.

use tg_schemas::limits;

use crate::error::LlmError;

/// A text that grows.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// What was not passed on yet.
    pub(crate) text: String,
    /// The same of what it thinks.
    pub(crate) thinking: String,
    /// Characters that it thought.
    pub(crate) thought: usize,
    /// Bytes of all of it, and characters.
    bytes: usize,
    pub(crate) characters: usize,
}

impl Written {
    /// Adds a piece.
    ///
    /// # Errors
    /// [`LlmError::LongAnswer`] where the whole would be too long.
    pub(crate) fn add(&mut self, piece: &str) -> Result<(), LlmError> {
        self.grow(piece)?;
        self.text += piece;
        Ok(())
    }

    /// Counts a piece of what the model thinks, and keeps it where it is wanted.
    ///
    /// # Errors
    /// As for [`Self::add`].
    pub(crate) fn think(&mut self, piece: &str, wanted: bool) -> Result<(), LlmError> {
        self.grow(piece)?;
        self.thought += piece.chars().count();
        if wanted {
            self.thinking += piece;
        }
        Ok(())
    }

    fn grow(&mut self, piece: &str) -> Result<(), LlmError> {
        self.bytes = self.bytes.saturating_add(piece.len());
        self.characters = self.characters.saturating_add(piece.chars().count());
        match self.bytes > limits::MODEL_TEXT {
            true => Err(LlmError::LongAnswer),
            false => Ok(()),
        }
    }

    /// Whether there is nothing to pass on.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.thinking.is_empty()
    }

    /// Takes what was not passed on yet.
    pub(crate) fn take(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_a_longest_and_what_was_passed_on_counts() {
        let mut written = Written::default();
        let piece = "x".repeat(limits::MODEL_TEXT - 1);
        written.add(&piece).unwrap();
        assert_eq!(written.take().len(), piece.len());
        written.add("y").unwrap();
        assert_eq!(written.add("z"), Err(LlmError::LongAnswer));
        assert_eq!(written.text, "y", "it grows no more");
    }
}
