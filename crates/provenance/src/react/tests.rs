//! What a ReAct run leaves behind, entity by entity.

use tg_schemas::Term;

use super::*;
use tg_schemas::vocabulary::{RETRIEVAL_GRAPH, rdf, rdfs};

const S: &str = "urn:trustgraph:agent:7d0c";

fn objects(event: &Event, predicate: &str) -> Vec<Term> {
    event
        .triples
        .iter()
        .filter(|t| t.p == Some(Term::iri(predicate)))
        .filter_map(|t| t.o.clone())
        .collect()
}

fn iris(texts: &[&str]) -> Vec<Term> {
    texts.iter().map(|text| Term::iri(*text)).collect()
}

fn texts(texts: &[&str]) -> Vec<Term> {
    texts.iter().map(|text| Term::literal(*text)).collect()
}

fn one_subject(event: &Event) {
    for triple in &event.triples {
        assert_eq!(triple.s, Some(Term::iri(event.id.as_str())));
        assert_eq!(triple.g.as_deref(), Some(RETRIEVAL_GRAPH));
    }
}

fn usage() -> Usage<'static> {
    Usage {
        duration_ms: Some(812),
        in_token: Some(640),
        out_token: Some(58),
        model: Some("some-model"),
    }
}

#[test]
fn a_session_has_its_question_and_time() {
    let event = session(
        &Session::new("7d0c"),
        &SessionFacts {
            question: "Which bridge is the oldest?",
            started_at: "2026-08-01T09:00:00.120000Z",
            parent: None,
        },
    );
    one_subject(&event);
    assert_eq!(event.id, S);
    assert_eq!(
        objects(&event, rdf::TYPE),
        iris(&[prov::ENTITY, tg::QUESTION, tg::AGENT_QUESTION])
    );
    assert_eq!(objects(&event, rdfs::LABEL), texts(&["Agent Question"]));
    assert_eq!(
        objects(&event, prov::STARTED_AT_TIME),
        texts(&["2026-08-01T09:00:00.120000Z"])
    );
    assert!(objects(&event, prov::WAS_DERIVED_FROM).is_empty());
}

#[test]
fn a_session_that_a_listener_asked_for_has_its_threads_as_literals() {
    let facts = SessionFacts {
        question: "Which bridge is the oldest?",
        started_at: "2026-08-01T09:00:00.120000Z",
        parent: None,
    };
    let id = Session::new("7d0c");
    let of = |parent| session_on_thread(&id, &facts, &Thread { id: "t2", parent });
    let event = of(Some("t1"));
    one_subject(&event);
    assert_eq!(objects(&event, tg::THREAD), texts(&["t2"]));
    assert_eq!(objects(&event, tg::PARENT_THREAD), texts(&["t1"]));
    assert!(objects(&of(None), tg::PARENT_THREAD).is_empty());
    let plain = session(&id, &facts);
    assert!(event.triples.starts_with(&plain.triples));
    assert_eq!(event.triples.len(), plain.triples.len() + 2);
}

#[test]
fn an_analysis_is_no_reflection_and_follows_the_last_observation() {
    let candidates = ["knowledge_query".to_owned(), "llm".to_owned()];
    let mut facts = Analysis {
        step: 1,
        nth: None,
        after: None,
        action: "knowledge_query",
        arguments: r#"{"question":"dates"}"#,
        candidates: &candidates,
        usage: usage(),
        has_thought: true,
    };
    let first = analysis(&Session::new("7d0c"), &facts);
    one_subject(&first);
    assert_eq!(first.id, format!("{S}/i1"));
    assert_eq!(
        objects(&first, rdf::TYPE),
        iris(&[prov::ENTITY, tg::ANALYSIS, tg::TOOL_USE])
    );
    assert_eq!(
        objects(&first, rdfs::LABEL),
        texts(&["Analysis: knowledge_query"])
    );
    assert_eq!(objects(&first, prov::WAS_DERIVED_FROM), iris(&[S]));
    assert_eq!(
        objects(&first, tg::TOOL_CANDIDATE),
        texts(&["knowledge_query", "llm"])
    );
    assert_eq!(objects(&first, tg::STEP_NUMBER), texts(&["1"]));
    assert_eq!(objects(&first, tg::LLM_DURATION_MS), texts(&["812"]));
    assert_eq!(
        objects(&first, tg::THOUGHT),
        iris(&[&format!("{S}/i1/thought")])
    );

    facts.step = 2;
    let second = analysis(&Session::new("7d0c"), &facts);
    assert_eq!(
        objects(&second, prov::WAS_DERIVED_FROM),
        iris(&[&format!("{S}/i1/observation")])
    );
}

#[test]
fn a_thought_is_no_entity() {
    let event = thought(&Session::new("7d0c"), 1, &format!("{S}/i1"), true);
    one_subject(&event);
    assert_eq!(
        objects(&event, rdf::TYPE),
        iris(&[tg::REFLECTION, tg::THOUGHT_CLASS])
    );
    assert_eq!(
        objects(&event, tg::DOCUMENT),
        iris(&[&format!("{S}/i1/thought")])
    );
    let lost = thought(&Session::new("7d0c"), 1, &format!("{S}/i1"), false);
    assert!(objects(&lost, tg::DOCUMENT).is_empty());
}

#[test]
fn a_failed_observation_says_so() {
    let event = observation(
        &Session::new("7d0c"),
        &Observation {
            step: 1,
            nth: 0,
            sub_trace: None,
            duration_ms: Some(3),
            usage: Usage::default(),
            error: Some("no such name"),
            stored: true,
        },
    );
    one_subject(&event);
    assert!(objects(&event, tg::IN_TOKEN).is_empty());
    assert_eq!(
        objects(&event, rdf::TYPE),
        iris(&[prov::ENTITY, tg::OBSERVATION, tg::ERROR])
    );
    assert_eq!(objects(&event, tg::TOOL_ERROR), texts(&["no such name"]));
    assert_eq!(
        objects(&event, prov::WAS_DERIVED_FROM),
        iris(&[&format!("{S}/i1")])
    );
}

#[test]
fn what_calls_of_models_took_is_said_once() {
    let id = Session::new("7d0c");
    let decided = pattern_decision(&id, "react", "risk", &usage());
    one_subject(&decided);
    assert_eq!(objects(&decided, tg::IN_TOKEN), texts(&["640"]));
    assert_eq!(objects(&decided, tg::LLM_MODEL), texts(&["some-model"]));
    let facts = Observation {
        step: 1,
        nth: 0,
        sub_trace: None,
        duration_ms: Some(3),
        usage: usage(),
        error: None,
        stored: true,
    };
    let seen = observation(&id, &facts);
    assert_eq!(objects(&seen, tg::OUT_TOKEN), texts(&["58"]));

    let own = Usage {
        in_token: Some(5),
        ..Usage::default()
    };
    let both = usage().and(&own);
    assert_eq!((both.in_token, both.out_token), (Some(645), Some(58)));
    assert_eq!(both.model, Some("some-model"));
    assert_eq!(Usage::default().and(&own).in_token, Some(5));
}

#[test]
fn every_outcome_has_a_conclusion() {
    let mut facts = Conclusion {
        reason: Reason::FinalAnswer,
        answered: true,
        derived_from: "urn:x",
        usage: usage(),
        stored: true,
        thought_of: Some(2),
        error: None,
        cites: &[],
        refused: false,
    };
    let answered = conclusion(&Session::new("7d0c"), &facts);
    one_subject(&answered);
    assert_eq!(
        objects(&answered, rdf::TYPE),
        iris(&[prov::ENTITY, tg::CONCLUSION, tg::ANSWER])
    );
    assert_eq!(
        objects(&answered, tg::DOCUMENT),
        iris(&[&format!("{S}/answer")])
    );
    assert_eq!(
        objects(&answered, tg::TERMINATION_REASON),
        texts(&["final-answer"])
    );
    facts.error = Some("agent-error: Too many agent iterations");
    for (reason, word) in [
        (Reason::Loop, "loop"),
        (Reason::Budget, "budget"),
        (Reason::MaxIterations, "max-iterations"),
    ] {
        facts.reason = reason;
        let stopped = conclusion(&Session::new("7d0c"), &facts);
        assert_eq!(
            objects(&stopped, rdf::TYPE),
            iris(&[prov::ENTITY, tg::CONCLUSION, tg::ANSWER])
        );
        assert_eq!(
            objects(&stopped, tg::DOCUMENT),
            iris(&[&format!("{S}/answer")])
        );
        assert_eq!(objects(&stopped, tg::TERMINATION_REASON), texts(&[word]));
    }
    facts.answered = false;
    for (reason, word) in [
        (Reason::MaxIterations, "max-iterations"),
        (Reason::Error, "error"),
        (Reason::Cancelled, "cancelled"),
        (Reason::Interrupted, "interrupted"),
    ] {
        facts.reason = reason;
        let failed = conclusion(&Session::new("7d0c"), &facts);
        assert_eq!(
            objects(&failed, rdf::TYPE),
            iris(&[prov::ENTITY, tg::CONCLUSION, tg::ERROR])
        );
        assert_eq!(objects(&failed, tg::TERMINATION_REASON), texts(&[word]));
        assert!(objects(&failed, tg::DOCUMENT).is_empty());
        assert_eq!(objects(&failed, rdfs::COMMENT).len(), 1);
    }
}
