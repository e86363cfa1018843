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
