//! Finding a calculation in a question. Computes nothing; that is the calculator's work.

const SPOKEN: &[(&str, &str)] = &[
    (" multiplied by ", " * "),
    (" divided by ", " / "),
    (" to the power of ", " ^ "),
    (" times ", " * "),
    (" plus ", " + "),
    (" minus ", " - "),
    (" modulo ", " % "),
    ("\u{d7}", "*"),
    ("\u{f7}", "/"),
    ("\u{2212}", "-"),
];

/// The longest run of a question that is a calculation, if there is one.
pub(super) fn expression(question: &str) -> Option<String> {
    let mut text = format!(" {} ", question.to_lowercase());
    for (spoken, sign) in SPOKEN {
        text = text.replace(spoken, sign);
    }
    let mut best = String::new();
    let mut run = String::new();
    for c in text.chars().chain(['\n']) {
        if c.is_ascii_digit() || "+-*/^%().e ".contains(c) {
            run.push(c);
        } else {
            consider(&mut best, &run);
            run.clear();
        }
    }
    (!best.is_empty()).then_some(best)
}

fn consider(best: &mut String, run: &str) {
    let run = run
        .trim_matches(|c: char| c.is_whitespace() || c == 'e')
        .trim_end_matches(['.', ' ', '+', '-', '*', '/', '^', 'e'])
        .trim();
    let numbers = run
        .split(|c: char| !(c.is_ascii_digit() || c == '.'))
        .filter(|part| part.chars().any(|c| c.is_ascii_digit()))
        .count();
    let stray_letter = run
        .split(|c: char| !c.is_alphanumeric() && c != '.')
        .any(|word| word.contains('e') && !word.starts_with(|c: char| c.is_ascii_digit()));
    let sign = run.contains(['+', '*', '/', '^', '%']) || run.contains(" - ");
    let balanced = run.matches('(').count() == run.matches(')').count();
    if numbers >= 2 && sign && balanced && !stray_letter && !is_date(run) && run.len() > best.len()
    {
        *best = run.to_owned();
    }
}

fn is_date(run: &str) -> bool {
    let parts: Vec<&str> = run.split(['/', '-', '.']).collect();
    parts.len() == 3
        && !run.contains(' ')
        && parts.iter().all(|part| part.len() <= 4)
        && parts.iter().any(|part| part.len() == 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calculations_are_found() {
        for (question, expected) in [
            ("What is 6*7?", "6*7"),
            ("How much is 12 plus 30 times 2?", "12 + 30 * 2"),
            ("compute (1 + 2) * 3.5.", "(1 + 2) * 3.5"),
            ("What is 10 divided by 4", "10 / 4"),
        ] {
            assert_eq!(
                expression(question).as_deref(),
                Some(expected),
                "{question}"
            );
        }
    }

    #[test]
    fn years_and_dates_are_no_calculations() {
        for question in [
            "Who ruled 1990-2000?",
            "What happened on 2020/01/31?",
            "When was the Old Bridge built?",
            "Which of the 3 bridges has 2 towers?",
        ] {
            assert_eq!(expression(question), None, "{question}");
        }
    }
}
