//! Documents as nobody would write them: their kind, their text in pieces, their pages and titles, their ends.

use tg_testkit::fuzz::run;

use crate::charset;
use crate::kind::{DOCX, HEAD, Kind, MARKDOWN, Refusal, declared, detect};
use crate::pages;
use crate::text::TextDecoder;
use crate::title::title;
use crate::whole;

#[test]
fn texts_in_pieces() {
    let seeds: [&[u8]; 4] = [
        "\u{feff}# Grüße\r\n\r\nein 𝄞\n".as_bytes(),
        b"\xff\xfea\0\x1e\xd8\x34\xdd",
        b"\xfe\xff\0a\xd8",
        b"a,b;c\n\xc3",
    ];
    run("texts in pieces", &seeds, |bytes| {
        let read = |size: usize| {
            let (mut decoder, mut out) = (TextDecoder::default(), String::new());
            for piece in bytes.chunks(size) {
                decoder.push(piece, &mut out).ok()?;
            }
            decoder.finish(&mut out).ok()?;
            Some(out)
        };
        // However it is cut, it is the same text.
        assert_eq!(read(bytes.len() % 11 + 1), read(bytes.len().max(1)));
        for kind in ["", "text/html; charset=x", "application/pdf", DOCX] {
            let _ = detect(&bytes[..bytes.len().min(HEAD)], kind);
        }
        let _ = declared(&String::from_utf8_lossy(bytes));
    });
}

#[test]
fn page_trees() {
    let seeds: [&[u8]; 2] = [
        b"%PDF-1.7\n1 0 obj << /Type /Pages /Kids [2 0 R] /Count 3 >> endobj 2 0 obj << /Type/Page >>",
        b"/Type /Pages /Count 99999999999999999999 /Parent << /Count -1 >>",
    ];
    run("page trees", &seeds, |bytes| {
        let mut pages = pages::Pages::default();
        for piece in bytes.chunks(bytes.len() % 999 + 1) {
            pages.feed(piece);
        }
        let _ = (pages.number(), pages::of(bytes));
    });
}

#[test]
fn titles() {
    let packed = crate::packed::tests::packed(&[(2, "<< /Title (a\\051\\\r\n(b)) >>")]);
    let packed = [packed.as_slice(), b"trailer << /Info 2 0 R >>"].concat();
    let seeds: [&[u8]; 5] = [
        b"%PDF-1.4 2 0 obj << /Title <FEFFD83400> >> endobj trailer << /Info 2 0 R >>",
        b"<title x=y>a &amp; &#x110000; &#99999999999; b</title>",
        b"---\ntitle: 'x'\n---\n```\n# a\n```\n# b #\nc\n==",
        b"\xfe\xff\0<\0t\0i\0t\0l\0e\0>\0a",
        &packed,
    ];
    run("titles", &seeds, |bytes| {
        for (kind, mime) in [
            (Kind::Pdf, ""),
            (Kind::Html, ""),
            (Kind::Text, MARKDOWN),
            (Kind::Docx, DOCX),
        ] {
            if let Some(title) = title(kind, mime, bytes) {
                assert!(!title.is_empty() && title.chars().count() <= 200);
                assert!(!title.contains(['\n', '\u{fffd}']));
            }
        }
    });
}

#[test]
fn ends() {
    let locked = |about: &str| {
        let mut pdf = format!("%PDF-1.7\n2 0 obj << {about} >> endobj\n");
        let table = pdf.len();
        pdf.push_str(&format!(
            "xref\n0 0\ntrailer << /Encrypt 2 0 R /ID [<0011> (a\\)b)] >>\nstartxref\n{table}\n%%EOF"
        ));
        pdf.into_bytes()
    };
    let (short, long, key) = ("00".repeat(32), "00".repeat(48), "11".repeat(16));
    let seeds = [
        locked(&format!(
            "/Filter /Standard /V 4 /R 4 /P -44 /Length 128 /O <{short}> /U <{short}> \
             /CF << /StdCF << /Length 16 /CFM /AESV2 >> >> /EncryptMetadata false"
        )),
        locked(&format!(
            "/V 5 /R 6 /P -44 /O <{long}> /U <{long}> /OE <{short}> /UE <{short}> /Perms <{key}>"
        )),
    ];
    let seeds: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
    for seed in &seeds {
        assert_eq!(whole::refusal(seed), Some(Refusal::Encrypted));
    }
    run("ends", &seeds, |bytes| {
        let _ = whole::refusal(bytes);
    });
}

#[test]
fn repairs() {
    let seeds: [&[u8]; 2] = [
        b"%PDF-1.5\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj 4 0 obj << /Length 5 0 R /F [1 2] >> stream\r\nabc\n\
            endstream endobj 5 0 obj 3 endobj trailer << /Root 1 0 R /ID [<00> (a)] /Encrypt 7 0 R >> %%EOF",
        b"%PDF-1.4 9 0 obj << /Type /XRef /Root 1 0 R /Length 2 >> stream\nabendstream endobj 3 65535 obj (a) endobj %%EOF",
    ];
    run("repairs", &seeds, |bytes| {
        if let Some(whole) = crate::repair::repaired(bytes) {
            assert!(whole.ends_with(b"%%EOF\n"));
        }
    });
}

#[test]
fn charsets_that_are_declared() {
    let seeds: [&[u8]; 5] = [
        b"<?xml version='1.0' encoding=\"ISO-8859-1\"?><a/>",
        b"  <!-- <meta charset=x> --><META http-equiv=Content-Type content='text/html; charset = utf-16'>",
        b"<meta charset=\"replacement\"/><?xml encoding=?>",
        b"<meta charset=charset=charset",
        b"\x8f\xa1\xe9 caf\xe9 \x1b$B",
    ];
    run("charsets that are declared", &seeds, |bytes| {
        let (page, data) = (charset::of_html(bytes), charset::of_xml(bytes));
        // What is read byte by byte until then cannot turn out to be wide.
        assert!(page.is_none_or(|found| found.is_ascii_compatible()));
        assert!(data.is_none_or(|found| found.is_ascii_compatible()));
        for last in [false, true] {
            if let Some(guessed) = charset::guess(bytes, last) {
                let _ = charset::is_odd(&guessed.decode_without_bom_handling(bytes).0);
            }
        }
    });
}
