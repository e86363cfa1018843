//! Word documents as several programs and translations of Word write them.

use std::io::{Cursor, Write};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const STRICT: &str = "http://purl.oclc.org/ooxml/officeDocument/relationships";

fn package(parts: &[(&str, String)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, text) in parts {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn links(types: &str, links: &[(&str, &str)]) -> String {
    let links = links.iter().map(|(kind, target)| {
        format!(r#"<Relationship Id="r" Type="{types}/{kind}" Target="{target}"/>"#)
    });
    format!(
        "<Relationships>{}</Relationships>",
        links.collect::<String>()
    )
}

fn document(body: &str) -> String {
    format!(
        r#"<?xml version="1.0"?><w:document xmlns:w="urn:w"><w:body>{body}<w:sectPr/></w:body></w:document>"#
    )
}

fn text(parts: &[(&str, String)]) -> String {
    decode(&package(parts), &Limits::default()).expect("decoded")
}

/// The text of a document with this body and nothing else.
fn body(body: &str) -> String {
    text(&[("word/document.xml", document(body))])
}

fn p(text: &str) -> String {
    format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
}

#[test]
fn the_main_part_is_found_by_its_relationship() {
    for (types, target, name) in [
        (OFFICE, "word/document2.xml", "word/document2.xml"),
        (OFFICE, "/word/document.xml", "word/document.xml"),
        (OFFICE, "./word/../office/main.xml", "office/main.xml"),
        (OFFICE, "word/document.xml", "Word/Document.xml"),
        (OFFICE, "word/document.xml", "word\\document.xml"),
        (OFFICE, "word/missing.xml", "word/document.xml"),
        (STRICT, "docs/document.xml", "docs/document.xml"),
    ] {
        let found = text(&[
            ("_rels/.rels", links(types, &[("officeDocument", target)])),
            (name, document(&p("Noon."))),
        ]);
        assert_eq!(found, "Noon.", "{target}");
    }
    let broken = text(&[
        ("_rels/.rels", "<Relationships><broken".to_owned()),
        ("word/document.xml", document(&p("Noon."))),
    ]);
    assert_eq!(broken, "Noon.");
}

#[test]
fn a_part_in_utf_16_is_read() {
    let main = document(&p("Größe"));
    let wide: Vec<u8> = main.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    zip.start_file("word/document.xml", options).unwrap();
    zip.write_all(&[b"\xff\xfe".as_slice(), &wide].concat())
        .unwrap();
    let file = zip.finish().unwrap().into_inner();
    assert_eq!(decode(&file, &Limits::default()).as_deref(), Ok("Größe"));
}

#[test]
fn tracked_changes_are_read_as_accepted() {
    let moved = "<w:r><w:t>Sign it.</w:t></w:r>";
    let all = format!(
        "{}<w:p><w:moveToRangeStart/><w:moveTo>{moved}</w:moveTo><w:moveToRangeEnd/></w:p>{}\
         <w:p><w:pPr><w:rPr><w:moveFrom/></w:rPr></w:pPr><w:moveFrom>{moved}</w:moveFrom></w:p>{}",
        p("First."),
        p("Second."),
        p("Third.")
    );
    assert_eq!(body(&all), "First.\n\nSign it.\n\nSecond.\n\nThird.");
    let edited = "<w:p><w:r><w:t>The </w:t></w:r><w:del><w:r><w:delText>old</w:delText><w:t>old</w:t><w:tab/></w:r></w:del>\
        <w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:r><w:t> lamp</w:t></w:r></w:p>";
    assert_eq!(body(edited), "The new lamp");
    // The mark between two paragraphs was taken out.
    let joined = format!(
        "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr><w:r><w:t>One </w:t></w:r></w:p>{}",
        p("sentence.")
    );
    assert_eq!(body(&joined), "One sentence.");
    let cell = |text: &str| format!("<w:tc>{}</w:tc>", p(text));
    let table = format!(
        "<w:tbl><w:tr>{}</w:tr><w:tr><w:trPr><w:del/></w:trPr>{}</w:tr><w:tr>{}</w:tr></w:tbl>",
        cell("name"),
        cell("gone"),
        cell("stays")
    );
    assert_eq!(body(&table), "| name |\n| --- |\n| stays |");
    let restyled = "<w:p><w:pPr><w:pPrChange><w:pPr><w:pStyle w:val=\"Heading1\"/></w:pPr></w:pPrChange></w:pPr>\
        <w:r><w:t>Plain</w:t></w:r></w:p>";
    assert_eq!(body(restyled), "Plain");
}

#[test]
fn cells_that_span_others_leave_the_rest_in_their_columns() {
    const COLUMNS: usize = 3;
    let cell = |properties: &str, text: &str| {
        format!("<w:tc><w:tcPr>{properties}</w:tcPr>{}</w:tc>", p(text))
    };
    let row = |cells: [String; COLUMNS]| format!("<w:tr>{}</w:tr>", cells.concat());
    let plain = |text: &str| cell("", text);
    let begins = r#"<w:vMerge w:val="restart"/>"#;
    let table = [
        row([plain("Land"), plain("City"), plain("People")]),
        row([cell(begins, "France"), plain("Paris"), plain("2")]),
        row([cell("<w:vMerge/>", ""), plain("Lyon"), plain("1")]),
        row([
            cell(r#"<w:gridSpan w:val="2"/>"#, "Spain"),
            plain("3"),
            String::new(),
        ]),
        format!(
            r#"<w:tr><w:trPr><w:gridBefore w:val="2"/></w:trPr>{}</w:tr>"#,
            plain("6")
        ),
    ];
    assert_eq!(
        body(&format!("<w:tbl>{}</w:tbl>", table.concat())),
        "| Land | City | People |\n| --- | --- | --- |\n| France | Paris | 2 |\n| France | Lyon | 1 |\n\
         | Spain | | 3 |\n| | | 6 |"
    );
}

#[test]
fn alternatives_and_boxes_are_told_once_and_in_their_place() {
    let boxed = |text: &str| format!("<w:txbxContent>{}{}</w:txbxContent>", p(text), p("Two."));
    let anchored = format!(
        "<w:p><w:r><w:t>Before, </w:t></w:r><w:r><mc:AlternateContent><mc:Choice Requires=\"wps\">{}</mc:Choice>\
         <mc:Fallback>{}</mc:Fallback></mc:AlternateContent></w:r><w:r><w:t>after.</w:t></w:r></w:p>{}",
        boxed("In a box."),
        boxed("In a box."),
        p("Next.")
    );
    assert_eq!(
        body(&anchored),
        "Before, after.\n\nIn a box.\n\nTwo.\n\nNext."
    );
    // A choice without text gives way to what has one.
    let older = "<w:p><mc:AlternateContent><mc:Choice><w:drawing/></mc:Choice><mc:Fallback><w:r><w:t>Older</w:t></w:r>\
        </mc:Fallback></mc:AlternateContent></w:p>";
    assert_eq!(body(older), "Older");
    let in_cell = format!(
        "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r>{}</w:p></w:tc></w:tr></w:tbl>",
        boxed("b")
    );
    assert_eq!(body(&in_cell), "| a b Two.  |\n| --- |");
}

#[test]
fn notes_stand_behind_what_refers_to_them_once() {
    let refer = |id: u8| format!("<w:r><w:footnoteReference w:id=\"{id}\"/></w:r>");
    let main = document(&format!(
        "<w:p><w:r><w:t>Lit at dusk</w:t></w:r>{}{}<w:r><w:t>.</w:t></w:r></w:p>{}",
        refer(2),
        refer(2),
        p("Next.")
    ));
    let notes = format!(
        "<w:footnotes><w:footnote w:type=\"separator\" w:id=\"0\">{}</w:footnote>\
         <w:footnote w:id=\"2\">{}{}</w:footnote></w:footnotes>",
        p("____"),
        p(" By hand"),
        p("until 1931.")
    );
    let found = text(&[
        (
            "_rels/.rels",
            links(OFFICE, &[("officeDocument", "word/document.xml")]),
        ),
        (
            "word/_rels/document.xml.rels",
            // Word leaves relationships behind that lead nowhere.
            links(
                OFFICE,
                &[
                    ("footnotes", "footnotes.xml"),
                    ("styles", "NULL"),
                    ("endnotes", ""),
                ],
            ),
        ),
        ("word/document.xml", main),
        ("word/footnotes.xml", notes),
    ]);
    assert_eq!(
        found,
        "Lit at dusk[^1].\n\n[^1]: By hand until 1931.\n\nNext."
    );
}

#[test]
fn headings_are_found_in_every_translation_of_word() {
    let styled = |style: &str, text: &str| {
        format!(
            "<w:p><w:pPr><w:pStyle w:val=\"{style}\"/><w:tabs><w:tab w:val=\"left\"/></w:tabs></w:pPr>\
             <w:r><w:tab/><w:t>{text}</w:t></w:r></w:p>"
        )
    };
    let styles = "<w:styles>\
        <w:style w:styleId=\"berschrift2\"><w:name w:val=\"heading 2\"/></w:style>\
        <w:style w:styleId=\"Eigene\"><w:name w:val=\"Eigene\"/><w:basedOn w:val=\"berschrift2\"/></w:style>\
        <w:style w:styleId=\"Gliederung\"><w:name w:val=\"x\"/><w:pPr><w:outlineLvl w:val=\"2\"/></w:pPr></w:style>\
        <w:style w:styleId=\"Liste\"><w:name w:val=\"List\"/><w:basedOn w:val=\"Liste\"/></w:style></w:styles>";
    let main = [
        styled("berschrift2", "Lamps"),
        styled("Eigene", "Piers"),
        styled("Gliederung", "Ferries"),
        styled("Heading1", "Bridges"),
    ];
    let found = text(&[
        (
            "_rels/.rels",
            links(OFFICE, &[("officeDocument", "word/document.xml")]),
        ),
        (
            "word/_rels/document.xml.rels",
            links(OFFICE, &[("styles", "/word/styles.xml")]),
        ),
        (
            "word/document.xml",
            document(&(main.concat() + &styled("Liste", "Words"))),
        ),
        ("word/styles.xml", styles.to_owned()),
    ]);
    assert_eq!(
        found,
        "## Lamps\n\n## Piers\n\n### Ferries\n\n# Bridges\n\n\tWords"
    );
}

/// The text of a body with these further parts: what they are to it, their names and what they hold.
fn with(parts: &[(&str, &str, &str)], body: &str) -> String {
    let related: Vec<_> = parts.iter().map(|part| (part.0, part.1)).collect();
    let names: Vec<_> = parts
        .iter()
        .map(|part| format!("word/{}", part.1))
        .collect();
    let mut all = vec![
        ("word/document.xml", document(body)),
        ("word/_rels/document.xml.rels", links(OFFICE, &related)),
    ];
    for (name, part) in names.iter().zip(parts) {
        all.push((name.as_str(), part.2.to_owned()));
    }
    text(&all)
}

#[test]
fn text_that_a_style_hides_is_left_out() {
    let styles = "<w:styles>\
        <w:style w:styleId=\"Hidden\"><w:rPr><w:vanish/></w:rPr></w:style>\
        <w:style w:styleId=\"Based\"><w:basedOn w:val=\"Hidden\"/></w:style>\
        <w:style w:styleId=\"Shown\"><w:basedOn w:val=\"Hidden\"/><w:rPr><w:vanish w:val=\"0\"/></w:rPr></w:style>\
        <w:style w:styleId=\"Circle\"><w:basedOn w:val=\"Circle\"/></w:style></w:styles>";
    let run = |look: &str, text: &str| {
        format!("<w:r><w:rPr>{look}</w:rPr><w:t xml:space=\"preserve\">{text}</w:t></w:r>")
    };
    let paragraph = |style: &str, runs: &[String]| {
        let style = format!("<w:pPr><w:pStyle w:val=\"{style}\"/></w:pPr>");
        format!("<w:p>{style}{}</w:p>", runs.concat())
    };
    let of = |style: &str| format!("<w:rStyle w:val=\"{style}\"/>");
    let found = |body: &str| with(&[("styles", "styles.xml", styles)], body);
    let runs = [
        run("", "Lit "),
        run(&of("Based"), "never "),
        run(&of("Shown"), "at "),
        run(&of("Circle"), "dusk"),
        run(
            &[of("Hidden"), "<w:vanish w:val=\"0\"/>".to_owned()].concat(),
            ".",
        ),
    ];
    assert_eq!(found(&paragraph("", &runs)), "Lit at dusk.");
    let hidden = paragraph(
        "Hidden",
        &[run("", "never"), run("<w:vanish w:val=\"0\"/>", "Yes")],
    );
    assert_eq!(found(&[hidden, p("Next.")].concat()), "Yes\n\nNext.");
    // In a cell, and where a box stands in such a paragraph.
    let cell = format!(
        "<w:tbl><w:tr><w:tc>{}{}</w:tc></w:tr></w:tbl>",
        paragraph("Hidden", &[run("", "never")]),
        p("a")
    );
    assert_eq!(found(&cell), "|  a |\n| --- |");
    let boxed = format!("<w:txbxContent>{}</w:txbxContent>", p("In a box."));
    let around = paragraph("Hidden", &[boxed, run("", "never")]);
    assert_eq!(found(&around), "In a box.");
    // The standard lets the one style take back what the other does.
    let both = paragraph("Hidden", &[run(&of("Hidden"), "Both")]);
    assert_eq!(found(&both), "Both");
}

/// Relationships of these ids to parts in other formats.
fn chunks(links: &[(&str, &str)]) -> String {
    let links = links.iter().map(|(id, target)| {
        format!(r#"<Relationship Id="{id}" Type="{OFFICE}/aFChunk" Target="{target}"/>"#)
    });
    format!(
        "<Relationships>{}</Relationships>",
        links.collect::<String>()
    )
}

fn chunk(id: &str) -> String {
    format!("<w:altChunk r:id=\"{id}\"/>")
}

#[test]
fn parts_in_other_formats_stand_in_their_place() {
    let parts = |body: &str| {
        let page = "<html><body><h1>Lamps</h1><p>Lit at dusk.</p></body></html>";
        let message = "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=b\n\n--b\n\
            Content-Type: text/html; charset=\"utf-8\"\nContent-Transfer-Encoding: quoted-printable\n\n\
            <p>Gr=C3=B6=\n=C3=9Fe</p>\n--b--\n";
        let targets = [
            ("a", "page.html"),
            ("b", "page.mht"),
            ("c", "note.txt"),
            ("d", "old.rtf"),
            ("e", "gone.html"),
            ("f", "old.pdf"),
            ("g", "old.txt"),
        ];
        text(&[
            ("word/document.xml", document(body)),
            ("word/_rels/document.xml.rels", chunks(&targets)),
            ("word/page.html", page.to_owned()),
            ("word/page.mht", message.to_owned()),
            ("word/note.txt", "Plain < text.".to_owned()),
            ("word/old.rtf", "{\\rtf1 never}".to_owned()),
            ("word/old.pdf", "%PDF-1.4 never".to_owned()),
            ("word/old.txt", "{\\rtf1 never}".to_owned()),
        ])
    };
    // What is referred to twice stands once, and what cannot be read nowhere.
    let referred = ["a", "b", "a", "none", "c", "d", "e", "f", "g"];
    let referred = referred.map(chunk).concat();
    assert_eq!(
        parts(&[p("First."), referred, p("Last.")].concat()),
        "First.\n\n# Lamps\n\nLit at dusk.\n\nGröße\n\nPlain < text.\n\nLast."
    );
    let cell = format!(
        "<w:tbl><w:tr><w:tc>{}{}</w:tc></w:tr></w:tbl>",
        chunk("c"),
        p("x")
    );
    assert_eq!(parts(&cell), "| Plain < text. x |\n| --- |");
    let removed = format!("<w:del>{}</w:del>{}", chunk("c"), p("x"));
    assert_eq!(parts(&removed), "x");
}

#[test]
fn documents_within_documents_are_read_to_a_depth_and_a_size() {
    fn nested(depth: usize) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        let body = document(&[p(&depth.to_string()), chunk("a")].concat());
        let links = chunks(&[("a", "inner.docx")]);
        let mut parts = vec![
            ("word/document.xml", body.into_bytes()),
            ("word/_rels/document.xml.rels", links.into_bytes()),
        ];
        if let Some(less) = depth.checked_sub(1) {
            parts.push(("word/inner.docx", nested(less)));
        }
        for (name, bytes) in parts {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(&bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }
    let found = decode(&nested(6), &Limits::default());
    assert_eq!(found.as_deref(), Ok("6\n\n5\n\n4\n\n3\n\n2"));
    let twice = package(&[
        (
            "word/document.xml",
            document(&[chunk("a"), chunk("b")].concat()),
        ),
        (
            "word/_rels/document.xml.rels",
            chunks(&[("a", "note.txt"), ("b", "note.txt")]),
        ),
        ("word/note.txt", "a ".repeat(300)),
    ]);
    let room = |text_bytes| Limits {
        text_bytes,
        ..Limits::default()
    };
    assert!(decode(&twice, &room(2_400)).is_ok());
    assert_eq!(decode(&twice, &room(2_399)), Err(DecodeError::TooLarge));
}

#[test]
fn numbers_of_lists_stand_before_their_paragraphs() {
    let level = |at: u8, text: &str| {
        format!(
            "<w:lvl w:ilvl=\"{at}\"><w:numFmt w:val=\"decimal\"/><w:lvlText w:val=\"{text}\"/></w:lvl>"
        )
    };
    let kind = |id: u8, levels: &[String]| {
        let levels = levels.concat();
        format!("<w:abstractNum w:abstractNumId=\"{id}\">{levels}</w:abstractNum>")
    };
    let list = |id: u8, kind: u8| {
        format!("<w:num w:numId=\"{id}\"><w:abstractNumId w:val=\"{kind}\"/></w:num>")
    };
    let lists = [
        kind(0, &[level(0, "%1"), level(1, "%1.%2")]),
        kind(1, &[level(0, "%1)")]),
        list(1, 0),
        list(2, 1),
    ];
    let lists = format!("<w:numbering>{}</w:numbering>", lists.concat());
    let styles = "<w:styles>\
        <w:style w:styleId=\"H1\"><w:name w:val=\"heading 1\"/><w:pPr><w:numPr><w:numId w:val=\"1\"/></w:numPr></w:pPr></w:style>\
        <w:style w:styleId=\"H2\"><w:name w:val=\"heading 2\"/><w:basedOn w:val=\"H1\"/><w:pPr><w:numPr><w:ilvl w:val=\"1\"/>\
        </w:numPr></w:pPr></w:style></w:styles>";
    let paragraph = |properties: &str, text: &str| {
        format!("<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
    };
    let style = |id: &str| format!("<w:pStyle w:val=\"{id}\"/>");
    let item =
        |id: u8| format!("<w:numPr><w:ilvl w:val=\"0\"/><w:numId w:val=\"{id}\"/></w:numPr>");
    let found = |body: &[String]| {
        let parts = [
            ("styles", "styles.xml", styles),
            ("numbering", "numbering.xml", lists.as_str()),
        ];
        with(&parts, &body.concat())
    };
    let headings = [
        paragraph(&style("H1"), "Lamps"),
        paragraph(&style("H2"), "Oil"),
        paragraph(&item(2), "lit"),
        // A paragraph without text has its number too, and one may have none.
        paragraph(&item(2), ""),
        paragraph(&item(2), "unlit"),
        paragraph(&[style("H2"), item(0)].concat(), "Aside"),
        paragraph(&style("H2"), "Gas"),
    ];
    assert_eq!(
        found(&headings),
        "# 1 Lamps\n\n## 1.1 Oil\n\n1) lit\n\n\n\n3) unlit\n\n## Aside\n\n## 1.2 Gas"
    );
    // Two paragraphs of which one became, and a change of the properties.
    let joined = paragraph(&["<w:rPr><w:del/></w:rPr>", &item(2)].concat(), "One ");
    let changed = format!("<w:pPrChange><w:pPr>{}</w:pPr></w:pPrChange>", item(2));
    let edited = [
        joined,
        paragraph(&item(2), "item."),
        paragraph(&item(2), "Two"),
        paragraph(&changed, "Plain"),
    ];
    assert_eq!(found(&edited), "One item.\n\n2) Two\n\nPlain");
    let cell = format!(
        "<w:tbl><w:tr><w:tc>{}{}</w:tc></w:tr></w:tbl>",
        paragraph(&item(2), "a"),
        paragraph(&item(2), "b")
    );
    assert_eq!(found(&[cell]), "| 1) a 2) b |\n| --- |");
    // Without a list of that name, and with a broken part, the text is read without numbers.
    assert_eq!(found(&[paragraph(&item(9), "a")]), "a");
    let broken = [("numbering", "numbering.xml", "<w:numbering><broken")];
    assert_eq!(with(&broken, &paragraph(&item(2), "a")), "a");
}

#[test]
fn nesting_is_bounded() {
    let deep = |depth: usize| format!("{}{}", "<w:sdt>".repeat(depth), "</w:sdt>".repeat(depth));
    let file = |depth| package(&[("word/document.xml", document(&deep(depth)))]);
    assert!(decode(&file(1000), &Limits::default()).is_ok());
    assert_eq!(
        decode(&file(2000), &Limits::default()),
        Err(DecodeError::Damaged)
    );
}

#[test]
fn what_controls_hold_is_text_wherever_they_stand() {
    let control = |inside: &str| {
        format!(
            "<w:sdt><w:sdtPr><w:rPr><w:vanish/></w:rPr><w:alias w:val=\"Name\"/></w:sdtPr>\
             <w:sdtContent>{inside}</w:sdtContent></w:sdt>"
        )
    };
    let run = "<w:r><w:t>Ada</w:t></w:r>";
    let inline = format!("<w:p><w:r><w:t>By </w:t></w:r>{}</w:p>", control(run));
    assert_eq!(body(&inline), "By Ada");
    assert_eq!(body(&control(&control(&p("Ada")))), "Ada");
    let cell = |text: &str| format!("<w:tc>{}</w:tc>", p(text));
    let row = |cells: &str| format!("<w:tr>{cells}</w:tr>");
    let wrapped = format!("{}{}", cell("1"), control(&cell("2")));
    let table = format!(
        "<w:tbl>{}{}</w:tbl>",
        row(&[cell("a"), cell("b")].concat()),
        control(&row(&wrapped))
    );
    assert_eq!(
        body(&control(&table)),
        "| a | b |\n| --- | --- |\n| 1 | 2 |"
    );
}

#[test]
fn hidden_text_is_left_out_and_signs_and_exponents_are_told() {
    let run = |look: &str, text: &str| {
        format!("<w:r><w:rPr>{look}</w:rPr><w:t xml:space=\"preserve\">{text}</w:t></w:r>")
    };
    let hidden = [
        run("", "Lit "),
        run("<w:vanish/>", "never "),
        run("<w:vanish w:val=\"0\"/>", "at dusk"),
    ];
    assert_eq!(
        body(&format!("<w:p>{}</w:p>", hidden.concat())),
        "Lit at dusk"
    );
    let raised = "<w:vertAlign w:val=\"superscript\"/>";
    let powers = [
        run("", "10"),
        run(raised, "1"),
        run(raised, "6"),
        run("", " m"),
        run(raised, "-2"),
        run("", ", the 1"),
        run(raised, "st"),
    ];
    assert_eq!(
        body(&format!("<w:p>{}</w:p>", powers.concat())),
        "10^16 m^-2, the 1st"
    );
    let signs = "<w:p><w:r><w:sym w:font=\"Wingdings\" w:char=\"F0FE\"/><w:t> yes</w:t></w:r><w:r><w:ptab/>\
        <w:sym w:font=\"Symbol\" w:char=\"F061\"/></w:r><w:r><w:t>e</w:t><w:noBreakHyphen/><w:t>mail</w:t></w:r></w:p>";
    assert_eq!(body(signs), "☑ yes\tαe-mail");
    let bar = format!(
        "<w:tbl><w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl>",
        p("a | b"),
        p("c")
    );
    assert_eq!(body(&bar), "| a \\| b | c |\n| --- | --- |");
    assert_eq!(body(&p("a | b")), "a | b");
}

#[test]
fn formulas_are_told_on_a_line() {
    let t = |text: &str| format!("<m:r><m:t>{text}</m:t></m:r>");
    let math = |inside: &str| body(&format!("<w:p><m:oMath>{inside}</m:oMath></w:p>"));
    let part = |name: &str, inside: &str| format!("<m:{name}>{inside}</m:{name}>");
    let of = |name: &str| [t(name), part("d", &part("e", &t("x")))].concat();
    let sum = [of("b"), t("+"), of("c")].concat();
    let fraction = part("f", &[part("num", &sum), part("den", &t("2"))].concat());
    assert_eq!(math(&[t("y="), fraction].concat()), "y=(b(x)+c(x))/2");
    let square = part("sSup", &[part("e", &t("x")), part("sup", &t("2"))].concat());
    assert_eq!(math(&square), "x^2");
    let root = part("rad", &[part("deg", ""), part("e", &t("a+b"))].concat());
    assert_eq!(math(&root), "√(a+b)");
    let series = part(
        "nary",
        &[
            "<m:naryPr><m:chr m:val=\"∑\"/></m:naryPr>".to_owned(),
            part("sub", &t("i=1")),
            part("sup", &t("n")),
            part("e", &t("i")),
        ]
        .concat(),
    );
    assert_eq!(math(&series), "∑_(i=1)^n i");
    let other = "<m:d><m:dPr><m:begChr m:val=\"[\"/><m:endChr m:val=\"\"/></m:dPr><m:e>";
    let interval = format!("{other}{}</m:e><m:e>{}</m:e></m:d>", t("0"), t("1"));
    assert_eq!(math(&interval), "[0, 1");
}
