//! Rows of tables in plain text: a line of a file of values, or of a table that was set with spaces. Splits nothing.

/// Longest row, in words, of a table that was set with spaces.
const WORDS: usize = 12;

/// Whether a line is a row of a table and not a part of a paragraph.
pub(super) fn is_row(line: &str) -> bool {
    is_of_values(line) || is_of_amounts(line)
}

/// Whether the line above a row of a table names its columns, as the row itself begins with its first values.
pub(super) fn begins_with_values(row: &str) -> bool {
    is_of_amounts(row)
}

/// `a,b,c`, `a;b;c`, or cells with tabs between: at least two separators, none of which a space follows.
fn is_of_values(line: &str) -> bool {
    let tabs = line.matches('\t').count();
    let bare = |mark: char| {
        let (mut close, mut spaced) = (0, 0);
        for (at, _) in line.match_indices(mark) {
            let (before, after) = (&line[..at], &line[at + mark.len_utf8()..]);
            let digits = after.chars().take_while(char::is_ascii_digit).count();
            if after.starts_with(' ') {
                spaced += 1;
            } else if digits != 3 || !before.ends_with(|c: char| c.is_ascii_digit()) {
                // Otherwise it stands within a large number.
                close += 1;
            }
        }
        close >= 2 && spaced == 0
    };
    tabs >= 1 || bare(',') || bare(';')
}

/// "Hosting 1 49.00 49.00": a few words, then amounts, the last of which ends the line.
fn is_of_amounts(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_amount = |word: &&&str| {
        word.starts_with(|c: char| {
            c.is_ascii_digit() || matches!(c, '\u{20ac}' | '$' | '\u{a3}' | '-')
        }) && word.ends_with(|c: char| {
            c.is_ascii_digit() || matches!(c, '%' | '\u{20ac}' | '$' | '\u{a3}')
        })
    };
    let amounts = words.iter().rev().take_while(is_amount).count();
    let exact = words.last().is_some_and(|word| {
        let (_, cents) = word.rsplit_once(['.', ',']).unwrap_or_default();
        cents.len() == 2
    });
    (3..=WORDS).contains(&words.len()) && amounts >= 2 && amounts < words.len() && exact
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_from_lines_of_paragraphs() {
        for row in [
            "order,date,customer,status",
            "S-1002,2026-03-01,Kite Ltd,shipped",
            "a;b;c",
            "a\tb",
            "Hosting, monthly 1 49.00 49.00",
            "Total due 2 1,049.00",
        ] {
            assert!(is_row(row), "{row}");
        }
        for line in [
            "",
            "The bridge was built in 1429",
            "it was built in 1429 and restored in 1987",
            "red, green, and blue lamps",
            "It costs 1,049,000 pounds",
            "Paris,London",
            "the meridian at 86 degrees 15",
        ] {
            assert!(!is_row(line), "{line}");
        }
    }
}
