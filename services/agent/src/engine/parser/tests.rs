//! What models write, whole and in pieces, and what is made of it.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::engine::bounds::MAX_CALLS;

fn action(thought: &str, name: &str, arguments: Value) -> Parsed {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    Parsed {
        thought: thought.to_owned(),
        choice: Ok(Choice::Action {
            name: name.to_owned(),
            arguments,
        }),
    }
}

fn answer(thought: &str, text: &str) -> Parsed {
    Parsed {
        thought: thought.to_owned(),
        choice: Ok(Choice::Answer(text.to_owned())),
    }
}

fn fault(text: &str) -> ParseError {
    ReplyParser::parse(text).choice.unwrap_err()
}

#[test]
fn the_plain_forms_are_read() {
    assert_eq!(
        ReplyParser::parse(
            "Thought: I need a sum.\nAction: calculator\nArgs: {\"expression\": \"1+1\"}\n"
        ),
        action("I need a sum.", "calculator", json!({"expression": "1+1"}))
    );
    assert_eq!(
        ReplyParser::parse("Thought: I now know.\nFinal Answer: It is 2."),
        answer("I now know.", "It is 2.")
    );
}

#[test]
fn a_thought_may_be_missing_or_unlabelled() {
    assert_eq!(
        ReplyParser::parse("Action: \"now\"\nArgs: {}"),
        action("", "now", json!({}))
    );
    assert_eq!(ReplyParser::parse("Final Answer: yes"), answer("", "yes"));
    assert_eq!(
        ReplyParser::parse("Let me look.\nAction: find\nArgs: {\"a\": 1}"),
        action("Let me look.", "find", json!({"a": 1}))
    );
    assert_eq!(
        ReplyParser::parse("Sure!\nThought: easy\nFinal Answer: 4"),
        answer("easy", "4")
    );
}

#[test]
fn arguments_may_be_missing() {
    for text in [
        "Action: now",
        "Action: now\n",
        "Action: now\nArgs:",
        "Action:\n now \nArgs:\n",
        "Action: now\nObservation: it is noon\nFinal Answer: noon",
        "Action: now\n\nThought: so",
    ] {
        assert_eq!(
            ReplyParser::parse(text),
            action("", "now", json!({})),
            "{text}"
        );
    }
}

#[test]
fn nothing_after_the_object_counts() {
    let text = "Thought: look\nAction: find\nArgs: {\"q\": \"x\"}\nObservation: 42\nThought: done\nFinal Answer: 42";
    let mut parser = ReplyParser::default();
    for c in text.chars() {
        parser.push(&c.to_string());
        if parser.is_complete() {
            break;
        }
    }
    assert!(parser.is_complete());
    assert_eq!(
        ReplyParser::parse(text),
        action("look", "find", json!({"q": "x"}))
    );
}

#[test]
fn several_calls_are_read_from_an_array() {
    let call = |name: &str, arguments: Value| {
        let arguments = arguments.as_object().expect("an object").clone();
        (name.to_owned(), arguments)
    };
    let both = Parsed {
        thought: "both".into(),
        choice: Ok(Choice::Actions(vec![
            call("find", json!({"q": "[1] {"})),
            call("now", json!({})),
        ])),
    };
    for text in [
        r#"Thought: both
Actions: [{"name": "find", "arguments": {"q": "[1] {"}}, {"name": "now"}]
Observation: made up"#,
        r#"Thought: both
**Actions:**
```json
[{"tool": "find", "args": {"q": "[1] {"}},
 {"action": "`now`", "parameters": null}]
```"#,
    ] {
        assert_eq!(ReplyParser::parse(text), both, "{text}");
    }
    assert_eq!(
        ReplyParser::parse(r#"Actions: [{"name": "now", "arguments": {"a": 1}}]"#),
        action("", "now", json!({"a": 1})),
        "one is one"
    );
}

#[test]
fn what_is_no_array_of_calls_is_a_fault() {
    let many = |count| format!("Actions: [{}]", vec![r#"{"name": "t"}"#; count].join(","));
    assert!(matches!(
        ReplyParser::parse(&many(MAX_CALLS)).choice,
        Ok(Choice::Actions(calls)) if calls.len() == MAX_CALLS
    ));
    assert_eq!(fault(&many(MAX_CALLS + 1)), ParseError::ManyCalls);
    for (text, expected) in [
        ("Actions:", ParseError::NoArray),
        ("Actions: find", ParseError::NoArray),
        ("Actions: [1]", ParseError::NoArray),
        ("Actions: []", ParseError::NoCall),
        (r#"Actions: [{"name": " "}]"#, ParseError::NoName),
        (r#"Actions: [{"name": "a"}"#, ParseError::IncompleteArray),
    ] {
        assert_eq!(fault(text), expected, "{text}");
    }
}

#[test]
fn braces_in_strings_do_not_close_the_object() {
    let text = r#"Action: sparql
Args: {"query": "SELECT * { ?s ?p \"}\" }",
  "nested": {"a": ["{", 1]}} trailing"#;
    assert_eq!(
        ReplyParser::parse(text),
        action(
            "",
            "sparql",
            json!({"query": "SELECT * { ?s ?p \"}\" }", "nested": {"a": ["{", 1]}})
        )
    );
    assert_eq!(
        ReplyParser::parse("Action: q\nArgs: {\"query\": \"SELECT *\n\t{ ?s }\"}"),
        action("", "q", json!({"query": "SELECT *\n\t{ ?s }"}))
    );
}

#[test]
fn labels_count_only_at_the_start_of_a_line() {
    let text = "Thought: the word Action: is no label, nor Final Answer: here\n- Args: neither\nFinal Answer: Thought: is fine\nAction: too";
    assert_eq!(
        ReplyParser::parse(text),
        answer(
            "the word Action: is no label, nor Final Answer: here\n- Args: neither",
            "Thought: is fine\nAction: too"
        )
    );
}

#[test]
fn spaces_and_line_breaks_are_kept() {
    let text =
        "Thought: I now  know.\n\n  It is\teasy.\n\nFinal Answer:\n- one\n- two\n\n    code\n\n";
    assert_eq!(
        ReplyParser::parse(text),
        answer("I now  know.\n\n  It is\teasy.", "- one\n- two\n\n    code")
    );
}

#[test]
fn emphasis_and_fences_are_tolerated() {
    assert_eq!(
        ReplyParser::parse(
            "**Thought:** hm\n**Action**: `find`\n**Args:**\n```json\n{\"a\": 1}\n```\n"
        ),
        action("hm", "find", json!({"a": 1}))
    );
    assert_eq!(
        ReplyParser::parse("```\nThought: t\nFinal Answer: a\nb\n```\n"),
        answer("t", "a\nb")
    );
    assert_eq!(
        ReplyParser::parse("```text\nFinal Answer: see\n```rust\nlet x;\n```\nend\n```"),
        answer("", "see\n```rust\nlet x;\n```\nend")
    );
    assert_eq!(
        ReplyParser::parse("Final Answer:\n```rust\nlet x;\n```\n"),
        answer("", "```rust\nlet x;\n```")
    );
    assert_eq!(
        ReplyParser::parse("Action: find\nArguments: {\"a\": 1}"),
        action("", "find", json!({"a": 1}))
    );
    assert_eq!(
        ReplyParser::parse("Action: find\nAction Input: {\"a\": 1}"),
        action("", "find", json!({"a": 1}))
    );
    assert_eq!(
        ReplyParser::parse("Action: find\n{\"a\": 1}"),
        action("", "find", json!({"a": 1}))
    );
}

#[test]
fn what_cannot_be_read_says_why() {
    assert_eq!(fault(""), ParseError::Unlabelled);
    assert_eq!(fault("It is 4."), ParseError::Unlabelled);
    assert_eq!(fault("Thought: hm"), ParseError::OnlyThought);
    assert_eq!(fault("Action:"), ParseError::NoName);
    assert_eq!(fault("Action: \n\n"), ParseError::NoName);
    assert_eq!(fault("Action: x\nArgs: {\"a\": 1"), ParseError::Incomplete);
    assert_eq!(fault("Action: x\nArgs: none"), ParseError::NoObject);
    assert!(matches!(
        fault("Action: x\nArgs: {a 1}"),
        ParseError::Json(_)
    ));
    assert_eq!(fault("Final Answer:  \n"), ParseError::NoAnswer);
    assert_eq!(
        fault(&format!("Action: {}", "x".repeat(300))),
        ParseError::LongName
    );
    assert_eq!(
        fault(&"x".repeat(limits::AGENT_REPLY + 1)),
        ParseError::TooLong
    );
}

#[test]
fn text_is_given_out_as_soon_as_it_is_certain() {
    let mut parser = ReplyParser::default();
    assert_eq!(parser.push("Thought: I need").thought, "I need");
    assert_eq!(parser.push(" to add\nAct").thought, " to add");
    let end = parser.push("ion: calc");
    assert!(end.thought_ended && end.thought.is_empty());
    assert!(parser.push("ulator\nArgs: {}").is_empty());
    let mut parser = ReplyParser::default();
    let first = parser.push("Final Answer: one ");
    assert!(!first.thought_ended);
    assert_eq!(first.answer, "one");
    assert_eq!(parser.push("two").answer, " two");
}

/// A draft is not done, wherever its end is marked and however little marks its beginning.
#[test]
fn what_is_thought_is_never_done() {
    for text in [
        "<think>\nAction: find\nArgs: {\"a\": 1}\nBut I know.\n</think>\nThought: t\nFinal Answer: yes",
        "Action: find\nArgs: {\"a\": 1}\nBut I know.\n</think>\nThought: t\nFinal Answer: yes",
        "Action: find\nArgs: {\"a\": ...\n</think>\nThought: t\nFinal Answer: yes",
        "Action: find</think>Thought: t\nFinal Answer: yes",
        "Actions: [1]</think>\nThought: t\nFinal Answer: yes",
    ] {
        assert_eq!(ReplyParser::parse(text), answer("t", "yes"), "{text}");
    }
    let drafted = "I could look.\nAction: find\n</think>\nFinal Answer: yes";
    assert_eq!(ReplyParser::parse(drafted), answer("I could look.", "yes"));
    assert_eq!(
        ReplyParser::parse("Hm.\n</think>\nAction: find\nArgs: {\"q\": \"</think>\"}"),
        action("Hm.", "find", json!({"q": "</think>"}))
    );
    assert_eq!(
        ReplyParser::parse("Final Answer: the mark </think> ends it"),
        answer("", "the mark </think> ends it")
    );
    assert_eq!(
        fault("<think>Action: find\nArgs: {}"),
        ParseError::Unlabelled
    );
}

#[test]
fn labels_are_read_as_models_write_them() {
    let found = action("t", "find", json!({"a": 1}));
    for text in [
        "THOUGHT: t\naction: find\naction input: {\"a\": 1}",
        "Thought：t\nAction：find\nArgs：{\"a\": 1}",
        "Thought 1: t\nAction 1: find\nAction Input 1: {\"a\": 1}",
        "### Thought: t\n### Action : find\n### Input: {\"a\": 1}",
        "Thought: t\nAction: find {\"a\": 1}",
        "Thought: t\nAction: find({\"a\": 1})",
        "Thought: t\nAction: find ({\"a\": 1})",
        "Thought: t\nAction: find()\nArgs: {'a': 1,}",
        "Thought: t\nAction: “find”\nArgs: {“a”： 1}",
        "Thought: t\nAction:\n```json\n{\"action\": \"find\", \"action_input\": {\"a\": 1}}\n```",
        "Thought: t\nAction: {\"name\": \"find\", \"arguments\": \"{\\\"a\\\": 1}\"}",
    ] {
        assert_eq!(ReplyParser::parse(text), found, "{text}");
    }
    for text in [
        "Thought: t\nFinal answer: yes",
        "Thought: t\n## Final Answer\nyes",
        "Thought: t\n**Final Answer**\nyes",
        "Thought: t\nFinal Answer：yes",
        "Thought: t\nAction: None\nFinal Answer: yes",
        "Thought: t\nAction: N/A (direct response required)\nFinal Answer: yes",
        "Thought: t\nAction: Final Answer\nAction Input: yes",
        "Thought: t\nAction: {\"action\": \"Final Answer\", \"action_input\": \"yes\"}",
    ] {
        assert_eq!(ReplyParser::parse(text), answer("t", "yes"), "{text}");
    }
    let plain = "Thought: an\nAction plan: none\nFinal Answer: yes";
    assert_eq!(
        ReplyParser::parse(plain),
        answer("an\nAction plan: none", "yes")
    );
}

#[test]
fn calls_written_as_text_are_calls() {
    for text in [
        "{\"name\": \"find\", \"arguments\": {\"a\": 1}}",
        "```json\n{\"action\": \"find\", \"action_input\": {\"a\": 1}}\n```",
        "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"a\": 1}}\n</tool_call>",
        "[TOOL_CALLS][{\"name\": \"find\", \"arguments\": {\"a\": 1}}]",
    ] {
        assert_eq!(
            ReplyParser::parse(text),
            action("", "find", json!({"a": 1})),
            "{text}"
        );
    }
    let behind = "I look.\n<tool_call>{\"name\": \"find\", \"arguments\": {}}</tool_call>";
    assert_eq!(
        ReplyParser::parse(behind),
        action("I look.", "find", json!({}))
    );
    let final_one = "{\"action\": \"Final Answer\", \"action_input\": \"yes\"}";
    assert_eq!(ReplyParser::parse(final_one), answer("", "yes"));
    for text in [
        "{\"name\": \"Ada\"}",
        "See {\"name\": \"find\", \"arguments\": {}}",
        "[]",
    ] {
        assert_eq!(fault(text), ParseError::Unlabelled, "{text}");
    }
}

fn replies() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "Thought:",
        "Action:",
        "Actions:",
        "[{\"name\": \"t\"}, {\"name\": \"u\"}]",
        "Args:",
        "Final Answer:",
        "Observation:",
        "Action Input:",
        "**",
        "*",
        "```",
        "```json",
        "\n",
        "\n\n",
        " ",
        "  ",
        "{",
        "}",
        "\"",
        "\\",
        "\\\"",
        ":",
        "{\"a\": 1}",
        "{\"q\": \"}\"}",
        "text",
        "ünï",
        "Act",
        "Fin",
        "I know",
        "\t",
        "[",
        "]",
        "tool",
        "<think>",
        "</think>",
        "</thi",
        "：",
        "## Final Answer",
        "action:",
        "<tool_call>",
        "{\"name\": \"t\", \"args\": {}}",
        "{\"action\": \"final answer\", \"input\": \"x\"}",
    ]);
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn any_cutting_gives_the_same(text in replies(), cuts in prop::collection::vec(1_usize..6, 1..40)) {
        let whole = ReplyParser::parse(&text);
        let mut parser = ReplyParser::default();
        let (mut thought, mut said) = (String::new(), String::new());
        let mut ended = 0;
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        let mut cut = cuts.iter().cycle();
        while at < chars.len() {
            let to = (at + cut.next().unwrap()).min(chars.len());
            let progress = parser.push(&chars[at..to].iter().collect::<String>());
            prop_assert!(ended == 0 || progress.thought.is_empty(), "a thought after its end");
            thought.push_str(&progress.thought);
            said.push_str(&progress.answer);
            ended += usize::from(progress.thought_ended);
            at = to;
        }
        let (rest, parsed) = parser.finish();
        thought.push_str(&rest.thought);
        said.push_str(&rest.answer);
        prop_assert_eq!(&parsed, &whole);
        prop_assert_eq!(&parsed.thought, &thought);
        prop_assert!(ended <= 1);
        if let Ok(Choice::Answer(text)) = &parsed.choice {
            prop_assert_eq!(text, &said);
        } else {
            prop_assert!(said.is_empty());
        }
    }
}
