//! PDFs as people have them, made here: what is read of them is held against what was written, and words and order
//! against Poppler's `pdftotext`.

mod papers;

use std::io::Write;
use std::process::{Command, Stdio};

use papers::{Expected, Paper};

/// What the child said of a document.
#[derive(Debug, Default)]
struct Told {
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

fn decode(file: &[u8]) -> Told {
    let said = run(env!("CARGO_BIN_EXE_ingest-decode"), &["pdf"], file);
    let (mut told, mut rest) = (Told::default(), said.as_slice());
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
        &["-enc", "UTF-8", file.to_str().unwrap(), "-"],
        b"",
    );
    std::fs::remove_file(&file).unwrap();
    let said = String::from_utf8(said).unwrap().replace('\u{c}', "\n");
    let text = said
        .lines()
        .filter(|line| !paper.edges.contains(&line.trim()));
    let text: Vec<&str> = text.collect();
    let text = text.join("\n");
    let ligatures = [("\u{fb00}", "ff"), ("\u{fb01}", "fi"), ("\u{fb02}", "fl")];
    let text = ligatures
        .iter()
        .fold(text, |text, (one, two)| text.replace(one, two));
    // Words that go on in the next line, where Poppler leaves them apart.
    text.replace("-\n", "")
}

#[test]
fn words_and_order_are_those_of_the_source_and_of_poppler() {
    let mut all = (0, 0, 0);
    for paper in papers::readable() {
        let told = decode(&paper.file);
        let name = paper.name;
        assert_eq!((told.last, &told.bad), (4, &vec![]), "{name}");
        assert_eq!(told.partly, paper.partly, "{name}");
        let text = told.pages.join("\n");
        let Expected::Text(source) = &paper.expected else {
            panic!("{name} has text");
        };
        assert_eq!(words(&text), words(source), "{name}");
        if !paper.poppler {
            println!("{name}: {} words, all as written", words(source).len());
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
        all = (all.0 + theirs.len(), all.1 + same, all.2 + order);
    }
    let (theirs, same, order) = all;
    println!("all: {same} of Poppler's {theirs} words, {order} in its order");
    assert!(theirs > 2_000, "{theirs} words are too few to say anything");
    assert!(same * 1000 >= theirs * 995, "{same} of {theirs}");
    assert!(order * 100 >= theirs * 99, "{order} of {theirs}");
}

#[test]
fn rows_and_paragraphs_stay_apart() {
    let papers = papers::readable();
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
        assert_eq!(Expected::Fault(told.last), paper.expected, "{}", paper.name);
    }
}
