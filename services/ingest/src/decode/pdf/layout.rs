//! Words to text in the order of reading: rows, columns beside each other, paragraphs. Goes by where the words stand, not by
//! the order in which they are drawn.

use super::words::Word;

/// Rows of a page that are looked at for columns; a page of more is no page that people read.
const MOST_ROWS: usize = 400;
/// Words of a page, likewise.
const MOST_WORDS: usize = 20_000;
/// Of the size of the font: how wide the room between two columns is at least.
const GUTTER: f64 = 0.6;
/// How much wider it is than the room between words.
const WIDER: f64 = 1.6;
/// Of the size: room between words that is part of the text; wider room is not.
const WORDS: f64 = 1.0;
/// Of the size: how wide a column is at least. Columns of tables are mostly less.
const COLUMN: f64 = 10.0;
/// How much of its column a row fills on average. Cells of tables fill less.
const FILLED: f64 = 0.6;
/// Rows that two columns have at least.
const ROWS: usize = 3;
/// How many rows a column has of those that stand beside it. Tables have cells that are empty.
const DENSE: f64 = 0.6;
/// Of the size: how far what stands above columns is from them at least.
const ABOVE: f64 = 1.8;
/// Of the size: how wide a column of a table is at least.
const CELL: f64 = 2.0;
/// How many columns are looked for beside each other: twos of twos of twos.
const DEEPEST: usize = 3;

/// Words on one line.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    pub(super) words: Vec<Word>,
    pub(super) y: f64,
    pub(super) size: f64,
}

impl Row {
    pub(super) fn x(&self) -> f64 {
        self.words
            .iter()
            .map(|word| word.x)
            .fold(f64::MAX, f64::min)
    }

    fn end(&self) -> f64 {
        self.words
            .iter()
            .map(|word| word.end)
            .fold(f64::MIN, f64::max)
    }

    /// What it says.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let mut last: Option<&Word> = None;
        for word in &self.words {
            if let Some(last) = last {
                let gap = match self.leftwards() {
                    true => last.x - word.end,
                    false => word.x - last.end,
                };
                // Drawn twice to look bold.
                if last.text == word.text && (word.x - last.x).abs() < 0.2 * word.size {
                    continue;
                }
                if last.blank || gap > 0.12 * word.size.max(last.size) {
                    text.push(' ');
                }
            }
            text.push_str(&word.text);
            last = Some(word);
        }
        text
    }

    fn leftwards(&self) -> bool {
        self.words.iter().filter(|word| word.leftwards).count() * 2 > self.words.len()
    }
}

/// The rows of words, from top to bottom; words of a row from left to right, or as they are read.
pub(super) fn rows(mut words: Vec<Word>) -> Vec<Row> {
    words.sort_by(|one, other| one.y.total_cmp(&other.y));
    let mut rows: Vec<Row> = Vec::new();
    for word in words {
        match rows.last_mut() {
            Some(row) if word.y - row.y < 0.45 * row.size.max(word.size) => {
                // The largest word says where the line is.
                if word.size > row.size {
                    row.size = word.size;
                    row.y = word.y;
                }
                row.words.push(word);
            }
            _ => rows.push(Row {
                y: word.y,
                size: word.size,
                words: vec![word],
            }),
        }
    }
    for row in &mut rows {
        row.words.sort_by(|one, other| one.x.total_cmp(&other.x));
        if row.leftwards() {
            row.words.reverse();
        }
    }
    rows
}

/// The text of a page's words.
pub(super) fn text(words: Vec<Word>) -> String {
    let mut out = String::new();
    // What is read in the direction of the most comes first; the rest, such as notes along an edge, behind it.
    let mut turned: Vec<(usize, u8)> = (0..4)
        .map(|turn| {
            (
                words.iter().filter(|word| word.turned == turn).count(),
                turn,
            )
        })
        .collect();
    turned.sort_by_key(|(count, turn)| (std::cmp::Reverse(*count), *turn));
    for (count, turn) in turned {
        if count > 0 {
            let these = words.iter().filter(|word| word.turned == turn);
            let rows = rows(these.cloned().collect());
            for block in blocks(rows, 0) {
                write(&block, &mut out);
            }
        }
    }
    out
}

/// Rows that are read one after the other.
type Block = Vec<Row>;

/// Cuts rows into blocks in the order of reading.
fn blocks(rows: Vec<Row>, depth: usize) -> Vec<Block> {
    let words: usize = rows.iter().map(|row| row.words.len()).sum();
    let few = (ROWS..=MOST_ROWS).contains(&rows.len()) && words <= MOST_WORDS;
    if !few || depth >= DEEPEST {
        return vec![rows];
    }
    let least = WIDER * between_words(&rows);
    let mut out: Vec<Block> = Vec::new();
    let mut plain: Block = Vec::new();
    let mut at = 0;
    while at < rows.len() {
        let Some((until, gutter)) = columns(&rows[at..], least) else {
            plain.push(rows[at].clone());
            at += 1;
            continue;
        };
        let above = above(&rows[at..at + until], gutter);
        if above > 0 {
            plain.extend_from_slice(&rows[at..at + above]);
            at += above;
            continue;
        }
        if !plain.is_empty() {
            out.push(std::mem::take(&mut plain));
        }
        let band = rows[at..at + until].iter().flat_map(|row| &row.words);
        let (left, right): (Vec<Word>, Vec<Word>) =
            band.cloned().partition(|word| word.end <= gutter);
        out.extend(blocks(self::rows(left), depth + 1));
        out.extend(blocks(self::rows(right), depth + 1));
        at += until;
    }
    if !plain.is_empty() {
        out.push(plain);
    }
    out
}

/// How many rows at the top of two columns stand above both: apart from them, and at neither one's edge, such as the
/// authors below a title.
fn above(rows: &[Row], gutter: f64) -> usize {
    let edges = |rows: &[Row]| {
        let words = || rows.iter().flat_map(|row| &row.words);
        let begin = |words: &mut dyn Iterator<Item = &Word>| {
            words.map(|word| word.x).fold(f64::MAX, f64::min)
        };
        let left = begin(&mut words().filter(|word| word.end <= gutter));
        (left, begin(&mut words().filter(|word| word.end > gutter)))
    };
    for above in 1..ROWS.min(rows.len()) {
        let (upper, lower) = rows.split_at(above);
        let size = upper[above - 1].size;
        if lower[0].y - upper[above - 1].y < ABOVE * size {
            continue;
        }
        let ((left, right), (first, second)) = (edges(upper), edges(lower));
        if left > first + size && right > second + size {
            return above;
        }
    }
    0
}

/// Room that no word of some rows stands in.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Gap {
    from: f64,
    to: f64,
}

/// Whether the first of these rows stand in columns, at least so far apart: how many do, and where the first column ends.
fn columns(rows: &[Row], least: f64) -> Option<(usize, f64)> {
    let left = rows.iter().map(Row::x).fold(f64::MAX, f64::min);
    let right = rows.iter().map(Row::end).fold(f64::MIN, f64::max);
    let mut gaps = vec![Gap {
        from: left,
        to: right,
    }];
    for (at, row) in rows.iter().enumerate() {
        let left: Vec<Gap> = gaps
            .iter()
            .flat_map(|gap| narrowed(*gap, row))
            .filter(|gap| gap.to - gap.from >= least.max(GUTTER * row.size))
            .collect();
        // A gap that ends here may have been the one between two columns.
        let lost = gaps.iter().filter(|gap| {
            !left
                .iter()
                .any(|new| new.from >= gap.from && new.to <= gap.to)
        });
        if let Some(gutter) = best(&rows[..at], lost) {
            return Some((at, gutter));
        }
        if left.is_empty() {
            return None;
        }
        gaps = left;
    }
    best(rows, gaps.iter()).map(|gutter| (rows.len(), gutter))
}

/// The usual room between two words.
fn between_words(rows: &[Row]) -> f64 {
    let pairs = rows.iter().flat_map(|row| row.words.windows(2));
    let mut gaps: Vec<f64> = pairs
        .map(|two| two[1].x - two[0].end)
        .filter(|gap| *gap > 0.0)
        .collect();
    gaps.sort_by(f64::total_cmp);
    gaps.get(gaps.len() / 2).copied().unwrap_or(0.0)
}

/// What a row leaves of a gap.
fn narrowed(gap: Gap, row: &Row) -> Vec<Gap> {
    let mut covered: Vec<(f64, f64)> = row
        .words
        .iter()
        .filter(|word| word.end > gap.from && word.x < gap.to)
        .map(|word| (word.x, word.end))
        .collect();
    covered.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut left = Vec::new();
    let mut from = gap.from;
    for (begin, end) in covered {
        if begin > from {
            left.push(Gap { from, to: begin });
        }
        from = from.max(end);
    }
    if from < gap.to {
        left.push(Gap { from, to: gap.to });
    }
    left
}

/// The widest gap that has a column on either side.
fn best<'a>(rows: &[Row], gaps: impl Iterator<Item = &'a Gap>) -> Option<f64> {
    let between = gaps.filter(|gap| parts(rows, (gap.from + gap.to) / 2.0));
    let widest =
        between.max_by(|one, other| (one.to - one.from).total_cmp(&(other.to - other.from)));
    widest.map(|gap| (gap.from + gap.to) / 2.0)
}

/// Whether a place parts rows into two columns of text.
fn parts(rows: &[Row], at: f64) -> bool {
    let left = Side::of(rows, |word| word.end <= at);
    let right = Side::of(rows, |word| word.end > at);
    let (Some(left), Some(right)) = (left, right) else {
        return false;
    };
    let beside = left.bottom().min(right.bottom()) - left.top().max(right.top());
    let least = (left.bottom() - left.top()).min(right.bottom() - right.top());
    left.is_column()
        && right.is_column()
        && beside >= 0.5 * least
        && left.is_dense_beside(&right)
        && right.is_dense_beside(&left)
        && !has_cells(rows, &|word| word.end <= at)
        && !has_cells(rows, &|word| word.end > at)
}

/// Whether what stands on one side of a gap are cells of a table: room goes through all of it, and what that parts is
/// no text in columns.
fn has_cells(rows: &[Row], belongs: &dyn Fn(&Word) -> bool) -> bool {
    let side: Vec<Row> = rows
        .iter()
        .map(|row| Row {
            words: row
                .words
                .iter()
                .filter(|word| belongs(word))
                .cloned()
                .collect(),
            ..row.clone()
        })
        .filter(|row| !row.words.is_empty())
        .collect();
    let mut gaps = vec![Gap {
        from: side.iter().map(Row::x).fold(f64::MAX, f64::min),
        to: side.iter().map(Row::end).fold(f64::MIN, f64::max),
    }];
    for row in &side {
        gaps = gaps
            .iter()
            .flat_map(|gap| narrowed(*gap, row))
            .filter(|gap| gap.to - gap.from >= WORDS * row.size)
            .collect();
    }
    gaps.iter().any(|gap| {
        let at = (gap.from + gap.to) / 2.0;
        let left = Side::of(&side, |word| word.end <= at);
        let right = Side::of(&side, |word| word.end > at);
        let (Some(left), Some(right)) = (left, right) else {
            return false;
        };
        // The signs of a list are narrow, and stand in a few rows.
        left.is_cells_of(&side)
            && right.is_cells_of(&side)
            && !(left.is_column() && right.is_column())
    })
}

/// What stands on one side of a gap.
struct Side {
    /// Where its rows are, from top to bottom.
    rows: Vec<f64>,
    width: f64,
    /// Sum of what the rows' text takes of the width.
    filled: f64,
    size: f64,
}

impl Side {
    fn of(rows: &[Row], belongs: impl Fn(&Word) -> bool) -> Option<Self> {
        let (mut left, mut right) = (f64::MAX, f64::MIN);
        let (mut places, mut filled, mut sizes) = (Vec::new(), 0.0, 0.0);
        for row in rows {
            let (mut from, mut to, mut text) = (f64::MAX, f64::MIN, 0.0);
            for word in row.words.iter().filter(|word| belongs(word)) {
                let gap = (word.x - to).max(0.0);
                if from < to && gap <= WORDS * word.size {
                    text += gap;
                }
                text += word.end - word.x;
                (from, to) = (from.min(word.x), to.max(word.end));
            }
            if from < to {
                (left, right) = (left.min(from), right.max(to));
                sizes += row.size;
                filled += text;
                places.push(row.y);
            }
        }
        (!places.is_empty()).then(|| Self {
            size: sizes / number(places.len()),
            rows: places,
            width: right - left,
            filled,
        })
    }

    fn top(&self) -> f64 {
        self.rows.first().copied().unwrap_or_default()
    }

    fn bottom(&self) -> f64 {
        self.rows.last().copied().unwrap_or_default()
    }

    fn is_column(&self) -> bool {
        self.rows.len() >= ROWS
            && self.width >= COLUMN * self.size
            && self.filled >= FILLED * self.width * number(self.rows.len())
    }

    fn is_cells_of(&self, all: &[Row]) -> bool {
        self.width >= CELL * self.size && number(self.rows.len()) >= DENSE * number(all.len())
    }

    fn is_dense_beside(&self, other: &Self) -> bool {
        let (top, bottom) = (self.top(), self.bottom());
        let beside = other.rows.iter().filter(|row| (top..=bottom).contains(row));
        number(self.rows.len()) >= DENSE * number(beside.count())
    }
}

#[allow(clippy::cast_precision_loss)]
fn number(count: usize) -> f64 {
    count as f64
}

/// Writes a block: its rows, a blank line where a paragraph ends.
fn write(block: &Block, out: &mut String) {
    let mut steps: Vec<f64> = block.windows(2).map(|two| two[1].y - two[0].y).collect();
    steps.sort_by(f64::total_cmp);
    let usual = steps.get(steps.len() / 2).copied().unwrap_or(0.0);
    let mut last: Option<&Row> = None;
    for row in block {
        let text = row.text();
        match last {
            None if out.is_empty() => {}
            None if continues(out, &text) => join(out),
            None => out.push_str("\n\n"),
            Some(last) => {
                let step = row.y - last.y;
                let apart = step > 1.5 * row.size.max(last.size) && step > 1.25 * usual;
                match (apart, continues(out, &text)) {
                    (true, _) => out.push_str("\n\n"),
                    (false, true) => join(out),
                    (false, false) => out.push('\n'),
                }
            }
        }
        out.push_str(&text);
        last = Some(row);
    }
}

/// Whether a word goes on in the next row.
fn continues(before: &str, after: &str) -> bool {
    let mut end = before.chars().rev();
    let hyphen = matches!(end.next(), Some('-' | '\u{2010}' | '\u{ad}'));
    hyphen
        && end.next().is_some_and(char::is_alphabetic)
        && after.chars().next().is_some_and(char::is_lowercase)
}

fn join(out: &mut String) {
    out.pop();
}
