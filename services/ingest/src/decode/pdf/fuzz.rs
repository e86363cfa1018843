//! What pages draw, what fonts say of themselves and which characters they name, in PDFs whose frame is whole. Of whole PDFs
//! the parser is a library's, which runs in a child.

use pdf_extract::Document;
use tg_testkit::fuzz::{run, run_few};
use tg_testkit::pdf::Pdf;

use super::super::STACK;
use super::cmap::CMap;
use super::content::{Fonts, Reader};
use super::{fonts, layout, margins};

/// Draws all pages as [`super::decode`] does, but nothing that panics is passed over.
fn drawn(file: &[u8]) {
    let Ok(mut document) = Document::load_mem(file) else {
        return;
    };
    let pages: Vec<_> = document.get_pages().into_iter().collect();
    let probe = fonts::probe(&mut document);
    let mut reader = Reader {
        document: &mut document,
        probe,
        fonts: Fonts::new(),
        most: 1 << 20,
    };
    let mut margins = margins::Margins::default();
    for (number, page) in pages {
        if let Some(drawn) = reader.page(page)
            && let Some(bare) = margins.put(number, drawn.partly, drawn.words.done())
        {
            let _ = layout::text(bare.words);
        }
    }
    while let Some(bare) = margins.go() {
        let _ = layout::text(bare.words);
    }
}

/// On a stack like the child's: a library nests as deeply as a file does.
fn on_its_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work);
    if let Err(panic) = thread.expect("a thread").join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn tables_of_characters() {
    let seeds: [&[u8]; 3] = [
        b"1 begincodespacerange <00> <ff> endcodespacerange 2 beginbfchar <01> <0041> <02> <D835DC00> endbfchar",
        b"3 beginbfrange <0000> <ffffffff> <0041> <10> <12> [<0061> <0062> <>] <20> <1f> <0063> endbfrange",
        b"/CMapName /x def % no\nbeginbfrange <a <b> [ [ <c>",
    ];
    run("tables of characters", &seeds, |bytes| {
        let table = CMap::parse(bytes);
        for code in [0, 1, 0x41, u32::MAX] {
            let _ = table.get(code);
        }
    });
}

#[test]
fn pages() {
    let seeds: [&[u8]; 5] = [
        b"BT /F 10 Tf 60 700 Td (All of it.) Tj 0 -12 TD [(a) -250 (b)] TJ T* (c) ' 1 2 (d) \" ET",
        b"q 1 0 0 1 10 10 cm BT /F 12 Tf 1 0 0.3 1 60 700 Tm 50 Tz 3 Ts 14 TL (sloped) Tj ET Q Q Q /X Do",
        b"BT /F 1e38 Tf 1e38 0 0 1e38 0 0 Tm 1e38 Tw (far away) Tj -1e38 Tc (more) Tj ET",
        b"BT /F 10 Tf 60 700 Td (left) Tj 300 0 Td (right) Tj ET BT /F 10 Tf 60 688 Td (left) Tj 300 0 Td (right) Tj ET",
        b"BT /F 0 Tf 0 0 0 0 0 0 Tm <00ff41> Tj BI /W 1 /H 1 ID x EI (\\101\\)) Tj ET",
    ];
    on_its_stack(move || {
        run_few("pages of PDFs", &seeds, 50, |bytes| {
            let mut pdf = Pdf::courier();
            pdf.form(
                "X",
                "1 0 0 1 0 0",
                "BT /F 9 Tf 60 60 Td (in a form) Tj ET /X Do",
            );
            let page = String::from_utf8_lossy(bytes);
            pdf.page(&page);
            // Edges are told by what pages have in common.
            pdf.turned_page(&page, 90);
            drawn(&pdf.finish(""));
        });
    });
}

#[test]
fn fonts_of_pdfs() {
    let seeds: [&[u8]; 4] = [
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /Differences [65 /a /uni0042 /g17] >> >>",
        b"<< /Type /Font /Subtype /TrueType /BaseFont /X /FirstChar 32 /LastChar 34 /Widths [250 1e9 -3] /Encoding /WinAnsiEncoding >>",
        b"<< /Type /Font /Subtype /Type3 /FontMatrix [0.001 0 0 0.001 0 0] /CharProcs << >> /FirstChar 0 /LastChar 1 /Widths [1 2] /Encoding << /Differences [0 /1 /2] >> >>",
        b"<< /Type /Font /Subtype /Type0 /BaseFont /Y /Encoding /90ms-RKSJ-H /DescendantFonts [<< /Type /Font /Subtype /CIDFontType0 /DW 1000 /W [0 99999999 500 7 [1 2 3]] >>] >>",
    ];
    on_its_stack(move || {
        run("fonts of PDFs", &seeds, |bytes| {
            let mut pdf = Pdf::new();
            pdf.font("F", &String::from_utf8_lossy(bytes));
            pdf.page("BT /F 10 Tf 60 700 Td (AB\\000\\001 \\220\\340) Tj <00410042> Tj ET");
            drawn(&pdf.finish(""));
        });
    });
}
