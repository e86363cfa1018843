//! `tg verify-trace` against a small graph and library.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_schemas::{Term, Triple};

use crate::fake::{Fake, Ran, Say};

const TG: &str = "https://trustgraph.ai/ns/";
const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
const FROM: &str = "http://www.w3.org/ns/prov#wasDerivedFrom";
const Q: &str = "urn:trustgraph:question:7";
const FOCUS: &str = "urn:trustgraph:prov:focus:7";
const CHOICE: &str = "urn:trustgraph:prov:edge:7:0";
const END: &str = "urn:trustgraph:prov:synthesis:7";

fn fact() -> Triple {
    Triple::new(Term::iri("urn:s"), Term::iri("urn:p"), Term::literal("o"))
}

/// An answer with all of its links.
fn graph() -> Vec<Triple> {
    let mut graph = Vec::new();
    let mut says = |g: &str, s: &str, p: &str, o: Term| {
        let p = match p.strip_prefix("tg:") {
            Some(name) => format!("{TG}{name}"),
            None => p.to_owned(),
        };
        graph.push(Triple::new(Term::iri(s), Term::Iri(p), o).in_graph(g));
    };
    let class = |name: &str| Term::iri(format!("{TG}{name}"));
    let trace = "urn:graph:retrieval";
    says(trace, Q, TYPE, class("Question"));
    says(trace, FOCUS, TYPE, class("Focus"));
    says(trace, FOCUS, FROM, Term::iri(Q));
    says(trace, FOCUS, "tg:selectedEdge", Term::iri(CHOICE));
    says(trace, CHOICE, TYPE, class("EdgeSelection"));
    says(trace, CHOICE, "tg:edge", Term::Quoted(Box::new(fact())));
    says(trace, END, TYPE, class("Synthesis"));
    says(trace, END, FROM, Term::iri(FOCUS));
    says(trace, END, "tg:document", Term::iri("urn:answer"));
    says(trace, END, "tg:cites", Term::iri(CHOICE));
    let source = "urn:graph:source";
    says(
        source,
        "urn:sub",
        "tg:contains",
        Term::Quoted(Box::new(fact())),
    );
    says(source, "urn:sub", FROM, Term::iri("urn:chunk"));
    says(source, "urn:chunk", FROM, Term::iri("urn:page"));
    says(source, "urn:page", FROM, Term::iri("urn:doc"));
    says("", "urn:doc", TYPE, class("Document"));
    graph.push(fact());
    graph
}

/// The same, with a citation that says which chunk its number means.
fn cited_by_number() -> Vec<Triple> {
    let citation = format!("{END}/1");
    let mut graph = graph();
    let mut says = |s: &str, p: &str, o: Term| {
        let triple = Triple::new(Term::iri(s), Term::iri(p), o);
        graph.push(triple.in_graph("urn:graph:retrieval"));
    };
    says(END, &format!("{TG}citation"), Term::iri(&citation));
    says(&citation, TYPE, Term::iri(format!("{TG}Citation")));
    says(
        &citation,
        &format!("{TG}citationNumber"),
        Term::literal("1"),
    );
    says(&citation, &format!("{TG}cites"), Term::iri(CHOICE));
    says(&citation, &format!("{TG}document"), Term::iri("urn:chunk"));
    graph
}

const RUN: &str = "urn:trustgraph:agent:7";

/// The same below an agent's run, whose answer repeats the number.
fn agents_graph() -> Vec<Triple> {
    let (step, seen, end) = (
        format!("{RUN}/i1"),
        format!("{RUN}/i1/observation"),
        format!("{RUN}/final"),
    );
    let mut graph = graph();
    let mut says = |s: &str, p: &str, o: Term| {
        let triple = Triple::new(Term::iri(s), Term::iri(p), o);
        graph.push(triple.in_graph("urn:graph:retrieval"));
    };
    let class = |name: &str| Term::iri(format!("{TG}{name}"));
    says(RUN, TYPE, class("Question"));
    says(&step, TYPE, class("Analysis"));
    says(&step, FROM, Term::iri(RUN));
    says(Q, FROM, Term::iri(&step));
    says(&seen, TYPE, class("Observation"));
    says(&seen, FROM, Term::iri(END));
    says(&end, TYPE, class("Conclusion"));
    says(&end, FROM, Term::iri(&seen));
    says(&end, &format!("{TG}document"), Term::iri("urn:said"));
    graph
}

fn record(id: &str) -> Option<Value> {
    let (kind, parent) = match id {
        "urn:chunk" => ("chunk", "urn:page"),
        "urn:page" => ("page", "urn:doc"),
        "urn:doc" => ("source", ""),
        _ => return None,
    };
    let mime = if id == "urn:doc" {
        "application/pdf"
    } else {
        "text/plain"
    };
    let record =
        json!({"id": id, "title": id, "kind": mime, "document-type": kind, "parent-id": parent});
    Some(json!({"document-metadata": record}))
}

fn content(id: &str) -> Option<&'static str> {
    match id {
        "urn:answer" => Some("It is so [1]."),
        "urn:said" => Some("They say that it is so [1]."),
        "urn:chunk" => Some("s is\no"),
        "urn:page" => Some("Surely s is o, as is known."),
        _ => None,
    }
}

async fn verified(
    graph: Vec<Triple>,
    library: impl Fn(&str, &str) -> Option<Value> + Send + Sync + 'static,
    more: &[&str],
) -> Ran {
    verified_from(Q, graph, library, more).await
}

async fn verified_from(
    root: &str,
    graph: Vec<Triple>,
    library: impl Fn(&str, &str) -> Option<Value> + Send + Sync + 'static,
    more: &[&str],
) -> Ran {
    let fake = Fake::socket(move |frame| {
        let request = &frame["request"];
        let body = match frame["service"].as_str() {
            Some("triples") => {
                let bound = |key: &str| request.get(key).and_then(Term::from_api);
                let (s, p, o) = (bound("s"), bound("p"), bound("o"));
                let fits =
                    |want: &Option<Term>, have: &Option<Term>| want.is_none() || want == have;
                let found = graph.iter().filter(|triple| {
                    let g = request.get("g").and_then(Value::as_str);
                    fits(&s, &triple.s)
                        && fits(&p, &triple.p)
                        && fits(&o, &triple.o)
                        && g.is_none_or(|g| g == triple.g.as_deref().unwrap_or_default())
                });
                json!({"response": found.map(Triple::to_api).collect::<Vec<_>>()})
            }
            _ => {
                let id = request["document-id"].as_str().unwrap_or_default();
                let operation = request["operation"].as_str().unwrap_or_default();
                library(operation, id).unwrap_or_else(
                    || json!({"error": {"type": "not-found", "message": "no such document"}}),
                )
            }
        };
        vec![Say::Last(body)]
    })
    .await;
    let line = [&["verify-trace", root], more].concat();
    fake.tg(&line).await
}

fn library(operation: &str, id: &str) -> Option<Value> {
    match operation {
        "get-document-metadata" => record(id),
        _ => content(id).map(|text| json!({"content": STANDARD.encode(text)})),
    }
}

#[tokio::test]
async fn an_answer_is_followed_to_its_document() {
    let ran = verified(graph(), library, &["--verbose"]).await;
    assert!(
        ran.talk.contains("links hold"),
        "{}\n{}",
        ran.data,
        ran.talk
    );
    let printed = ran.printed();
    for part in [
        "✓ answer -> its text: urn:trustgraph:prov:synthesis:7 -> urn:answer",
        "✓ answer -> what it cites",
        "✓ number -> citation: [1]",
        "✓ choice -> fact in the graph",
        "✓ fact -> where it was found",
        "✓ found -> chunk: urn:sub -> urn:chunk",
        "✓ chunk -> what it is part of: urn:chunk -> urn:page",
        "✓ page -> what it is part of: urn:page -> urn:doc",
        "✓ document -> library",
        "✓ document -> graph",
    ] {
        assert!(printed.contains(part), "{part} in\n{printed}");
    }
    assert!(!printed.contains('✗'), "{printed}");
    // What holds is only counted otherwise.
    let ran = verified(graph(), library, &[]).await;
    assert_eq!(ran.data, "✓ It is so.\n    supported by [1]\n");
    assert!(ran.talk.contains("links hold."), "{}", ran.talk);
    let json = verified(graph(), library, &["--json"]).await.printed();
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["verified"], true);
}

#[tokio::test]
async fn an_agents_answer_is_followed_through_the_answer_of_its_tool() {
    let ran = verified_from(RUN, agents_graph(), library, &["-v"]).await;
    assert!(ran.talk.contains("links hold"), "{}", ran.data);
    let printed = ran.printed();
    for part in [
        "✓ step → previous step: urn:trustgraph:question:7 -> urn:trustgraph:agent:7/i1",
        "✓ answer -> its text: urn:trustgraph:agent:7/final -> urn:said",
        "✓ number -> citation: [1] -> urn:trustgraph:prov:edge:7:0",
        "✓ chunk -> what it is part of: urn:chunk -> urn:page",
        "✓ document -> graph",
    ] {
        assert!(printed.contains(part), "{part} in\n{printed}");
    }
    let invents = |operation: &str, id: &str| match (operation, id) {
        ("get-document-content", "urn:said") => {
            Some(json!({"content": STANDARD.encode("So [1] and so [2].")}))
        }
        _ => library(operation, id),
    };
    let ran = verified_from(RUN, agents_graph(), invents, &[]).await;
    let missed = "✗ number -> citation: [2] -> urn:trustgraph:agent:7/final";
    assert!(ran.data.contains(missed), "{}", ran.data);
    assert!(ran.result.is_err());
}

#[tokio::test]
async fn what_is_verified_is_named_by_its_question() {
    let mut graph = graph();
    let query = Triple::new(
        Term::iri(Q),
        Term::iri(format!("{TG}query")),
        Term::literal("Is it so?"),
    );
    graph.push(query.in_graph("urn:graph:retrieval"));
    let ran = verified(graph, library, &[]).await;
    assert!(
        ran.talk.starts_with("Answer to: Is it so?\n"),
        "{}",
        ran.talk
    );
}

#[tokio::test]
async fn a_document_in_an_old_charset_has_the_passages_that_were_taken_out_of_it() {
    let page = "Surely s is for o, as is well known. Die Größe der Lampe wird für schön befunden.";
    let byte = |c: char| u8::try_from(c).expect("a character of Latin-1");
    let latin = page.chars().map(byte).collect();
    for page in [latin, page.as_bytes().to_vec()] {
        let kept = STANDARD.encode(&page);
        let old = move |operation: &str, id: &str| match (operation, id) {
            ("get-document-content", "urn:page") => Some(json!({"content": kept})),
            ("get-document-content", "urn:chunk") => {
                Some(json!({"content": STANDARD.encode("Größe der\nLampe wird für")}))
            }
            _ => library(operation, id),
        };
        let ran = verified(graph(), old, &[]).await;
        assert!(
            ran.talk.contains("links hold."),
            "{}\n{}",
            ran.data,
            ran.talk
        );
    }
}

#[tokio::test]
async fn each_link_that_is_taken_out_is_missed() {
    let whole = graph();
    // The question itself, and what a trace may lack, are not links.
    for (at, taken) in whole.iter().enumerate() {
        if taken.s == Some(Term::iri(Q)) {
            continue;
        }
        let mut graph = whole.clone();
        graph.remove(at);
        let ran = verified(graph, library, &["--json"]).await;
        let shown = ran.data.clone();
        let error = ran.result.expect_err(&format!("{taken:?}\n{shown}"));
        assert_eq!(error.exit_code(), 1, "{taken:?}");
        assert!(shown.contains("\"verified\": false"), "{taken:?}\n{shown}");
    }
}

#[tokio::test]
async fn what_the_library_lost_or_changed_is_missed() {
    for lost in ["urn:answer", "urn:chunk", "urn:page", "urn:doc"] {
        let lacks = move |operation: &str, id: &str| library(operation, id).filter(|_| id != lost);
        assert!(
            verified(graph(), lacks, &[]).await.result.is_err(),
            "{lost}"
        );
    }
    // An answer that is gone says so: an old one was not refused, and cites what it cites.
    let lacks = |operation: &str, id: &str| library(operation, id).filter(|_| id != "urn:answer");
    let ran = verified(graph(), lacks, &[]).await;
    assert!(ran.data.contains("    no longer kept: "), "{}", ran.data);
    let error = ran.error().to_string();
    assert_eq!(
        error,
        "The answer's text is not kept any longer: there is nothing to verify."
    );
    // A passage that is gone supports nothing, and what became of it is told.
    let lacks = |operation: &str, id: &str| library(operation, id).filter(|_| id != "urn:chunk");
    let ran = verified(cited_by_number(), lacks, &[]).await;
    assert!(
        ran.data
            .contains("– It is so.\n    supported by [1], whose source is gone"),
        "{}",
        ran.data
    );
    assert!(
        ran.data
            .contains("the document was removed, or this part of it was replaced"),
        "{}",
        ran.data
    );
    let error = ran.error().to_string();
    assert!(error.starts_with("1 of "), "{error}");
    assert!(error.ends_with("links does not hold"), "{error}");
    let other_text = |operation: &str, id: &str| match (operation, id) {
        ("get-document-content", "urn:chunk") => {
            Some(json!({"content": STANDARD.encode("something else")}))
        }
        _ => library(operation, id),
    };
    let ran = verified(graph(), other_text, &[]).await;
    assert!(
        ran.data.contains("its text does not stand there"),
        "{}",
        ran.data
    );
    let cites_more = |operation: &str, id: &str| match (operation, id) {
        ("get-document-content", "urn:answer") => {
            Some(json!({"content": STANDARD.encode("So [1] and so [2].")}))
        }
        _ => library(operation, id),
    };
    let ran = verified(graph(), cites_more, &[]).await;
    assert!(
        ran.data.contains("✗ number -> citation: [2]"),
        "{}",
        ran.data
    );
}
