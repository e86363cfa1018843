//! Text for people: tables, records, folded and cut lines. Pure functions of what they are given.

use comfy_table::{LineStyle, Table, TableStyle, presets};

/// Width at which long cells are folded.
const CELL_WIDTH: usize = 70;

const STYLE: TableStyle =
    presets::ASCII_FULL_CONDENSED.header_separator(LineStyle::new('+', '-', '+', '+'));

/// A table with a head.
pub fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = grid();
    table.set_header(head);
    for row in rows {
        table.add_row(row.map(|cell| fold(&cell, CELL_WIDTH)));
    }
    table.to_string()
}

/// A record: names on the left, values on the right.
pub fn record(rows: &[(&str, String)]) -> String {
    let mut table = grid();
    for (name, value) in rows {
        table.add_row([(*name).to_owned(), fold(value, CELL_WIDTH)]);
    }
    table.to_string()
}

/// Columns of the terminal that data goes to; `None` if it goes elsewhere.
pub fn terminal() -> Option<usize> {
    Table::new().width().map(usize::from)
}

/// Rows without a frame, for people who look at many. Where a width is given no line is longer: the first column gives
/// way first, then the last one loses its middle.
pub fn listing<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
    width: Option<usize>,
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
