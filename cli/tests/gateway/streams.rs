//! Commands that print what comes while it comes.

use serde_json::{Value, json};
use tg_cli::interrupt::Interrupt;

use crate::fake::{Fake, Heard, Say};

fn dialog() -> Vec<Say> {
    vec![
        Say::Part(
            json!({"message_type": "explain", "explain_id": "urn:trustgraph:agent:1",
            "explain_triples": [
                {"s": {"t": "i", "i": "urn:trustgraph:agent:1"},
                 "p": {"t": "i", "i": "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"},
                 "o": {"t": "i", "i": "https://trustgraph.ai/ns/Question"}},
                {"s": {"t": "i", "i": "urn:trustgraph:agent:1"},
                 "p": {"t": "i", "i": "https://trustgraph.ai/ns/query"},
                 "o": {"t": "l", "v": "why?"}}]}),
        ),
        Say::Part(json!({"message_type": "thought", "content": "Let me see.",
            "end_of_message": true})),
        Say::Part(json!({"message_type": "answer", "content": "Because "})),
        Say::Part(json!({"message_type": "answer", "content": "it is."})),
        Say::Last(json!({"message_type": "answer", "end_of_message": true,
            "end_of_dialog": true, "in_token": 5, "out_token": 2, "model": "m"})),
    ]
}

#[tokio::test]
async fn an_agent_is_heard_as_it_speaks() {
    let fake = Fake::socket(|_| dialog()).await;
    let ran = fake
        .tg(&["invoke-agent", "-q", "why?", "--show-usage"])
        .await;
    assert_eq!(ran.talk, "Input tokens: 5  Output tokens: 2  Model: m\n");
    assert_eq!(ran.printed(), "Because it is.\n");

    let ran = fake.tg(&["invoke-agent", "-q", "why?", "-v", "-x"]).await;
    assert!(ran.talk.contains("[session] urn:trustgraph:agent:1"));
    assert!(ran.talk.contains("Query: why?"));
    assert!(ran.data.contains("Let me see."));

    let printed = fake
        .tg(&["invoke-agent", "-q", "why?", "--json"])
        .await
        .printed();
    let lines: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[4]["end_of_dialog"], true);
}

#[tokio::test]
async fn an_agent_that_fails_leaves_its_words_and_a_code() {
    let fake = Fake::socket(|_| {
        vec![
            Say::Part(json!({"message_type": "answer", "content": "Half"})),
            Say::Last(json!({"error": {"type": "llm-error", "message": "the model is gone"}})),
        ]
    })
    .await;
    let ran = fake.tg(&["invoke-agent", "-q", "why?"]).await;
    assert_eq!(ran.data, "Half\n");
    assert_eq!(ran.error().exit_code(), 9);
}

#[tokio::test]
async fn an_interrupted_agent_closes_its_socket() {
    let fake = Fake::socket(|_| vec![Say::Part(json!({"message_type": "thought"}))]).await;
    let (switch, interrupt) = Interrupt::manual();
    let hears = async {
        fake.hears(|heard| matches!(heard, Heard::Frame(frame) if frame["service"] == "agent"))
            .await;
        switch.send_replace(true);
    };
    let line = ["invoke-agent", "-q", "why?"];
    let (ran, ()) = tokio::join!(fake.tg_until(&line, interrupt), hears);
    assert_eq!(ran.error().exit_code(), 130);
    fake.hears(|heard| *heard == Heard::Closed).await;
}

#[tokio::test]
async fn a_run_that_goes_on_after_ctrl_c_is_named() {
    for (word, told) in [
        ("detach", "The run goes on: tg attach r1\n"),
        ("grace=9", "The run goes on for 9 s: tg attach r1\n"),
        ("cancel", ""),
    ] {
        let fake = Fake::socket(|frame| {
            let thought = json!({"message_type": "thought", "content": "hm"});
            let part = json!({"id": frame["id"], "run": "r1", "offset": 0, "response": thought, "complete": false});
            vec![Say::Raw(part), Say::Ping]
        })
        .await;
        let (switch, interrupt) = Interrupt::manual();
        let reads = async {
            fake.hears(|heard| *heard == Heard::Read).await;
            switch.send_replace(true);
        };
        let line = ["invoke-agent", "-q", "why?", "--on-disconnect", word];
        let (ran, ()) = tokio::join!(fake.tg_until(&line, interrupt), reads);
        assert_eq!(ran.talk, told, "{word}");
        assert_eq!(ran.error().exit_code(), 130);
    }
}

#[tokio::test]
async fn a_prompt_may_answer_with_an_object() {
    let fake = Fake::socket(|_| {
        vec![Say::Last(
            json!({"object": "[1, 2]", "end_of_stream": true}),
        )]
    })
    .await;
    let ran = fake.tg(&["invoke-prompt", "list", "text=x"]).await;
    assert_eq!(ran.printed(), "[\n  1,\n  2\n]\n");
    let frames: Vec<Heard> = fake.heard();
    let Heard::Frame(frame) = &frames[1] else {
        panic!("{frames:?}")
    };
    assert_eq!(
        frame["request"],
        json!({"id": "list", "variables": {"text": "x"}, "streaming": true})
    );
}

#[tokio::test]
async fn a_streamed_completion_is_one_line_of_text() {
    let fake = Fake::socket(|_| {
        vec![
            Say::Part(json!({"response": "fo", "end_of_stream": false})),
            Say::Part(json!({"response": "ur", "end_of_stream": false})),
            Say::Last(json!({"response": "", "end_of_stream": true, "model": "m"})),
        ]
    })
    .await;
    let line = ["invoke-llm", "Be brief", "2 + 2?"];
    assert_eq!(fake.tg(&line).await.printed(), "four\n");
    let printed = fake.tg(&[&line[..], &["--json"]].concat()).await.printed();
    let body: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(body["response"], "four");
    assert_eq!(body["model"], "m");
}

#[tokio::test]
async fn graph_batches_become_lines_or_one_json_list() {
    let triple = |n: u32| {
        json!({"s": {"t": "i", "i": format!("urn:s{n}")}, "p": {"t": "i", "i": "urn:p"},
            "o": {"t": "l", "v": n.to_string(), "dt": "http://www.w3.org/2001/XMLSchema#int"}})
    };
    let fake = Fake::socket(move |_| {
        vec![
            Say::Part(json!({"response": [triple(1), triple(2)]})),
            Say::Last(json!({"response": [triple(3)]})),
        ]
    })
    .await;
    let printed = fake
        .tg(&["query-graph", "-p", "urn:p", "-H"])
        .await
        .printed();
    assert_eq!(printed.lines().count(), 4);
    assert!(printed.contains("urn:s3 urn:p \"3\"^^http://www.w3.org/2001/XMLSchema#int"));
    let printed = fake.tg(&["show-graph", "--json"]).await.printed();
    let list: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(list.as_array().map(Vec::len), Some(3));
    let turtle = fake.tg(&["graph-to-turtle"]).await.printed();
    assert!(
        turtle.contains("<urn:s1> <urn:p> \"1\"^^xsd:int"),
        "{turtle}"
    );
}

#[tokio::test]
async fn whose_vectors_were_searched_is_in_the_json_and_no_note_below_each_answer() {
    for model in ["lexical/1024", "static/potion-base-8M/256"] {
        let fake = Fake::socket(move |_| {
            let end =
                json!({"message_type": "end", "end_of_session": true, "embeddings_model": model});
            vec![
                Say::Part(json!({"message_type": "chunk", "response": "Yes."})),
                Say::Last(end),
            ]
        })
        .await;
        let ran = fake.tg(&["invoke-document-rag", "-q", "So?"]).await;
        assert!(!ran.talk.contains("meaning"), "{}", ran.talk);
        assert_eq!(ran.printed(), "Yes.\n");
        let ran = fake.tg(&["invoke-graph-rag", "-q", "So?", "--json"]).await;
        assert!(ran.printed().contains(model));
    }
}
