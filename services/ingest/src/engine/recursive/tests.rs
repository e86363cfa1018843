//! The recursive chunker beside texts cut by the reference.

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

fn lengths(text: &str) -> Vec<usize> {
    split(text, 2000, 100)
        .iter()
        .map(|slice| slice.length)
        .collect()
}

#[test]
fn known_texts_are_cut_as_the_reference_cuts_them() {
    let words = vec!["word"; 1000].join(" ");
    assert_eq!(
        (words.len(), lengths(&words)),
        (4999, vec![1999, 1999, 1199])
    );
    assert_eq!(lengths(&"x".repeat(5000)), [2000, 2000, 1200]);
    let paragraphs = format!("one two 3\n\n{}\n\nthree fou", "y".repeat(2500));
    assert_eq!(lengths(&paragraphs), [9, 2000, 600, 9]);
    assert_eq!(lengths(&"é".repeat(2001)), [2000, 101]);
    assert_eq!(lengths(""), [0; 0]);
    assert_eq!(lengths(" \n\n \n"), [0; 0]);
}

#[derive(Deserialize)]
struct Case {
    text: String,
    size: usize,
    overlap: usize,
    chunks: Vec<String>,
}

/// Texts of words, blank runs and long pieces, cut by TrustGraph 2.11's recursive chunker.
#[test]
fn recorded_texts_are_cut_the_same() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../../../fixtures/recursive.json")).unwrap();
    assert!(cases.len() >= 100);
    for case in cases {
        let slices = split(&case.text, case.size, case.overlap);
        let chunks: Vec<&str> = slices
            .iter()
            .map(|slice| &case.text[slice.bytes.clone()])
            .collect();
        assert_eq!(
            chunks, case.chunks,
            "{:?} {} {}",
            case.text, case.size, case.overlap
        );
    }
}

proptest! {
    #[test]
    fn chunks_are_slices_with_exact_offsets(text in "([a-zé東]{1,9}|\n|\n\n| ){0,60}", size in 2_usize..40, part in 0_usize..40) {
        let slices = split(&text, size, part % size);
        let mut covered = 0;
        for slice in &slices {
            let chunk = &text[slice.bytes.clone()];
            prop_assert_eq!(slice.length, chunk.chars().count());
            prop_assert_eq!(slice.offset, text[..slice.bytes.start].chars().count());
            prop_assert!(slice.length <= size + part % size + 1);
            prop_assert!(!chunk.trim().is_empty());
            if slice.bytes.start > covered {
                prop_assert!(text[covered..slice.bytes.start].trim().is_empty(), "text is lost");
            }
            covered = slice.bytes.end.max(covered);
        }
        prop_assert!(text[covered..].trim().is_empty(), "text is lost at the end");
    }
}
