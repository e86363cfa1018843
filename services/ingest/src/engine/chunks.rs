//! Which chunker, its settings, and names for the chunks it makes.

use std::collections::HashMap;

use tg_provenance::{Kind, stable_id, text_hash};

use super::recursive::Slice;
use super::structure::Structure;
use super::tokens;

/// How text is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By structure, else at paragraphs, lines and words; sizes in characters.
    Recursive,
    /// By tokens of `cl100k_base`.
    Token,
}

/// A chunker with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cutting {
    /// How.
    pub method: Method,
    /// Largest chunk, in units of the method.
    pub size: usize,
    /// What neighbours may share.
    pub overlap: usize,
}

/// Parameters that do not say how to cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CuttingError {
    /// There is no such chunker.
    #[error("chunker: must be 'recursive' or 'token'")]
    Method,
    /// This parameter is not a number.
    #[error("{0}: must be a whole number")]
    NotWhole(&'static str),
    /// No chunk may have that size.
    #[error("chunk-size: must be between 1 and {LARGEST}")]
    Size,
    /// Chunks would not get on.
    #[error("chunk-overlap: must be less than chunk-size")]
    Overlap,
}

/// Largest size; a chunk has to fit into a prompt.
const LARGEST: usize = 1_000_000;

impl Cutting {
    /// Reads parameters `chunker` (`recursive` or `token`), `chunk-size` and `chunk-overlap`. The error names
    /// the parameter.
    ///
    /// # Errors
    /// [`CuttingError`], for the first parameter that is wrong.
    pub fn read<'a>(parameter: impl Fn(&str) -> Option<&'a str>) -> Result<Self, CuttingError> {
        let (method, size, overlap) = match parameter("chunker") {
            None | Some("recursive") => (Method::Recursive, 2000, 100),
            Some("token") => (Method::Token, 250, 15),
            Some(_) => return Err(CuttingError::Method),
        };
        let number = |name: &'static str, default: usize| match parameter(name).map(str::trim) {
            None | Some("") => Ok(default),
            Some(text) => text.parse().map_err(|_| CuttingError::NotWhole(name)),
        };
        let cutting = Self {
            method,
            size: number("chunk-size", size)?,
            overlap: number("chunk-overlap", overlap)?,
        };
        if cutting.size == 0 || cutting.size > LARGEST {
            return Err(CuttingError::Size);
        }
        if cutting.overlap >= cutting.size {
            return Err(CuttingError::Overlap);
        }
        Ok(cutting)
    }

    /// Cuts a text by its structure; by tokens without regard to it.
    pub fn split(&self, text: &str, structure: Structure) -> Vec<Slice> {
        match self.method {
            Method::Recursive => structure.split(text, self.size, self.overlap),
            Method::Token => tokens::split(text, self.size, self.overlap),
        }
    }
}

/// A chunk with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its id, the same for the same text of the same parent.
    pub id: String,
    /// Its number in the parent, from 1.
    pub index: u64,
    /// Characters of the parent before it.
    pub offset: u64,
    /// Its characters.
    pub length: u64,
    /// Its text.
    pub text: String,
}

/// Names the chunks of one parent, in order, window by window.
#[derive(Debug)]
pub struct Naming {
    parent: String,
    count: u64,
    /// How often a text was there, by the first 64 bits of its hash.
    seen: HashMap<u64, u32>,
    /// Characters of the windows before.
    before: u64,
}

impl Naming {
    /// For the chunks of a page, section or document.
    pub fn of(parent: &str) -> Self {
        Self {
            parent: parent.to_owned(),
            count: 0,
            seen: HashMap::new(),
            before: 0,
        }
    }

    /// The chunks of the next window.
    pub fn window<'a>(
        &'a mut self,
        text: &'a str,
        slices: &'a [Slice],
    ) -> impl Iterator<Item = Named> + 'a {
        slices.iter().map(|slice| {
            let chunk = &text[slice.bytes.clone()];
            let hash = text_hash(chunk);
            let short = u64::from_str_radix(&hash[..16], 16).unwrap_or(0);
            let seen = self.seen.entry(short).or_default();
            let id = stable_id(Kind::Chunk, &[&self.parent, &hash, &seen.to_string()]);
            *seen += 1;
            self.count += 1;
            Named {
                id,
                index: self.count,
                offset: self.before + slice.offset as u64,
                length: slice.length as u64,
                text: chunk.to_owned(),
            }
        })
    }

    /// A window is done; offsets go on behind it.
    pub fn passed(&mut self, text: &str) {
        self.before += text.chars().count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use tg_provenance::chunk_id;

    use super::*;

    fn read(pairs: &[(&str, &'static str)]) -> Result<Cutting, CuttingError> {
        Cutting::read(|name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| *value)
        })
    }

    #[test]
    fn settings_have_defaults_and_bounds() {
        let plain = read(&[]).unwrap();
        assert_eq!(
            (plain.method, plain.size, plain.overlap),
            (Method::Recursive, 2000, 100)
        );
        let token = read(&[("chunker", "token"), ("chunk-overlap", " 20 ")]).unwrap();
        assert_eq!(
            (token.method, token.size, token.overlap),
            (Method::Token, 250, 20)
        );
        for (name, value, error) in [
            ("chunk-size", "many", CuttingError::NotWhole("chunk-size")),
            ("chunk-size", "0", CuttingError::Size),
            ("chunk-overlap", "2000", CuttingError::Overlap),
            ("chunker", "x", CuttingError::Method),
        ] {
            assert_eq!(read(&[(name, value)]), Err(error));
            assert!(error.to_string().starts_with(name));
        }
    }

    #[test]
    fn equal_chunks_have_their_own_ids_and_edits_change_no_other() {
        let cutting = Cutting {
            method: Method::Recursive,
            size: 5,
            overlap: 0,
        };
        let named = |text: &str| {
            let mut naming = Naming::of("urn:section:1");
            let all: Vec<Named> = naming
                .window(text, &cutting.split(text, Structure::Plain))
                .collect();
            all
        };
        let first = chunk_id("urn:section:1", "aaaa", 0);
        let before = named("aaaa\n\nbbbb\n\naaaa\n\ncccc");
        let ids: Vec<&str> = before.iter().map(|chunk| chunk.id.as_str()).collect();
        assert_eq!((before.len(), ids[0]), (4, first.as_str()));
        assert_ne!(ids[0], ids[2]);
        let after = named("aaaa\n\nbbbb\n\nxxxx\n\naaaa\n\ncccc");
        let kept: Vec<&str> = after
            .iter()
            .map(|chunk| chunk.id.as_str())
            .filter(|id| ids.contains(id))
            .collect();
        assert_eq!(kept, ids, "only the new chunk has a new id");
        assert_eq!(
            (after[4].index, after[4].offset, after[4].length),
            (5, 24, 4)
        );
    }

    #[test]
    fn offsets_go_on_over_windows() {
        let mut naming = Naming::of("urn:d");
        let cutting = Cutting {
            method: Method::Recursive,
            size: 10,
            overlap: 0,
        };
        let mut offsets = Vec::new();
        for window in ["éé éé\n\n", "zz"] {
            offsets.extend(
                naming
                    .window(window, &cutting.split(window, Structure::Plain))
                    .map(|chunk| chunk.offset),
            );
            naming.passed(window);
        }
        assert_eq!(offsets, [0, 7]);
    }
}
