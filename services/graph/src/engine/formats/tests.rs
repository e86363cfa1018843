//! Blank nodes of two files stay apart; a file loaded twice is loaded once; files come back as they went.

use super::*;

fn quads(text: &str, format: Format, load: &str) -> Vec<Quad> {
    let quads = read(text.as_bytes(), format, None, load).unwrap();
    quads.collect::<Result<_, _>>().unwrap()
}

const TURTLE: &str = r#"
    @prefix : <http://example.org/> .
    :s :knows _:b0, [ :name "anonymous" ] .
    _:b0 :list ( 1 "two"@en ) .
    :s :says <<( _:b0 :p :o )>> .
"#;

#[test]
fn two_loads_never_share_a_blank_node() {
    let blank = |quads: &[Quad]| -> Vec<String> {
        let text = String::from_utf8(crate::store::embedded::batch::encode(quads)).unwrap();
        let words = text
            .split_whitespace()
            .filter(|word| word.starts_with("_:"));
        words.map(str::to_owned).collect()
    };
    let first = quads(TURTLE, Format::Turtle, "one");
    let again = quads(TURTLE, Format::Turtle, "one");
    let other = quads(TURTLE, Format::Turtle, "two");
    assert_eq!(first, again);
    assert!(!blank(&first).is_empty());
    assert!(
        blank(&first)
            .iter()
            .all(|label| !blank(&other).contains(label))
    );
    let same_node = blank(&first)
        .iter()
        .filter(|label| **label == blank(&first)[0])
        .count();
    assert!(
        same_node >= 3,
        "_:b0 is one node within its file, also inside a quoted triple"
    );
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let plain = quads(TURTLE, Format::Turtle, "x");
    let marked = format!("\u{feff}{TURTLE}");
    assert_eq!(quads(&marked, Format::Turtle, "x"), plain);
    assert_eq!(
        quads("\u{feff}<urn:s> <urn:p> <urn:o> .", Format::NQuads, "x").len(),
        1
    );
    assert!(quads("", Format::Turtle, "x").is_empty());
}

#[test]
fn files_come_back_as_they_went() {
    let trig = "<urn:g> { <urn:s> <urn:p> \"x\", _:b . } <urn:s> <urn:p> <urn:o> .";
    for (text, format) in [(TURTLE, Format::Turtle), (trig, Format::TriG)] {
        for target in [Format::TriG, Format::NQuads] {
            let before = quads(text, format, "x");
            let out = write(before.iter().cloned().map(Ok), target, Vec::new()).unwrap();
            let mut back: Vec<_> = RdfParser::from_format(target.rdf())
                .for_slice(&out)
                .collect::<Result<_, _>>()
                .unwrap();
            let key = |quad: &Quad| quad.to_string();
            back.sort_by_key(key);
            let mut before = before;
            before.sort_by_key(key);
            assert_eq!(back, before);
        }
    }
}

#[test]
fn relative_iris_need_a_base_and_faults_say_where() {
    let text = "<a> <b> <c> .";
    let mut bad = read(text.as_bytes(), Format::Turtle, None, "x").unwrap();
    assert!(matches!(bad.next(), Some(Err(GraphError::Syntax(_)))));
    assert!(bad.next().is_none());
    let base = Some("http://example.org/");
    let good = read(text.as_bytes(), Format::Turtle, base, "x").unwrap();
    assert_eq!(good.count(), 1);
    let broken = "<urn:a> <urn:b> <urn:c> .\n<urn:a> oops";
    let all: Vec<_> = read(broken.as_bytes(), Format::Turtle, None, "x")
        .unwrap()
        .collect();
    let Some(Err(GraphError::Syntax(why))) = all.last() else {
        panic!("{all:?}")
    };
    assert!(why.contains("line 2"), "{why}");
}

#[test]
fn nesting_without_end_does_not_crash() {
    for open in ["[ <urn:p> ", "( ", "<<( <urn:s> <urn:p> ", "<< "] {
        let text = format!("<urn:s> <urn:p> {}", open.repeat(200_000));
        let last = read(text.as_bytes(), Format::Turtle, None, "x")
            .unwrap()
            .last();
        assert!(matches!(last, Some(Err(GraphError::Syntax(_)))), "{open}");
    }
}
