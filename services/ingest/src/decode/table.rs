//! A table of a page as a table of Markdown: every cell in its column, whether it names its row or not. Tables that lay out a
//! page are left to the converter: those within a cell, and those of long cells where no cell names anything.

use htmd::Element;
use htmd::element_handler::{HandlerResult, Handlers};
use markup5ever_rcdom::Handle;

use super::main_content::{attribute, elements, name, role};
use super::page::parent;

/// Most columns and rows that one cell spans here.
const SPAN: usize = 100;
/// Characters of a text that is written again in each row that it spans; of a longer one the column stays empty there.
const LABEL: usize = 100;

/// What a cell of data does not hold.
const LAYOUT: &[&str] = &[
    "table", "ul", "ol", "dl", "h1", "h2", "h3", "h4", "h5", "h6", "form", "pre",
];

struct Row {
    /// It stands in the head of its table.
    head: bool,
    cells: Vec<Handle>,
}

/// What a cell above says in a column.
#[derive(Clone, Default)]
struct Spanned {
    /// Rows that it still spans.
    rows: usize,
    text: String,
}

/// Writes a table that has names, else what the converter makes of it.
pub(super) fn table(handlers: &dyn Handlers, element: Element<'_>) -> Option<HandlerResult> {
    let rows = rows(element.node);
    let is_name = |cell: &Handle| name(cell) == "th";
    let named = rows
        .iter()
        .any(|row| row.head || row.cells.iter().any(is_name));
    if is_within_cell(element.node) || !(named || is_data(handlers, element.node, &rows)) {
        return handlers.fallback(element);
    }
    // The first row has the names of the columns, unless it names itself: `<tr><th>Born<td>1815`.
    let headed = rows.first().is_some_and(|row| {
        let names = |cell: &Handle| is_name(cell) || text(handlers, cell).is_empty();
        row.head || named && row.cells.iter().all(names)
    });
    let mut above = Vec::new();
    let told = rows.iter().map(|row| texts(handlers, row, &mut above));
    let mut told: Vec<Vec<String>> = told.collect();
    let says = |row: &Vec<String>| row.iter().any(|text| !text.is_empty());
    let headed = headed && told.first().is_some_and(says);
    told.retain(says);
    let mut out = String::from("\n\n");
    for caption in children(element.node, "caption") {
        out.push_str(&text(handlers, &caption));
        out.push_str("\n\n");
    }
    let columns = told.iter().map(Vec::len).max().unwrap_or_default();
    for (at, row) in told.iter_mut().enumerate() {
        let names = headed && at == 0;
        if names {
            row.resize(columns, String::new());
        }
        write(row, &mut out);
        if names {
            write(&vec!["---".to_owned(); columns], &mut out);
        }
    }
    out.push('\n');
    Some(out.into())
}

/// Whether a table where nothing is named has data: rows of several short cells.
fn is_data(handlers: &dyn Handlers, table: &Handle, rows: &[Row]) -> bool {
    let is_short = |cell: &Handle| text(handlers, cell).chars().nth(LABEL).is_none();
    rows.len() > 1
        && rows.iter().any(|row| row.cells.len() > 1)
        && !matches!(role(table).as_str(), "presentation" | "none")
        && elements(table, LAYOUT).is_empty()
        && rows.iter().flat_map(|row| &row.cells).all(is_short)
}

fn rows(table: &Handle) -> Vec<Row> {
    let row = |tr: &Handle, head: bool| {
        let all = tr.children.borrow();
        let cells = all.iter().filter(|one| matches!(name(one), "td" | "th"));
        let cells = cells.cloned().collect();
        Row { head, cells }
    };
    let mut rows = Vec::new();
    for part in table.children.borrow().iter() {
        match name(part) {
            "tr" => rows.push(row(part, false)),
            "thead" | "tbody" | "tfoot" => {
                let head = name(part) == "thead";
                rows.extend(children(part, "tr").iter().map(|tr| row(tr, head)));
            }
            _ => {}
        }
    }
    rows.retain(|row| !row.cells.is_empty());
    rows
}

fn children(node: &Handle, wanted: &str) -> Vec<Handle> {
    let all = node.children.borrow();
    let wanted = all.iter().filter(|one| name(one) == wanted);
    wanted.cloned().collect()
}

fn is_within_cell(table: &Handle) -> bool {
    let mut here = parent(table);
    while let Some(node) = here {
        if matches!(name(&node), "td" | "th") {
            return true;
        }
        here = parent(&node);
    }
    false
}

/// The texts of a row, column by column. `above`: what rows above say in its columns.
fn texts(handlers: &dyn Handlers, row: &Row, above: &mut Vec<Spanned>) -> Vec<String> {
    let mut texts = Vec::new();
    for cell in &row.cells {
        span(&mut texts, above);
        let own = text(handlers, cell);
        let down = spans(cell, "rowspan");
        for at in 0..spans(cell, "colspan") {
            let text = if at == 0 { own.as_str() } else { "" };
            let is_label = text.chars().nth(LABEL).is_none();
            let column = texts.len();
            if above.len() <= column {
                above.resize(column + 1, Spanned::default());
            }
            if let Some(place) = above.get_mut(column) {
                place.rows = down - 1;
                place.text = if is_label { text } else { "" }.to_owned();
            }
            texts.push(text.to_owned());
        }
    }
    span(&mut texts, above);
    // Where the row ended before, nothing was said of them.
    for place in above.iter_mut().skip(texts.len()) {
        place.rows = place.rows.saturating_sub(1);
    }
    texts
}

/// Adds what is said by cells above.
fn span(texts: &mut Vec<String>, above: &mut [Spanned]) {
    while let Some(place) = above.get_mut(texts.len()).filter(|place| place.rows > 0) {
        place.rows -= 1;
        texts.push(place.text.clone());
    }
}

fn spans(cell: &Handle, of: &str) -> usize {
    let told = attribute(cell, of).trim().parse().unwrap_or(1);
    usize::clamp(told, 1, SPAN)
}

/// The text of a cell on one line.
fn text(handlers: &dyn Handlers, cell: &Handle) -> String {
    let told = handlers.handle(cell).map(|told| told.content);
    let told = told.unwrap_or_default().replace('|', "\\|");
    let words: Vec<&str> = told.split_whitespace().collect();
    words.join(" ")
}

fn write(row: &[String], out: &mut String) {
    out.push('|');
    for text in row {
        out.push(' ');
        out.push_str(text);
        out.push_str(" |");
    }
    out.push('\n');
}
