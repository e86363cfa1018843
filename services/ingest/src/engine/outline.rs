//! Where a place of a text stands: below which headings, in which table, in which item of code. Reads line by line, so a
//! document of any size passes through; what one window knows goes on in the next.

use tg_schemas::msg::on_page;

use super::code;
use super::recursive::Slice;
use super::structure::Structure;

/// Longest title or heading, in characters; the rest is cut off.
const HEADING: usize = 200;
/// Longest row of names of columns. Of a longer one the beginning goes along.
const ROW: usize = 1000;
/// Levels of headings.
const LEVELS: usize = 6;

/// What is known at the beginning of a text that goes on from somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Start {
    /// Title of the document.
    pub title: String,
    /// Headings above, the outermost first; empty where a level was left out.
    pub headings: Vec<String>,
    /// Row of names of the table that goes on here.
    pub table: String,
    /// The page that the text is; 0 where it is none.
    pub page: i64,
}

/// Follows a text.
#[derive(Debug, Clone)]
pub struct Outline {
    structure: Structure,
    title: String,
    page: i64,
    headings: Vec<String>,
    /// The row of names, while a table goes on.
    table: String,
    /// The line before, if it is not blank.
    before: String,
    /// What closes the block of code.
    fence: Option<String>,
    front: Front,
}

/// What stands above a Markdown text between lines of dashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Front {
    Possible,
    /// The first line was one of dashes.
    Opened,
    Within,
    /// A blank line within: what has a name for a value goes on with it.
    Paused,
    Passed,
}

impl Outline {
    /// At the beginning of a text.
    pub fn new(structure: Structure, start: Start) -> Self {
        let fresh = start.headings.is_empty() && start.table.is_empty();
        Self {
            structure,
            title: short(&start.title, HEADING),
            page: start.page,
            headings: start.headings.into_iter().take(LEVELS).collect(),
            table: short(&start.table, ROW),
            before: String::new(),
            fence: None,
            front: match structure == Structure::Markdown && fresh {
                true => Front::Possible,
                false => Front::Passed,
            },
        }
    }

    /// What is known here.
    pub fn here(&self) -> Start {
        Start {
            title: self.title.clone(),
            headings: self.headings.clone(),
            table: self.table.clone(),
            page: self.page,
        }
    }

    /// Passes a text that ends with a line, or ends it.
    pub fn pass(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(line));
    }

    /// Passes a text and says of each slice of it, which must be in order, where it stands.
    pub fn contexts(&mut self, text: &str, slices: &[Slice]) -> Vec<String> {
        let mut contexts = Vec::with_capacity(slices.len());
        let mut at = 0;
        // Looked for once a line, however many slices it has.
        let mut end = next_line(text, at);
        for slice in slices {
            while let Some(line) = end.filter(|end| *end <= slice.bytes.start) {
                self.line(text[at..line].trim_end_matches(['\n', '\r']));
                at = line;
                end = next_line(text, at);
            }
            let begins_line = at == slice.bytes.start;
            contexts.push(self.context(&text[slice.bytes.clone()], begins_line));
        }
        self.pass(&text[at..]);
        contexts
    }

    /// `Title > Heading > Heading; page 3`, then, on a line of its own, the row of names of a table that the chunk is a part of.
    fn context(&self, chunk: &str, begins_line: bool) -> String {
        let mut here = self.clone();
        if begins_line {
            here.enter(chunk);
        }
        let mut path: Vec<&str> = Vec::new();
        for name in std::iter::once(&here.title).chain(&here.headings) {
            if !name.is_empty() && path.last() != Some(&name.as_str()) {
                path.push(name);
            }
        }
        let mut context = on_page(&path.join(" > "), self.page);
        let table = self.names_for(chunk);
        if !table.is_empty() {
            context.push('\n');
            context.push_str(table);
        }
        context
    }

    /// The headings with which a chunk begins are above it, too.
    fn enter(&mut self, chunk: &str) {
        match self.structure {
            Structure::Markdown => {
                let mut lines = chunk.lines().peekable();
                while let Some(line) = lines.next() {
                    let next = lines.peek().copied().unwrap_or_default();
                    let underlined = self.fence.is_none() && level_of_line(next, line).is_some();
                    if !(line.trim().is_empty() || heading(line).is_some() || underlined) {
                        return;
                    }
                    if self.fence.is_some() {
                        return;
                    }
                    self.line(line);
                    if underlined {
                        lines.next();
                        self.line(next);
                    }
                }
            }
            Structure::Code if chunk.lines().next().is_some_and(code::begins) => {
                self.headings.clear();
            }
            _ => {}
        }
    }

    /// The row of names that a chunk misses.
    fn names_for(&self, chunk: &str) -> &str {
        let first = chunk.lines().next().unwrap_or_default();
        let lacks = match self.structure {
            Structure::Rows => !chunk.starts_with(self.table.as_str()),
            Structure::Markdown if self.is_ruler(first) => return &self.before,
            Structure::Markdown => true,
            Structure::Plain | Structure::Code => false,
        };
        if lacks { &self.table } else { "" }
    }

    fn line(&mut self, line: &str) {
        match self.structure {
            Structure::Markdown => self.markdown(line),
            Structure::Rows => self.row(line),
            Structure::Code => self.code(line),
            Structure::Plain => {}
        }
    }

    fn markdown(&mut self, line: &str) {
        let bare = line.trim();
        match self.front {
            Front::Possible if bare.is_empty() => return,
            Front::Possible if bare == "---" => {
                self.front = Front::Opened;
                return;
            }
            Front::Possible => self.front = Front::Passed,
            // Without an end it was a rule: a text goes on behind it.
            Front::Opened if bare.is_empty() => {
                self.front = Front::Passed;
                return;
            }
            Front::Opened | Front::Within | Front::Paused if matches!(bare, "---" | "...") => {
                self.front = Front::Passed;
                return;
            }
            Front::Within | Front::Paused if bare.is_empty() => {
                self.front = Front::Paused;
                return;
            }
            Front::Paused if !names_value(line) => self.front = Front::Passed,
            Front::Opened | Front::Within | Front::Paused => {
                self.front = Front::Within;
                return;
            }
            Front::Passed => {}
        }
        if let Some(fence) = &self.fence {
            if closes(bare, fence) {
                self.fence = None;
            }
            return;
        }
        let before = std::mem::take(&mut self.before);
        if let Some(fence) = fence(bare) {
            self.fence = Some(fence);
            self.table.clear();
        } else if let Some((level, text)) = heading(line) {
            self.head(level, text);
        } else if let Some(level) = level_of_line(line, &before) {
            self.head(level, &before);
        } else if self.is_ruler(bare) && before.contains('|') {
            self.table = short(&before, ROW);
        } else {
            if !bare.contains('|') {
                self.table.clear();
            }
            // Columns may be aligned by blanks.
            let words: Vec<&str> = bare.split_whitespace().collect();
            self.before = short(&words.join(" "), ROW);
        }
    }

    /// Whether a line parts the names of columns from the rows. In a table a row may be of dashes: where something is missing.
    fn is_ruler(&self, line: &str) -> bool {
        is_ruler(line) && (self.table.is_empty() || line.contains("--"))
    }

    fn head(&mut self, level: usize, text: &str) {
        self.table.clear();
        self.headings.truncate(level - 1);
        self.headings.resize(level - 1, String::new());
        self.headings.push(short(text, HEADING));
    }

    /// The first row has the names, unless it has numbers.
    fn row(&mut self, line: &str) {
        if self.front == Front::Within || line.trim().is_empty() {
            return;
        }
        // Every further row is one of values.
        self.front = Front::Within;
        if self.table.is_empty() && names_columns(line) {
            self.table = short(line, ROW);
        }
    }

    fn code(&mut self, line: &str) {
        if code::begins(line) {
            self.headings = vec![short(line.trim_end_matches(['{', ':', ' ', '\r']), HEADING)];
        }
    }
}

fn next_line(text: &str, at: usize) -> Option<usize> {
    let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
    Some(rest.find('\n').map_or(text.len(), |end| at + end + 1))
}

fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => text[..end].to_owned(),
        None => text.to_owned(),
    }
}

/// `## Heading ##`.
fn heading(line: &str) -> Option<(usize, &str)> {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let text = line.trim();
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    let is_heading = indent < 4 && (1..=LEVELS).contains(&level) && rest.starts_with([' ', '\t']);
    let name = rest.trim().trim_end_matches('#').trim_end();
    (is_heading && !name.is_empty()).then_some((level, name))
}

/// A line of `=` or `-` makes the line before a heading, if that is one of a paragraph.
fn level_of_line(line: &str, before: &str) -> Option<usize> {
    let (bare, before) = (line.trim(), before.trim());
    let of = |mark: u8| bare.len() > 1 && bare.bytes().all(|byte| byte == mark);
    let paragraph =
        !before.is_empty() && !before.starts_with(['#', '-', '*', '+', '>', '|', '`', '~']);
    match (paragraph, of(b'='), of(b'-')) {
        (true, true, _) => Some(1),
        (true, _, true) => Some(2),
        _ => None,
    }
}

/// What a block of code ends with.
fn fence(line: &str) -> Option<String> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    (length >= 3 && !line[length..].contains('`')).then(|| line[..length].to_owned())
}

/// Whether a line ends a block of code: it has as many of the sign, and nothing else.
fn closes(line: &str, fence: &str) -> bool {
    line.strip_prefix(fence)
        .is_some_and(|rest| rest.trim_start_matches(['`', '~']).is_empty())
}

/// `name: value`, as in YAML, with the name at the beginning of the line.
fn names_value(line: &str) -> bool {
    line.split_once(':').is_some_and(|(name, value)| {
        let in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        !name.is_empty()
            && name.chars().all(in_name)
            && !value.starts_with(|c: char| !c.is_whitespace())
    })
}

/// `|---|:-:|` below the names of columns.
fn is_ruler(line: &str) -> bool {
    let line = line.trim();
    line.contains('|')
        && line.contains('-')
        && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

/// Whether no cell is a number, and there is more than one.
fn names_columns(line: &str) -> bool {
    let cells = line
        .split([',', ';', '\t', '|'])
        .map(|cell| cell.trim().trim_matches('"'));
    let cells: Vec<&str> = cells.collect();
    cells.len() > 1 && cells.iter().all(|cell| cell.parse::<f64>().is_err())
}

#[cfg(test)]
mod tests;
