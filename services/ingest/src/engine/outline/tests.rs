//! Contexts of chunks.

use super::*;

/// Chunks by structure with where they stand.
fn contexts(structure: Structure, title: &str, text: &str, size: usize) -> Vec<(String, String)> {
    let slices = structure.split(text, size, 0);
    let start = Start {
        title: title.to_owned(),
        ..Start::default()
    };
    let contexts = Outline::new(structure, start).contexts(text, &slices);
    let chunks = slices
        .iter()
        .map(|slice| text[slice.bytes.clone()].to_owned());
    contexts.into_iter().zip(chunks).collect()
}

/// The context of the chunk that has a word.
fn of(contexts: &[(String, String)], word: &str) -> String {
    let found = contexts.iter().find(|(_, chunk)| chunk.contains(word));
    found.map_or_else(
        || panic!("no chunk has {word}: {contexts:?}"),
        |found| found.0.clone(),
    )
}

#[test]
fn headings_above_a_chunk_are_its_path() {
    let words = "Some words that fill a line of it. ".repeat(3);
    let text = format!(
        "---\ntitle: Lamps\n---\nIntro {words}\n\n# Blue\n\n{words}first\n\n{words}second\n\n### Deep\n\n{words}third\n\n\
         Red\n---\n\n{words}fourth\n\n```\n# no heading\n{words}fifth\n```\n\n{words}sixth\n\n# End #\n\n{words}last"
    );
    let all = contexts(Structure::Markdown, "Lamps", &text, 130);
    for (word, context) in [
        ("Intro", "Lamps"),
        ("first", "Lamps > Blue"),
        ("second", "Lamps > Blue"),
        ("third", "Lamps > Blue > Deep"),
        ("fourth", "Lamps > Blue > Red"),
        ("sixth", "Lamps > Blue > Red"),
        ("last", "Lamps > End"),
    ] {
        assert_eq!(of(&all, word), context, "{word}");
    }
    // A document that is called as its first heading says it once.
    let same = contexts(Structure::Markdown, "Lamps", "# Lamps\n\nOf lamps.", 100);
    assert_eq!(same[0].0, "Lamps");
}

#[test]
fn rows_of_a_table_have_the_names_of_their_columns() {
    let rows: String = (0..40).map(|n| format!("| lamp {n} | {n} |\n")).collect();
    let text = format!(
        "# Prices\n\n| name | price |\n| --- | ---: |\n{rows}\n## Next\n\nNo row any more."
    );
    let all = contexts(Structure::Markdown, "Shop", &text, 120);
    assert_eq!(of(&all, "| name | price |"), "Shop > Prices");
    assert_eq!(of(&all, "lamp 20"), "Shop > Prices\n| name | price |");
    assert_eq!(of(&all, "lamp 39"), "Shop > Prices\n| name | price |");
    assert_eq!(of(&all, "No row any more"), "Shop > Prices > Next");
    let csv: String = (0..40).map(|n| format!("lamp {n};{n},50\n")).collect();
    let csv = format!("name;price\n{csv}");
    let all = contexts(Structure::Rows, "prices.csv", &csv, 100);
    assert_eq!(of(&all, "lamp 0;"), "prices.csv");
    assert_eq!(of(&all, "lamp 30;"), "prices.csv\nname;price");
    let bare: String = (0..40).map(|n| format!("{n};{n}\n")).collect();
    let all = contexts(Structure::Rows, "", &bare, 50);
    assert_eq!(of(&all, "30;30"), "", "numbers are no names");
}

#[test]
fn front_matter_may_have_blank_lines_and_a_rule_is_none() {
    let heads = |text: &str| {
        let mut outline = Outline::new(Structure::Markdown, Start::default());
        outline.pass(text);
        outline.here().headings
    };
    assert_eq!(heads("---\na: x\n\nb-c: y\n\n---\n# Real\n"), ["Real"]);
    assert!(heads("---\na: x\n\nb:\n  - y\n---\ntext").is_empty());
    assert_eq!(heads("---\n\n# Real\n"), ["Real"]);
    assert_eq!(heads("---\nSome words.\n\n# Real\n\nIt: is\n"), ["Real"]);
}

#[test]
fn fences_and_rulers_are_those_of_the_standard() {
    let mut outline = Outline::new(Structure::Markdown, Start::default());
    outline
        .pass("# Real\n```md\n```sh\n# comment\n```\n| a | b |\n|-|:-:|\n| 1 | 2 |\n| - | - |\n");
    let here = outline.here();
    assert_eq!(
        (here.headings, here.table.as_str()),
        (vec!["Real".to_owned()], "| a | b |")
    );
}

#[test]
fn what_is_within_an_item_of_code_knows_it() {
    let body = "    let lamp = shade(lamp);\n".repeat(10);
    let text =
        format!("use a::b;\n\nfn lamps(a: u8) {{\n{body}    // here\n}}\n\nfn other() {{}}\n");
    let all = contexts(Structure::Code, "lamps.rs", &text, 120);
    assert_eq!(of(&all, "use a::b"), "lamps.rs");
    assert_eq!(of(&all, "// here"), "lamps.rs > fn lamps(a: u8)");
    assert_eq!(of(&all, "fn other"), "lamps.rs");
}

#[test]
fn a_text_goes_on_where_another_ended() {
    let mut outline = Outline::new(Structure::Markdown, Start::default());
    outline.pass("# A\n\n## B\n\n| x | y |\n|---|---|\n| 1 | 2 |\n");
    let here = outline.here();
    assert_eq!(here.headings, ["A", "B"]);
    let rest = "| 3 | 4 |\n";
    let slices = Structure::Markdown.split(rest, 100, 0);
    let contexts = Outline::new(Structure::Markdown, here).contexts(rest, &slices);
    assert_eq!(contexts, ["A > B\n| x | y |"]);
    let long = format!("# {}\n\ntext", "word ".repeat(1000));
    let slices = Structure::Markdown.split(&long, 100, 0);
    let contexts = Outline::new(Structure::Markdown, Start::default()).contexts(&long, &slices);
    assert!(
        contexts
            .iter()
            .all(|context| context.chars().count() <= HEADING)
    );
}

#[test]
fn a_chunk_of_a_page_stands_on_it() {
    let text = "One line.\n\nAnother line.\n";
    let on = |title: &str, page| {
        let start = Start {
            title: title.to_owned(),
            page,
            ..Start::default()
        };
        let slices = Structure::Plain.split(text, 12, 0);
        Outline::new(Structure::Plain, start).contexts(text, &slices)
    };
    assert!(
        on("Guide", 3)
            .iter()
            .all(|context| context == "Guide; page 3")
    );
    assert!(on("", 12).iter().all(|context| context == "page 12"));
    assert!(on("Guide", 0).iter().all(|context| context == "Guide"));
}
