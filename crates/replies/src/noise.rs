//! Whatever noise surrounds a valid reply, it is read as what it says.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::{candidates, lines, object};

/// Values as models are asked for them.
fn value() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec![
        "",
        "x",
        "ünï",
        "a \"quoted\" word",
        "{",
        "}",
        "[1]",
        "```",
        "</think> no",
        "C:\\x",
        "a,\nb",
        "：",
        "“x”",
        "\u{1F600}",
    ]);
    let leaf = prop_oneof![
        text.prop_map(|text| json!(text)),
        any::<i32>().prop_map(|number| json!(number)),
        any::<bool>().prop_map(|truth| json!(truth)),
        Just(Value::Null),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        let members = prop::collection::vec((key(), inner.clone()), 1..4);
        prop_oneof![
            prop::collection::vec(inner, 0..3).prop_map(Value::Array),
            members.prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "name", "the key", "schlüssel"]).prop_map(str::to_owned)
}

fn map() -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((key(), value()), 1..4).prop_map(|members| members.into_iter().collect())
}

/// What models think before they answer.
fn thought() -> impl Strategy<Value = String> {
    let drafts = prop::sample::select(vec![
        "Let me see.",
        "Maybe {\"a\": \"draft\"}?",
        "```json\n{\"a\": 0}\n```",
        "[1, 2]",
        "\"",
        "{",
        "Action: x",
    ]);
    let drafts = prop::collection::vec(drafts, 0..4).prop_map(|drafts| drafts.join("\n"));
    (drafts, 0..4_u8).prop_map(|(drafts, how)| match how {
        0 => String::new(),
        1 => format!("<think>\n{drafts}\n</think>\n\n"),
        2 => format!("{drafts}\n</think>\n\n"),
        _ => format!(" <think>{drafts}</think>"),
    })
}

fn before() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "\n",
        "Sure! Here it is:\n",
        "As asked, \"so\":\n\n",
        "\u{feff}",
    ])
}

fn after() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "\n",
        "\nLet me know if it's right.",
        "\n\nNote: {x} is not in it.",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_value_is_what_it_says(
        map in map(), pretty in any::<bool>(), fenced in 0..3_u8, thought in thought(), before in before(), after in after(),
    ) {
        let told = Value::Object(map);
        let text = match pretty {
            true => format!("{told:#}"),
            false => told.to_string(),
        };
        // A fence within the value cannot be told from its own.
        let body = match fenced {
            1 if !text.contains("```") => format!("```json\n{text}\n```"),
            2 if !text.contains("```") => format!("```\n{text}\n```"),
            _ => text,
        };
        let reply = format!("{thought}{before}{body}{after}");
        let found = candidates(&reply);
        prop_assert_eq!(found.map(|mut found| found.remove(0)), Ok(told), "{}", reply);
    }

    #[test]
    fn every_line_is_read(
        maps in prop::collection::vec(map(), 1..5), pretty in any::<bool>(), comma in any::<bool>(), thought in thought(),
    ) {
        let told: Vec<Value> = maps.into_iter().map(Value::Object).collect();
        let texts = told.iter().map(|value| match pretty {
            true => format!("{value:#}"),
            false => value.to_string(),
        });
        let between = if comma { ",\n" } else { "\n" };
        let reply = format!("{thought}{}", texts.collect::<Vec<_>>().join(between));
        let read = lines(&reply);
        prop_assert_eq!(read.values, told, "{}", reply);
        prop_assert_eq!(read.bad, 0, "{}", reply);
    }

    /// Another layout of the same object: commas too many, raw line breaks, comments.
    #[test]
    fn a_layout_changes_nothing(map in map(), comment in any::<bool>()) {
        let text = format!("{:#}", Value::Object(map.clone()));
        let end = if comment { ", // the last\n}" } else { ",\n}" };
        let text = text.strip_suffix("\n}").expect("an end").to_owned() + end;
        prop_assert_eq!(object(&text), Ok(map), "{}", text);
    }

    #[test]
    fn nothing_panics(text in "\\PC{0,80}") {
        let _ = (candidates(&text), lines(&text), crate::calls(&text), crate::apart(text));
    }
}
