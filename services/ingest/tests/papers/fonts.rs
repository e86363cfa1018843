//! Fonts: those of LaTeX, with odd tables, damaged, of many characters, of East Asia.

use tg_testkit::pdf::{LEFT, Pdf, line, prose, wrap};

use super::Paper;

pub(super) fn papers() -> Vec<Paper> {
    vec![
        ligatures(),
        odd_table_of_characters(),
        damaged_program(),
        unicode(),
        shift_jis(),
        nameless(),
    ]
}

/// Letters of LaTeX: ligatures at codes of their own, blanks that are only room.
fn ligatures() -> Paper {
    let widths = vec!["500"; 128].join(" ");
    let mut pdf = Pdf::new();
    pdf.font(
        "F",
        &format!(
            "<< /Type /Font /Subtype /Type1 /BaseFont /XXXXXX+CMR10 /FirstChar 0 /LastChar 127 /Widths [{widths}] \
             /Encoding << /Type /Encoding /Differences [11 /ff /fi /fl /ffi /ffl 45 /hyphen] >> >>"
        ),
    );
    let mut content = "BT /F 10 Tf 60 700 Td [(The)-333(o\\016cer)-333(\\014rst)-333(o\\013ered)-333(to)-333(\\015y)] TJ\n".to_owned();
    content.push_str("0 -12 Td [(a)-333(k)28(ey)-333(of)-333(co\\013ee)] TJ ET");
    pdf.page(&content);
    Paper::new(
        "ligatures",
        pdf.finish(""),
        "The officer first offered to fly a key of coffee",
    )
}

/// As of CMSY5 and CMMI5 of LaTeX: one code stands for several characters, written as a range. The PDF library panics
/// at it, and once lost the page.
fn odd_table_of_characters() -> Paper {
    let text = prose(30, 60);
    let mut pdf = Pdf::courier();
    let table = b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n/CMapName /TeX-CMSY5-0 def\n\
        1 begincodespacerange <00> <FF> endcodespacerange\n\
        2 beginbfrange <21> <21> <2192> <22> <23> <007400680075007300> endbfrange\n\
        endcmap end end";
    let at = pdf.stream("", table);
    let widths = vec!["600"; 96].join(" ");
    pdf.font(
        "M",
        &format!(
            "<< /Type /Font /Subtype /Type1 /BaseFont /XXXXXX+CMSY5 /FirstChar 32 /LastChar 127 /Widths [{widths}] \
             /ToUnicode {at} 0 R >>"
        ),
    );
    let mut content = String::new();
    for (row, text) in (0_u32..).zip(wrap(&text, 75)) {
        content.push_str(&line(LEFT, 700.0 - 12.0 * f64::from(row), &text));
    }
    content.push_str("BT /M 5 Tf 60 500 Td (!) Tj ET");
    pdf.page(&content);
    Paper::new("odd-table", pdf.finish(""), format!("{text} \u{2192}"))
}

/// A font whose program is none: its text is read as such fonts mostly are, and the page is told.
fn damaged_program() -> Paper {
    let text = prose(31, 60);
    let mut pdf = Pdf::courier();
    let program = pdf.stream("/Length1 9 /Length2 0 /Length3 0", b"\x80\x01 \xff\xfe (((");
    let descriptor = pdf.object(format!(
        "<< /Type /FontDescriptor /FontName /Odd /Flags 4 /FontFile {program} 0 R >>"
    ));
    let widths = vec!["600"; 96].join(" ");
    pdf.font(
        "M",
        &format!(
            "<< /Type /Font /Subtype /Type1 /BaseFont /Odd /FirstChar 32 /LastChar 127 /Widths [{widths}] \
             /FontDescriptor {descriptor} 0 R >>"
        ),
    );
    let mut content = String::new();
    for (row, text) in (0_u32..).zip(wrap(&text, 75)) {
        content.push_str(&line(LEFT, 700.0 - 12.0 * f64::from(row), &text));
    }
    content.push_str("BT /M 10 Tf 60 500 Td (plain) Tj ET");
    pdf.page(&content);
    let mut paper = Paper::new("damaged-font", pdf.finish(""), format!("{text} plain"));
    paper.partly = vec![1];
    paper
}

/// Codes of two bytes that number glyphs, as word processors write them.
fn unicode() -> Paper {
    let text = "Zürich łódź Ελλάδα Москва straße";
    let mut pdf = Pdf::new();
    let characters: Vec<char> = text.chars().collect();
    let mut table = "1 begincodespacerange <0000> <FFFF> endcodespacerange\n".to_owned();
    table.push_str(&format!("{} beginbfchar\n", characters.len()));
    let mut string = String::new();
    for (glyph, character) in (3_u32..).zip(&characters) {
        table.push_str(&format!("<{glyph:04x}> <{:04x}>\n", u32::from(*character)));
        string.push_str(&format!("{glyph:04x}"));
    }
    table.push_str("endbfchar");
    let table = format!("/CIDInit /ProcSet findresource begin begincmap\n{table}\nendcmap end");
    let at = pdf.stream("", table.as_bytes());
    let last = characters.len() + 3;
    let descriptor =
        pdf.object("<< /Type /FontDescriptor /FontName /Odd /Flags 4 /FontBBox [0 0 1 1] >>");
    let inner = pdf.object(format!(
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Odd /DW 1000 /W [3 {last} 520] \
         /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /FontDescriptor {descriptor} 0 R >>"
    ));
    pdf.font(
        "F",
        &format!(
            "<< /Type /Font /Subtype /Type0 /BaseFont /Odd /Encoding /Identity-H /DescendantFonts [{inner} 0 R] \
             /ToUnicode {at} 0 R >>"
        ),
    );
    pdf.page(&format!("BT /F 10 Tf 60 700 Td <{string}> Tj ET"));
    Paper::new("unicode", pdf.finish(""), text)
}

/// Codes of Shift JIS, which a reader has to know. Poppler reads them only with data that Debian packages apart.
fn shift_jis() -> Paper {
    let mut pdf = Pdf::new();
    let inner = pdf.object(
        "<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Ryumin-Light /DW 1000 \
         /CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >> >>",
    );
    pdf.font(
        "F",
        &format!(
            "<< /Type /Font /Subtype /Type0 /BaseFont /Ryumin-Light-90ms-RKSJ-H /Encoding /90ms-RKSJ-H \
             /DescendantFonts [{inner} 0 R] >>"
        ),
    );
    pdf.page("BT /F 10 Tf 60 700 Td <93 8c 8b 9e 82 cc 8b b4> Tj ET");
    let mut paper = Paper::new("shift-jis", pdf.finish(""), "東京の橋");
    paper.poppler = false;
    paper
}

/// Glyphs that nothing names: the rest of the page is read, and the page is told.
fn nameless() -> Paper {
    let text = prose(32, 50);
    let mut pdf = Pdf::courier();
    let inner = pdf.object(
        "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Odd /DW 1000 \
         /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>",
    );
    pdf.font(
        "M",
        &format!(
            "<< /Type /Font /Subtype /Type0 /BaseFont /Odd /Encoding /Identity-H /DescendantFonts [{inner} 0 R] >>"
        ),
    );
    let mut content = String::new();
    for (row, text) in (0_u32..).zip(wrap(&text, 75)) {
        content.push_str(&line(LEFT, 700.0 - 12.0 * f64::from(row), &text));
    }
    content.push_str("BT /M 10 Tf 60 500 Td <00050006> Tj ET");
    pdf.page(&content);
    let mut paper = Paper::new("nameless", pdf.finish(""), text);
    paper.partly = vec![1];
    paper.poppler = false;
    paper
}
