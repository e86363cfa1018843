//! The SPARQL protocol and the graph store protocol of the W3C, as their clients speak them: rdflib's store, and plain
//! HTTP for each syntax and status. With access control on, a key opens what it opens elsewhere and nothing else.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tg_testkit::process::{Server, client, root};
use tg_testkit::shared_node::VirtualHost;
use tokio::process::Command;

use crate::edge::{first_key, iam, with_keys};
use crate::revocation_is_immediate::key_of;
use crate::world::Bus;

const BOUND: Duration = Duration::from_secs(60);
const SPARQL: &str = "api/v1/flow/default/sparql/birds";
const GRAPH: &str = "api/v1/flow/default/graph/birds";
const BIRDS: &str = r#"
    @prefix ex: <http://example.org/> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    ex:wren rdfs:label "Wren"@en, "Zaunkönig"@de ; ex:grams 9 ; ex:near ex:robin .
    ex:robin rdfs:label "Robin, \"red\""@en .
"#;
const NOTES: &str = "http://example.org/notes";

struct System {
    server: Server,
    admin: String,
    _node: Option<VirtualHost>,
}

impl System {
    async fn start(bus: Bus) -> Result<Self> {
        let node = bus.broker().await?;
        let server = with_keys().over(node.as_ref()).ready().await?;
        let admin = first_key(&server).await?;
        Ok(Self {
            server,
            admin,
            _node: node,
        })
    }

    /// A key of a new user of a workspace.
    async fn key(&self, name: &str, workspace: &str, role: &str) -> Result<String> {
        let user = json!({"operation": "create-user", "workspace": workspace,
            "user": {"username": name, "roles": [role]}});
        let user = iam(&self.server, &self.admin, user).await?["user"]["id"].clone();
        let user = user.as_str().context("no user")?;
        if workspace == "default" {
            return Ok(key_of(&self.server, &self.admin, user, "").await?.0);
        }
        let key = json!({"operation": "create-api-key", "workspace": workspace,
            "key": {"user_id": user, "name": "k"}});
        let made = iam(&self.server, &self.admin, key).await?;
        Ok(made["api_key_plaintext"]
            .as_str()
            .context("no key")?
            .to_owned())
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        key: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Response> {
        let url = format!("{}{path}", self.server.url());
        let mut request = client()?.request(method, url).body(body.to_owned());
        if !key.is_empty() {
            request = request.bearer_auth(key);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Ok(request.send().await?)
    }

    async fn get(&self, path: &str, accept: &str) -> Result<HttpAnswer> {
        let accept = [("accept", accept)];
        let response = self
            .send(Method::GET, path, &self.admin, &accept, "")
            .await?;
        HttpAnswer::of(response).await
    }

    /// A query by GET.
    async fn ask(&self, query: &str, accept: &str) -> Result<HttpAnswer> {
        self.get(&format!("{SPARQL}?query={}", encoded(query)), accept)
            .await
    }

    async fn post(&self, path: &str, kind: &str, body: &str) -> Result<HttpAnswer> {
        let kind = [("content-type", kind)];
        let response = self
            .send(Method::POST, path, &self.admin, &kind, body)
            .await?;
        HttpAnswer::of(response).await
    }

    /// Adds a graph and waits until the collection has so many triples.
    async fn put(&self, path: &str, turtle: &str, count: &str) -> Result<()> {
        let told = self.post(path, "text/turtle", turtle).await?;
        ensure!(told.status == 202, "{told:?}");
        let all = "SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
        let end = Instant::now() + BOUND;
        loop {
            let told = self.ask(all, "text/csv").await?;
            if told.text == format!("n\r\n{count}\r\n") {
                return Ok(());
            }
            ensure!(Instant::now() < end, "{count} triples: {told:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn fill(&self) -> Result<()> {
        self.put(&format!("{GRAPH}?default"), BIRDS, "5").await?;
        let notes = format!("{GRAPH}?graph={}", encoded(NOTES));
        let note = "<http://example.org/wren> <urn:says> \"tic\" .";
        self.put(&notes, note, "6").await?;
        // The same again adds nothing.
        self.put(&notes, note, "6").await
    }
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

#[derive(Debug)]
struct HttpAnswer {
    status: u16,
    kind: String,
    allow: String,
    text: String,
}

impl HttpAnswer {
    async fn of(response: Response) -> Result<Self> {
        let header = |name: &str| {
            let value = response.headers().get(name);
            let value = value.and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        Ok(Self {
            status: response.status().as_u16(),
            kind: header("content-type"),
            allow: header("allow"),
            text: response.text().await?,
        })
    }

    fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.text).with_context(|| self.text.clone())
    }

    fn is(&self, status: u16, kind: &str, part: &str) -> Result<()> {
        let fits = self.status == status && self.kind.starts_with(kind) && self.text.contains(part);
        ensure!(fits, "{status} {kind} {part}: {self:?}");
        Ok(())
    }
}

const LABELS: &str =
    "SELECT ?b ?l { ?b <http://www.w3.org/2000/01/rdf-schema#label> ?l } ORDER BY ?l";
const BUILT: &str = "CONSTRUCT WHERE { <http://example.org/wren> <http://example.org/near> ?o }";

async fn rdflib_reads_a_collection(bus: Bus) -> Result<()> {
    let system = System::start(bus).await?;
    system.fill().await?;
    let reader = system.key("rita", "default", "reader").await?;
    let work = Command::new(root().join(".cache/venv/bin/python3"))
        .arg(root().join("tests/integration/clients/rdflib_store.py"))
        .args([format!("{}{SPARQL}", system.server.url()), reader])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work)
        .await
        .context("rdflib did not end")?;
    let output = output.context("cannot run Python: run the set-up first")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut told: Value = serde_json::from_str(&text).with_context(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        format!("{text}\n{errors}\n{}", system.server.log())
    })?;
    let all = told.as_object_mut().context("an object")?;
    let labels = json!(["Robin, \"red\"", "Wren", "Zaunkönig"]);
    for method in ["GET", "POST", "POST_FORM"] {
        for syntax in ["xml", "json", "csv", "tsv"] {
            let told = all.remove(&format!("select {method} {syntax}"));
            assert_eq!(told.as_ref(), Some(&labels), "{method} {syntax}");
        }
        for syntax in ["xml", "json"] {
            let told = all.remove(&format!("ask {method} {syntax}"));
            assert_eq!(told, Some(json!(true)), "{method} {syntax}");
        }
        for syntax in ["xml", "application/rdf+xml", "text/turtle"] {
            let told = all.remove(&format!("construct {method} {syntax}"));
            assert_eq!(told.as_ref(), Some(&labels), "{method} {syntax}");
        }
    }
    for list in ["label", "languages"] {
        let list = all.get_mut(list).and_then(Value::as_array_mut);
        list.context("a list")?.sort_by_key(Value::to_string);
    }
    assert_eq!(
        told,
        json!({
            "label": ["Wren", "Zaunkönig"], "languages": ["de", "en"], "weight": [9], "size": 5,
            "has": true, "has_not": false,
            "subjects": ["http://example.org/robin", "http://example.org/wren"],
            "named": ["tic"], "contexts": [NOTES], "bound": 2,
            "broken": "refused", "update": 403, "without a key": "refused",
        })
    );
    Ok(())
}

async fn each_syntax_is_its_standards(bus: Bus) -> Result<()> {
    let system = System::start(bus).await?;
    system.fill().await?;
    for (accept, kind, part) in [
        (
            "*/*",
            "application/sparql-results+json",
            r#""xml:lang":"de""#,
        ),
        (
            "application/json",
            "application/json",
            r#""vars":["b","l"]"#,
        ),
        (
            "application/sparql-results+xml",
            "application/sparql-results+xml",
            "xml:lang=\"en\"",
        ),
        ("application/xml", "application/xml", "</sparql>"),
        (
            "text/csv",
            "text/csv; charset=utf-8",
            "\"Robin, \"\"red\"\"\"\r\n",
        ),
        (
            "text/tab-separated-values",
            "text/tab-separated-values; charset=utf-8",
            "\"Wren\"@en\n",
        ),
        (
            "text/csv;q=0.1, application/xml;q=0.2",
            "application/xml",
            "</sparql>",
        ),
    ] {
        system.ask(LABELS, accept).await?.is(200, kind, part)?;
    }
    for (accept, kind, part) in [
        (
            "application/sparql-results+json",
            "application/sparql-results+json",
            r#""boolean":true"#,
        ),
        (
            "application/sparql-results+xml",
            "application/sparql-results+xml",
            "<boolean>true</boolean>",
        ),
    ] {
        system
            .ask("ASK { ?s ?p ?o }", accept)
            .await?
            .is(200, kind, part)?;
    }
    let notes = format!("{GRAPH}?graph={}", encoded(NOTES));
    for (accept, kind, part) in [
        ("*/*", "text/turtle; charset=utf-8", "example.org/near>"),
        (
            "application/n-triples",
            "application/n-triples",
            "<http://example.org/robin> .",
        ),
        ("application/rdf+xml", "application/rdf+xml", "</rdf:RDF>"),
        (
            "application/ld+json",
            "application/ld+json",
            "http://example.org/near",
        ),
    ] {
        system.ask(BUILT, accept).await?.is(200, kind, part)?;
        system
            .ask("DESCRIBE <http://example.org/wren>", accept)
            .await?
            .is(200, kind, "Zaunk")?;
        system.get(&notes, accept).await?.is(200, kind, "tic")?;
        // The description is a graph as well.
        let about = system.get(SPARQL, accept).await?;
        about.is(200, kind, &format!("{}{SPARQL}", system.server.url()))?;
        about.is(200, kind, "SPARQL11Query")?;
    }
    ways_of_asking(&system).await
}

/// A GET, a form and a query by itself are one.
async fn ways_of_asking(system: &System) -> Result<()> {
    let notes = format!("{GRAPH}?graph={}", encoded(NOTES));
    let asked = format!(
        "query={}&default-graph-uri={}",
        encoded("ASK { ?s <urn:says> ?o }"),
        encoded(NOTES)
    );
    let yes = r#""boolean":true"#;
    let form = "application/x-www-form-urlencoded";
    system
        .get(&format!("{SPARQL}?{asked}"), "*/*")
        .await?
        .is(200, "", yes)?;
    system.post(SPARQL, form, &asked).await?.is(200, "", yes)?;
    let chosen = format!("{SPARQL}?named-graph-uri={}", encoded(NOTES));
    let within = "ASK { GRAPH ?g { ?s <urn:says> ?o } FILTER NOT EXISTS { ?a ?b ?c } }";
    let direct = "application/sparql-query; charset=utf-8";
    system
        .post(&chosen, direct, within)
        .await?
        .is(200, "", yes)?;
    let head = system
        .send(Method::HEAD, &notes, &system.admin, &[], "")
        .await?;
    assert_eq!(head.status(), StatusCode::OK);
    assert_eq!(head.headers()["content-type"], "text/turtle; charset=utf-8");
    Ok(())
}

async fn bodies_refused(system: &System) -> Result<()> {
    let (form, json) = ("application/x-www-form-urlencoded", "application/json");
    let nameless = format!("{GRAPH}?graph=no%20name");
    for (path, kind, body, status, part) in [
        (SPARQL, "text/plain", "ASK {}", 415, "content-type: must be"),
        (
            SPARQL,
            "application/sparql-update",
            "DROP ALL",
            403,
            "updates are refused",
        ),
        (SPARQL, form, "update=DROP+ALL", 403, "updates are refused"),
        (SPARQL, form, "", 400, "query: is required"),
        (
            SPARQL,
            form,
            "query=ASK+%7B%7D&query=ASK+%7B%7D",
            400,
            "more than once",
        ),
        (
            SPARQL,
            form,
            "query=ASK+%7B%7D&default-graph-uri=no+name",
            400,
            "default-graph-uri: ",
        ),
        (
            "api/v1/flow/none/sparql/birds",
            "application/sparql-query",
            "ASK {}",
            404,
            "Invalid flow",
        ),
        (GRAPH, "text/turtle", "", 400, "graph: either"),
        (
            &nameless,
            "text/turtle",
            "<urn:a> <urn:b> 1 .",
            400,
            "graph: ",
        ),
        (
            &format!("{GRAPH}?default"),
            "application/rdf+xml",
            "<x/>",
            415,
            "text/turtle",
        ),
        (
            &format!("{GRAPH}?default"),
            "text/turtle",
            "<urn:a> <urn:b> 1 .\n<urn:c> oops",
            400,
            "line 2",
        ),
    ] {
        system
            .post(path, kind, body)
            .await?
            .is(status, json, part)?;
    }
    Ok(())
}

async fn what_is_wrong_has_its_status(bus: Bus) -> Result<()> {
    let system = System::start(bus).await?;
    system.fill().await?;
    let json = "application/json";
    for (query, accept, status, part) in [
        ("SELECT ?s WHERE { ?s", "*/*", 400, "error at 1:21"),
        ("DROP ALL", "*/*", 400, "only queries are answered here"),
        ("", "*/*", 400, "query: is required"),
        (
            LABELS,
            "text/turtle",
            406,
            "accept: the answer comes as application/sparql-results+json",
        ),
        (LABELS, "text/html", 406, "accept: "),
        (BUILT, "text/csv", 406, "text/turtle"),
        (
            "CONSTRUCT { ?s <http://example.org/7> ?o } WHERE { ?s ?p ?o }",
            "application/rdf+xml",
            406,
            "does not end in a name",
        ),
        ("ASK {}", "text/csv", 406, "accept: "),
        (
            "SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }",
            "*/*",
            400,
            "query: SERVICE asks another endpoint",
        ),
        (
            "SELECT (<http://example.org/none>(1) AS ?x) {}",
            "*/*",
            500,
            "sparql-evaluation-error",
        ),
    ] {
        system.ask(query, accept).await?.is(status, json, part)?;
    }
    bodies_refused(&system).await?;
    let ask = encoded("ASK {}");
    let path = format!("{SPARQL}?query={ask}&workspace=nowhere");
    system
        .get(&path, "*/*")
        .await?
        .is(404, json, "workspace not found")?;
    system
        .get(&format!("{GRAPH}?graph=urn:none"), "*/*")
        .await?
        .is(404, json, "no such graph")?;
    system
        .get(&format!("{GRAPH}?default"), "text/csv")
        .await?
        .is(406, json, "text/turtle")?;
    for (method, path) in [
        (Method::PUT, GRAPH),
        (Method::DELETE, GRAPH),
        (Method::PATCH, GRAPH),
        (Method::PUT, SPARQL),
    ] {
        let path = format!("{path}?default");
        let response = system.send(method, &path, &system.admin, &[], "").await?;
        let told = HttpAnswer::of(response).await?;
        assert_eq!(told.status, 405, "{told:?}");
        for allowed in ["GET", "HEAD", "POST"] {
            ensure!(told.allow.contains(allowed), "{told:?}");
        }
    }
    // Nothing of all that was written.
    system.put(&format!("{GRAPH}?default"), BIRDS, "6").await
}

async fn a_key_opens_what_it_opens_elsewhere(bus: Bus) -> Result<()> {
    let system = System::start(bus).await?;
    system.fill().await?;
    let workspace = json!({"operation": "create-workspace", "workspace_record": {"id": "acme", "enabled": true}});
    iam(&system.server, &system.admin, workspace).await?;
    let reader = system.key("rita", "default", "reader").await?;
    let stranger = system.key("eve", "acme", "writer").await?;
    let start = json!({"operation": "start-flow", "workspace": "acme", "flow-id": "default",
        "blueprint-name": "everything", "description": "d"});
    let end = Instant::now() + BOUND;
    loop {
        let kind = [("content-type", "application/json")];
        let path = "api/v1/flow";
        let started = system
            .send(Method::POST, path, &system.admin, &kind, &start.to_string())
            .await?;
        let told = HttpAnswer::of(started).await?;
        if told.status == 200 && told.json()?.get("error").is_none() {
            break;
        }
        ensure!(Instant::now() < end, "{told:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let ask = format!("{SPARQL}?query={}", encoded("ASK { ?s ?p ?o }"));
    let theirs = format!("{ask}&workspace=default");
    let (notes, here) = (
        format!("{GRAPH}?default"),
        format!("{GRAPH}?default&workspace=default"),
    );
    for (path, key, status) in [
        (&*ask, "", 401),
        (&*ask, "tg_nobody", 401),
        (SPARQL, "", 401),
        (&*notes, "", 401),
        (&*ask, &*reader, 200),
        (&*notes, &*reader, 200),
        (&*theirs, &*stranger, 403),
        (&*here, &*stranger, 403),
    ] {
        let told = HttpAnswer::of(system.send(Method::GET, path, key, &[], "").await?).await?;
        assert_eq!(told.status, status, "{path}: {told:?}");
    }
    for (path, key, status) in [
        (&*notes, "", 401),
        (&*notes, &*reader, 403),
        (&*here, &*stranger, 403),
        (SPARQL, "", 401),
    ] {
        let kind = [("content-type", "text/turtle")];
        let sent = system
            .send(Method::POST, path, key, &kind, "<urn:a> <urn:b> 1 .")
            .await?;
        assert_eq!(sent.status().as_u16(), status, "{path}");
    }
    // The flow of the same name elsewhere holds nothing of it.
    let end = Instant::now() + BOUND;
    let told = loop {
        let told =
            HttpAnswer::of(system.send(Method::GET, &ask, &stranger, &[], "").await?).await?;
        if told.status == 200 {
            break told;
        }
        ensure!(Instant::now() < end, "{told:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    told.is(200, "application/sparql-results+json", r#""boolean":false"#)
}

/// Triples of a large graph: beyond what an answer of the service has when nobody says how many.
const MANY: usize = 12_000;

async fn large_answers_stream_and_a_client_that_goes_ends_its_query(bus: Bus) -> Result<()> {
    let system = System::start(bus).await?;
    let many: String = (0..MANY)
        .map(|n| format!("<urn:s{n}> <urn:p> \"{n}\" .\n"))
        .collect();
    system
        .put(&format!("{GRAPH}?default"), &many, &MANY.to_string())
        .await?;
    let all = system.ask("SELECT ?s ?o { ?s ?p ?o }", "text/csv").await?;
    all.is(200, "text/csv", "s,o\r\n")?;
    assert_eq!(all.text.lines().count(), MANY + 1);
    let all = system
        .get(&format!("{GRAPH}?default"), "application/n-triples")
        .await?;
    assert_eq!((all.status, all.text.lines().count()), (200, MANY));

    // Two more than are evaluated at once: were they not ended, others would wait for their half minute.
    let heavy = "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }";
    let url = format!("{}{SPARQL}?query={}", system.server.url(), encoded(heavy));
    let leave = async || {
        let request = client()?.get(&url).bearer_auth(&system.admin);
        match request.timeout(Duration::from_secs(1)).send().await {
            Err(error) if error.is_timeout() => Ok(()),
            other => bail!("{other:?}"),
        }
    };
    futures::future::try_join_all((0..10).map(|_| leave())).await?;
    let light = tokio::time::timeout(
        Duration::from_secs(25),
        system.ask("ASK { ?s ?p ?o }", "*/*"),
    );
    light
        .await
        .context("those who left are still served")??
        .is(200, "", "true")
}

crate::world::on_both_buses!(
    rdflib_reads_a_collection,
    each_syntax_is_its_standards,
    what_is_wrong_has_its_status,
    a_key_opens_what_it_opens_elsewhere,
    large_answers_stream_and_a_client_that_goes_ends_its_query,
);
