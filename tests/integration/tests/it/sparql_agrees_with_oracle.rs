//! SPARQL answers agree with a reference engine: generated graphs and queries, asked through the gateway and
//! of `pyoxigraph`, compared as multisets (as sequences where the query orders all it shows).
//!
//! The graphs and queries are the same each time; `SPARQL_SEED` makes others.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_testkit::process::root;
use tg_testkit::socket::Socket;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use crate::shared::Workspace;
use crate::world::{Bus, on_both_buses};

const GRAPHS: u64 = 8;
const QUERIES: usize = 60;
/// No new graph is begun after so long when so many queries were compared.
const TIME: Duration = Duration::from_secs(24);
const LEAST: usize = 100;
/// Larger answers are left out: the gateway bounds them.
const ROWS: usize = 4_000;
const BOUND: Duration = Duration::from_secs(60);
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// A sequence that looks random and follows from its seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % most.max(1) as u64) as usize
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

fn literal(value: &str, kind: &str) -> Value {
    json!({"t": "l", "v": value, "dt": format!("{XSD}{kind}")})
}

fn quads(dice: &mut Dice) -> Vec<Value> {
    let entity = |dice: &mut Dice| match dice.below(9) {
        0 => json!({"t": "b", "d": format!("b{}", dice.below(3))}),
        _ => json!({"t": "i", "i": format!("http://ex/e{}", dice.below(5))}),
    };
    let value = |dice: &mut Dice| match dice.below(10) {
        0 | 1 => literal(&dice.below(9).to_string(), "integer"),
        2 => literal(&format!("{}.5", dice.below(5)), "decimal"),
        3 => literal(dice.one(&["1.0E0", "2.5E0", "-INF", "3.0E2"]), "double"),
        4 => literal(dice.one(&["true", "false"]), "boolean"),
        5 => literal(
            dice.one(&["2020-01-02T03:04:05Z", "2021-06-07T08:09:10+02:00"]),
            "dateTime",
        ),
        6 => {
            json!({"t": "l", "v": dice.one(&["chat", "Katze", "ねこ"]), "ln": dice.one(&["fr", "de", "en-GB"])})
        }
        7 => literal(dice.one(&["x", "y"]), "unheardOf"),
        _ => json!({"t": "l", "v": dice.one(&["a", "ab", "abc", "B", "", "a \"quoted\"\nline"])}),
    };
    let count = 40 + dice.below(40);
    (0..count)
        .map(|_| {
            let s = entity(dice);
            let p = json!({"t": "i", "i": format!("http://ex/p{}", dice.below(4))});
            let o = if dice.below(2) == 0 {
                entity(dice)
            } else {
                value(dice)
            };
            match dice.below(5) {
                0 => json!({"s": s, "p": p, "o": o, "g": "http://ex/g1"}),
                1 => json!({"s": s, "p": p, "o": o, "g": "http://ex/g2"}),
                _ => json!({"s": s, "p": p, "o": o}),
            }
        })
        .collect()
}

/// Writes queries. Every variable of a pattern is one of few, so that joins meet.
struct Writer<'a> {
    dice: &'a mut Dice,
    fresh: usize,
}

const NAMES: [&str; 3] = ["?a", "?b", "?c"];

impl Writer<'_> {
    fn node(&mut self) -> String {
        match self.dice.below(9) {
            0 => format!(":e{}", self.dice.below(5)),
            _ => self.dice.one(&NAMES).to_owned(),
        }
    }

    fn triple(&mut self) -> String {
        let (s, o) = (self.node(), self.node());
        let p = match self.dice.below(6) {
            0 => "?p".to_owned(),
            1 => self.path(),
            _ => format!(":p{}", self.dice.below(4)),
        };
        // Something is always left open, but not everything.
        let s = if s.starts_with(':') && o.starts_with(':') {
            "?a".to_owned()
        } else {
            s
        };
        format!("{s} {p} {o} .")
    }

    fn path(&mut self) -> String {
        self.dice
            .one(&[
                ":p0/:p1",
                ":p0|:p2",
                "^:p1",
                ":p0+",
                ":p1*",
                ":p2?",
                "!(:p0|:p1)",
                "!(:p0|^:p2)",
                "(:p0/^:p1)+",
                "(:p0|:p1)*/:p2",
                "^(:p1/:p0)",
                "(:p3|^:p3)+",
            ])
            .to_owned()
    }

    fn triples(&mut self) -> String {
        let count = 1 + self.dice.below(2);
        (0..count)
            .map(|_| self.triple())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn condition(&mut self) -> String {
        let (x, y) = (self.dice.one(&NAMES), self.dice.one(&NAMES));
        let entity = self.dice.below(5);
        match self.dice.below(17) {
            0 => format!("{x} = {y}"),
            1 => format!("{x} != :e{entity}"),
            2 => format!("{x} > {}", self.dice.below(8)),
            3 => format!("isIRI({x}) || isBlank({y})"),
            4 => format!("isLiteral({x})"),
            5 => format!("!BOUND({x})"),
            6 => format!("lang({x}) = \"de\" || langMatches(lang({x}), \"en\")"),
            7 => format!("datatype({x}) = xsd:integer"),
            8 => format!("regex(str({x}), \"^a\", \"i\")"),
            9 => format!("CONTAINS(str({x}), \"e\") && STRLEN(str({y})) > 2"),
            10 => format!("{x} IN (:e{entity}, 1, \"a\", true)"),
            11 => format!("{x} * 2 + 1 < {} || {y} = 1.5", self.dice.below(9)),
            12 => format!("EXISTS {{ {} }}", self.triple()),
            13 => format!("NOT EXISTS {{ {} }}", self.triple()),
            14 => format!("year({x}) >= 2021"),
            15 => format!("sameTerm({x}, {y})"),
            _ => format!("IF(isNumeric({x}), {x} <= 3, COALESCE({y} = :e{entity}, true))"),
        }
    }

    fn value(&mut self) -> String {
        let x = self.dice.one(&NAMES);
        match self.dice.below(9) {
            0 => format!("STR({x})"),
            1 => format!("{x} + 1"),
            2 => format!("COALESCE({x} / 2, \"none\")"),
            3 => format!("UCASE(STR({x}))"),
            4 => format!("IF(isIRI({x}), \"iri\", DATATYPE({x}))"),
            5 => format!("CONCAT(SUBSTR(STR({x}), 1, 3), \"-\", LANG({x}))"),
            6 => format!("ABS({x} - 4)"),
            7 => format!("STRLANG(STR({x}), \"en\")"),
            _ => format!("xsd:string({x})"),
        }
    }

    fn group(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.triples();
        }
        let inner = |this: &mut Self| this.group(depth - 1);
        match self.dice.below(12) {
            0 | 1 => format!("{} OPTIONAL {{ {} }}", inner(self), inner(self)),
            2 => format!("{{ {} }} UNION {{ {} }}", inner(self), inner(self)),
            3 | 4 => format!("{} FILTER({})", inner(self), self.condition()),
            5 => format!("GRAPH ?g {{ {} }}", self.triples()),
            6 => format!("{} GRAPH :g1 {{ {} }}", inner(self), self.triples()),
            7 => format!("{} MINUS {{ {} }}", inner(self), inner(self)),
            8 => {
                self.fresh += 1;
                let fresh = self.fresh;
                format!("{} BIND({} AS ?x{fresh})", inner(self), self.value())
            }
            9 => {
                let name = self.dice.one(&NAMES);
                let (x, y) = (self.dice.below(5), self.dice.below(9));
                format!("{} VALUES {name} {{ :e{x} {y} UNDEF \"a\" }}", inner(self))
            }
            10 => format!(
                "{} {{ SELECT ?a (COUNT(*) AS ?k) {{ {} }} GROUP BY ?a }}",
                self.triples(),
                self.triple()
            ),
            _ => self.triples(),
        }
    }

    /// A query, and whether the order of its rows is told.
    fn query(&mut self) -> (String, bool) {
        let depth = self.dice.below(3);
        let group = self.group(depth);
        let (body, ordered) = match self.dice.below(12) {
            0 => (format!("ASK {{ {group} }}"), false),
            1 => (
                format!("CONSTRUCT {{ ?a :made ?b . ?c :with \"x\" }} WHERE {{ {group} }}"),
                false,
            ),
            2 => (format!("SELECT DISTINCT ?a ?b {{ {group} }}"), false),
            3 => {
                let (most, from) = (1 + self.dice.below(9), self.dice.below(4));
                let shown = "?a (STR(?b) AS ?t) (STR(DATATYPE(?b)) AS ?d) (LANG(?b) AS ?l)";
                let rest = "FILTER(isIRI(?a) && !isBlank(?b))";
                let order = "ORDER BY DESC(?a) ?t ?d ?l";
                (
                    format!(
                        "SELECT {shown} {{ {group} {rest} }} {order} LIMIT {most} OFFSET {from}"
                    ),
                    true,
                )
            }
            4 | 5 => {
                let made = self.dice.one(&[
                    "COUNT(*)",
                    "COUNT(?b)",
                    "COUNT(DISTINCT ?b)",
                    "SUM(IF(DATATYPE(?b) = xsd:integer, ?b, 0))",
                    "MIN(STR(?b))",
                    "MAX(STR(?c))",
                    "MIN(COALESCE(IF(DATATYPE(?b) = xsd:integer, ?b, 0), 0))",
                    "MAX(COALESCE(IF(DATATYPE(?b) = xsd:integer, ?b, 0), 0))",
                    "AVG(STRLEN(STR(?b)))",
                ]);
                let having = self.dice.one(&["", "HAVING (COUNT(*) > 1)"]);
                (
                    format!("SELECT ?a ({made} AS ?n) {{ {group} }} GROUP BY ?a {having}"),
                    false,
                )
            }
            6 => (
                format!("SELECT (COUNT(*) AS ?n) (COUNT(DISTINCT ?a) AS ?m) {{ {group} }}"),
                false,
            ),
            _ => (format!("SELECT * {{ {group} }}"), false),
        };
        (
            format!("PREFIX : <http://ex/>\nPREFIX xsd: <{XSD}>\n{body}"),
            ordered,
        )
    }
}

async fn load(place: &Workspace, socket: &Socket, collection: &str, quads: &[Value]) -> Result<()> {
    let url = place.path("api/v1/flow/default/import/triples");
    let url = url.replacen("http", "ws", 1);
    let (mut stream, _) = tokio_tungstenite::connect_async(url).await?;
    let metadata = json!({"id": "", "metadata": [], "collection": collection});
    let frame = json!({"metadata": metadata, "triples": quads});
    stream.send(Message::text(frame.to_string())).await?;
    stream.close(None).await?;
    while let Some(Ok(_)) = stream.next().await {}
    // Equal quads are one.
    let different: std::collections::BTreeSet<String> =
        quads.iter().map(Value::to_string).collect();
    let count = "SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
    let end = Instant::now() + BOUND;
    loop {
        let reply = ask(socket, collection, count).await?;
        let there = reply["bindings"][0]["values"][0]["v"]
            .as_str()
            .unwrap_or("0")
            .to_owned();
        if there == different.len().to_string() {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{there} of {} quads", different.len());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn ask(socket: &Socket, collection: &str, query: &str) -> Result<Value> {
    let request = json!({"query": query, "collection": collection, "limit": 2 * ROWS});
    let frames = socket.ask("sparql", "default", request).await?;
    let frame = frames.into_iter().next_back().context("no frame")?;
    Ok(frame["response"].clone())
}

async fn oracle(quads: &[Value], queries: &[String]) -> Result<Vec<Value>> {
    let mut child = Command::new(root().join(".cache/venv/bin/python3"))
        .arg(root().join("tests/integration/clients/sparql_oracle.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("run the set-up first")?;
    let asked = json!({"quads": quads, "queries": queries}).to_string();
    let mut stdin = child.stdin.take().context("no stdin")?;
    let feed = async {
        stdin.write_all(asked.as_bytes()).await?;
        stdin.shutdown().await?;
        drop(stdin);
        std::io::Result::Ok(())
    };
    let (fed, output) = tokio::join!(feed, child.wait_with_output());
    fed?;
    let output = output?;
    ensure!(
        output.status.success(),
        "the oracle failed: run the set-up again"
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// A term as text. Names of blank nodes mean nothing.
fn told(term: &Value) -> String {
    match term["t"].as_str() {
        Some("b") => "_:".to_owned(),
        Some("i") => format!("<{}>", term["i"].as_str().unwrap_or_default()),
        Some("l") => {
            let field = |name: &str| term[name].as_str().unwrap_or_default().to_owned();
            let kind = field("dt");
            let kind = kind.trim_end_matches(&format!("{XSD}string")).to_owned();
            format!("{:?}@{}^^{kind}", field("v"), field("ln").to_lowercase())
        }
        _ => term.to_string(),
    }
}

fn triple(one: &Value) -> String {
    [&one["s"], &one["p"], &one["o"]].map(told).join(" ")
}

/// An answer as lines that can be compared; rows by the names of their variables.
fn lines(answer: &Value, ordered: bool) -> Vec<String> {
    if answer["error"].is_string() || answer["error"].is_object() {
        return vec!["error".to_owned()];
    }
    for key in ["ask", "ask-result"] {
        if let Some(yes) = answer[key].as_bool() {
            return vec![yes.to_string()];
        }
    }
    if let Some(triples) = answer["triples"].as_array() {
        // A graph holds a triple once.
        let different: std::collections::BTreeSet<String> = triples.iter().map(triple).collect();
        return different.into_iter().collect();
    }
    let names: Vec<&str> = answer["variables"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let rows = answer["rows"].as_array().or(answer["bindings"].as_array());
    let row = |row: &Value| {
        let values = row.as_array().or(row["values"].as_array());
        let bound: BTreeMap<&str, String> = names
            .iter()
            .zip(values.into_iter().flatten())
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (*name, told(value)))
            .collect();
        format!("{bound:?}")
    };
    let mut lines: Vec<String> = rows.into_iter().flatten().map(row).collect();
    if !ordered {
        lines.sort();
    }
    lines
}

async fn generated_queries_have_the_same_answers(bus: Bus) -> Result<()> {
    let seed = std::env::var("SPARQL_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or(2026);
    let place = Workspace::shared(bus).await?;
    let socket = place.socket().await?;
    let begun = Instant::now();
    let (mut compared, mut errors, mut large, mut filled) = (0, 0, 0, 0);
    for at in 0..GRAPHS {
        if begun.elapsed() > TIME && compared >= LEAST {
            break;
        }
        let mut dice = Dice(seed.wrapping_mul(1_000).wrapping_add(at));
        dice.below(2);
        let quads = quads(&mut dice);
        let collection = format!("oracle-{at}");
        load(&place, &socket, &collection, &quads).await?;
        let asked: Vec<(String, bool)> = (0..QUERIES)
            .map(|_| {
                Writer {
                    dice: &mut dice,
                    fresh: 0,
                }
                .query()
            })
            .collect();
        let texts: Vec<String> = asked.iter().map(|(query, _)| query.clone()).collect();
        let expected = oracle(&quads, &texts).await?;
        for ((query, ordered), expected) in asked.iter().zip(&expected) {
            let expected = lines(expected, *ordered);
            if expected.len() > ROWS {
                large += 1;
                continue;
            }
            let answer = ask(&socket, &collection, query).await?;
            let found = lines(&answer, *ordered);
            ensure!(
                found == expected,
                "SPARQL_SEED={seed}, graph {at}\n{query}\nexpected {expected:#?}\nfound {found:#?}\n{answer}\n\
                 over {quads:#?}"
            );
            compared += 1;
            errors += usize::from(expected == ["error"]);
            filled += usize::from(expected.len() > 1);
        }
    }
    println!(
        "{compared} compared, {filled} with several results, {errors} refused by both, {large} too large"
    );
    ensure!(compared >= LEAST, "only {compared} were compared");
    ensure!(
        errors * 10 <= compared,
        "{errors} of {compared} are no queries"
    );
    ensure!(
        filled * 4 >= compared,
        "only {filled} of {compared} have several results"
    );
    Ok(())
}

on_both_buses!(generated_queries_have_the_same_answers);
