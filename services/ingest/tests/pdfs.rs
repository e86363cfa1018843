//! PDFs as people have them, made here by hand and by the programs that people use: what is read of them is held against what was written, and words and order
//! against Poppler's `pdftotext`.

mod papers;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use papers::{Expected, Paper};
use tg_document::kind::Refusal;
use tg_document::whole;
use unicode_normalization::UnicodeNormalization;

/// What the child said of a document.
#[derive(Debug, Default)]
struct Decoded {
    pages: Vec<String>,
    bad: Vec<u32>,
    partly: Vec<u32>,
    /// 4 for the end, else the fault.
    last: u8,
}

fn run(program: &str, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.unwrap_or_else(|error| {
        panic!("{program}: {error}; `scripts/setup.sh test` installs what tests need")
    });
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeding = std::thread::spawn(move || {
        // Who has seen enough may close its end.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    output.stdout
}

fn decode(file: &[u8]) -> Decoded {
    let said = run(env!("CARGO_BIN_EXE_ingest-decode"), &["pdf"], file);
    let (mut told, mut rest) = (Decoded::default(), said.as_slice());
    while let [tag, n0, n1, n2, n3, l0, l1, l2, l3, after @ ..] = rest {
        let number = u32::from_be_bytes([*n0, *n1, *n2, *n3]);
        let length = u32::from_be_bytes([*l0, *l1, *l2, *l3]) as usize;
        let (text, after) = after.split_at(length);
        match tag {
            1 => told.pages.push(String::from_utf8(text.to_vec()).unwrap()),
            2 => told.bad.push(number),
            5 => told.partly.push(number),
            tag => told.last = *tag,
        }
        rest = after;
    }
    told
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// How many words of two texts agree, in this order: the longest common subsequence.
fn in_order(one: &[&str], other: &[&str]) -> usize {
    let mut above = vec![0; other.len() + 1];
    for word in one {
        let mut row = vec![0; other.len() + 1];
        for (at, also) in other.iter().enumerate() {
            row[at + 1] = match word == also {
                true => above[at] + 1,
                false => row[at].max(above[at + 1]),
            };
        }
        above = row;
    }
    above[other.len()]
}

/// How many words of `of` are found in `among`, each once.
fn found(of: &[&str], among: &[&str]) -> usize {
    let mut left = among.to_vec();
    let mut found = 0;
    for word in of {
        if let Some(at) = left.iter().position(|also| also == word) {
            left.swap_remove(at);
            found += 1;
        }
    }
    found
}

/// What Poppler reads, without what stands along the edges of pages.
fn poppler(paper: &Paper) -> String {
    let file = std::env::temp_dir().join(format!("tg-{}-{}.pdf", std::process::id(), paper.name));
    std::fs::write(&file, &paper.file).unwrap();
    let said = run(
        "pdftotext",
        &[paper.asked, "-enc", "UTF-8", file.to_str().unwrap(), "-"],
        b"",
    );
    std::fs::remove_file(&file).unwrap();
    let said = String::from_utf8(said).unwrap().replace('\u{c}', "\n");
    let text = said.lines().filter(|line| {
        let line = line.trim();
        !paper.edges.iter().any(|edge| is_edge(line, edge))
    });
    let text: Vec<&str> = text.collect();
    let text = text.join("\n");
    let same = [
        ("\u{fb00}", "ff"),
        ("\u{fb01}", "fi"),
        ("\u{fb02}", "fl"),
        ("\u{fb03}", "ffi"),
        ("\u{fb04}", "ffl"),
        // A dotless letter below an accent, and the bullet that it has no character for.
        ("\u{131}\u{308}", "\u{ef}"),
        ("\u{88}", "\u{2022}"),
    ];
    let text = same
        .iter()
        .fold(text, |text, (one, two)| text.replace(one, two));
    let text: String = text.nfc().collect();
    // Words that go on in the next line, where Poppler leaves them apart.
    text.replace("-\n\n", "").replace("-\n", "")
}

/// Whether a line is one along an edge: `#` stands for any number, `*` at the end for anything.
fn is_edge(line: &str, edge: &str) -> bool {
    let mut pattern = String::new();
    for char in line.chars() {
        match char.is_ascii_digit() {
            true if pattern.ends_with('#') => {}
            true => pattern.push('#'),
            false => pattern.push(char),
        }
    }
    match edge.strip_suffix('*') {
        Some(begin) => pattern.starts_with(begin),
        None => line == edge || pattern == edge,
    }
}

/// Each paragraph is there in whole, in their order.
fn has_paragraphs(name: &str, text: &str, paragraphs: &[String]) {
    // A word that goes on on the next page stays where its page ends.
    let all = words(&text.replace("-\n", "")).join(" ");
    let mut rest = all.as_str();
    for paragraph in paragraphs {
        let Some(at) = rest.find(paragraph.as_str()) else {
            panic!("{name} lacks, behind what came before, {paragraph:?}: {rest}");
        };
        rest = &rest[at + paragraph.len()..];
    }
}

/// So many papers are held against Poppler.
const PAPERS: usize = 25;
/// The variable that names a folder for these papers and their sources: `scripts/pdf-readers.py` reads them with other readers.
const KEPT: &str = "TG_PAPERS";

fn keep(papers: &[Paper], folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    for paper in papers.iter().filter(|paper| paper.poppler) {
        let source = match &paper.expected {
            Expected::Text(text) => text.clone(),
            Expected::Paragraphs(paragraphs) => paragraphs.join("\n"),
            Expected::Error(_) => continue,
        };
        let at = |ending: &str| folder.join(format!("{}.{ending}", paper.name));
        std::fs::write(at("pdf"), &paper.file).unwrap();
        std::fs::write(at("txt"), source).unwrap();
    }
}

#[test]
fn words_and_order_are_those_of_the_source_and_of_poppler() {
    let mut held = 0;
    let begun = std::time::Instant::now();
    let papers = papers::readable();
    println!("made in {:?}", begun.elapsed());
    if let Some(folder) = std::env::var_os(KEPT) {
        keep(&papers, Path::new(&folder));
    }
    for paper in papers {
        let told = decode(&paper.file);
        let name = paper.name;
        assert_eq!((told.last, &told.bad), (4, &vec![]), "{name}");
        assert_eq!(whole::refusal(&paper.file), None, "{name}");
        assert_eq!(told.partly, paper.partly, "{name}");
        let text = told.pages.join("\n");
        match &paper.expected {
            Expected::Text(source) => assert_eq!(words(&text), words(source), "{name}"),
            Expected::Paragraphs(paragraphs) => has_paragraphs(name, &text, paragraphs),
            Expected::Error(fault) => panic!("{name} has text, not fault {fault}"),
        }
        if !paper.poppler {
            println!("{name}: {} words, all as written", words(&text).len());
            continue;
        }
        let theirs = poppler(&paper);
        let (ours, theirs) = (words(&text), words(&theirs));
        let (same, order) = (found(&theirs, &ours), in_order(&theirs, &ours));
        println!(
            "{name}: {} words, {same} of Poppler's {}, {order} of them in its order",
            ours.len(),
            theirs.len()
        );
        assert!(same * 100 >= theirs.len() * 99, "{name}: {theirs:?}");
        assert!(order * 100 >= theirs.len() * 99, "{name}: {theirs:?}");
        // Nor is anything said twice.
        assert!(
            ours.len() * 100 <= theirs.len() * 101 + 100,
            "{name}: {text}"
        );
        held += 1;
    }
    println!("{held} papers in {:?}", begun.elapsed());
    assert!(held >= PAPERS, "{held} papers");
}

/// What is told of a file when it is added is what comes of reading it.
#[test]
fn what_opens_without_a_password_is_read_and_the_rest_is_known_before() {
    for (way, file, opens) in papers::locked() {
        let (last, refusal) = match opens {
            true => (4, None),
            false => (11, Some(Refusal::Encrypted)),
        };
        assert_eq!(decode(&file).last, last, "{way}");
        assert_eq!(whole::refusal(&file), refusal, "{way}");
        // The same where the file says a wrong place for its table.
        let at = file.windows(9).rposition(|here| here == b"startxref");
        let at = at.unwrap() + "startxref\n".len();
        let moved = [&file[..at], b"9", &file[at..]].concat();
        let told = decode(&moved);
        assert_eq!(told.last, last, "{way}");
        assert_eq!(told.pages, decode(&file).pages, "{way}");
        assert_eq!(whole::refusal(&moved), refusal, "{way}");
    }
    for paper in papers::by_hand() {
        assert_eq!(whole::refusal(&paper.file), None, "{}", paper.name);
    }
    for paper in papers::unreadable() {
        let refusal = match paper.name {
            "scanned" => None,
            "encrypted" => Some(Refusal::Encrypted),
            _ => Some(Refusal::Damaged),
        };
        assert_eq!(whole::refusal(&paper.file), refusal, "{}", paper.name);
    }
}

#[test]
fn rows_and_paragraphs_stay_apart() {
    let papers = papers::by_hand();
    let text = |name: &str| {
        let paper = papers.iter().find(|paper| paper.name == name).unwrap();
        decode(&paper.file).pages.join("\n")
    };
    assert!(
        text("table").contains("Sorrel 1931 412 Weir\nEmber 1954 88 Holt"),
        "{}",
        text("table")
    );
    let one = text("one-column");
    assert_eq!(one.matches("\n\n").count(), 2, "{one}");
}

#[test]
fn what_cannot_be_read_is_told() {
    for paper in papers::unreadable() {
        let told = decode(&paper.file);
        assert_eq!(Expected::Error(told.last), paper.expected, "{}", paper.name);
    }
}
