//! Static vectors: a text's vector is the mean of its tokens' rows, scaled to length one. Some hundred
//! times faster than a transformer and most of its use. Reads a directory once, at start-up.
//!
//! The directory holds `tokenizer.json` (as the `tokenizers` library writes it) and `model.safetensors`
//! (see [`super::table`]); `config.json`, which both kinds may bring, says nothing that is needed. Also
//! read as they come: a sentence-transformers directory (the two files below `0_StaticEmbedding`) and an
//! installed `wordllama` package (one file each below `weights` and `tokenizers`). If there is a file
//! `SHA256SUMS` beside them, in the format of `sha256sum`, each file it names must have that hash.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tokenizers::Tokenizer;

use super::table::Table;

/// Largest file that is read.
const LARGEST: u64 = 2 << 30;
/// Text that is looked at, in bytes: far more than a chunk.
const LOOKED_AT: usize = 64 << 10;

/// A loaded model.
pub struct StaticModel {
    tokenizer: Tokenizer,
    unknown: Option<u32>,
    table: Table,
}

impl StaticModel {
    /// Reads a directory, keeping the first `dimension` numbers of each vector if so asked. Blocks.
    ///
    /// # Errors
    /// A file is not there, not what it says it is, or has fewer numbers; the text is for the operator and starts
    /// with the file's name.
    pub fn load(directory: &Path, dimension: Option<usize>) -> Result<Self, String> {
        let (weights, tokenizer) = find(directory)?;
        check_sums(directory)?;
        let table = Table::read(&read(&weights)?, dimension)
            .map_err(|why| format!("{}: {why}", weights.display()))?;
        let mut words = Tokenizer::from_bytes(read(&tokenizer)?)
            .map_err(|_| format!("{}: is not a tokenizer", tokenizer.display()))?;
        words.with_padding(None);
        // Cannot fail without a length.
        let _ = words.with_truncation(None);
        Ok(Self {
            unknown: unknown(&words),
            tokenizer: words,
            table,
        })
    }

    /// Numbers of a vector.
    pub fn dimension(&self) -> usize {
        self.table.dimension()
    }

    /// The vector of a text; all zero if it holds no known token. `None` if it cannot be cut into tokens.
    pub fn embed(&self, text: &str) -> Option<Vec<f32>> {
        let text = head(text, LOOKED_AT);
        let tokens = self.tokenizer.encode_fast(text, false).ok()?;
        let mut sum = vec![0.0; self.table.dimension()];
        for token in tokens.get_ids() {
            if Some(*token) != self.unknown {
                self.table.add(*token, &mut sum);
            }
        }
        let length = sum.iter().map(|part| part * part).sum::<f32>().sqrt();
        if length > 0.0 {
            sum.iter_mut().for_each(|part| *part /= length);
        }
        Some(sum)
    }
}

impl std::fmt::Debug for StaticModel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StaticModel")
            .field("dimension", &self.dimension())
            .finish_non_exhaustive()
    }
}

/// The first bytes of a text, whole characters only.
fn head(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rfind(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

/// The token that stands for everything the vocabulary lacks.
fn unknown(tokenizer: &Tokenizer) -> Option<u32> {
    let written = serde_json::to_value(tokenizer.get_model()).ok()?;
    match written.get("unk_token").and_then(|name| name.as_str()) {
        Some(name) => tokenizer.token_to_id(name),
        // Unigram models give its number.
        None => u32::try_from(written.get("unk_id")?.as_u64()?).ok(),
    }
}

fn find(directory: &Path) -> Result<(PathBuf, PathBuf), String> {
    for inner in ["", "0_StaticEmbedding"] {
        let (weights, tokenizer) = (
            directory.join(inner).join("model.safetensors"),
            directory.join(inner).join("tokenizer.json"),
        );
        if weights.is_file() && tokenizer.is_file() {
            return Ok((weights, tokenizer));
        }
    }
    let only = |inner: &str, end: &str| {
        let entries = fs::read_dir(directory.join(inner)).ok()?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut fitting = paths.filter(|path| path.extension().is_some_and(|of| of == end));
        fitting.next().filter(|_| fitting.next().is_none())
    };
    match (only("weights", "safetensors"), only("tokenizers", "json")) {
        (Some(weights), Some(tokenizer)) => Ok((weights, tokenizer)),
        _ => Err(format!(
            "{} holds no model.safetensors with a tokenizer.json",
            directory.display()
        )),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    let fault = |why: &str| format!("{}: {why}", file.display());
    let size = fs::metadata(file).map_err(|_| fault("cannot be read"))?;
    if size.len() > LARGEST {
        return Err(fault("is larger than 2 GiB"));
    }
    fs::read(file).map_err(|_| fault("cannot be read"))
}

fn check_sums(directory: &Path) -> Result<(), String> {
    let Ok(sums) = fs::read_to_string(directory.join("SHA256SUMS")) else {
        return Ok(());
    };
    for line in sums.lines().filter(|line| !line.trim().is_empty()) {
        let named = line.split_once([' ', '\t']);
        let (sum, name) = named.ok_or_else(|| "SHA256SUMS: a line cannot be read".to_owned())?;
        let name = name.trim_start_matches([' ', '*']).trim();
        let found = hex::encode(Sha256::digest(read(&directory.join(name))?));
        if !found.eq_ignore_ascii_case(sum) {
            return Err(format!(
                "{name}: is not the file that was meant (its SHA-256 is not that of SHA256SUMS)"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn near(model: &StaticModel, a: &str, b: &str) -> f32 {
        let (a, b) = (model.embed(a).unwrap(), model.embed(b).unwrap());
        a.iter().zip(b).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn a_text_is_the_mean_of_its_known_tokens() {
        let dir = tempfile::tempdir().unwrap();
        testing::write_model(dir.path(), "", false);
        let model = StaticModel::load(dir.path(), None).unwrap();
        assert_eq!(model.dimension(), 2);
        assert!(near(&model, "pump", "Boiler") > 0.9, "near rows");
        assert!(near(&model, "pump", "treaty") < 0.1);
        let mixed = model.embed("pump treaty nonsense").unwrap();
        let length: f32 = mixed.iter().map(|part| part * part).sum();
        assert!((length - 1.0).abs() < 1e-5);
        assert_eq!(model.embed("nonsense").unwrap(), [0.0, 0.0]);
        assert_eq!(
            StaticModel::load(dir.path(), Some(1)).unwrap().dimension(),
            1
        );
    }

    #[test]
    fn other_layouts_are_found() {
        let dir = tempfile::tempdir().unwrap();
        testing::write_model(dir.path(), "0_StaticEmbedding", true);
        assert!(StaticModel::load(dir.path(), None).is_ok());
        let dir = tempfile::tempdir().unwrap();
        testing::write_model(dir.path(), "x", true);
        for (inner, name, new) in [
            (
                "weights",
                "model.safetensors",
                "l2_supercat_256.safetensors",
            ),
            (
                "tokenizers",
                "tokenizer.json",
                "l2_supercat_tokenizer_config.json",
            ),
        ] {
            fs::create_dir(dir.path().join(inner)).unwrap();
            fs::rename(
                dir.path().join("x").join(name),
                dir.path().join(inner).join(new),
            )
            .unwrap();
        }
        assert!(StaticModel::load(dir.path(), None).is_ok());
    }

    #[test]
    fn another_file_than_meant_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        testing::write_model(dir.path(), "", false);
        let sums = |sum: &str| {
            fs::write(
                dir.path().join("SHA256SUMS"),
                format!("{sum}  tokenizer.json\n"),
            )
            .unwrap();
            StaticModel::load(dir.path(), None).map(drop)
        };
        let digest = Sha256::digest(fs::read(dir.path().join("tokenizer.json")).unwrap());
        let right = hex::encode_upper(digest);
        assert_eq!(sums(&right), Ok(()));
        assert!(
            sums(&"0".repeat(64))
                .unwrap_err()
                .starts_with("tokenizer.json: is not the file")
        );
        fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
        let error = StaticModel::load(dir.path(), None).unwrap_err();
        assert!(
            error.ends_with("holds no model.safetensors with a tokenizer.json"),
            "{error}"
        );
    }
}
