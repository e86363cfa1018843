//! What pages say beside their glyphs.

use tg_testkit::pdf::{Pdf, line};

use super::*;
use crate::decode::frames::{Frame, HEADER, frame, header};

/// The text of the first page.
fn text(pdf: Pdf) -> String {
    let mut bytes = Vec::new();
    let mut output = Writer::new(&mut bytes);
    decode(&pdf.finish(""), &Limits::default(), &mut output).expect("decoded");
    let (head, rest) = bytes.split_first_chunk::<HEADER>().expect("a frame");
    let (tag, number, length) = header(head).expect("a header");
    match frame(tag, number, rest[..length].to_vec()) {
        Some(Frame::Page(1, text)) => text,
        other => panic!("a page, not {other:?}"),
    }
}

#[test]
fn marked_content_says_its_text_in_the_place_of_its_glyphs() {
    let drawn = |marked: &str| {
        let mut pdf = Pdf::courier();
        pdf.page(&format!(
            "BT /F 10 Tf 60 700 Td (shut o) Tj {marked} EMC ( handle) Tj ET"
        ));
        text(pdf)
    };
    let ligature = "/Span << /ActualText <FEFF00660066> >> BDC (X) Tj";
    assert_eq!(drawn(ligature), "shut off handle");
    let two = "/Span << /ActualText (ff) >> BDC (X) Tj (Y) Tj";
    assert_eq!(drawn(two), "shut off handle");
    // Nothing is said of a shadow.
    assert_eq!(
        drawn("/Span << /ActualText () >> BDC (X) Tj"),
        "shut o handle"
    );
    // A whole sentence has no place; its glyphs have.
    let long = "/Span << /ActualText (a sentence that is longer) >> BDC (ff) Tj";
    assert_eq!(drawn(long), "shut off handle");
    assert_eq!(drawn("/Span << /MCID 3 >> BDC (ff) Tj"), "shut off handle");
}

/// Adds a page with a form field, whose entries these are.
fn with_field(pdf: &mut Pdf, entries: &str) {
    let shown = "/Tx BMC q BT /F 10 Tf 2 5 Td (Ada Lovelace) Tj ET Q EMC";
    let fonts = "/Resources << /Font << /F 3 0 R >> >>";
    let form = format!("/Type /XObject /Subtype /Form /BBox [0 0 200 20] {fonts}");
    let form = pdf.stream(&form, shown.as_bytes());
    let field = pdf.object(format!(
        "<< /Type /Annot /Rect [100 695 300 715] /AP << /N {form} 0 R >> {entries} >>"
    ));
    pdf.page_with(
        &line(60.0, 700.0, "Name:"),
        &format!("/Annots [{field} 0 R]"),
    );
}

#[test]
fn what_is_filled_into_a_form_stands_where_it_is_shown() {
    for (entries, wanted) in [
        ("/Subtype /Widget /FT /Tx /F 4", "Name: Ada Lovelace"),
        ("/Subtype /FreeText", "Name: Ada Lovelace"),
        ("/Subtype /Widget /FT /Tx /F 2", "Name:"),
        ("/Subtype /Widget /FT /Btn", "Name:"),
        ("/Subtype /Link", "Name:"),
    ] {
        let mut pdf = Pdf::courier();
        with_field(&mut pdf, entries);
        let said = text(pdf);
        let words: Vec<&str> = said.split_whitespace().collect();
        assert_eq!(words.join(" "), wanted, "{entries}");
    }
}

#[test]
fn a_line_that_is_drawn_twice_to_look_bold_is_read_once() {
    let mut pdf = Pdf::courier();
    let twice = [60.0, 60.4].map(|x| line(x, 700.0, "Net income"));
    pdf.page(&twice.concat());
    assert_eq!(text(pdf), "Net income");
}
