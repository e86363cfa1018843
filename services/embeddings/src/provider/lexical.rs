//! Vectors from letters alone: hashed words and runs of four characters. Needs no weights and no network.
//! It finds texts that share words or parts of words; it knows nothing of meaning. Pure.
//!
//! What it makes is kept in stores: a change of anything here needs another name.

/// Name in settings and in `model`.
pub const NAME: &str = "lexical";
/// Numbers of a vector.
pub const DIMENSION: usize = 1_024;

/// Characters of a run.
const RUN: usize = 4;
/// Characters of a run in scripts that write a word in one or two.
const SHORT_RUN: usize = 2;
/// What a word counts beside its runs.
const WORD: f32 = 1.0;
/// What all runs of a word count together.
const RUNS: f32 = 1.0;
/// What a word that nearly every text has counts.
const COMMON: f32 = 0.1;
/// Longest word that is looked at whole, in characters.
const LONGEST: usize = 64;

/// Longest of the words that say little about a text.
const COMMON_LENGTH: usize = 5;
/// English words that say little about a text, in order.
const COMMON_WORDS: [&str; 76] = [
    "a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been",
    "but", "by", "can", "could", "did", "do", "does", "for", "from", "had", "has", "have", "he",
    "her", "his", "how", "i", "if", "in", "into", "is", "it", "its", "me", "more", "my", "no",
    "not", "of", "on", "one", "or", "our", "s", "she", "so", "some", "such", "than", "that", "the",
    "their", "them", "there", "these", "they", "this", "to", "up", "was", "we", "were", "what",
    "when", "where", "which", "who", "why", "will", "with", "would", "you", "your",
];

/// The vector of a text, of length one; all zero if the text holds no letter and no digit.
pub fn embed(text: &str) -> Vec<f32> {
    let mut sums = vec![0.0_f32; DIMENSION];
    let mut word: Vec<char> = Vec::with_capacity(LONGEST);
    for c in text.chars().chain([' ']) {
        if c.is_alphanumeric() && word.len() < LONGEST {
            word.extend(c.to_lowercase());
        } else if !word.is_empty() {
            add(&mut sums, &word);
            word.clear();
            if c.is_alphanumeric() {
                word.extend(c.to_lowercase());
            }
        }
    }
    // The tenth time a word occurs says less than the first.
    for sum in &mut sums {
        *sum = sum.signum() * sum.abs().sqrt();
    }
    let length = sums.iter().map(|sum| sum * sum).sum::<f32>().sqrt();
    if length > 0.0 {
        sums.iter_mut().for_each(|sum| *sum /= length);
    }
    sums
}

fn add(sums: &mut [f32], word: &[char]) {
    if word.iter().any(|c| ('\u{2e80}'..='\u{ffdc}').contains(c)) {
        // No blanks between words: pairs of characters stand for them.
        word.windows(SHORT_RUN.min(word.len()))
            .for_each(|run| put(sums, hash(2, run), WORD));
        return;
    }
    let common = is_common(word);
    put(sums, hash(1, word), if common { COMMON } else { WORD });
    if common {
        return;
    }
    let mut bounded = Vec::with_capacity(word.len() + 2);
    bounded.push('<');
    bounded.extend_from_slice(word);
    bounded.push('>');
    let runs = bounded.windows(RUN);
    let weight = RUNS / (runs.len().max(1) as f32).sqrt();
    runs.for_each(|run| put(sums, hash(3, run), weight));
}

/// Looks a word up: compared with each of the list, letter by letter, it took half of the time of a vector.
fn is_common(word: &[char]) -> bool {
    let mut letters = [0; COMMON_LENGTH];
    let Some(letters) = letters.get_mut(..word.len()) else {
        return false;
    };
    for (letter, c) in letters.iter_mut().zip(word) {
        match u8::try_from(*c) {
            Ok(byte) => *letter = byte,
            Err(_) => return false,
        }
    }
    // One with other letters than those of ASCII is not in UTF-8 here, and in no list.
    std::str::from_utf8(letters).is_ok_and(|word| COMMON_WORDS.binary_search(&word).is_ok())
}

fn put(sums: &mut [f32], hash: u64, weight: f32) {
    let at = (hash % DIMENSION as u64) as usize;
    sums[at] += if hash >> 63 == 1 { weight } else { -weight };
}

/// FNV-1a over the characters, then mixed so that all bits count. Fixed for ever.
fn hash(kind: u64, chars: &[char]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ kind;
    for c in chars {
        hash = (hash ^ u64::from(u32::from(*c))).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ hash >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: &str, b: &str) -> f32 {
        embed(a).iter().zip(embed(b)).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn shared_words_and_parts_of_words_are_near() {
        let question = "which pump feeds the boiler?";
        assert!(near(question, "Boiler feed pumps are inspected yearly") > 0.3);
        assert!(near(question, "The treaty was signed in Vienna") < 0.1);
        assert!(near("STRASSE", "strasse") > 0.99);
        assert!(near("水泵给锅炉供水", "锅炉的水泵") > 0.3);
    }

    #[test]
    fn vectors_are_of_length_one_or_have_none() {
        for text in ["x", "two words", &"long ".repeat(2_000), &"w".repeat(500)] {
            let vector = embed(text);
            let length: f32 = vector.iter().map(|part| part * part).sum();
            assert!((length - 1.0).abs() < 1e-4, "{length}");
        }
        for text in ["", " \n", "?!…"] {
            assert!(embed(text).iter().all(|part| *part == 0.0));
        }
    }

    #[test]
    fn common_words_are_found_and_no_others() {
        assert!(COMMON_WORDS.is_sorted());
        let found = |word: &str| is_common(&word.chars().collect::<Vec<char>>());
        assert!(COMMON_WORDS.into_iter().all(found));
        for word in ["", "thé", "é", "which is", "whiches", "水", "zzz"] {
            assert!(!found(word), "{word}");
        }
    }

    #[test]
    fn vectors_never_change() {
        let vector = embed("Threadgraph");
        let digest = vector
            .iter()
            .enumerate()
            .filter(|(_, part)| **part != 0.0)
            .fold(0_usize, |sum, (at, part)| {
                sum * 31 + at * 2 + usize::from(*part > 0.0)
            });
        assert_eq!(digest, DIGEST);
    }

    /// What the test computed when the stores began to rely on it.
    const DIGEST: usize = 47_106_976_889_828_607;
}
