//! Files of records as anybody may write them: CSV, JSON, XML.

use tg_testkit::fuzz::run;

use super::tests::read;
use super::{CsvOptions, Encoding, Format, RecordPath, XmlOptions};

#[test]
fn files_of_records() {
    let formats = [
        Format::Csv(CsvOptions::default()),
        Format::Csv(CsvOptions {
            delimiter: b';',
            escape: Some(b'\\'),
            has_header: false,
            ..CsvOptions::default()
        }),
        Format::Json(Vec::new()),
        Format::Json(vec!["a".to_owned()]),
        Format::Xml(XmlOptions::default()),
    ];
    let seeds: [&[u8]; 5] = [
        b",a,a,\r1,,\x80\r\r",
        b"\xef\xbb\xbfa,b,\"c\"\"d\"\n1,\"2\n3\",\r\n\n\"x\\\"y\";z",
        b"[{\"a\": 1, \"b\": {\"c\": [null, \"\\ud83d\\ude00\"]}}, {\"a\": 1e400}]",
        b"{\"a\": [{\"b\": 1}, 2]}\n{\"a\": []}",
        b"<?xml version=\"1.0\"?><r><record x=\"1\"><n> &amp; &#65;</n><n><![CDATA[<]]></n></record><!-- --></r>",
    ];
    let many: String = (0..50_000).map(|n| format!(" a{n}=\"\"")).collect();
    let many = format!("<r><record{many}/></r>");
    run("tags of records", &[many.as_bytes()], |bytes| {
        let _ = read(&formats[4], Encoding::Utf8, bytes);
    });
    run("files of records", &seeds, |bytes| {
        let format = &formats[bytes.len() % formats.len()];
        let encoding = match bytes.len() % 11 {
            0 => Encoding::Other(encoding_rs::WINDOWS_1252),
            1 => Encoding::Other(encoding_rs::SHIFT_JIS),
            _ => Encoding::Utf8,
        };
        let _ = read(format, encoding, bytes);
    });
}

#[test]
fn paths_of_records() {
    let seeds: [&[u8]; 3] = [b"//a/b", b"/ROOT/x:a/b", b"./a"];
    run("paths of records", &seeds, |bytes| {
        let _ = RecordPath::read(&String::from_utf8_lossy(bytes));
    });
}
