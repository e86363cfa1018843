//! Text for people: tables, records, folded and cut lines. Pure functions of what they are given.

use comfy_table::{LineStyle, Table, TableStyle, presets};

/// Width at which long cells are folded.
const CELL_WIDTH: usize = 70;

const STYLE: TableStyle =
    presets::ASCII_FULL_CONDENSED.header_separator(LineStyle::new('+', '-', '+', '+'));

/// Columns of the terminal that something is printed on; `None` where it goes elsewhere, and may be as wide as it is.
pub type Width = Option<usize>;

/// A table with a head. Where a width is given no line is longer, unless a single word is: cells are folded between
/// words, and a column that leaves the others no room goes below them, each of its cells on lines of its own.
/// So what is to be copied is never cut.
pub fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
    width: Width,
) -> String {
    let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
    let whole = framed(&head, &rows, &[CELL_WIDTH; N]);
    fitted(whole, &head, &rows, width)
}

/// A text that shows rows, where it fits the width; else the rows as a table that does.
pub fn fitted(whole: String, head: &[&str], rows: &[Vec<String>], width: Width) -> String {
    match width {
        Some(width) if widest(&whole) > width => narrow(head, rows, width),
        _ => whole,
    }
}

/// What a column needs beside its widest cell, and the frame beside its columns.
const COLUMN_FRAME: usize = 3;
const FRAME: usize = 1;
/// What a column of text keeps, if it has so much.
const READABLE: usize = 24;

fn narrow(head: &[&str], rows: &[Vec<String>], width: usize) -> String {
    let cell = |row: &Vec<String>, at: usize| row.get(at).cloned().unwrap_or_default();
    let of = |at: usize, long: fn(&str) -> usize| {
        let cells = rows
            .iter()
            .map(|row| long(row.get(at).map_or("", String::as_str)));
        cells.chain([long(head[at])]).max().unwrap_or(0)
    };
    // A word is never cut, and a text that is longer is no column of single words.
    let need = |at: usize| of(at, longest_word).max(of(at, widest).min(READABLE));
    let needs: Vec<usize> = (0..head.len()).map(need).collect();
    let room = |columns: &[usize]| width.saturating_sub(columns.len() * COLUMN_FRAME + FRAME);
    let mut beside: Vec<usize> = (0..head.len()).collect();
    let mut below = Vec::new();
    while beside.len() > 1 && beside.iter().map(|at| needs[*at]).sum::<usize>() > room(&beside) {
        let Some(longest) = beside.iter().copied().max_by_key(|at| needs[*at]) else {
            break;
        };
        beside.retain(|at| *at != longest);
        below.push(longest);
    }
    below.sort_unstable();
    let room = match below.is_empty() {
        true => room(&beside),
        false => width.saturating_sub((beside.len() - 1) * GAP),
    };
    let mut widths: Vec<usize> = beside.iter().map(|at| of(*at, widest)).collect();
    // The widest column gives way first, but none below its need.
    while widths.iter().sum::<usize>() > room {
        let wide = (0..widths.len()).filter(|at| widths[*at] > needs[beside[*at]]);
        match wide.max_by_key(|at| widths[*at]) {
            Some(at) => widths[at] -= 1,
            None => break,
        }
    }
    let chosen = |row: &Vec<String>| beside.iter().map(|at| cell(row, *at)).collect::<Vec<_>>();
    let titles: Vec<&str> = beside.iter().map(|at| head[*at]).collect();
    if below.is_empty() {
        return framed(
            &titles,
            &rows.iter().map(chosen).collect::<Vec<_>>(),
            &widths,
        );
    }
    let mut lines = columns(
        &titles
            .iter()
            .map(|title| (*title).to_owned())
            .collect::<Vec<_>>(),
        &widths,
    );
    for row in rows {
        lines.extend(columns(&chosen(row), &widths));
        for at in &below {
            let text = cell(row, *at);
            let parts = fold(&text, width.saturating_sub(INDENT));
            let shown = parts.lines().filter(|part| !part.is_empty());
            lines.extend(shown.map(|part| format!("{:INDENT$}{part}", "")));
        }
    }
    lines.join("\n")
}

/// Blanks before what stands below.
const INDENT: usize = 4;

/// Cells beside each other, each folded to its width.
fn columns(cells: &[String], widths: &[usize]) -> Vec<String> {
    let parts: Vec<Vec<String>> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| fold(cell, *width).lines().map(str::to_owned).collect())
        .collect();
    let high = parts.iter().map(Vec::len).max().unwrap_or(0);
    let line = |at: usize| {
        let cells = parts.iter().zip(widths).map(|(part, width)| {
            let text = part.get(at).map_or("", String::as_str);
            padded(text, *width)
        });
        let line = cells.collect::<Vec<_>>().join(&" ".repeat(GAP));
        line.trim_end().to_owned()
    };
    (0..high.max(1)).map(line).collect()
}

/// A cell with the blanks behind it up to a width. Formatting panics at a width of more than sixteen bits, as a text without blanks can
/// have.
pub fn padded(cell: &str, width: usize) -> String {
    let width = width.min(usize::from(u16::MAX));
    format!("{cell:width$}")
}

fn framed(head: &[&str], rows: &[Vec<String>], widths: &[usize]) -> String {
    let fitting = |cell: &str, at: usize| fold(cell, widths.get(at).copied().unwrap_or(CELL_WIDTH));
    let mut table = grid();
    table.set_header(
        head.iter()
            .enumerate()
            .map(|(at, title)| fitting(title, at)),
    );
    for row in rows {
        table.add_row(row.iter().enumerate().map(|(at, cell)| fitting(cell, at)));
    }
    table.to_string()
}

/// A record: names on the left, values on the right. Where a width is given no line is longer, unless a single word is.
pub fn record(rows: &[(&str, String)], width: Width) -> String {
    let whole = pairs(rows, CELL_WIDTH);
    let Some(width) = width.filter(|width| widest(&whole) > *width) else {
        return whole;
    };
    let names = rows.iter().map(|(name, _)| name.chars().count()).max();
    let beside = width.saturating_sub(names.unwrap_or(0) + 2 * COLUMN_FRAME + FRAME);
    let words = rows.iter().map(|(_, value)| longest_word(value)).max();
    if words.unwrap_or(0) <= beside {
        return pairs(rows, beside.min(CELL_WIDTH));
    }
    let mut lines = Vec::new();
    for (name, value) in rows {
        lines.push((*name).to_owned());
        let parts = fold(value, width.saturating_sub(INDENT));
        lines.extend(parts.lines().map(|part| format!("{:INDENT$}{part}", "")));
    }
    lines.join("\n")
}

fn pairs(rows: &[(&str, String)], width: usize) -> String {
    let mut table = grid();
    for (name, value) in rows {
        table.add_row([(*name).to_owned(), fold(value, width)]);
    }
    table.to_string()
}

fn widest(text: &str) -> usize {
    let lines = text.lines().map(|line| line.chars().count());
    lines.max().unwrap_or(0)
}

fn longest_word(text: &str) -> usize {
    let words = text.split_whitespace().map(|word| word.chars().count());
    words.max().unwrap_or(0)
}

/// Columns of the terminal that data goes to; `None` if it goes elsewhere.
pub fn terminal() -> Width {
    Table::new().width().map(usize::from)
}

/// Rows without a frame, for people who look at many. Where a width is given no line is longer: the first column gives
/// way first, then the last one loses its middle.
pub fn listing<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
    width: Width,
) -> String {
    let one_line = |cell: String| cell.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines: Vec<[String; N]> = vec![head.map(str::to_owned)];
    lines.extend(rows.into_iter().map(|row| row.map(one_line)));
    let long = |at: usize, lines: &[[String; N]]| {
        let long = lines.iter().map(|row| row[at].chars().count());
        long.max().unwrap_or(0)
    };
    let mut widths: [usize; N] = std::array::from_fn(|at| long(at, &lines));
    let most = width.unwrap_or(usize::MAX);
    let above = |widths: &[usize; N]| {
        let all = widths.iter().sum::<usize>() + GAP * N.saturating_sub(1);
        all.saturating_sub(most)
    };
    for (at, least) in [(0, FIRST), (N - 1, LAST)] {
        let room = widths[at].saturating_sub(least);
        widths[at] -= above(&widths).min(room);
    }
    let line = |row: &[String; N]| {
        let mut line = String::new();
        for (at, cell) in row.iter().enumerate() {
            let cell = match at + 1 == N {
                true => cut_middle(cell, widths[at]),
                false => cut(cell, widths[at]),
            };
            let pad = widths[at] + GAP - cell.chars().count();
            line.push_str(&cell);
            line.extend(std::iter::repeat_n(' ', pad));
        }
        line.trim_end().to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Blanks between columns of a listing, and what its first and last one keep.
const GAP: usize = 2;
const FIRST: usize = 24;
const LAST: usize = 16;

/// At most so many characters: what is too long loses its middle.
fn cut_middle(text: &str, max: usize) -> String {
    let long = text.chars().count();
    if long <= max {
        return text.to_owned();
    }
    let (begin, end) = ((max - 1) / 2, max / 2);
    let first: String = text.chars().take(begin).collect();
    let last: String = text.chars().skip(long - end).collect();
    format!("{first}…{last}")
}

fn grid() -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table
}

/// Folds lines that are too long at blanks; words longer than a line stay whole.
pub fn fold(text: &str, width: usize) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut current = String::new();
        for word in line.split_inclusive(' ') {
            let used = current.chars().count() + word.trim_end().chars().count();
            if !current.trim().is_empty() && used > width {
                lines.push(current.trim_end().to_owned());
                current.clear();
            }
            current.push_str(word);
        }
        lines.push(current.trim_end().to_owned());
    }
    lines.join("\n")
}

/// At most so many characters, with an ellipsis where something is missing.
pub fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(max.saturating_sub(3)).collect();
    short.push_str("...");
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "urn:trustgraph:docrag:75d994d3-a5d1-4bf2-a5d0-2f3c0f6b9a11";

    fn rows() -> [[String; 3]; 2] {
        let row =
            |question: &str, id: &str| [question.to_owned(), "DocRAG".to_owned(), id.to_owned()];
        [row(&"why so ".repeat(20), ID), row("how?", "urn:b")]
    }

    /// Wider than what formatting takes.
    #[test]
    fn a_word_without_end_is_shown() {
        let word = "w".repeat(usize::from(u16::MAX) + 1);
        let rows = [
            [word.clone(), word.clone()],
            ["a".to_owned(), "b".to_owned()],
        ];
        let shown = table(["One", "Two"], rows, Some(80));
        assert_eq!(shown.matches(&word).count(), 2);
        assert_eq!(padded("é", 3), "é  ");
    }

    #[test]
    fn a_table_fits_the_width_and_cuts_no_word() {
        let shown = |width| table(["Question", "Type", "Session ID"], rows(), width);
        assert!(shown(None).contains(&format!("| {ID} |")));
        assert!(widest(&shown(None)) > 80);
        for width in [40, 80, 100, 120] {
            let shown = shown(Some(width));
            // No narrower than the longest word.
            assert!(
                widest(&shown) <= width.max(INDENT + ID.len()),
                "{width}:\n{shown}"
            );
            assert!(
                shown.contains(ID) && shown.contains("how?"),
                "{width}:\n{shown}"
            );
        }
        let lines = shown(Some(80));
        let lines: Vec<&str> = lines.lines().collect();
        assert!(
            lines[0].starts_with("Question") && lines[0].ends_with("Type"),
            "{lines:?}"
        );
        let last = [
            format!("{:74}{}", "how?", "DocRAG"),
            format!("{:INDENT$}urn:b", ""),
        ];
        assert_eq!(lines[lines.len() - 2..], last);
        // Where no word is in the way the frame stays.
        let framed = shown(Some(110));
        assert!(
            framed.starts_with('+') && widest(&framed) <= 110,
            "{framed}"
        );
    }

    #[test]
    fn a_record_fits_the_width_and_cuts_no_word() {
        let rows = [
            ("id", ID.to_owned()),
            ("what it is about", "word ".repeat(40)),
        ];
        assert!(widest(&record(&rows, None)) > 80);
        for width in [70, 80, 90] {
            let shown = record(&rows, Some(width));
            assert!(widest(&shown) <= width && shown.contains(ID), "{shown}");
        }
        let short = [("id", "a".to_owned())];
        assert_eq!(record(&short, Some(80)), record(&short, None));
    }

    #[test]
    fn a_listing_fits_the_width() {
        let row = |title: &str, id: &str| [title.to_owned(), "PDF".to_owned(), id.to_owned()];
        let id = "https://trustgraph.ai/doc/5d3e6adb-17f0-d838-0514-4273a846d1f2";
        let rows = [row(&"long ".repeat(20), id), row("short", "urn:a")];
        let shown = |width| listing(["title", "kind", "id"], rows.clone(), width);
        let lines = |text: &str| text.lines().map(|line| line.chars().count()).max();
        assert_eq!(lines(&shown(Some(80))), Some(80));
        assert!(shown(Some(80)).contains("long long long long l...  PDF"));
        assert!(shown(Some(80)).contains("4273a846d1f2"));
        assert!(shown(None).contains(id) && !shown(None).contains("..."));
        // No narrower than can be read.
        assert_eq!(lines(&shown(Some(10))), Some(24 + 2 + 4 + 2 + 16));
    }
}
