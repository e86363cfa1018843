//! How text stands on pages: columns, heads and feet, tables, words cut at the end of a line, turned pages, forms.

use tg_testkit::pdf::{CHARACTER, LEFT, Pdf, line, prose, wrap};

use super::Paper;

/// Points from line to line.
const STEP: f64 = 12.0;
/// The first line.
const TOP: f64 = 720.0;

pub(super) fn papers() -> Vec<Paper> {
    vec![
        one_column(),
        two_columns(),
        two_columns_below_a_title(),
        three_columns(),
        heads_and_feet(),
        hyphens(),
        table(),
        turned(),
        upright_note(),
        form(),
    ]
}

#[allow(clippy::cast_precision_loss)]
fn at(row: usize) -> f64 {
    TOP - STEP * row as f64
}

fn one_column() -> Paper {
    let paragraphs = [prose(1, 60), prose(2, 60), prose(3, 60)];
    let mut pdf = Pdf::courier();
    let (mut content, mut row) = (String::new(), 0);
    for paragraph in &paragraphs {
        for text in wrap(paragraph, 75) {
            content.push_str(&line(LEFT, at(row), &text));
            row += 1;
        }
        row += 1;
    }
    pdf.page(&content);
    Paper::new("one-column", pdf.finish(""), paragraphs.join("\n"))
}

/// Columns of so many characters, drawn line by line from the left to the right.
#[allow(clippy::cast_precision_loss)]
fn beside(columns: &[String], width: usize, gutter: f64, top: usize) -> String {
    let columns: Vec<Vec<String>> = columns.iter().map(|text| wrap(text, width)).collect();
    let most = columns.iter().map(Vec::len).max().unwrap_or(0);
    let mut content = String::new();
    for row in 0..most {
        for (number, column) in columns.iter().enumerate() {
            if let Some(text) = column.get(row) {
                let x = LEFT + number as f64 * (width as f64 * CHARACTER + gutter);
                content.push_str(&line(x, at(top + row), text));
            }
        }
    }
    content
}

fn two_columns() -> Paper {
    let columns = [prose(4, 180), prose(5, 150)];
    let mut pdf = Pdf::courier();
    pdf.page(&beside(&columns, 38, 14.0, 0));
    Paper::new("two-columns", pdf.finish(""), columns.join("\n"))
}

fn two_columns_below_a_title() -> Paper {
    let title = "On the keeping of lanterns along the northern harbour and of the bells";
    let (left, right, note) = (prose(6, 120), prose(7, 110), prose(8, 40));
    let mut content = line(LEFT + 30.0, at(0), title);
    content.push_str(&beside(&[left.clone(), right.clone()], 38, 18.0, 3));
    // A note over the whole width ends the columns.
    for (row, text) in wrap(&note, 78).into_iter().enumerate() {
        content.push_str(&line(LEFT, at(32 + row), &text));
    }
    let mut pdf = Pdf::courier();
    pdf.page(&content);
    Paper::new(
        "title-and-columns",
        pdf.finish(""),
        [title, &left, &right, &note].join("\n"),
    )
}

fn three_columns() -> Paper {
    let columns = [prose(9, 90), prose(10, 95), prose(11, 85)];
    let mut pdf = Pdf::courier();
    pdf.page(&beside(&columns, 25, 12.0, 0));
    Paper::new("three-columns", pdf.finish(""), columns.join("\n"))
}

fn heads_and_feet() -> Paper {
    let mut pdf = Pdf::courier();
    let mut source = Vec::new();
    for page in 0..8 {
        let text = prose(20 + page, 150);
        let mut content = line(LEFT, 770.0, "Harbour Almanac");
        for (row, text) in wrap(&text, 75).into_iter().enumerate() {
            content.push_str(&line(LEFT, at(row), &text));
        }
        content.push_str(&line(300.0, 30.0, &format!("{}", page + 1)));
        pdf.page(&content);
        source.push(text);
    }
    let mut paper = Paper::new("heads-and-feet", pdf.finish(""), source.join("\n"));
    paper.edges = vec!["Harbour Almanac", "1", "2", "3", "4", "5", "6", "7", "8"];
    paper
}

fn hyphens() -> Paper {
    let mut pdf = Pdf::courier();
    let lines = [
        "The keepers of the light wrote let-",
        "ters about the weather and the har-",
        "bour; a well-known sailor came.",
    ];
    let drawn = lines
        .iter()
        .enumerate()
        .map(|(row, text)| line(LEFT, at(row), text));
    pdf.page(&drawn.collect::<String>());
    let source = "The keepers of the light wrote letters about the weather and the harbour; a well-known sailor came.";
    Paper::new("hyphens", pdf.finish(""), source)
}

fn table() -> Paper {
    let rows = [
        ["Lake", "Built", "Volume", "Engineer"],
        ["Sorrel", "1931", "412", "Weir"],
        ["Ember", "1954", "88", "Holt"],
        ["Umber", "1960", "290", "Marsh"],
        ["Pell", "1972", "17", "Weir"],
    ];
    let mut content = String::new();
    // Column by column, as some writers do.
    for (column, x) in [60.0, 180.0, 300.0, 420.0].into_iter().enumerate() {
        for (row, cells) in rows.iter().enumerate() {
            content.push_str(&line(x, at(row), cells[column]));
        }
    }
    let mut pdf = Pdf::courier();
    pdf.page(&content);
    let source: Vec<String> = rows.iter().map(|cells| cells.join(" ")).collect();
    let mut paper = Paper::new("table", pdf.finish(""), source.join("\n"));
    paper.asked = "-layout";
    paper
}

fn turned() -> Paper {
    let text = prose(12, 80);
    let mut content = String::new();
    for (row, text) in wrap(&text, 90).into_iter().enumerate() {
        let y = 60.0 + STEP * u32::try_from(row).map_or(0.0, f64::from);
        content.push_str(&format!("BT /F 10 Tf 0 1 -1 0 {y} 60 Tm ({text}) Tj ET\n"));
    }
    let mut pdf = Pdf::courier();
    pdf.turned_page(&content, 90);
    Paper::new("turned", pdf.finish(""), text)
}

/// A note that runs up the edge is read behind the text, not in the midst of it.
fn upright_note() -> Paper {
    let text = prose(13, 540);
    let mut content =
        "BT /F 8 Tf 0 1 -1 0 30 300 Tm (registered in the second ledger) Tj ET\n".to_owned();
    for (row, text) in wrap(&text, 75).into_iter().enumerate() {
        content.push_str(&line(LEFT, at(row), &text));
    }
    let mut pdf = Pdf::courier();
    pdf.page(&content);
    Paper::new(
        "upright-note",
        pdf.finish(""),
        format!("{text} registered in the second ledger"),
    )
}

fn form() -> Paper {
    let (text, inner) = (prose(14, 40), prose(15, 40));
    let mut pdf = Pdf::courier();
    let lines = |text: &str, top: usize| -> String {
        let lines = wrap(text, 75).into_iter().enumerate();
        lines
            .map(|(row, text)| line(LEFT, at(top + row), &text))
            .collect()
    };
    // It is drawn first and stands below.
    pdf.form("Fm", "1 0 0 1 0 -200", &lines(&inner, 0));
    pdf.page(&format!("q /Fm Do Q\n{}", lines(&text, 0)));
    Paper::new("form", pdf.finish(""), format!("{text}\n{inner}"))
}
