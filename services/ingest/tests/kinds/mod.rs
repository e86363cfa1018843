//! Documents as people have them, beside PDFs: made here, with what must be found in them and where it stands.

use std::io::{Cursor, Write};

use encoding_rs::{EUC_JP, Encoding, GBK, KOI8_R, SHIFT_JIS, WINDOWS_1252};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A document under the name of its file.
pub struct Fixture {
    pub name: &'static str,
    pub content: Vec<u8>,
    /// What it calls itself, else its name.
    pub title: &'static str,
    /// Words of one chunk, and what that chunk is read below.
    pub expected: &'static [(&'static str, &'static str)],
}

fn fixture(
    name: &'static str,
    content: impl Into<Vec<u8>>,
    title: &'static str,
    expected: &'static [(&'static str, &'static str)],
) -> Fixture {
    Fixture {
        name,
        content: content.into(),
        title,
        expected,
    }
}

fn encoded(charset: &'static Encoding, text: &str) -> Vec<u8> {
    let (bytes, _, unmappable) = charset.encode(text);
    assert!(!unmappable, "{text}");
    bytes.into_owned()
}

fn utf16(text: &str, big: bool) -> Vec<u8> {
    let units = [0xfeff].into_iter().chain(text.encode_utf16());
    let bytes = |unit: u16| match big {
        true => unit.to_be_bytes(),
        false => unit.to_le_bytes(),
    };
    units.flat_map(bytes).collect()
}

/// A Word document of this body.
fn docx(body: &str) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let files = [
        ("[Content_Types].xml", "<Types/>".to_owned()),
        (
            "word/document.xml",
            format!(
                r#"<?xml version="1.0" encoding="UTF-8"?><w:document xmlns:w="urn:w"><w:body>{body}</w:body></w:document>"#
            ),
        ),
    ];
    for (name, content) in files {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn paragraph(style: &str, text: &str) -> String {
    format!(r#"<w:p><w:pPr><w:pStyle w:val="{style}"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"#)
}

fn row(cells: &[String]) -> String {
    let cell = |text: &String| format!("<w:tc>{}</w:tc>", paragraph("Table", text));
    format!(
        "<w:tr>{}</w:tr>",
        cells.iter().map(cell).collect::<String>()
    )
}

fn word() -> Vec<u8> {
    let rows: String = (1..=40)
        .map(|n| {
            row(&[
                format!("Gauge {n}"),
                format!("{n} bar"),
                "checked".to_owned(),
            ])
        })
        .collect();
    let head = row(&["Name", "Pressure", "State"].map(str::to_owned));
    let body = [
        paragraph("Title", "Gauge report"),
        paragraph("Heading1", "Results"),
        paragraph("Normal", "All gauges were read by Edda Marl."),
        paragraph("Heading2", "Readings"),
        format!("<w:tbl>{head}{rows}</w:tbl>"),
        paragraph("Heading1", "Outlook"),
        paragraph(
            "Normal",
            "They will be read again in spring, when the snow on the hill is gone and the road is open to carts and \
             horses again.",
        ),
    ];
    docx(&body.concat())
}

fn page() -> Vec<u8> {
    let rows: String = (1..=40)
        .map(|n| format!("<tr><td>Soufflé Nr. {n}</td><td>{n} €</td></tr>"))
        .collect();
    let page = format!(
        "<!DOCTYPE html><html><head><meta charset=\"iso-8859-1\"><title>Küche &amp; Keller</title>\
         <style>p {{}}</style></head><body><nav><a href=/>Startseite</a> <a href=/x>Impressum</a></nav>\
         <div class=cookie-notice>Wir nutzen Kekse.</div>\
         <h1>Nachspeisen</h1><p>Die Crème brûlée ist süß.</p><h2>Preise</h2>\
         <table><tr><th>Speise</th><th>Preis</th></tr>{rows}</table>\
         <aside>Mehr zum Thema</aside><footer>Impressum</footer><script>alert('x')</script></body></html>"
    );
    encoded(WINDOWS_1252, &page)
}

const NOTES: &str = "---\ntitle: Field notes\ntags: [a, b]\n---\n\nWritten on the way.\n\n# Gauges\n\nThe brass gauge \
    reads four bar, the iron one reads five, and both were cleaned by hand before they were read on the hill that day.\n\n\
    ## Code\n\n```rust\n# [no_heading]\nfn read_gauge() -> u8 {\n\n    4\n}\n```\n\nThat is what reads it, day by day, in \
    rain and in snow, and nobody has to climb the hill for it any more, says the keeper.\n\n# Lamps\n\n| lamp | colour |\n\
    | --- | --- |\n";

const PYTHON: &str = "import os\n\n\nclass Lamp:\n    \"\"\"A lamp made of glass.\"\"\"\n\n    def light(self):\n        \
    self.on = True\n\n\ndef dim(lamp):\n    lamp.on = False\n    return lamp\n";

/// All of them.
pub fn all() -> Vec<Fixture> {
    [headed(), tables(), encoded_texts(), sources()]
        .into_iter()
        .flatten()
        .collect()
}

/// What has headings.
fn headed() -> Vec<Fixture> {
    let lamps: String = (1..=30)
        .map(|n| format!("| lamp {n} | blue {n} |\n"))
        .collect();
    vec![
        fixture(
            "notes.md",
            format!("{NOTES}{lamps}"),
            "Field notes",
            &[
                ("brass gauge", "Field notes > Gauges"),
                (
                    "fn read_gauge() -> u8 {\n\n    4\n}",
                    "Field notes > Gauges > Code",
                ),
                ("| lamp | colour |", "Field notes > Lamps"),
                ("| lamp 30 |", "Field notes > Lamps\n| lamp | colour |"),
            ],
        ),
        fixture(
            "underlined.markdown",
            "Tides\n=====\n\nThe tide comes twice.\n\nEbb\n---\n\nThe ebb is slow.\n",
            "Tides",
            &[("The ebb is slow", "Tides")],
        ),
        fixture(
            "kueche.html",
            page(),
            "Küche & Keller",
            &[
                ("Die Crème brûlée ist süß.", "Küche & Keller > Nachspeisen"),
                (
                    "Soufflé Nr. 40",
                    "Küche & Keller > Nachspeisen > Preise\n| Speise | Preis |",
                ),
            ],
        ),
        fixture(
            "report.docx",
            word(),
            "report.docx",
            &[
                (
                    "All gauges were read by Edda Marl.",
                    "report.docx > Results",
                ),
                (
                    "| Gauge 40 | 40 bar | checked |",
                    "report.docx > Results > Readings\n| Name | Pressure | State |",
                ),
                ("read again in spring", "report.docx > Outlook"),
            ],
        ),
    ]
}

/// What has columns.
fn tables() -> Vec<Fixture> {
    let prices: String = (1..=60)
        .map(|n| format!("Größe {n};{n},50;Müller & Söhne\r\n"))
        .collect();
    let tabs: String = (1..=60)
        .map(|n| format!("valve {n}\tbrass\t{n}\n"))
        .collect();
    vec![
        fixture(
            "preise.csv",
            encoded(
                WINDOWS_1252,
                &format!("Bezeichnung;Preis;Händler\r\n{prices}"),
            ),
            "preise.csv",
            &[
                ("Größe 1;1,50;Müller & Söhne", "preise.csv"),
                (
                    "Größe 60;60,50;Müller & Söhne",
                    "preise.csv\nBezeichnung;Preis;Händler",
                ),
            ],
        ),
        fixture(
            "valves.tsv",
            format!("name\tmetal\tnumber\n{tabs}"),
            "valves.tsv",
            &[("valve 60\tbrass\t60", "valves.tsv\nname\tmetal\tnumber")],
        ),
    ]
}

/// Plain texts that are not UTF-8.
fn encoded_texts() -> Vec<Fixture> {
    vec![
        fixture(
            "windows.txt",
            encoded(
                WINDOWS_1252,
                "Erste Zeile – schön.\r\n\r\n„Zweite“ Zeile für 5 €.\r\n",
            ),
            "windows.txt",
            &[("„Zweite“ Zeile für 5 €.", "windows.txt")],
        ),
        fixture(
            "little.txt",
            utf16("Die Größe der Lampe 𝄞", false),
            "little.txt",
            &[("Die Größe der Lampe 𝄞", "little.txt")],
        ),
        fixture(
            "big.txt",
            utf16("Die Höhe der Lampe", true),
            "big.txt",
            &[("Die Höhe der Lampe", "big.txt")],
        ),
        fixture(
            "hashi.txt",
            encoded(
                SHIFT_JIS,
                "東京の古い橋は石で作られました。多くの人が毎日この橋を渡ります。",
            ),
            "hashi.txt",
            &[("東京の古い橋は石で作られました。", "hashi.txt")],
        ),
        fixture(
            "kawa.txt",
            encoded(
                EUC_JP,
                "川の水はとても冷たいです。夏には子供たちが泳ぎに来ます。",
            ),
            "kawa.txt",
            &[("川の水はとても冷たいです。", "kawa.txt")],
        ),
        fixture(
            "qiao.txt",
            encoded(
                GBK,
                "这座古老的桥建于一四二九年,用石头建成。很多人每天从桥上走过。",
            ),
            "qiao.txt",
            &[("这座古老的桥建于一四二九年", "qiao.txt")],
        ),
        fixture(
            "most.txt",
            encoded(
                KOI8_R,
                "Старый мост был построен из камня. По нему каждый день ходят люди.",
            ),
            "most.txt",
            &[("Старый мост был построен из камня.", "most.txt")],
        ),
        fixture(
            "feed.xml",
            encoded(
                WINDOWS_1252,
                "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<lampe><farbe>grün</farbe></lampe>\n",
            ),
            "feed.xml",
            &[("<farbe>grün</farbe>", "feed.xml")],
        ),
    ]
}

/// Code and data.
fn sources() -> Vec<Fixture> {
    let long: String = (0..30)
        .map(|n| format!("    let step_{n} = {n};\n"))
        .collect();
    vec![
        fixture(
            "lamp.py",
            PYTHON,
            "lamp.py",
            &[(
                "class Lamp:\n    \"\"\"A lamp made of glass.\"\"\"\n\n    def light",
                "lamp.py",
            )],
        ),
        fixture(
            "steps.rs",
            format!("use a::b;\n\n/// Walks.\nfn walk(lamp: u8) {{\n{long}}}\n\nfn rest() {{}}\n"),
            "steps.rs",
            &[
                ("let step_29 = 29;", "steps.rs > fn walk(lamp: u8)"),
                ("fn rest() {}", "steps.rs"),
            ],
        ),
        fixture(
            "lamps.json",
            "{\n  \"lamps\": [\n    {\"name\": \"Harrowgate\", \"colour\": \"blue\"}\n  ]\n}\n",
            "lamps.json",
            &[("\"name\": \"Harrowgate\"", "lamps.json")],
        ),
        fixture(
            "lamps.yaml",
            "lamps:\n  - name: Corvane\n    colour: red\n",
            "lamps.yaml",
            &[("- name: Corvane\n    colour: red", "lamps.yaml")],
        ),
    ]
}
