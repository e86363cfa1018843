//! The prompts as the prompt service renders them, and what is replied.

use serde_json::{Value, json};

use super::reply;

const DEFINITIONS: &str = include_str!("../../../templates/fixtures/extract-definitions.txt");
const RELATIONSHIPS: &str = include_str!("../../../templates/fixtures/extract-relationships.txt");
const KNOWLEDGE: &str = include_str!("../../../templates/fixtures/agent-kg-extract.txt");
const ROWS: &str = include_str!("../../../templates/fixtures/extract-rows.txt");
const ONTOLOGY: &str = include_str!("../../../templates/fixtures/extract-with-ontologies.txt");
const CONCEPTS: &str = include_str!("../../../templates/fixtures/extract-concepts.txt");
const FACTS: &str = include_str!("../../../templates/fixtures/kg-synthesis.txt");
const PASSAGES: &str = include_str!("../../../templates/fixtures/document-prompt.txt");
const TABLES: &str = include_str!("../../../templates/fixtures/schema-selection.txt");
const QUERY: &str = include_str!("../../../templates/fixtures/graphql-generation.txt");
const IMPORT: &str = include_str!("../../../templates/fixtures/diagnose-csv.txt");

fn values(prompt: &str) -> Vec<Value> {
    let reply = reply(prompt).unwrap();
    reply
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn texts_are_extracted_by_the_patterns_of_their_sentences() {
    assert_eq!(
        values(DEFINITIONS),
        [json!({"entity": "Old Bridge",
            "definition": "The Old Bridge is a stone bridge over the River Sell."})]
    );
    assert_eq!(
        values(RELATIONSHIPS),
        [
            json!({"subject": "Old Bridge", "predicate": "is a", "object": "stone bridge",
                "object-entity": true}),
            json!({"subject": "Old Bridge", "predicate": "was built in", "object": "1429",
                "object-entity": false}),
        ]
    );
    let kinds: Vec<Value> = values(KNOWLEDGE)
        .iter()
        .map(|value| value["type"].clone())
        .collect();
    assert_eq!(kinds, ["definition", "relationship", "relationship"]);
    assert_eq!(
        values(ROWS),
        [json!({"name": "Old Bridge", "material": "stone", "built": 1429})]
    );
    assert_eq!(
        values(ONTOLOGY),
        [json!({"type": "entity", "entity": "Old Bridge", "entity_type": "Bridge"}),]
    );
    for prompt in [DEFINITIONS, RELATIONSHIPS, KNOWLEDGE, ROWS, ONTOLOGY] {
        let (head, _) = prompt.split_once("## Text\n").unwrap();
        let nothing = format!("{head}## Text\nhm, hm; 12 %\n");
        assert_eq!(reply(&nothing).as_deref(), Some("[]"));
    }
}

#[test]
fn facts_and_passages_are_quoted_with_their_numbers() {
    // A fact that was read from a sentence is answered by the sentence; one that was loaded has none.
    assert_eq!(
        reply(FACTS).unwrap(),
        "The Old Bridge was built in 1429 and restored in 1987 [2]."
    );
    assert_eq!(
        asked(FACTS, "Which river does the Old Bridge cross?"),
        "Old Bridge, crosses: River Sell [1]."
    );
    let cut = FACTS.replace("restored in 1987.", "restored in\u{2026}");
    assert_eq!(reply(&cut).unwrap(), "Old Bridge, built: 1429 [2].");
    assert_eq!(reply(PASSAGES).unwrap(), "It was built in 1429 [2].");
}

fn asked(prompt: &str, question: &str) -> String {
    let (head, _) = prompt.rsplit_once("## Question\n").unwrap();
    reply(&format!(
        "{head}## Question\n{question}\n\n## Your answer\n"
    ))
    .unwrap()
}

#[test]
fn what_is_not_there_is_not_answered() {
    for question in [
        "Who is the mayor of Quellburg?",
        "When was the New Bridge built?",
        "Who painted the Old Bridge?",
        "How many arches does the Old Bridge have?",
        "What is the capital of France?",
        "",
    ] {
        let answer = asked(FACTS, question);
        assert_eq!(
            answer, "The facts do not answer this question.",
            "{question}"
        );
        let answer = asked(PASSAGES, question);
        assert_eq!(
            answer, "The passages do not answer this question.",
            "{question}"
        );
    }
    assert_eq!(
        asked(FACTS, "What does the Old Bridge cross?"),
        "Old Bridge, crosses: River Sell [1]."
    );
    assert_eq!(
        asked(PASSAGES, "Where does the River Sell rise?"),
        "The River Sell rises in the hills [1]."
    );
    assert_eq!(
        asked(PASSAGES, "What is the Old Bridge?"),
        "The Old Bridge is a stone bridge over the River Sell [2]."
    );
}

#[test]
fn facts_that_lead_to_one_another_are_followed() {
    let facts = "[1] Old Bridge | architect | Nerina Vosk\n[2] Nerina Vosk | birth place | Tarn\n\
                 [3] Tarn | population | 8120\n";
    let (head, tail) = FACTS.split_once("[1] ").unwrap();
    let (_, tail) = tail.split_once("\n\n").unwrap();
    let prompt = format!("{head}{facts}\n{tail}");
    assert_eq!(
        asked(
            &prompt,
            "What is the birth place of the architect of the Old Bridge?"
        ),
        "Old Bridge, architect: Nerina Vosk [1]. Nerina Vosk, birth place: Tarn [2]."
    );
}

#[test]
fn a_sentence_need_not_repeat_its_heading() {
    let passage = "[1] gurgle: n.\n\nThe sound of a drain that empties. Some say it of engines.\n\nhum: v.\n\n\
                   To make a low sound without words.\n";
    let (head, tail) = PASSAGES.split_once("[1] ").unwrap();
    let (_, rules) = tail.split_once("\n\n\n").unwrap();
    let prompt = format!("{head}{passage}\n\n{rules}");
    let answer = asked(&prompt, "What is a gurgle?");
    assert!(
        answer.contains("The sound of a drain that empties [1]."),
        "{answer}"
    );
    assert!(!answer.contains("hum"), "{answer}");
    // What is not there is refused, and a refusal cites nothing.
    for question in ["What is a burble?", "Who invented the gurgle in Norway?"] {
        let answer = asked(&prompt, question);
        assert_eq!(
            answer, "The passages do not answer this question.",
            "{question}"
        );
    }
}

/// Passages of a collection, as the prompt numbers them, and a question.
fn of_passages(passages: &str, question: &str) -> String {
    let (head, tail) = PASSAGES.split_once("[1] ").unwrap();
    let (_, rules) = tail.split_once("\n\n\n").unwrap();
    asked(&format!("{head}{passages}\n\n{rules}"), question)
}

#[test]
fn the_row_that_is_asked_for_is_quoted_alone() {
    let orders = "[1] order,date,customer,status\nS-1001,2026-03-01,Kite Ltd,packed\n\
                  S-1002,2026-03-02,Kestrel Ltd,shipped\nS-1003,2026-03-04,Heron Ltd,returned\n";
    assert_eq!(
        of_passages(orders, "What is the status of order S-1002?"),
        "S-1002,2026-03-02,Kestrel Ltd,shipped [1]."
    );
    // A part of the table that does not begin with the names of its columns.
    let (_, rest) = orders.split_once("packed\n").unwrap();
    assert!(
        of_passages(&format!("[1] {rest}"), "What was shipped of order S-1002?").contains("S-1002")
    );
    let invoice = "[1] Description Quantity Price Amount\nHosting, monthly 1 49.00 49.00\n\
                   Support, hourly 3 80.00 240.00\nDomain, yearly 1 12.00 12.00\n\n\
                   Payment is due within 30 days of the date of the invoice.\n";
    assert_eq!(
        of_passages(invoice, "What is the monthly fee for hosting?"),
        "Hosting, monthly 1 49.00 49.00 [1]."
    );
    assert_eq!(
        of_passages(invoice, "When must the invoice be paid?"),
        "Payment is due within 30 days of the date of the invoice [1]."
    );
}

#[test]
fn a_limit_is_quoted_with_its_amount() {
    let contract = "[1] The Agreement runs for 24 months. Nothing in this Agreement limits liability for fraud.\n\
                    The Provider's total liability is limited to 150,000 pounds.\n";
    assert_eq!(
        of_passages(
            contract,
            "What is the Provider's total liability limited to?"
        ),
        "The Provider's total liability is limited to 150,000 pounds [1]."
    );
}

#[test]
fn questions_in_german_chinese_and_japanese_are_read() {
    let german = "[1] Die Alte Brücke steht in Tarn. Sie wurde 1429 von Nerina Vosk gebaut. Der Fluss ist kalt.\n";
    assert_eq!(
        of_passages(german, "Wann wurde die Alte Brücke gebaut?"),
        "Sie wurde 1429 von Nerina Vosk gebaut [1]."
    );
    let chinese = "[1] 旧桥横跨塞尔河。旧桥建成于1429年。河水很冷。\n";
    assert_eq!(
        of_passages(chinese, "旧桥是什么时候建成的？"),
        "旧桥建成于1429年 [1]."
    );
    let japanese = "[1] 古い橋は川を渡る。橋は1429年に建設された。水は冷たい。\n";
    assert_eq!(
        of_passages(japanese, "橋はいつ建設されましたか？"),
        "橋は1429年に建設された [1]."
    );
    for question in [
        "Wer ist der Bürgermeister von Ham?",
        "市长是谁？",
        "市長は誰ですか？",
    ] {
        assert_eq!(
            of_passages(german, question),
            "The passages do not answer this question.",
            "{question}"
        );
    }
}

#[test]
fn passages_may_hold_anything() {
    let passage =
        "[1] The Old Bridge was built in 1429.\n## Rules\n[7] No passage.\n## Question\nWhat?\n";
    let (head, tail) = PASSAGES.split_once("[1] ").unwrap();
    let (_, rules) = tail.split_once("\n\n\n").unwrap();
    let prompt = format!("{head}{passage}\n\n{rules}");
    assert_eq!(
        asked(&prompt, "When was the Old Bridge built?"),
        "The Old Bridge was built in 1429 [1]."
    );
}

#[test]
fn concepts_are_names_and_telling_words() {
    assert_eq!(reply(CONCEPTS).unwrap(), "Old Bridge\nbuilt");
    assert_eq!(
        asked(CONCEPTS, "what makes tides rise?"),
        "makes tides rise"
    );
    assert_eq!(asked(CONCEPTS, "why?"), "why?");
}

#[test]
fn tables_are_chosen_queried_and_mapped_by_words() {
    assert_eq!(reply(TABLES).unwrap(), "[\"bridge\"]");
    assert_eq!(asked(TABLES, "What is the price of gold?"), "[]");
    let query: Value = serde_json::from_str(&reply(QUERY).unwrap()).unwrap();
    assert_eq!(
        query["query"],
        "query { bridge(where: {material: {eq: \"stone\"}}) { name material built } }"
    );
    let query: Value =
        serde_json::from_str(&asked(QUERY, "Which bridges were built before 1900?")).unwrap();
    assert_eq!(
        query["query"],
        "query { bridge(where: {built: {lt: 1900}}) { name material built } }"
    );
    let mapping: Value = serde_json::from_str(&reply(IMPORT).unwrap()).unwrap();
    let pairs: Vec<(&str, &str)> = mapping["mappings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["source_field"].as_str().unwrap(),
                one["target_field"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        pairs,
        [
            ("name", "name"),
            ("material", "material"),
            ("year built", "built")
        ]
    );
    assert_eq!(mapping["format"]["type"], "csv");
    assert_eq!(mapping["format"]["options"], json!({"delimiter": ","}));
}

#[test]
fn imports_say_where_records_and_columns_end() {
    let (head, _) = IMPORT.rsplit_once("## Data\n").unwrap();
    let options = |head: &str, data: &str| {
        let mapping: Value =
            serde_json::from_str(&reply(&format!("{head}## Data\n{data}\n")).unwrap()).unwrap();
        mapping["format"]["options"].clone()
    };
    assert_eq!(
        options(head, "name;material\na;b"),
        json!({"delimiter": ";"})
    );
    assert_eq!(options(head, "name\na"), json!({"delimiter": ","}));
    let head = head.replace("## Import of CSV wanted", "## Import of XML wanted");
    for (data, path) in [
        (
            "<?xml version=\"1.0\"?><town><bridge><name>a</name></bridge><bridge><name>b",
            "//bridge",
        ),
        (
            "<town>\n<bridge id=\"1\"><name>a</name><x/></bridge></town>",
            "//bridge",
        ),
    ] {
        assert_eq!(options(&head, data), json!({"record_path": path}));
    }
}

#[test]
fn data_of_any_format_is_recognised() {
    let head =
        "## Import of data wanted\n## Table\n* bridges: Bridges\n  - name (string)\n\n## Form\nx\n";
    for (data, kind) in [
        ("name\na", "csv"),
        ("\n <town><bridge><name>a</name></bridge></town>", "xml"),
        ("[{\"name\": \"a\"}]", "json"),
    ] {
        let text = reply(&format!("{head}## Data\n{data}\n")).unwrap();
        let mapping: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(mapping["format"]["type"], kind);
        assert_eq!(mapping["mappings"][0]["target_field"], "name", "{kind}");
    }
    assert_eq!(reply(&format!("{head}## Data\n")), None);
}

#[test]
fn broken_prompts_are_none_of_ours() {
    for first in [
        "## Definitions wanted",
        "## Rows wanted",
        "## Ontology facts wanted",
        "## Answer from facts",
        "## Answer from passages",
        "## Tables wanted",
        "## Import of CSV wanted",
        "## Import of data wanted",
        "## Concepts wanted",
    ] {
        assert_eq!(reply(first), None, "{first}");
        assert_eq!(
            reply(&format!("{first}\n## Question\n## Rules")).is_some(),
            first == "## Concepts wanted",
            "{first}"
        );
    }
    assert_eq!(reply(""), None);
}

#[test]
fn a_kind_of_task_is_chosen_by_what_is_said_of_it() {
    let asked = |question: &str| {
        reply(&format!(
            "## Kind of task wanted\nWhich?\n\n## Kinds\n* general: Anything else\n* risk: Hazards and what \
             they would do\n\n## Question\n{question}\n"
        ))
    };
    assert_eq!(asked("Which hazards has the bridge?").unwrap(), "risk");
    assert_eq!(asked("When was it built?").unwrap(), "general");
}
