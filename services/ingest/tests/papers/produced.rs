//! PDFs as programs make them that people use, made while the test runs: LaTeX, groff, Ghostscript, Chromium, cairo, qpdf
//! and Poppler. The texts are our own. A program that is missing or fails is an error, never passed over.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tg_testkit::pdf::prose;

use super::{Expected, Paper, columns};

/// Where the programs work.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.at(name), content).unwrap();
    }

    fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs a program here. What it prints is its answer.
    fn run(&self, program: &str, arguments: &[&str]) -> Vec<u8> {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(self.0.path())
            // Fonts that LaTeX draws are kept here, too, and dates are the same every day.
            .env("TEXMFVAR", self.at("texmf"))
            .env("SOURCE_DATE_EPOCH", "1700000000")
            .stdin(Stdio::null())
            .output();
        let output = output.unwrap_or_else(|error| {
            panic!("{program}: {error}; `scripts/setup.sh test` installs what tests need")
        });
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {}\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }

    fn latex(&self, name: &str, source: &str) -> Vec<u8> {
        self.put(&format!("{name}.tex"), source);
        let quietly = ["-interaction=batchmode", "-halt-on-error", name];
        self.run("pdflatex", &quietly);
        self.get(&format!("{name}.pdf"))
    }

    fn groff(&self, device: &str, macros: &str, source: &str) -> Vec<u8> {
        let name = format!("page.{macros}");
        self.put(&name, source);
        self.run("groff", &["-T", device, &format!("-{macros}"), &name])
    }

    fn chromium(&self, page: &str, more: &[&str]) -> Vec<u8> {
        self.put("page.html", page);
        let profile = format!("--user-data-dir={}", self.at("profile").display());
        let fixed = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            &profile,
            "--print-to-pdf=page.pdf",
        ];
        let from = format!("file://{}", self.at("page.html").display());
        self.run("chromium", &[&fixed[..], more, &[&from]].concat());
        self.get("page.pdf")
    }

    /// What a program makes of a PDF: `in.pdf` becomes `out.pdf`.
    fn remade(&self, file: &[u8], program: &str, arguments: &[&str]) -> Vec<u8> {
        self.put("in.pdf", file);
        self.run(program, arguments);
        self.get("out.pdf")
    }
}

/// All of them; their programs run beside each other.
pub(super) fn papers() -> Vec<Paper> {
    let makers: [fn() -> Vec<Paper>; 6] = [latex, latex_report, groff, letter, prices, languages];
    std::thread::scope(|scope| {
        let running = makers.map(|make| scope.spawn(make));
        let made = running.map(|made| made.join().unwrap());
        made.into_iter().flatten().collect()
    })
}

/// The same document, locked for changes (it can be read) and for all who have no password, in the ways of all times.
pub fn locked() -> Vec<(String, Vec<u8>, bool)> {
    let plain = columns::papers().swap_remove(0).file;
    let desk = Desk::new();
    let ways: [(&str, &[&str]); 5] = [
        ("40", &[]),
        ("128", &["--use-aes=n"]),
        ("128", &["--use-aes=y"]),
        ("128", &["--use-aes=y", "--cleartext-metadata"]),
        ("256", &[]),
    ];
    let mut files = Vec::new();
    for (bits, more) in ways {
        for (user, opens) in [("", true), ("secret", false)] {
            let all = [
                &["--allow-weak-crypto", "--encrypt", user, "owner", bits],
                more,
                &["--", "in.pdf", "out.pdf"],
            ]
            .concat();
            let file = desk.remade(&plain, "qpdf", &all);
            files.push((format!("{bits} {more:?} {user}"), file, opens));
        }
    }
    files
}

fn paper(name: &'static str, file: Vec<u8>, paragraphs: &[String]) -> Paper {
    Paper {
        expected: Expected::Paragraphs(paragraphs.to_vec()),
        ..Paper::new(name, file, "")
    }
}

fn proses(from: usize, count: usize, words: usize) -> Vec<String> {
    (from..from + count)
        .map(|number| prose(number, words))
        .collect()
}

/// An article in two columns with the fonts of mathematics, down to those of indices of indices; a page with accents and
/// a table; and what qpdf and Poppler make of them.
fn latex() -> Vec<Paper> {
    let desk = Desk::new();
    let paragraphs = proses(100, 16, 110);
    let formulas = [
        r"$h_{t_1} + a_{i_j}$ is the height and",
        r"$b^{2^n}$ grows as",
        r"$x \rightarrow A_{B_\cap}$ says and",
        r"$\alpha \leq \omega_{k_n}$ where",
    ];
    let mut body = String::new();
    for (at, text) in paragraphs.iter().enumerate() {
        if at % 4 == 0 {
            body.push_str(&format!(
                "\\section{{Of the tides}}\n{}\n\n",
                formulas[at / 4]
            ));
        }
        body.push_str(&format!("{text}\n\n"));
    }
    let article = |authors: &str| {
        desk.latex(
            "article",
            &format!(
                "\\documentclass[twocolumn]{{article}}\n\\title{{On the tides of the northern harbour}}\n\
                 \\author{{{authors}}}\n\\date{{}}\n\\begin{{document}}\n\\maketitle\n{body}\\end{{document}}\n"
            ),
        )
    };
    let mut authors = vec!["On the tides of the northern harbour A. Keeper B. Clerk 1".to_owned()];
    authors.extend(paragraphs.clone());
    let article = article("A. Keeper \\and B. Clerk");
    let linear = [
        "--linearize",
        "--object-streams=generate",
        "in.pdf",
        "out.pdf",
    ];
    let linear = desk.remade(&article, "qpdf", &linear);
    let plain = ["--qdf", "--object-streams=disable", "in.pdf", "out.pdf"];
    let plain = desk.remade(&article, "qpdf", &plain);

    let (before, after) = (prose(120, 90), prose(121, 90));
    let words = "Naïve cafés, a straße, größer, Čapek, François";
    let page = desk.latex(
        "page",
        &format!(
            "\\documentclass{{article}}\\pagestyle{{empty}}\\begin{{document}}\n{before}\n\n\
             \\begin{{tabular}}{{lrrl}} \\hline Lake & Built & Volume & Engineer \\\\ \\hline\n\
             Sorrel & 1931 & 412 & Weir \\\\ Ember & 1954 & 88 & Holt \\\\ Umber & 1960 & 290 & Marsh \\\\ \\hline\n\
             \\end{{tabular}}\n\n{after}\n\n\
             Na\\\"\\i ve caf\\'es, a stra\\ss e, gr\\\"o\\ss er, \\v Capek, Fran\\c cois: \
             \\emph{{emphasis}}, \\textbf{{bold}}, \\texttt{{code}}, ``quoted'' --- a dash, an office, a difficult flow.\n\
             \\end{{document}}\n"
        ),
    );
    let rows = "Sorrel 1931 412 Weir Ember 1954 88 Holt Umber 1960 290 Marsh".to_owned();
    let said = [before, rows, after, words.to_owned()];
    desk.put("one.pdf", &page);
    desk.put("two.pdf", columns::papers().swap_remove(1).file);
    desk.run("pdfunite", &["one.pdf", "two.pdf", "united.pdf"]);
    let united = desk.get("united.pdf");
    // Poppler takes two authors for the heads of two columns, and the second column of a short page for the first.
    let drawn = |name, file| Paper {
        asked: "-raw",
        ..paper(name, file, &authors).without(&["#"])
    };
    vec![
        drawn("latex-article", article),
        drawn("latex-article-linear", linear),
        drawn("latex-article-plain", plain),
        paper("latex-page", page, &said),
        paper("united", united, &said),
    ]
}

/// Chapters with running heads on both sides of a sheet, and lists.
fn latex_report() -> Vec<Paper> {
    let desk = Desk::new();
    let (mut body, mut paragraphs) = (String::new(), Vec::new());
    for (chapter, what) in ["keepers", "clerks", "merchants"].into_iter().enumerate() {
        let from = 140 + chapter * 10;
        let texts = proses(from, 6, 170);
        let points = proses(from + 6, 3, 30);
        body.push_str(&format!(
            "\\chapter{{Of the {what}}}\n\\section{{Duties}}\n"
        ));
        body.push_str(&texts.join("\n\n"));
        body.push_str("\n\\begin{itemize}\n");
        for point in &points {
            body.push_str(&format!("\\item {point}\n"));
        }
        body.push_str("\\end{itemize}\n");
        paragraphs.extend(texts);
        paragraphs.extend(points);
    }
    let file = desk.latex(
        "report",
        &format!(
            "\\documentclass[twoside]{{report}}\\pagestyle{{headings}}\\begin{{document}}\n{body}\\end{{document}}\n"
        ),
    );
    vec![paper("latex-report", file, &paragraphs).without(&["#", "#.#. DUTIES", "CHAPTER #. *"])]
}

/// A manual in two columns, a page of one in a single column, and what Ghostscript makes of both ways to it.
fn groff() -> Vec<Paper> {
    let desk = Desk::new();
    let paragraphs = proses(200, 14, 130);
    let mut manual = ".TL\nManual of the harbour\n.AU\nA Keeper\n.2C\n".to_owned();
    for (at, text) in paragraphs.iter().enumerate() {
        if at % 3 == 0 {
            manual.push_str(".NH\nDuties\n");
        }
        manual.push_str(&format!(".PP\n{text}\n"));
    }
    let made = desk.groff("pdf", "ms", &manual);
    let locked = ["--encrypt", "", "owner", "256", "--", "in.pdf", "out.pdf"];
    let locked = desk.remade(&made, "qpdf", &locked);
    desk.put("page.ps", desk.groff("ps", "ms", &manual));
    desk.run("ps2pdf", &["page.ps", "printed.pdf"]);
    let printed = desk.get("printed.pdf");

    let about = proses(220, 14, 120);
    let mut page =
        ".TH FERRY 1 2024 \"Harbour 2\" \"Harbour Manual\"\n.SH NAME\nferry \\- cross the water\n"
            .to_owned();
    for (at, text) in about.iter().enumerate() {
        page.push_str(&format!(
            ".SH {}\n{text}\n",
            ["DESCRIPTION", "NOTES"][at % 2]
        ));
    }
    let page = desk.groff("pdf", "man", &page);

    let columns = columns::papers().swap_remove(1);
    let Expected::Text(text) = columns.expected else {
        panic!("columns have a text");
    };
    let distil = [
        "-q",
        "-dBATCH",
        "-dNOPAUSE",
        "-sDEVICE=pdfwrite",
        "-o",
        "out.pdf",
        "in.pdf",
    ];
    let distilled = desk.remade(&columns.file, "gs", &distil);
    let text: Vec<String> = text.lines().map(str::to_owned).collect();
    vec![
        paper("groff-manual", made, &paragraphs).without(&["-#-"]),
        paper("groff-manual-locked", locked, &paragraphs).without(&["-#-"]),
        paper("ghostscript-manual", printed, &paragraphs).without(&["-#-"]),
        paper("groff-page", page, &about).without(&["FERRY(#)*", "Harbour Manual*", "Harbour #*"]),
        paper("ghostscript-columns", distilled, &text),
    ]
}

fn page(title: &str, style: &str, body: &str) -> String {
    format!("<!doctype html><meta charset=utf-8><title>{title}</title><style>{style}</style>{body}")
}

/// A page of a browser in two columns below a title, and cairo's way to write it.
fn letter() -> Vec<Paper> {
    let desk = Desk::new();
    let paragraphs = proses(240, 12, 110);
    let mut body = "<h1>Letter of the northern harbour</h1>".to_owned();
    for (at, text) in paragraphs.iter().enumerate() {
        let heading = if at % 3 == 0 { "<h2>Duties</h2>" } else { "" };
        body.push_str(&format!("{heading}<p>{text}</p>"));
    }
    let style =
        "body{font:11pt/1.3 serif;columns:2;column-gap:8mm;text-align:justify}h1{column-span:all}";
    let file = desk.chromium(&page("Letter", style, &body), &["--no-pdf-header-footer"]);
    let cairo = desk.remade(&file, "pdftocairo", &["-pdf", "in.pdf", "out.pdf"]);
    vec![
        paper("chromium-letter", file, &paragraphs),
        paper("cairo-letter", cairo, &paragraphs),
    ]
}

/// A table over pages, with what browsers print along the edges.
fn prices() -> Vec<Paper> {
    let desk = Desk::new();
    let (before, after) = (prose(260, 90), prose(261, 90));
    let mut rows = String::new();
    for row in 0..70 {
        let remark = prose(300 + row, 6);
        let (salt, timber) = (row * 7 + 100, row * 11 + 100);
        rows.push_str(&format!(
            "<tr><td>Island{row}<td>{salt}<td>{timber}<td>{remark}"
        ));
    }
    let list: String = proses(280, 5, 25)
        .iter()
        .map(|text| format!("<li>{text}"))
        .collect();
    let style = "body{font:11pt sans-serif}table{border-collapse:collapse;width:100%}\
                 td,th{border:1px solid;padding:2px 6px;text-align:left}";
    let body = format!(
        "<h1>Prices of the islands</h1><p>{before}</p><table><tr><th>Island<th>Salt<th>Timber<th>Remark{rows}</table>\
         <p>{after}</p><ul>{list}</ul><pre>fn main() {{\n    call(1, 2);\n}}</pre>"
    );
    let file = desk.chromium(&page("Harbour prices", style, &body), &[]);
    let mut said = vec![before, after];
    said.extend(proses(280, 5, 25));
    let mut paper = paper("chromium-prices", file, &said).without(&[
        "#/#/#, #:# *",
        "Harbour prices",
        "file:///*",
        "#/#",
    ]);
    paper.asked = "-layout";
    vec![paper]
}

/// Many scripts and signs, on pages across, below a head and above their numbers.
fn languages() -> Vec<Paper> {
    let desk = Desk::new();
    let mut said = proses(270, 8, 120);
    let mut body = "<h1>Straße und Brücke</h1>".to_owned();
    let languages = "Zürich, łódź, größer. Ελλάδα και θάλασσα. Москва и река. “quoted” – naïve café, 1 234,50 €.";
    said.insert(1, languages.to_owned());
    for text in &said {
        body.push_str(&format!("<p>{text}</p>"));
    }
    let style = "@page{size:A5 landscape;margin:20mm 15mm;@top-right{content:'Harbour Almanac'}\
                 @bottom-center{content:counter(page)}}body{font:11pt 'DejaVu Sans'}";
    let file = desk.chromium(
        &page("Languages", style, &body),
        &["--no-pdf-header-footer"],
    );
    vec![paper("chromium-languages", file, &said).without(&["Harbour Almanac", "#"])]
}
