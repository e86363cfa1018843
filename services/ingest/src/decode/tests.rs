//! Documents of every kind, good and bad, as text.

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::frames::{HEADER, Writer, frame, header};
use super::*;

fn told(format: Format, input: &[u8], limits: &Limits) -> Vec<Frame> {
    let mut bytes = Vec::new();
    let mut output = Writer::new(&mut bytes);
    match decode(format, input.to_vec(), limits, &mut output) {
        Ok(()) => output.end(),
        Err(fault) => output.fault(fault),
    };
    let (mut frames, mut rest) = (Vec::new(), bytes.as_slice());
    while let Some((head, after)) = rest.split_first_chunk::<HEADER>() {
        let (tag, number, length) = header(head).unwrap();
        let (text, after) = after.split_at(length);
        frames.push(frame(tag, number, text.to_vec()).unwrap());
        rest = after;
    }
    frames
}

fn the_text(format: Format, input: &[u8]) -> String {
    let frames = told(format, input, &Limits::default());
    assert_eq!(frames.last(), Some(&Frame::End), "{frames:?}");
    let texts = frames.iter().filter_map(|frame| match frame {
        Frame::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn the_fault(format: Format, input: &[u8], limits: &Limits) -> DecodeError {
    match told(format, input, limits).pop() {
        Some(Frame::Error(fault)) => fault,
        other => panic!("a fault, not {other:?}"),
    }
}

/// A PDF with one line of text a page. `trailer` is put into its trailer.
fn pdf(pages: &[&str], trailer: &str) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        String::new(),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    let mut kids = String::new();
    for text in pages {
        let content = format!("BT /F1 12 Tf 72 720 Td ({text}) Tj ET");
        let at = objects.len() + 1;
        kids.push_str(&format!("{at} 0 R "));
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {} 0 R \
             /Resources << /Font << /F1 3 0 R >> >> >>",
            at + 1
        ));
        objects.push(format!(
            "<< /Length {} >>\nstream\n{content}\nendstream",
            content.len()
        ));
    }
    objects[1] = format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", pages.len());
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (at, object) in objects.iter().enumerate() {
        places.push(file.len());
        write!(file, "{} 0 obj\n{object}\nendobj\n", at + 1).unwrap();
    }
    let table = file.len();
    write!(file, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).unwrap();
    for place in places {
        writeln!(file, "{place:010} 00000 n ").unwrap();
    }
    write!(
        file,
        "trailer\n<< /Size {} /Root 1 0 R {trailer} >>\nstartxref\n{table}\n%%EOF\n",
        objects.len() + 1
    )
    .unwrap();
    file
}

#[test]
fn a_pdf_is_told_page_by_page() {
    let file = pdf(&["The oldest bridge.", "", "The tallest tower."], "");
    let frames = told(Format::Pdf, &file, &Limits::default());
    let [
        Frame::Page(1, first),
        Frame::Page(2, second),
        Frame::Page(3, third),
        Frame::End,
    ] = frames.as_slice()
    else {
        panic!("three pages, not {frames:?}");
    };
    assert!(first.contains("The oldest bridge."), "{first}");
    assert!(second.is_empty(), "{second}");
    assert!(third.contains("The tallest tower."), "{third}");
}

#[test]
fn bad_pdfs_have_clear_faults() {
    let limits = Limits::default();
    let fault = |file: &[u8]| the_fault(Format::Pdf, file, &limits);
    let good = pdf(&["x"], "");
    assert_eq!(fault(&good[..good.len() / 2]), DecodeError::Damaged);
    assert_eq!(fault(b"%PDF-1.4 nonsense"), DecodeError::Damaged);
    assert_eq!(fault(b""), DecodeError::Damaged);
    assert_eq!(fault(&pdf(&["", ""], "")), DecodeError::NoText);
    assert_eq!(fault(&pdf(&[], "")), DecodeError::Damaged);
    let key = "00".repeat(32);
    let locked = format!(
        "/ID [<0011> <0011>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -44 /O <{key}> /U <{key}> >>"
    );
    assert_eq!(fault(&pdf(&["secret"], &locked)), DecodeError::Encrypted);
    let bomb = pdf(&vec!["x"; 10_000], "");
    assert_eq!(fault(&bomb), DecodeError::TooManyPages(10_000));
    let small = Limits {
        text_bytes: 10,
        ..limits
    };
    let file = pdf(&["some words", "and some more words"], "");
    assert_eq!(the_fault(Format::Pdf, &file, &small), DecodeError::TooLarge);
}

#[test]
fn a_pdf_whose_table_or_lengths_are_wrong_is_read_all_the_same() {
    let good = pdf(&["The first lamp.", "The second lamp."], "");
    let text = String::from_utf8(good).unwrap();
    let (before, after) = text.split_once("startxref\n").unwrap();
    let table: usize = after.lines().next().unwrap().parse().unwrap();
    let at = |table: usize| format!("{before}startxref\n{table}\n%%EOF\n");
    let entry = text
        .split("65535 f \n")
        .nth(1)
        .unwrap()
        .lines()
        .nth(3)
        .unwrap();
    let content = "BT /F1 12 Tf 72 720 Td (The first lamp.) Tj ET";
    let length = &*format!("/Length {}", content.len());
    assert!(text.contains(length), "{text}");
    for (way, file) in [
        ("before", at(table - 20)),
        ("behind", at(table + 14)),
        ("far off", at(99_999_999)),
        ("not at all", format!("{before}%%EOF")),
        ("an entry", text.replace(entry, "0000000020 00000 n ")),
        ("lost length", text.replace(length, "/Lenght 46")),
        ("short", text.replace(length, "/Length 7 ")),
        ("a little long", text.replace(length, "/Length 99")),
        ("long", text.replace(length, "/Length 700")),
        ("no line end", text.replace("\nendstream", "endstream\n")),
        ("elsewhere", text.replace(length, "/Length 99 0 R")),
    ] {
        let frames = told(Format::Pdf, file.as_bytes(), &Limits::default());
        let [Frame::Page(1, first), Frame::Page(2, second), Frame::End] = frames.as_slice() else {
            panic!("{way}: two pages, not {frames:?}");
        };
        assert!(first.contains("The first lamp."), "{way}: {first}");
        assert!(second.contains("The second lamp."), "{way}: {second}");
    }
}

#[test]
fn html_becomes_markdown_without_what_is_not_shown() {
    let page = "<!doctype html><head><title>T</title><style>p{}</style></head><body><h1>Bridges</h1>\
                <script>alert(1)</script><p>The <b>oldest</b> one.</p><ul><li>stone<li>wood</ul></body>";
    let text = the_text(Format::Html, page.as_bytes());
    assert_eq!(text, "# Bridges\n\nThe **oldest** one.\n\n* stone\n* wood");
    assert_eq!(the_text(Format::Html, b"<p>caf\xe9</p>"), "caf\u{e9}");
    let empty = the_fault(Format::Html, b"<script>x</script>", &Limits::default());
    assert_eq!(empty, DecodeError::NoText);
}

fn docx(name: &str, body: &[u8]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file(name, SimpleFileOptions::default()).unwrap();
    zip.write_all(body).unwrap();
    zip.finish().unwrap().into_inner()
}

#[test]
fn a_word_document_has_its_paragraphs_headings_and_tables() {
    let body = r#"<?xml version="1.0"?><w:document xmlns:w="urn:w"><w:body>
        <w:p><w:pPr><w:pStyle w:val="Heading2"/></w:pPr><w:r><w:t>Bridges</w:t></w:r></w:p>
        <w:p><w:r><w:t xml:space="preserve">Stone &amp; </w:t></w:r><w:r><w:t>wood.</w:t><w:br/><w:t>Next</w:t></w:r></w:p>
        <w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc><w:tc><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
        </w:body></w:document>"#;
    let text = the_text(Format::Docx, &docx("word/document.xml", body.as_bytes()));
    assert_eq!(
        text,
        "## Bridges\n\nStone & wood.\nNext\n\n| a | b |\n| --- | --- |"
    );
}

#[test]
fn bad_word_documents_have_clear_faults() {
    let limits = Limits {
        text_bytes: 1 << 20,
        ..Limits::default()
    };
    let fault = |file: &[u8]| the_fault(Format::Docx, file, &limits);
    assert_eq!(fault(b"PK\x03\x04 nonsense"), DecodeError::Damaged);
    assert_eq!(fault(&docx("other.xml", b"<x/>")), DecodeError::Damaged);
    assert_eq!(
        fault(&docx("word/document.xml", b"<w:t>a</b>")),
        DecodeError::Damaged
    );
    assert_eq!(
        fault(&docx("word/document.xml", b"<w:t></w:t>")),
        DecodeError::NoText
    );
    let bomb = docx("word/document.xml", &vec![b' '; 64 << 20]);
    assert!(bomb.len() < 1 << 20);
    assert_eq!(fault(&bomb), DecodeError::TooLarge);
}
