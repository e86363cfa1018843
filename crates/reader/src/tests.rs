//! The reader plays whole dialogs over small worlds made up here; no subject is known to the code.

use serde_json::{Value, json};

use super::react::{Prompt, Step};
use super::{NAME, Shape, count, pieces, plan, reply};

/// The prompt as the template of the prompt service renders it; held there by a test of its own.
const RENDERED: &str = include_str!("../../templates/fixtures/agent-react.txt");

const TOOLS: &str = "* graph_about: Finds things by name and lists their facts.\n  - name (string): name\n\
* graph_pattern: Lists facts that match a pattern.\n  - subject (string): s\n  - predicate (string): p\n  - object (string): o\n\
* graph_sparql: Runs a SPARQL query over the graph.\n  - query (string): query\n\
* calculator: Calculates an expression.\n  - expression (string): expression\n\
* current_datetime: Tells date and time.\n";

/// Descriptions of tools that answer questions from documents: ours, and one of another system.
const DOCUMENTS: [(&str, &str, &str); 2] = [
    (
        "document_query",
        "question",
        "Answers a question from the text of the documents in the library, with the passages and documents it \
         relies on.",
    ),
    ("shelf", "query", "Searches passages of books."),
];

fn prompt(question: &str, steps: &str) -> String {
    offering(TOOLS, question, steps)
}

fn offering(tools: &str, question: &str, steps: &str) -> String {
    let steps = if steps.is_empty() {
        String::new()
    } else {
        format!("## Steps so far\n{steps}\n")
    };
    format!(
        "Intro.\n\n## Tools\n{tools}\n## Form of a step\n\nThought: x\nAction: y\nArgs: z\n\nFinal Answer: w\n\n\
         ## Question\n{question}\n\n{steps}## Your next step\n"
    )
}

type Facts = &'static [(&'static str, &'static str, &'static str)];

/// A graph tool: facts that name the thing, on either side.
fn about(world: Facts, name: &str) -> String {
    let name = name.to_lowercase();
    let lines: Vec<String> = world
        .iter()
        .filter(|(s, _, o)| s.to_lowercase() == name || o.to_lowercase() == name)
        .map(|(s, p, o)| format!("{s} | {p} | {o}"))
        .collect();
    if lines.is_empty() {
        format!("The graph has nothing named '{name}'.")
    } else {
        format!("{name} <urn:x:{name}>\n{}", lines.join("\n"))
    }
}

/// Plays a dialog; returns the calls made and the answer.
fn play(world: Facts, question: &str) -> (Vec<(String, Value)>, String) {
    play_with(TOOLS, "No results.", world, question)
}

/// The same with other tools on offer; those that are not of the graph return `told`.
fn play_with(
    tools: &str,
    told: &str,
    world: Facts,
    question: &str,
) -> (Vec<(String, Value)>, String) {
    let mut calls = Vec::new();
    let mut steps = String::new();
    for _ in 0..10 {
        let text = offering(tools, question, &steps);
        match plan::next(&Prompt::read(&text).expect("our template")) {
            Step::Answer { text, .. } => return (calls, text),
            Step::Call {
                tool,
                args,
                thought,
            } => {
                let observation = match tool.as_str() {
                    "graph_about" => about(world, args["name"].as_str().unwrap()),
                    "calculator" => "42".to_owned(),
                    "current_datetime" => "2031-02-03T04:05:06Z".to_owned(),
                    "graph_sparql" => "No results.".to_owned(),
                    _ => told.to_owned(),
                };
                steps += &format!(
                    "\nThought: {thought}\nAction: {tool}\nArgs: {args}\nObservation: {observation}\n"
                );
                calls.push((tool, args));
            }
        }
    }
    panic!("the dialog has no end");
}

const CITY: Facts = &[
    ("Old Bridge", "type", "Bridge"),
    ("Old Bridge", "label", "Old Bridge"),
    ("Old Bridge", "built", "1429"),
    ("Old Bridge", "last restored", "1987"),
    ("Old Bridge", "architect", "Nerina Vosk"),
    ("Old Bridge", "crosses", "River Sell"),
    ("Nerina Vosk", "birthPlace", "Tarn"),
    (
        "Nerina Vosk",
        "http://e.x/p/deathDate",
        "\"1466-02-01\"^^<xsd:date>",
    ),
    ("Tarn", "population", "8120"),
    ("Glass Sea", "author", "Ivo Prell"),
];

#[test]
fn questions_about_named_things_are_answered_by_quoting() {
    for (question, expected, calls) in [
        (
            "When was the Old Bridge built?",
            "Old Bridge, built: 1429",
            1,
        ),
        (
            "when was the old bridge built?",
            "Old Bridge, built: 1429",
            1,
        ),
        ("In which year was the Old Bridge last restored?", "1987", 1),
        ("Who designed the Old Bridge?", "Nerina Vosk", 1),
        ("What does the Old Bridge cross?", "River Sell", 1),
        ("When did Nerina Vosk die?", "1466-02-01", 1),
        ("Where was Nerina Vosk born?", "Tarn", 1),
        ("Who wrote \"Glass Sea\"?", "Ivo Prell", 1),
        ("How many people live in Tarn?", "8120", 1),
        ("Which bridge was built in 1429?", "Old Bridge", 1),
    ] {
        let (made, answer) = play(CITY, question);
        assert!(answer.contains(expected), "{question} -> {answer}");
        assert_eq!(made.len(), calls, "{question}: {made:?}");
        assert_eq!(made[0].0, "graph_about", "{question}");
    }
}

#[test]
fn a_question_over_two_things_is_followed() {
    let (made, answer) = play(
        CITY,
        "What is the birthplace of the architect of the Old Bridge?",
    );
    assert_eq!(made.len(), 2, "{made:?}");
    assert!(answer.contains("Tarn"), "{answer}");
}

#[test]
fn nothing_is_invented() {
    let (made, answer) = play(CITY, "Who is the mayor of Quellburg?");
    assert!(made.len() <= 6);
    assert_eq!(answer, "I found nothing that answers this.");
    let (_, answer) = play(CITY, "What colour is the Old Bridge?");
    assert!(answer.starts_with("I found no exact answer."), "{answer}");
}

/// The tools of the graph, and one that answers from documents.
fn with_documents((name, argument, description): (&str, &str, &str)) -> String {
    format!(
        "{TOOLS}* knowledge_query: Answers a question from the whole knowledge graph.\n  - question (string): q\n\
         * {name}: {description}\n  - {argument} (string): the question\n"
    )
}

#[test]
fn what_the_graph_does_not_know_is_asked_of_the_documents() {
    let said = "The Gilded Eel was weighed in brass [2].\nIt was heavy [1].";
    let told = &format!("{said}\n\nSources:\n- Eels (urn:eels)");
    for tool in DOCUMENTS {
        let tools = with_documents(tool);
        for question in [
            "How was the Gilded Eel weighed?",
            "how was the gilded eel weighed?",
            "What colour is the Old Bridge?",
        ] {
            let (made, answer) = play_with(&tools, told, CITY, question);
            assert_eq!(answer, said, "{question}: {made:?}");
            let (last, before) = made.split_last().unwrap();
            assert_eq!(last, &(tool.0.to_owned(), json!({tool.1: question})));
            assert!(before.iter().all(|(name, _)| name.starts_with("graph_")));
            assert!(before.len() <= 4, "{question}: {made:?}");
        }
    }
}

#[test]
fn what_the_graph_knows_is_not_asked_of_the_documents() {
    for question in [
        "When was the Old Bridge built?",
        "when was the old bridge built?",
        "What does the Old Bridge cross?",
        "How many people live in Tarn?",
        "Which bridge was built in 1429?",
        "What is the birthplace of the architect of the Old Bridge?",
        "What is 6 times 7?",
    ] {
        let alone = play(CITY, question);
        let (tools, told) = (with_documents(DOCUMENTS[0]), "Something else [1].");
        assert_eq!(play_with(&tools, told, CITY, question), alone, "{question}");
    }
}

#[test]
fn documents_that_do_not_know_are_believed() {
    let tools = with_documents(DOCUMENTS[0]);
    for told in [
        "The passages do not answer this question.",
        "The documents of this collection hold nothing that answers this question.",
        "Error: the request took too long",
    ] {
        let (made, answer) = play_with(&tools, told, CITY, "Who is the mayor of Quellburg?");
        assert_eq!(answer, "I found nothing that answers this.", "{told}");
        let asked = made.iter().filter(|(name, _)| name == "document_query");
        assert_eq!(asked.count(), 1, "{made:?}");
        assert!(made.len() <= 7, "{made:?}");
    }
}

#[test]
fn words_found_in_a_text_of_the_graph_do_not_settle_a_question() {
    const NEWS: Facts = &[(
        "Old Bridge",
        "comment",
        "It carries a road, a rail line and two lanterns, and the mayor likes it",
    )];
    let question = "Which mayor planted the lindens near the Old Bridge?";
    let tools = with_documents(DOCUMENTS[0]);
    let (made, answer) = play_with(&tools, "Ada Quill planted them [1].", NEWS, question);
    assert_eq!(answer, "Ada Quill planted them [1].");
    assert_eq!(made.len(), 2, "{made:?}");
    let unknown = "The passages do not answer this question.";
    let (_, answer) = play_with(&tools, unknown, NEWS, question);
    assert!(answer.starts_with("I found no exact answer."), "{answer}");
    let (made, answer) = play(NEWS, question);
    assert_eq!(made.len(), 1, "{made:?}");
    assert!(answer.starts_with("Old Bridge, comment: "), "{answer}");
}

#[test]
fn facts_that_were_loaded_are_quoted_with_their_numbers() {
    let answer = |question: &str, observation: &str| {
        let steps = format!(
            "\nThought: t\nAction: graph_about\nArgs: {{\"name\": \"Anna Berg\"}}\nObservation: {observation}\n"
        );
        match plan::next(&Prompt::read(&prompt(question, &steps)).unwrap()) {
            Step::Answer { text, .. } => text,
            other => panic!("{other:?}"),
        }
    };
    let loaded = "Anna Berg <urn:x:anna>\nAnna Berg | leads | Turbine Team [1]\nAnna Berg | birth year | 1984 [2]";
    assert_eq!(
        answer("What does Anna Berg lead?", loaded),
        "Anna Berg, leads: Turbine Team [1]"
    );
    assert_eq!(
        answer("When was Anna Berg born?", loaded),
        "Anna Berg, birth year: 1984 [2]"
    );
    let both = format!(
        "{loaded}\nAnna Berg | leads | Rotor Team\n\nRead from:\n[3] Anna Berg leads the Rotor Team in Ham."
    );
    assert_eq!(
        answer("What does Anna Berg lead?", &both),
        "Anna Berg leads the Rotor Team in Ham [3]. Anna Berg, leads: Turbine Team [1]."
    );
}

/// What was read of a contract, with the sentences.
const CONTRACT: &str = "Agreement <urn:x:agreement>\nAgreement | is governed by | law of Scotland\n\
                        Agreement | runs for | 24 months\nAgreement | names | Acme Ltd\n\nRead from:\n\
                        [1] The Agreement is governed by the law of Scotland and by nothing else.\n\
                        [2] The Agreement runs for 24 months from the date of signature.";

#[test]
fn facts_that_were_read_from_sentences_are_answered_by_these() {
    let answer = |question: &str| {
        let steps = format!(
            "\nThought: t\nAction: graph_about\nArgs: {{\"name\": \"Agreement\"}}\nObservation: {CONTRACT}\n"
        );
        match plan::next(&Prompt::read(&prompt(question, &steps)).unwrap()) {
            Step::Answer { text, .. } => text,
            other => panic!("{other:?}"),
        }
    };
    for (question, wanted) in [
        (
            "What is the Agreement governed by?",
            "The Agreement is governed by the law of Scotland and by nothing else [1].",
        ),
        (
            "How long does the Agreement run?",
            "The Agreement runs for 24 months from the date of signature [2].",
        ),
        // Nobody knows a sentence that says it: it was loaded.
        (
            "Whom does the Agreement name?",
            "Agreement, names: Acme Ltd",
        ),
    ] {
        assert_eq!(answer(question), wanted, "{question}");
    }
}

#[test]
fn a_sentence_that_does_not_say_what_is_asked_sends_to_the_documents() {
    let tools = with_documents(DOCUMENTS[0]);
    let question = "Which court hears disputes about the law that the Agreement is governed by?";
    let steps = format!(
        "\nThought: t\nAction: graph_about\nArgs: {{\"name\": \"Agreement\"}}\nObservation: {CONTRACT}\n"
    );
    let text = offering(&tools, question, &steps);
    match plan::next(&Prompt::read(&text).unwrap()) {
        Step::Call { tool, .. } => assert_eq!(tool, "document_query"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn calculations_and_the_time_go_to_their_tools() {
    let (made, answer) = play(CITY, "What is 6 times 7?");
    assert_eq!(
        made,
        [("calculator".to_owned(), json!({"expression": "6 * 7"}))]
    );
    assert_eq!(answer, "6 * 7 = 42");
    let (made, answer) = play(CITY, "What is the current date?");
    assert_eq!(made, [("current_datetime".to_owned(), json!({}))]);
    assert_eq!(answer, "2031-02-03T04:05:06Z");
}

#[test]
fn kinds_of_things_are_queried() {
    let text = prompt("How many bridges are there?", "");
    let Step::Call { tool, args, .. } = plan::next(&Prompt::read(&text).unwrap()) else {
        panic!("a call is expected");
    };
    assert_eq!(tool, "graph_sparql");
    assert!(args["query"].as_str().unwrap().contains("\"bridge\""));
    let observed =
        format!("\nThought: t\nAction: graph_sparql\nArgs: {args}\nObservation: count\n17\n");
    let text = prompt("How many bridges are there?", &observed);
    let Step::Answer { text, .. } = plan::next(&Prompt::read(&text).unwrap()) else {
        panic!("an answer is expected");
    };
    assert!(text.starts_with("17 "), "{text}");
}

#[test]
fn kinds_near_a_named_thing_are_queried_and_listed() {
    let (made, answer) = play(CITY, "Which fountains are in Tarn?");
    let (tool, args) = &made[1];
    assert_eq!(tool, "graph_sparql");
    let query = args["query"].as_str().unwrap();
    assert!(
        query.contains("\"fountain\"") && query.contains("\"tarn\""),
        "{query}"
    );
    assert!(answer.starts_with("I found no exact answer."), "{answer}");
    let steps = format!(
        "\nThought: t\nAction: graph_about\nArgs: {{\"name\": \"Tarn\"}}\nObservation: Tarn | a | b\n\
         \nThought: t\nAction: graph_sparql\nArgs: {args}\n\
         Observation: item | label\nurn:x:1 | Lion Fountain\nurn:x:2 | \n"
    );
    let text = prompt("Which fountains are in Tarn?", &steps);
    let Step::Answer { text, .. } = plan::next(&Prompt::read(&text).unwrap()) else {
        panic!("an answer is expected");
    };
    assert_eq!(text, "Lion Fountain; urn:x:2");
    // What is only called as it is asked for says nothing.
    let steps = steps
        .replace("Lion Fountain", "Fountain")
        .replace("\nurn:x:2 | ", "");
    let text = prompt("Which fountains are in Tarn?", &steps);
    let answered = plan::next(&Prompt::read(&text).unwrap());
    assert!(
        !matches!(&answered, Step::Answer { text, .. } if text == "Fountain"),
        "{answered:?}"
    );
}

#[test]
fn the_real_template_is_understood() {
    let prompt = Prompt::read(RENDERED).unwrap();
    assert_eq!(prompt.question, "When was the Old Bridge built?");
    let names: Vec<&str> = prompt.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["graph_about", "calculator"]);
    assert_eq!(prompt.tools[0].arguments, ["name"]);
    assert_eq!(prompt.steps.len(), 1);
    assert_eq!(prompt.steps[0].observation.lines().count(), 2);
    let step = plan::next(&prompt).render();
    assert!(step.starts_with("Thought: "), "{step}");
    assert!(
        step.contains("Final Answer: Old Bridge, built: 1429"),
        "{step}"
    );
}

#[test]
fn another_template_of_the_same_grammar_gets_its_form() {
    let prompt = "Use Thought:, Action: and Final Answer:. Wool is warm. What is warm?";
    let text = reply(prompt, Shape::Text);
    assert!(
        text.starts_with("Thought: ") && text.contains("Final Answer: Wool is warm."),
        "{text}"
    );
}

#[test]
fn it_writes_in_pieces_and_says_what_it_is() {
    let prompt = "The Lantern was lit in 1802 by the keeper. When was the Lantern lit?";
    let text = reply(prompt, Shape::Text);
    assert_eq!(text, "The Lantern was lit in 1802 by the keeper.");
    let pieces = pieces(&text);
    assert_eq!(pieces.concat(), text);
    assert!(pieces.len() > 2, "{pieces:?}");
    assert_eq!((count(prompt), count(&text)), (14, 9));
    assert_eq!(NAME, "builtin (extractive, not a language model)");
}

#[test]
fn hostile_prompts_do_no_harm() {
    for text in [
        "",
        "## Tools",
        "## Question\n## Tools\n## Your next step",
        "\u{0}\u{1}",
        "?????",
        "\"\"\"\"",
    ] {
        assert!(!reply(text, Shape::Text).is_empty());
    }
    for question in [
        "", "\"", "((((1+", "SELECT {", "urn:", "When?", "how many", "’s",
    ] {
        assert!(!reply(&prompt(question, ""), Shape::Text).is_empty());
    }
}
