//! How it is shown what each sentence of an answer rests on.

use std::collections::BTreeSet;

use tg_citations::{Judged, Rests};

/// Longest sentence that is shown.
const SHOWN: usize = 160;

/// For people, one line a sentence and one for each wrong quotation. `gone`: numbers whose passages are not there any more.
pub(super) fn text(judged: &Judged, gone: &BTreeSet<usize>) -> String {
    let numbers = |by: &[usize]| {
        let shown: Vec<String> = by.iter().map(|number| format!("[{number}]")).collect();
        shown.join(", ")
    };
    let line = |(text, rests): (&str, &Rests)| {
        let text = shortened(text);
        match rests {
            Rests::On(by) => {
                let (lost, there): (Vec<usize>, Vec<usize>) =
                    by.iter().partition(|number| gone.contains(number));
                match (there.as_slice(), lost.as_slice()) {
                    (there, []) => format!("✓ {text}\n    supported by {}", numbers(there)),
                    ([], lost) => format!(
                        "– {text}\n    supported by {}, whose source is gone",
                        numbers(lost)
                    ),
                    (there, lost) => format!(
                        "✓ {text}\n    supported by {}; the source of {} is gone",
                        numbers(there),
                        numbers(lost)
                    ),
                }
            }
            Rests::Misquotes(by, wrong) => {
                let by = numbers(by);
                let wrong = wrong.iter().map(|quoted| {
                    format!("    quoted wrongly: \"{quoted}\" does not stand in {by}")
                });
                format!("✗ {text}\n{}", wrong.collect::<Vec<_>>().join("\n"))
            }
            Rests::Refuses => format!("– {text}\n    says that there is no answer"),
            Rests::Nothing => format!("– {text}\n    supported by nothing"),
        }
    };
    judged.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_sentence_is_told_by_what_it_rests_on() {
        let known = BTreeMap::from([
            (1, Some("The lantern is a lamp of blue glass.".to_owned())),
            (2, None),
        ]);
        let answer = "It is \"a lamp of blue glass\" [1]. It is \"a lamp of red glass\" [1]. It hangs [2, 7]. \
                      I like it. It is old [9].";
        let judged = Judged::new(answer, &known);
        assert_eq!(
            text(&judged, &BTreeSet::new()),
            "✓ It is \"a lamp of blue glass\".\n    supported by [1]\n\
             ✗ It is \"a lamp of red glass\".\n    quoted wrongly: \"a lamp of red glass\" does not stand in [1]\n\
             ✓ It hangs.\n    supported by [2]\n\
             – I like it.\n    supported by nothing\n\
             – It is old.\n    supported by nothing"
        );
    }

    #[test]
    fn a_sentence_whose_source_is_gone_has_no_tick() {
        let known = BTreeMap::from([(1, None), (2, None)]);
        let judged = Judged::new("It hangs [1]. It shines [1, 2].", &known);
        assert_eq!(
            text(&judged, &BTreeSet::from([1])),
            "– It hangs.\n    supported by [1], whose source is gone\n\
             ✓ It shines.\n    supported by [2]; the source of [1] is gone"
        );
    }
}
