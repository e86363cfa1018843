//! Whether the first record of a table names its columns. Names are texts that differ; where some are numbers, dates or
//! truths (years, questions 1 to 20, "yes" and "no") what stands below tells them from a record. Pure.

use super::column::Type;

/// Years that columns are named by.
const YEARS: std::ops::RangeInclusive<f64> = 1000.0..=2999.0;
/// Numbers that count up and are no years: fewer may be so by chance.
const COUNTED: usize = 4;

/// Whether the cells of `head` are names, `rest` being the records behind it.
pub(super) fn names_columns(head: &[String], rest: &[Vec<String>]) -> bool {
    let cell = |row: &[String], at: usize| row.get(at).map_or("", |cell| cell.trim()).to_owned();
    // A column in which nothing stands says nothing.
    let filled = |at: &usize| {
        !cell(head, *at).is_empty() || rest.iter().any(|row| !cell(row, *at).is_empty())
    };
    let columns: Vec<usize> = (0..head.len()).filter(filled).collect();
    let named = |at: &&usize| !cell(head, **at).is_empty();
    let names: Vec<String> = columns
        .iter()
        .filter(named)
        .map(|at| cell(head, *at))
        .collect();
    if names.is_empty() {
        return false;
    }
    let numbers: Vec<usize> = columns
        .iter()
        .copied()
        .filter(|at| Type::of(&cell(head, *at)) != Type::Text)
        .collect();
    if !numbers.is_empty() {
        let at_numbers =
            |row: &[String]| -> Vec<String> { numbers.iter().map(|at| cell(row, *at)).collect() };
        let only = numbers.len() == names.len();
        let kind = labels(&at_numbers(head), only);
        return kind.is_some()
            && !rest
                .iter()
                .any(|row| labels(&at_numbers(row), only) == kind)
            && measures(rest.iter().flat_map(|row| at_numbers(row)));
    }
    let mut once = names.clone();
    once.sort_unstable();
    once.dedup();
    if once.len() == names.len() && columns.len() - names.len() <= 1 {
        return true;
    }
    // Names that come twice, or are missing: only where a column has nothing but values of another kind below its name.
    columns.iter().filter(named).any(|at| {
        let mut below = rest
            .iter()
            .map(|row| cell(row, *at))
            .filter(|cell| !cell.is_empty())
            .peekable();
        below.peek().is_some() && below.all(|cell| Type::of(&cell) != Type::Text)
    })
}

/// Names that are no texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Labels {
    Years,
    Numbers,
    Dates,
    Truths,
}

/// What cells that are no texts may be as names, by how they follow on each other. `only`: there are no other names.
fn labels(cells: &[String], only: bool) -> Option<Labels> {
    let kind = |kind: Type| cells.iter().all(|cell| Type::of(cell) == kind);
    if kind(Type::Date) {
        let up = cells.windows(2).all(|two| two[0] < two[1]);
        let down = cells.windows(2).all(|two| two[0] > two[1]);
        return (up || down).then_some(Labels::Dates);
    }
    if kind(Type::Boolean) {
        return (!only).then_some(Labels::Truths);
    }
    let numbers: Option<Vec<f64>> = cells
        .iter()
        .map(|cell| match Type::of(cell) {
            Type::Integer | Type::Float => cell.parse().ok(),
            _ => None,
        })
        .collect();
    let numbers = numbers?;
    let years = kind(Type::Integer) && numbers.iter().all(|number| YEARS.contains(number));
    let step = numbers.get(1).map_or(1.0, |second| second - numbers[0]);
    let even = numbers
        .windows(2)
        .all(|two| ((two[1] - two[0]) - step).abs() <= step.abs() / 1000.0);
    match step != 0.0 && even {
        true if years => Some(Labels::Years),
        true if !only && numbers.len() >= COUNTED => Some(Labels::Numbers),
        _ => None,
    }
}

/// Whether most of the cells that hold something are numbers.
fn measures(cells: impl Iterator<Item = String>) -> bool {
    let (mut numbers, mut held) = (0, 0);
    for cell in cells.filter(|cell| !cell.is_empty()) {
        held += 1;
        let bare = cell.replace([',', ' ', '\u{a0}', '%'], "");
        numbers += usize::from(matches!(Type::of(&bare), Type::Integer | Type::Float));
    }
    numbers > 0 && numbers * 2 >= held
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> bool {
        let rows = text.lines();
        let rows = rows.map(|line| line.split(',').map(str::to_owned).collect());
        let rows: Vec<Vec<String>> = rows.collect();
        names_columns(&rows[0], &rows[1..])
    }

    #[test]
    fn numbers_name_columns_where_they_count_up_and_what_stands_below_does_not() {
        for text in [
            "country,2022,2023\nPeru,10.5,20.25\nChad,5.75,6.5",
            "country,code,1960,1961,1962,\nPeru,PE,1,2,,\nChad,TD,,,5,",
            ",2022,2021\nPeru,1,2",
            "region,2023,2024,2025\nEMEA,10,20,30\nAPAC,5,6,7",
            "region,2022,2023,2024,2025\nEMEA,10,20,30,40",
            "2019,2020,2021\n5.5,6.1,7.0",
            "country,2022\nPeru,10.5\nChad,7",
            "pupil,1,2,3,4\nAnn,0,1,1,0\nBo,1,1,0,1",
            "place,2026-01-01,2026-01-02\nLima,4,5",
            "question,yes,no\nOne,12,30",
            "sample,0.5,1.0,1.5,2.0\nx,0.31,0.4,0.2,0.1",
        ] {
            assert!(header(text), "{text}");
        }
        for text in [
            "Ann,1999\nBo,2001",
            "Ann,1999,2000\nBo,2001,2002",
            "Ann,1\nBo,2",
            "1,2,3\n4,9,5",
            "x,1,2,3\ny,4,5,9",
            "Ann,yes\nBo,no",
            "Lima,2026-01-01\nOslo,2026-01-05",
            "Ann,1999\nBo,unknown",
            "1,x\n2,y",
            ",,\n1,2,3",
            "country,2022",
        ] {
            assert!(!header(text), "{text}");
        }
    }

    #[test]
    fn texts_that_come_twice_or_are_missing_are_names_above_other_values() {
        for text in [
            "a,a\n1,2",
            "name,,\nAnn,,\nBo,,",
            ",b\n0,1",
            "day,,\nMon,x,3.5",
            "name\nAnn",
        ] {
            assert_eq!(header(text), text != "day,,\nMon,x,3.5", "{text}");
        }
        assert!(header("n,,\n3,x,3.5"));
        assert!(!header("Lima,Lima\nOslo,Rome"));
    }
}
