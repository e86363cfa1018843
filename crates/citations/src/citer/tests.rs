//! Citation marks: which stay, which go, and which are added.

use proptest::prelude::*;

use super::*;

const PASSAGES: [&str; 3] = [
    "The Old Bridge was built in 1429 by Anna Reed.",
    "The Lantern is a lighthouse on a cliff near Ham.",
    "Ham has 3000 people.",
];

fn passages(citer: &Citer) -> Vec<usize> {
    citer.cited().iter().map(|cited| cited.passage).collect()
}

fn whole(text: &str) -> (String, Vec<usize>) {
    let mut citer = Citer::new(&PASSAGES);
    let mut out = citer.push(text);
    out += &citer.finish();
    (out, passages(&citer))
}

#[test]
fn known_numbers_stay_and_unknown_ones_go() {
    for (text, expected, cited) in [
        ("Built in 1429 [1].", "Built in 1429 [1].", vec![0]),
        ("Built in 1429 [9].", "Built in 1429.", vec![]),
        ("Yes [1, 9], it was.", "Yes [1], it was.", vec![0]),
        (
            "So [1][3] and [2-3] it is.",
            "So [1][2] and [2, 3] it is.",
            vec![0, 2, 1],
        ),
        ("It is old. [1] Really.", "It is old. [1] Really.", vec![0]),
        ("It is old.[0] Really.", "It is old. Really.", vec![]),
        (
            "An array[x] and [sic] stay.",
            "An array[x] and [sic] stay.",
            vec![],
        ),
        ("Open [1", "Open [1", vec![]),
        ("Nothing [99] here", "Nothing here", vec![]),
        ("[7] first", " first", vec![]),
        ("", "", vec![]),
    ] {
        assert_eq!(whole(text), (expected.to_owned(), cited), "{text}");
    }
}

#[test]
fn a_sentence_that_repeats_a_passage_is_given_its_number() {
    let (text, cited) = whole("The Old Bridge was built in 1429. I like it.\nHam has 3000 people");
    assert_eq!(
        text,
        "The Old Bridge was built in 1429 [1]. I like it.\nHam has 3000 people [2]"
    );
    assert_eq!(cited, [0, 2]);
    // Two passages together.
    let (text, _) = whole("Anna Reed built the Old Bridge and the lighthouse Lantern on a cliff.");
    assert!(text.ends_with("cliff [1, 2]."), "{text}");
    // What says that it does not know cites nothing.
    let (text, cited) = whole("The passages do not say who painted the Mona Lisa.");
    assert_eq!(text, "The passages do not say who painted the Mona Lisa.");
    assert!(cited.is_empty());
}

#[test]
fn an_answer_leans_on_what_it_repeats() {
    let facts = [
        "Old Bridge built 1429",
        "Old Bridge designer Anna Reed",
        "Ham people 3000",
    ];
    let on = |answer: &str| leans_on(answer, &facts).into_iter().collect::<Vec<_>>();
    assert_eq!(on("It was Anna Reed who designed the Old Bridge"), [1]);
    assert_eq!(on("In 1429, the year the bridge was built."), [0]);
    assert!(on("The facts do not answer this question.").is_empty());
}

#[test]
fn numbers_with_points_end_no_sentence() {
    let (text, _) = whole("It is 3.14 m or e.g. 4 m long [2]. Then more...  And \"so.\" On!");
    assert_eq!(
        text,
        "It is 3.14 m or e.g. 4 m long [1]. Then more...  And \"so.\" On!"
    );
}

#[test]
fn numbers_run_from_one_in_the_order_of_their_use() {
    let (text, cited) = whole("Ham is small [3]. The bridge is old [1]. Ham has 3000 people.");
    assert_eq!(
        text,
        "Ham is small [1]. The bridge is old [2]. Ham has 3000 people [1]."
    );
    assert_eq!(cited, [2, 0]);
    let mut citer = Citer::new(&PASSAGES);
    citer.push("I say [9]. It is [2], as said, a lighthouse");
    citer.finish();
    let said: Vec<&str> = citer.cited().iter().map(|one| one.said.as_str()).collect();
    assert_eq!(said, ["It is, as said, a lighthouse"]);
}

#[test]
fn a_refusal_bears_no_number_whatever_the_passages_say() {
    let passages = [
        "The passages of the manual answer this question.",
        "These passages do not answer every question of the reader.",
    ];
    for (text, expected) in [
        (
            "The passages do not answer this question.",
            "The passages do not answer this question.",
        ),
        (
            "The passages do not answer this question [2].",
            "The passages do not answer this question.",
        ),
        (
            "The passages [1, 2] do not say it. [1]",
            "The passages do not say it.",
        ),
        ("Die Frage bleibt offen [0].", "Die Frage bleibt offen."),
        ("Die Frage bleibt offen [1] [0]", "Die Frage bleibt offen"),
    ] {
        let mut citer = Citer::new(&passages);
        let mut out = citer.push(text);
        out += &citer.finish();
        assert_eq!(out, expected);
        assert!(citer.cited().is_empty() && citer.refused(), "{text}");
    }
    let mut citer = Citer::new(&passages);
    let mut out = citer.push("The passages do not say it [1]. The manual is long [1].");
    out += &citer.finish();
    assert_eq!(out, "The passages do not say it. The manual is long [1].");
    assert!(!citer.refused(), "something is answered");
    let mut citer = Citer::new(&passages);
    citer.push("The passages do not say it. Paris it is.");
    citer.finish();
    assert!(!citer.refused(), "something is said, if of nothing");
    let mut citer = Citer::new(&passages);
    citer.push("Paris is the capital of France.");
    citer.finish();
    assert!(!citer.refused() && citer.cited().is_empty());
}

#[test]
fn numbers_are_exchanged() {
    let shift = |number| (number < 3).then_some(number + 2);
    assert_eq!(
        renumbered("A [1]. B [2, 1] [x] C [7] D [", shift),
        "A [3]. B [3, 4] [x] C D ["
    );
    // The end of each is looked for nearby, not in all that follows.
    let open = "[".repeat(4 << 20);
    assert!(renumbered(&open, shift) == open);
}

proptest! {
    #[test]
    fn pieces_make_no_difference(
        text in "([a-c ]{0,6}|Old Bridge built 1429|\\[[0-9, -]{0,4}\\]|[.!?\\[\\]\n ]){0,20}",
        cuts in prop::collection::vec(1usize..7, 0..40)
    ) {
        let expected = whole(&text);
        let mut citer = Citer::new(&PASSAGES);
        let mut out = String::new();
        let chars: Vec<char> = text.chars().collect();
        let mut rest = chars.as_slice();
        for cut in cuts {
            let (piece, left) = rest.split_at(cut.min(rest.len()));
            out += &citer.push(&piece.iter().collect::<String>());
            rest = left;
        }
        out += &citer.push(&rest.iter().collect::<String>());
        out += &citer.finish();
        prop_assert_eq!((out, passages(&citer)), expected);
    }

    #[test]
    fn only_passages_that_exist_are_ever_cited(text in "(word |\\[[0-9,]{1,5}\\]|[.] ){0,30}") {
        let (out, cited) = whole(&text);
        prop_assert!(cited.iter().all(|at| *at < PASSAGES.len()));
        for part in out.split('[').skip(1) {
            if let Some(numbers) = part.split(']').next().and_then(numbers) {
                prop_assert!(numbers.iter().all(|number| (1..=3).contains(number)));
            }
        }
    }
}
