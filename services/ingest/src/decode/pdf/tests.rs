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
        ("/Subtype /Widget /FT /Btn /Ff 65536", "Name:"),
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
fn boxes_to_tick_are_told_with_their_state() {
    for (entries, wanted) in [
        ("/FT /Btn /AS /Yes", "Name: ☑"),
        ("/FT /Btn /AS /Off", "Name: ☐"),
        ("/FT /Btn", "Name: ☐"),
        ("/FT /Btn /V /1", "Name: ☑"),
        // The state of one button of several, whatever the others say.
        ("/Parent << /FT /Btn /Ff 32768 /V /b >> /AS /Off", "Name: ☐"),
        ("/Parent << /FT /Btn /Ff 32768 /V /b >> /AS /b", "Name: ☑"),
        ("/FT /Btn /AS /Yes /F 2", "Name:"),
        ("/FT /Btn /AS /Yes /Ff 65536", "Name:"),
    ] {
        let mut pdf = Pdf::courier();
        with_field(&mut pdf, &format!("/Subtype /Widget {entries}"));
        let said = text(pdf);
        let words: Vec<&str> = said.split_whitespace().collect();
        assert_eq!(words.join(" "), wanted, "{entries}");
    }
}

#[test]
fn a_box_to_tick_stands_in_the_line_of_its_label() {
    let mut pdf = Pdf::courier();
    let boxes = [(60, 698, "/Yes"), (60, 684, "/Off"), (160, 684, "/On")];
    let boxes = boxes.map(|(x, y, state)| {
        let (right, top) = (x + 12, y + 12);
        let field = pdf.object(format!(
            "<< /Type /Annot /Subtype /Widget /FT /Btn /Rect [{x} {y} {right} {top}] /AS {state} >>"
        ));
        format!("{field} 0 R ")
    });
    let labels = [
        line(76.0, 700.0, "Lit"),
        line(76.0, 686.0, "Unlit"),
        line(176.0, 686.0, "Gone"),
    ];
    pdf.page_with(&labels.concat(), &format!("/Annots [{}]", boxes.concat()));
    let said = text(pdf);
    let lines = said.lines().filter(|line| !line.trim().is_empty());
    let lines = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    assert_eq!(lines.collect::<Vec<_>>(), ["☑ Lit", "☐ Unlit ☑ Gone"]);
}

#[test]
fn a_line_that_is_drawn_twice_to_look_bold_is_read_once() {
    let mut pdf = Pdf::courier();
    let twice = [60.0, 60.4].map(|x| line(x, 700.0, "Net income"));
    pdf.page(&twice.concat());
    assert_eq!(text(pdf), "Net income");
}
