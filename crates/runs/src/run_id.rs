//! Ids of runs, and the hash by which ids of their records follow from one another.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tg_schemas::{Error, ErrorCode};

/// Hex digits of a hash in run ids and record ids.
const DIGITS: usize = 32;

/// Names a run: `run.<generation>.<32 hex digits>`. The generation is the collection's when the run began.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId {
    text: Arc<str>,
    generation: i64,
}

impl JobId {
    /// The run of a processing: the same for the same names. A negative generation counts as 0.
    pub fn new(generation: i64, workspace: &str, processing: &str) -> Self {
        let generation = generation.max(0);
        let hash = hash(&[workspace, processing]);
        Self {
            text: format!("run.{generation}.{hash}").into(),
            generation,
        }
    }

    /// Reads a run id; `None` for any other thread of work.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, hash) = text.strip_prefix("run.")?.split_once('.')?;
        let generation: i64 = number.parse().ok()?;
        // One spelling only: what is compared as text must be equal as text.
        let canonical = generation >= 0 && generation.to_string() == number;
        let hex = hash.len() == DIGITS
            && hash
                .bytes()
                .all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit));
        (canonical && hex).then(|| Self {
            text: text.into(),
            generation,
        })
    }

    /// As it stands in the header `thread`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Generation of the collection that the run writes to.
    pub fn generation(&self) -> i64 {
        self.generation
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for JobId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text).ok_or_else(|| Error::new(ErrorCode::BadRequest, "run: is not a run id"))
    }
}

/// Each part with its length before it, so that no two lists of parts look the same.
pub(crate) fn hash(parts: &[&str]) -> String {
    let mut sha = Sha256::new();
    for part in parts {
        sha.update((part.len() as u64).to_be_bytes());
        sha.update(part.as_bytes());
    }
    hex::encode(&sha.finalize()[..DIGITS / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_id_has_one_spelling() {
        let run = JobId::new(3, "default", "p1");
        assert_eq!(JobId::parse(run.as_str()), Some(run.clone()));
        assert_eq!(run.generation(), 3);
        assert_eq!(run, JobId::new(3, "default", "p1"));
        assert_ne!(run, JobId::new(3, "defaultp", "1"));
        assert_eq!(JobId::new(-1, "w", "p").generation(), 0);
        let hash = "0123456789abcdef0123456789abcdef";
        assert!(JobId::parse(&format!("run.0.{hash}")).is_some());
        for no in [
            format!("run.00.{hash}"),
            format!("run.+1.{hash}"),
            format!("run.-1.{hash}"),
            format!("run..{hash}"),
            format!("run.99999999999999999999.{hash}"),
            format!("run.1.{}", hash.to_uppercase()),
            format!("run.1.{hash}0"),
            "run.1.".to_owned(),
            "run.1".to_owned(),
            "session-1".to_owned(),
            String::new(),
        ] {
            assert_eq!(JobId::parse(&no), None, "{no}");
        }
    }
}
