//! What kind of data a sample is.

use serde_json::json;

/// A kind of data, and how sure that is.
#[derive(Debug, Clone, PartialEq)]
pub struct Detected {
    /// `csv`, `json` or `xml`.
    pub kind: &'static str,
    /// From 0 to 1.
    pub confidence: f64,
    /// How CSV is written.
    pub csv: Option<Csv>,
}

/// How CSV is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Csv {
    /// What separates cells.
    pub delimiter: char,
    /// Whether the first row names the columns.
    pub header: bool,
}

impl Csv {
    /// As readers of import descriptions write it.
    pub fn options(self) -> serde_json::Value {
        json!({
            "delimiter": self.delimiter.to_string(),
            "has_header": self.header,
            "encoding": "utf-8",
        })
    }
}

const DELIMITERS: [char; 4] = [',', ';', '\t', '|'];
/// Rows that are looked at.
const ROWS: usize = 50;

/// Looks at a sample; nothing for an empty one.
pub fn detect(sample: &str) -> Option<Detected> {
    let text = sample.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return None;
    }
    let found = |kind, confidence| Detected {
        kind,
        confidence,
        csv: None,
    };
    if text.starts_with("<?xml") || (text.starts_with('<') && text.contains("</")) {
        return Some(found("xml", 0.9));
    }
    if text.starts_with(['{', '[']) {
        return Some(found("json", 0.9));
    }
    Some(Detected {
        csv: Some(csv(text)),
        ..found("csv", 0.8)
    })
}

fn csv(text: &str) -> Csv {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(ROWS)
        .collect();
    let delimiter = DELIMITERS
        .into_iter()
        .map(|delimiter| (consistency(&lines, delimiter), delimiter))
        // Of equal ones the first.
        .rev()
        .max_by_key(|(score, _)| *score)
        .map_or(',', |(_, delimiter)| delimiter);
    let numbers = |line: Option<&&str>| {
        let cells = line.map_or_else(Vec::new, |line| cells(line, delimiter));
        cells
            .iter()
            .filter(|cell| cell.trim().parse::<f64>().is_ok())
            .count()
    };
    Csv {
        delimiter,
        header: numbers(lines.get(1)) > numbers(lines.first()),
    }
}

/// More for more rows of the same number of cells, above one; then for more cells.
fn consistency(lines: &[&str], delimiter: char) -> (usize, usize) {
    let counts: Vec<usize> = lines
        .iter()
        .map(|line| cells(line, delimiter).len())
        .collect();
    let Some(first) = counts.first().copied().filter(|count| *count > 1) else {
        return (0, 0);
    };
    let same = counts.iter().filter(|count| **count == first).count();
    (same, first)
}

/// Cells of a line; delimiters between double quotes separate nothing.
fn cells(line: &str, delimiter: char) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        if c == '"' {
            quoted = !quoted;
        } else if c == delimiter && !quoted {
            cells.push(String::new());
        } else if let Some(cell) = cells.last_mut() {
            cell.push(c);
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        let kind = |text: &str| detect(text).map(|found| found.kind);
        assert_eq!(kind("<?xml version=\"1.0\"?><a/>"), Some("xml"));
        assert_eq!(kind(" <a>1</a>"), Some("xml"));
        assert_eq!(kind("\u{feff}[1]"), Some("json"));
        assert_eq!(kind("a,b\n1,2"), Some("csv"));
        assert_eq!(kind(" \n"), None);
    }

    #[test]
    fn csv_is_read_as_it_is_written() {
        let csv = |text: &str| detect(text).unwrap().csv.unwrap();
        let with = |delimiter, header| Csv { delimiter, header };
        assert_eq!(csv("name;age\n\"a, b; c\";3\nd;4"), with(';', true));
        assert_eq!(csv("1\t2\n3\t4"), with('\t', false));
        assert_eq!(csv("just one column\nof text"), with(',', false));
        assert_eq!(csv("a|b|c\n1|2|3"), with('|', true));
    }
}
