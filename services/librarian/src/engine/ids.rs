//! Ids that the library gives: each follows from what it names, so a repeat gives the same one.

use tg_runs::JobId;
use tg_schemas::vocabulary::made;
use tg_storage::blob::BlobId;

/// Start of every run's thread.
pub(crate) const RUN: &str = "run.";

/// Key of a record within its run.
pub(crate) type RecordKey = [u8; 16];

/// The id of a document of which only the content is known: every second hex digit of its SHA-256, read
/// as a UUID, as the commands for adding documents do.
pub(crate) fn document(content: &BlobId) -> String {
    let digits: String = content.to_string().chars().step_by(2).collect();
    format!("{}doc/{}", made::LIBRARY, dashed(&digits))
}

/// A UUID (version 8) of what a question began.
pub(crate) fn of_question(kind: &str, question: &str) -> String {
    let mut bytes = first(digest(&[kind, question]));
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    dashed(&hex::encode(bytes))
}

/// The thread of a run's records. Each run of a processing has its own number, and so its own thread.
pub(crate) fn thread(generation: i64, workspace: &str, processing: &str, number: i64) -> String {
    JobId::new(generation, workspace, &format!("{number} {processing}")).to_string()
}

/// The key of a record by its id.
pub(crate) fn record(id: &str) -> RecordKey {
    first(*BlobId::of(id.as_bytes()).bytes())
}

/// A number for what a text says, to tell whether it is the same.
pub(crate) fn fingerprint(text: &str) -> i64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&BlobId::of(text.as_bytes()).bytes()[..8]);
    i64::from_be_bytes(bytes)
}

/// Hashes parts with their lengths, so that different lists never read alike.
fn digest(parts: &[&str]) -> [u8; 32] {
    let mut text = Vec::new();
    for part in parts {
        text.extend((part.len() as u64).to_be_bytes());
        text.extend(part.as_bytes());
    }
    *BlobId::of(&text).bytes()
}

fn first(hash: [u8; 32]) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    bytes
}

fn dashed(digits: &str) -> String {
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    let parts = parts.map(|range| digits.get(range).unwrap_or_default());
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_follow_from_what_they_name() {
        let content = BlobId::of(b"hello");
        // 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824
        assert_eq!(
            document(&content),
            "https://trustgraph.ai/doc/2f4b5ba0-2e32-cbe9-1115-1a4570369892"
        );
        let run = thread(3, "w", "p", 1);
        assert!(run.starts_with("run.3.") && run.len() == 6 + 32, "{run}");
        assert_ne!(thread(0, "a", "bc", 1), thread(0, "ab", "c", 1));
        assert_eq!(of_question("upload", "q"), of_question("upload", "q"));
        assert_eq!(of_question("upload", "q").len(), 36);
    }
}
