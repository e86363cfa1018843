//! Every form of query, limits, cancellation, hostile texts.

use std::time::Duration;

use oxigraph::model::Quad;
use tg_schemas::Term;
use tokio_util::sync::CancellationToken;

use crate::engine::formats::{self, Format};
use crate::error::GraphError;
use crate::store::{Form, Graphs, Part, SparqlAsk};
use crate::{Batch, EmbeddedGraph, Limits};
use tg_collections::CollectionKey;

const DATA: &str = r#"
    @prefix : <http://example.org/> .
    :a :next :b ; :size 1 ; :name "A"@en .
    :b :next :c ; :size 2 .
    :c :next :a ; :size 3 .
    :note <http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies> <<( :a :next :b )>> .
    GRAPH <urn:g1> { :a :size 10 . }
    GRAPH <urn:g2> { :b :size 20 . }
"#;

async fn engine() -> (EmbeddedGraph, CollectionKey) {
    let engine = EmbeddedGraph::in_memory(Limits::default()).unwrap();
    let key = CollectionKey::new("w", "c");
    let quads = formats::read(DATA.as_bytes(), Format::TriG, None, "x").unwrap();
    let quads: Vec<Quad> = quads.collect::<Result<_, _>>().unwrap();
    engine.write(&key, Batch::insert(quads)).await.unwrap();
    (engine, key)
}

fn ask(query: &str) -> SparqlAsk {
    SparqlAsk {
        query: format!("PREFIX : <http://example.org/>\n{query}"),
        graphs: Graphs::default(),
        limit: None,
        batch: 2,
        time: Duration::from_secs(30),
        user: None,
        cancel: CancellationToken::new(),
    }
}

async fn run(query: &str) -> Result<(Form, Vec<String>, Vec<Part>), GraphError> {
    let (engine, key) = engine().await;
    let mut answer = engine.sparql(&key, ask(query)).await?;
    let mut parts = Vec::new();
    while let Some(part) = answer.next().await? {
        parts.push(part);
    }
    Ok((answer.form, answer.variables, parts))
}

/// First column as text.
async fn column(query: &str) -> Vec<String> {
    let (form, _, parts) = run(query).await.unwrap();
    assert_eq!(form, Form::Select);
    let rows = parts.into_iter().flat_map(|part| match part {
        Part::Rows(rows) => rows,
        other => panic!("{other:?}"),
    });
    let mut texts: Vec<String> = rows
        .map(|row| match &row[0] {
            Some(Term::Iri(iri)) => iri.rsplit('/').next().unwrap_or_default().to_owned(),
            Some(Term::Literal { value, .. }) => value.clone(),
            other => format!("{other:?}"),
        })
        .collect();
    texts.sort();
    texts
}

#[tokio::test]
async fn the_asker_chooses_graphs_in_place_of_those_the_query_names() {
    let (engine, key) = engine().await;
    let sizes = async |default: &[&str], named: &[&str], query: &str| {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let graphs = Graphs {
            default: texts(default),
            named: texts(named),
        };
        let asked = SparqlAsk {
            graphs,
            ..ask(query)
        };
        let mut answer = engine.sparql(&key, asked).await?;
        let mut count = 0;
        while let Some(part) = answer.next().await? {
            let Part::Rows(rows) = part else {
                panic!("{part:?}");
            };
            count += rows.len();
        }
        Ok::<_, GraphError>(count)
    };
    let plain = "SELECT * WHERE { ?s :size ?o }";
    let from = "SELECT * FROM <urn:g2> FROM NAMED <urn:g2> WHERE { ?s :size ?o }";
    let within = "SELECT * WHERE { GRAPH ?g { ?s :size ?o } }";
    assert_eq!(sizes(&[], &[], plain).await, Ok(3));
    assert_eq!(sizes(&["urn:g1"], &[], plain).await, Ok(1));
    assert_eq!(sizes(&["urn:g1", "urn:g2"], &[], from).await, Ok(2));
    assert_eq!(sizes(&[], &["urn:g1"], from).await, Ok(0));
    assert_eq!(sizes(&[], &[], within).await, Ok(2));
    assert_eq!(sizes(&[], &["urn:g1", "urn:none"], within).await, Ok(1));
    assert_eq!(sizes(&["urn:g1"], &[], within).await, Ok(0));
    let refused = sizes(&["no name"], &[], plain).await.unwrap_err();
    assert!(refused.to_string().starts_with("default-graph-uri: "));
    assert!(sizes(&["urn:g"; 101], &[], plain).await.is_err());
}

#[tokio::test]
async fn selects() {
    assert_eq!(
        column("SELECT ?s { ?s :size ?n FILTER(?n > 1) }").await,
        ["b", "c"]
    );
    assert_eq!(column("SELECT ?x { :a :next/:next ?x }").await, ["c"]);
    assert_eq!(column("SELECT ?x { :a :next+ ?x }").await, ["a", "b", "c"]);
    assert_eq!(
        column("SELECT (SUM(?n) AS ?t) { ?s :size ?n }").await,
        ["6"]
    );
    // Numbers are compared, not their texts: 3 < 10 < 20.
    let all = "{ ?s :size ?n } UNION { GRAPH ?g { ?s :size ?n } }";
    let greatest = format!("SELECT (MAX(?n) AS ?m) {{ {all} }}");
    assert_eq!(column(&greatest).await, ["20"]);
    let least = format!("SELECT (MIN(?n) AS ?m) {{ {all} FILTER(?n > 2) }}");
    assert_eq!(column(&least).await, ["3"]);
    // A blank node of a pattern stands for anything, and for the same wherever its label stands.
    assert_eq!(column("SELECT ?x { [] :next ?x }").await, ["a", "b", "c"]);
    assert_eq!(
        column("SELECT ?x { _:one :next ?x . _:one :size ?n FILTER(?n = 1) }").await,
        ["b"]
    );
    assert_eq!(
        column("SELECT ?n { GRAPH ?g { ?s :size ?n } }").await,
        ["10", "20"]
    );
    assert_eq!(
        column("SELECT ?g { GRAPH ?g {} }").await,
        ["urn:g1", "urn:g2"]
    );
    assert_eq!(
        column("SELECT ?n { GRAPH <urn:g1> { :a :size ?n } }").await,
        ["10"]
    );
    assert_eq!(
        column("SELECT ?n FROM NAMED <urn:g2> { GRAPH ?g { ?s :size ?n } }").await,
        ["20"]
    );
    assert_eq!(
        column("SELECT ?s { ?r ?p <<( ?s :next :b )>> }").await,
        ["a"]
    );
    assert_eq!(
        column("SELECT ?x { ?s :name ?x . OPTIONAL { ?s :none ?y } }").await,
        ["A"]
    );
}

/// Each in a shape that was reported elsewhere as answered wrongly.
#[tokio::test]
async fn patterns_are_answered_as_the_standard_has_it() {
    for (pattern, wanted) in [
        // MINUS needs a variable of both sides, NOT EXISTS none.
        ("?x { ?x :size ?n MINUS { ?x :name ?l } }", &["b", "c"][..]),
        ("?x { ?x :size ?n MINUS { ?s :name ?l } }", &["a", "b", "c"]),
        (
            "?x { ?x :size ?n FILTER NOT EXISTS { ?x :name ?l } }",
            &["b", "c"],
        ),
        ("?x { ?x :size ?n FILTER NOT EXISTS { ?s :name ?l } }", &[]),
        // What stands around is seen by filters of OPTIONAL and of NOT EXISTS.
        (
            "?m { ?s :size ?n OPTIONAL { ?t :size ?m FILTER(?m > ?n) } }",
            &["2", "3", "3", "None"],
        ),
        (
            "?x { ?x :size ?n FILTER NOT EXISTS { ?t :size ?m FILTER(?m > ?n) } }",
            &["c"],
        ),
        // A group of its own is answered by itself first.
        ("?l { ?s :next ?o { OPTIONAL { ?s :name ?l } } }", &["A"]),
        (
            "?x { VALUES (?x ?n) { (:a UNDEF) (UNDEF 2) } ?x :size ?n }",
            &["a", "b"],
        ),
        ("?x { ?x :size ?n } VALUES ?n { 3 }", &["c"]),
        // Of a query within, only what it selects is seen.
        ("?n { ?s :size ?n { SELECT ?s { ?s :name ?n } } }", &["1"]),
        (
            "?x { { SELECT (MAX(?m) AS ?n) { ?t :size ?m } } ?x :size ?n }",
            &["c"],
        ),
        (
            "?x { { SELECT ?x { ?x :size ?n } ORDER BY DESC(?n) LIMIT 1 } }",
            &["c"],
        ),
        ("?x { :a :next* ?x }", &["a", "b", "c"]),
        ("?x { :a :next? ?x }", &["a", "b"]),
        ("?x { ?x ^:next :a }", &["b"]),
        ("?x { :a (:next|:size) ?x }", &["1", "b"]),
        ("?x { :a !(:next|:size) ?x }", &["A"]),
        ("?x { :a (:next/:next)+ ?x }", &["a", "b", "c"]),
        ("?x { BIND(EXISTS { :b :next+ :a } AS ?x) }", &["true"]),
        ("(:a AS ?x) { FILTER NOT EXISTS { :a :next :b } }", &[]),
        (
            "?n { :a :size ?n FILTER(?n != 9) VALUES ?n { UNDEF } }",
            &["1"],
        ),
        (
            "?x { ?x :size ?n FILTER NOT EXISTS { ?x :name ?l } VALUES ?x { :a :b } }",
            &["b"],
        ),
        ("(COUNT(*) AS ?x) { ?s :none ?o }", &["0"]),
        ("(COUNT(DISTINCT *) AS ?x) { ?s :next ?o }", &["3"]),
        (
            "?p { ?s ?p ?o } GROUP BY ?p HAVING(COUNT(*) = 3)",
            &["next", "size"],
        ),
        (
            "?n { :a :size ?n SERVICE SILENT <http://localhost/> { ?s ?p ?o } }",
            &["1"],
        ),
    ] {
        let found = column(&format!("SELECT {pattern}")).await;
        assert_eq!(found, wanted, "{pattern}");
    }
}

#[tokio::test]
async fn other_forms() {
    let (form, _, parts) = run("ASK { :a :next :b }").await.unwrap();
    assert_eq!((form, parts), (Form::Ask, vec![Part::Ask(true)]));
    let triples = |parts: &[Part]| {
        let sizes = parts.iter().map(|part| match part {
            Part::Triples(triples) => triples.len(),
            other => panic!("{other:?}"),
        });
        sizes.sum::<usize>()
    };
    let (form, _, parts) = run("CONSTRUCT { ?b :before ?a } { ?a :next ?b }")
        .await
        .unwrap();
    assert_eq!((form, triples(&parts)), (Form::Construct, 3));
    let (form, _, parts) = run("DESCRIBE :a").await.unwrap();
    assert_eq!((form, triples(&parts)), (Form::Describe, 3));
    for (query, wanted) in [
        ("DESCRIBE ?x { ?x :size 3 }", 2),
        ("CONSTRUCT WHERE { ?s :next ?o }", 3),
        // Where a variable has no value, and where a literal would be a subject, there is no triple.
        (
            "CONSTRUCT { ?s :is ?l } { ?s :next ?o OPTIONAL { ?s :name ?l } }",
            1,
        ),
        ("CONSTRUCT { ?n :of ?s } { ?s :size ?n }", 0),
    ] {
        let (_, _, parts) = run(query).await.unwrap();
        assert_eq!(triples(&parts), wanted, "{query}");
    }
    let (_, variables, parts) = run("SELECT ?x ?y { VALUES ?x { 1 } }").await.unwrap();
    assert_eq!(variables, ["x", "y"]);
    assert!(matches!(&parts[0], Part::Rows(rows) if rows[0][1].is_none()));
}

#[tokio::test]
async fn faults_are_told_apart() {
    let parse = run("SELECT ?x WHERE { ?x").await.unwrap_err();
    assert_eq!(parse.to_wire("x").kind, "sparql-parse-error");
    let service = run("SELECT * { SERVICE <http://localhost/> { ?s ?p ?o } }")
        .await
        .unwrap_err();
    assert_eq!(service.to_wire("x").kind, "sparql-parse-error");
    assert!(service.to_string().contains("SERVICE"), "{service}");
    // Also where no solution comes that far.
    let unreached =
        "SELECT * { ?s :none ?o OPTIONAL { SERVICE <http://localhost/> { ?s ?p ?q } } }";
    let unreached = run(unreached).await.unwrap_err();
    assert!(unreached.to_string().contains("SERVICE"), "{unreached}");
    let (engine, _) = engine().await;
    let nothing = CollectionKey::new("w", "nothing");
    let mut answer = engine
        .sparql(&nothing, ask("SELECT * { ?s ?p ?o }"))
        .await
        .unwrap();
    assert_eq!(answer.next().await.unwrap(), None);
}

#[tokio::test]
async fn rows_are_limited_and_batched() {
    let (engine, key) = engine().await;
    let mut limited = ask("SELECT * { ?a ?b ?c . ?d ?e ?f }");
    limited.limit = Some(5);
    let mut answer = engine.sparql(&key, limited).await.unwrap();
    let mut sizes = Vec::new();
    while let Some(Part::Rows(rows)) = answer.next().await.unwrap() {
        sizes.push(rows.len());
    }
    assert_eq!(sizes, [2, 2, 1]);
}

const ENDLESS: &str = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n1 ?o . ?q ?r ?s . ?t ?u ?v . ?w ?x ?y }";

#[tokio::test]
async fn time_and_cancel_stop_a_query_and_free_its_place() {
    let (engine, key) = engine().await;
    let mut timed = ask(ENDLESS);
    timed.time = Duration::from_millis(20);
    let late = engine.sparql(&key, timed).await.err();
    assert_eq!(late, Some(GraphError::TimeLimit(1)));
    let cancelled = ask(ENDLESS);
    let cancel = cancelled.cancel.clone();
    let (result, ()) = tokio::join!(engine.sparql(&key, cancelled), async { cancel.cancel() });
    assert_eq!(result.err(), Some(GraphError::Cancelled));
    let places = engine.limits().queries;
    let freed = async {
        while engine.shared.queries.free() < places {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let freed = tokio::time::timeout(Duration::from_secs(60), freed).await;
    assert!(freed.is_ok(), "threads of stopped queries end");
}

#[tokio::test]
async fn more_unions_than_can_be_planned_in_time_are_refused() {
    assert!(
        run(&format!("ASK {{ {{}} {} }}", "UNION{}".repeat(250)))
            .await
            .is_ok()
    );
    let told = run(&format!("ASK {{ {{}} {} }}", "UNION{}".repeat(251))).await;
    let told = told.unwrap_err().to_string();
    assert!(told.contains("more than 250 unions"), "{told}");
}

/// Texts of operators in a row, which are recursed over as deeply as one of their length can be.
fn chains(bytes: usize) -> Vec<String> {
    let many = |text: &str| text.repeat(bytes / text.len());
    vec![
        format!("ASK {{ FILTER({}1) }}", many("!")),
        format!("ASK {{ FILTER({}1) }}", many("- ")),
        format!("ASK {{ FILTER(1{}) }}", many("+1")),
        format!("ASK {{ FILTER(1{}) }}", many("*1")),
        format!("ASK {{ FILTER(1{}) }}", many("||1")),
        format!("ASK {{ FILTER(1{}) }}", many("&&1")),
        format!("ASK {{ {{}} {} }}", many("UNION{}")),
        format!("ASK {{ {} }}", many("OPTIONAL{}")),
        format!("ASK {{ {} }}", many("MINUS{}")),
        format!("ASK {{ {} }}", many("FILTER(1)")),
        format!("ASK {{ {} }}", many("{}")),
        format!("ASK {{ ?s :p{} ?o }}", many("/:p")),
        format!("ASK {{ ?s :p{} ?o }}", many("|:p")),
        format!("ASK {{ ?s {}:p ?o }}", many("^")),
        format!("ASK {{ ?s :p{} ?o }}", many("?")),
        format!("ASK {{ {} }}", many("?s?p?o.")),
        format!("ASK {{ ?s ?p {} }}", many("1,")),
        format!("ASK {{ {} }}", many("BIND(1 AS ?x)")),
        format!("ASK {{ VALUES ?x {{ {} }} }}", many("1 ")),
        format!("SELECT * {{ }} ORDER BY {}", many("?x ")),
    ]
}

/// Texts whose brackets are nested nearly as deeply as they may be.
fn nested() -> Vec<String> {
    let nested = |open: &str, middle: &str, close: &str| {
        let levels = 45 / open.matches(['(', '{', '[']).count();
        format!("{}{middle}{}", open.repeat(levels), close.repeat(levels))
    };
    vec![
        format!("ASK {{ FILTER({}) }}", nested("(", "1", ")")),
        format!("ASK {{ FILTER({}) }}", nested("!(-(", "1", "))")),
        format!("ASK {{ FILTER({}) }}", nested("IF(1,1,", "1", ")")),
        format!("ASK {{ FILTER({}) }}", nested("1 IN (1,", "1", ")")),
        format!(
            "ASK {{ FILTER({}) }}",
            nested("COALESCE(1+1*-!STR(", "1", "))")
        ),
        format!("ASK {{ {} }}", nested("FILTER EXISTS { ", "", "}")),
        format!("ASK {{ {} }}", nested("FILTER(!EXISTS { ", "", "})")),
        format!("ASK {{ {} }}", nested("{ SELECT * { ", "?s ?p ?o", "}}")),
        format!(
            "ASK {{ {} }}",
            nested("{ SELECT (COUNT(*) AS ?n) { ", "", "}}")
        ),
        format!("ASK {{ {} }}", nested("OPTIONAL { ?s ?p ?o ", "", "}")),
        format!("ASK {{ {} }}", nested("MINUS { ?s ?p ?o ", "", "}")),
        format!("ASK {{ {} }}", nested("GRAPH ?g { ", "?s ?p ?o", "}")),
        format!("ASK {{ {} }}", nested("{} UNION { ", "", "}")),
        format!("ASK {}", nested("{", "", "}")),
        format!("ASK {{ ?s {} ?o }}", nested("(", ":p", ")")),
        format!("ASK {{ ?s {} ?o }}", nested("(^(:p|", ":p", ")+)*")),
        format!("ASK {{ ?s ?p {} }}", nested("[:p ", "", "]")),
        format!("ASK {{ ?s ?p {}{} }}", "(1 ".repeat(20), ")".repeat(20)),
    ]
}

#[tokio::test]
async fn hostile_texts_are_answered() {
    // The stack of a query is by its length: it is enough for a short one too.
    let chains = [60, 600, 6_000, 60_000].into_iter().flat_map(chains);
    for query in chains.chain(nested()) {
        let short: String = query.chars().take(40).collect();
        let result = tokio::time::timeout(Duration::from_secs(60), run(&query)).await;
        assert!(result.is_ok(), "{}: {short}", query.len());
    }
}

/// A query's fault, with little memory for queries.
async fn bounded(query: &str) -> GraphError {
    let limits = Limits {
        query_memory: 32 << 20,
        ..Limits::default()
    };
    let engine = EmbeddedGraph::in_memory(limits).unwrap();
    let key = CollectionKey::new("w", "c");
    let lines: String = (0..300)
        .map(|n| format!("<urn:s{n}> <urn:p> 'v' .\n"))
        .collect();
    let quads = formats::read(std::io::Cursor::new(lines), Format::TriG, None, "x").unwrap();
    let quads: Vec<Quad> = quads.collect::<Result<_, _>>().unwrap();
    engine.write(&key, Batch::insert(quads)).await.unwrap();
    let mut answer = match engine.sparql(&key, ask(query)).await {
        Err(error) => return error,
        Ok(answer) => answer,
    };
    loop {
        match answer.next().await {
            Err(error) => return error,
            Ok(None) => panic!("it ended: {query}"),
            Ok(Some(_)) => {}
        }
    }
}

#[tokio::test]
async fn whatever_collects_is_stopped_by_its_memory() {
    let values = |name: &str| {
        let rows: String = (0..4_000).map(|n| format!("{n} ")).collect();
        format!("VALUES ?{name} {{ {rows} }}")
    };
    let (left, right) = (values("l"), values("r"));
    let unions = "{ { BIND(1 AS ?u) } UNION { BIND(2 AS ?v) } UNION {} }".repeat(20);
    for query in [
        "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } ORDER BY ?a".to_owned(),
        "SELECT DISTINCT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }".to_owned(),
        "SELECT ?a ?d ?g { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } GROUP BY ?a ?d ?g".to_owned(),
        "SELECT (COUNT(DISTINCT *) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }".to_owned(),
        "SELECT * { ?x ?y ?z MINUS { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } }".to_owned(),
        "SELECT * { { SELECT * { ?a ?b ?c . ?d ?e ?f } ORDER BY ?a } { SELECT * { ?g ?h ?i . ?j ?k ?l } ORDER BY ?g } } ORDER BY ?a".to_owned(),
        format!("SELECT * {{ {left} {right} }} ORDER BY ?l"),
        format!("SELECT * {{ {unions} }} ORDER BY ?u"),
        "CONSTRUCT { ?a ?e ?i } { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } ORDER BY ?a".to_owned(),
    ] {
        let began = std::time::Instant::now();
        let error = bounded(&query).await;
        let short: String = query.chars().take(60).collect();
        assert_eq!(error, GraphError::QueryMemory(32), "{short}");
        assert!(began.elapsed() < Duration::from_secs(60), "{short}");
    }
}

#[tokio::test]
async fn a_text_grows_to_its_limit_only() {
    let doubled = |n: usize, call: &str| {
        let steps: String = (0..n)
            .map(|i| {
                format!(
                    "BIND({} AS ?v{})",
                    call.replace('#', &format!("?v{i}")),
                    i + 1
                )
            })
            .collect();
        format!("SELECT (STRLEN(?v{n}) AS ?n) {{ BIND('%' AS ?v0) {steps} }}")
    };
    for (n, call) in [
        (33, "CONCAT(#, #)"),
        (33, "REPLACE(#, '%', '%%')"),
        (33, "REPLACE(#, '.+', '$0$0')"),
        (33, "ENCODE_FOR_URI(CONCAT(#, #))"),
    ] {
        let error = bounded(&doubled(n, call)).await;
        let told = matches!(
            error,
            GraphError::LongText(16) | GraphError::QueryMemory(32)
        );
        assert!(told, "{call}: {error}");
    }
    // Of long pieces, so that it takes thousands of them and not millions.
    let long = "SELECT (STRLEN(GROUP_CONCAT(CONCAT(?a, ?d, ?g, 'a piece of some length, that is read over and over again'))) AS ?n) { ?x ?y ?a . ?z ?t ?d . ?u ?v ?g . ?q ?w ?k }";
    assert_eq!(bounded(long).await, GraphError::LongText(16));
}

#[tokio::test]
async fn bounded_functions_say_what_the_standard_ones_say() {
    let said = async |call: &str| column(&format!("SELECT ?x {{ BIND({call} AS ?x) }}")).await;
    assert_eq!(said("CONCAT()").await, [""]);
    assert_eq!(said("CONCAT('a', 'b', 'c', 'd', 'e')").await, ["abcde"]);
    assert_eq!(said("LANG(CONCAT('a'@en, 'b'@en, 'c'@en))").await, ["en"]);
    assert_eq!(said("LANG(CONCAT('a'@en, 'b'@en, 'c'@de))").await, [""]);
    assert_eq!(said("COALESCE(CONCAT('a', 1), 'none')").await, ["none"]);
    assert_eq!(
        said("ENCODE_FOR_URI('a-Z 1/ä')").await,
        ["a-Z%201%2F%C3%A4"]
    );
    assert_eq!(
        said("REPLACE('abab', '(A)b', '[$1]', 'i')").await,
        ["[a][a]"]
    );
    assert_eq!(said("REPLACE('a.b', '.', '-', 'q')").await, ["a-b"]);
    assert_eq!(said("LANG(REPLACE('abc'@en, 'x', 'y'))").await, ["en"]);
    assert_eq!(
        said("COALESCE(REPLACE('a', '(', 'y'), 'none')").await,
        ["none"]
    );
    let of = "{ VALUES ?v { 'a' 'b' 'a' } }";
    let group = async |call: &str| column(&format!("SELECT ({call} AS ?x) {of}")).await;
    assert_eq!(group("GROUP_CONCAT(?v)").await, ["a b a"]);
    assert_eq!(
        group("GROUP_CONCAT(DISTINCT ?v; separator='-')").await,
        ["a-b"]
    );
}

#[tokio::test]
async fn a_long_answer_is_not_counted_once_it_was_read() {
    let limits = Limits {
        query_memory: 4 << 20,
        ..Limits::default()
    };
    let engine = EmbeddedGraph::in_memory(limits).unwrap();
    let key = CollectionKey::new("w", "c");
    let lines: String = (0..60)
        .map(|n| format!("<urn:s{n}> <urn:p> 'v' .\n"))
        .collect();
    let quads = formats::read(std::io::Cursor::new(lines), Format::TriG, None, "x").unwrap();
    let quads: Vec<Quad> = quads.collect::<Result<_, _>>().unwrap();
    engine.write(&key, Batch::insert(quads)).await.unwrap();
    let mut asked = ask("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }");
    asked.batch = 1_000;
    let mut answer = engine.sparql(&key, asked).await.unwrap();
    let mut rows = 0;
    while let Some((Part::Rows(part), bytes)) = answer.next_sized().await.unwrap() {
        assert!(bytes > 100 * part.len(), "{bytes} of {}", part.len());
        assert!(bytes < 128 << 10, "{bytes} are too many for one part");
        rows += part.len();
    }
    assert_eq!(rows, 60 * 60 * 60);
}

#[tokio::test]
async fn slow_readers_hold_no_place_and_are_not_waited_for_without_end() {
    let limits = Limits {
        queries: 2,
        queries_of_one: 1,
        stalled: Duration::from_millis(300),
        ..Limits::default()
    };
    let engine = EmbeddedGraph::in_memory(limits).unwrap();
    let key = CollectionKey::new("w", "c");
    let places = engine.shared.answers.free();
    let mut slow = Vec::new();
    for _ in 0..3 {
        let mut asked = ask("SELECT * { VALUES ?a { 1 2 3 4 5 6 7 8 9 } }");
        asked.batch = 1;
        slow.push(engine.sparql(&key, asked).await.unwrap());
    }
    let quick = engine.sparql(&key, ask("ASK {}"));
    let quick = tokio::time::timeout(Duration::from_secs(60), quick).await;
    let mut quick = quick.expect("no place is held").unwrap();
    assert_eq!(quick.next().await, Ok(Some(Part::Ask(true))));
    let given_up = async {
        while engine.shared.answers.free() < places {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let given_up = tokio::time::timeout(Duration::from_secs(60), given_up).await;
    assert!(given_up.is_ok(), "threads of slow readers end");
    let mut read = slow.pop().unwrap();
    let last = loop {
        match read.next().await {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert_eq!(last, Err(GraphError::Stalled(0)));
}
