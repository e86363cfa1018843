//! `tg add` against a small library that keeps what it is given.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tg_cli::interrupt::Interrupt;

use crate::fake::{Fake, Heard, asked, bounded};

/// Documents and processings; every look at processings brings each a step further.
#[derive(Default)]
pub(crate) struct Library {
    pub(crate) documents: Vec<Value>,
    pub(crate) processings: Vec<Value>,
    /// What becomes of a processing.
    ends: &'static str,
    /// Looks at processings that find nobody.
    away: usize,
    /// Processings whose ids another command takes first.
    taken: usize,
    /// The flows that run, if that may be asked.
    pub(crate) flows: Option<Vec<&'static str>>,
}

impl Library {
    pub(crate) fn ends(ends: &'static str) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            ends,
            ..Self::default()
        }))
    }

    fn answer(&mut self, body: &Value) -> (u16, Value) {
        let refused =
            |kind: &str, message: &str| (200, json!({"error": {"type": kind, "message": message}}));
        let (given, process) = (&body["document-metadata"], &body["processing-metadata"]);
        match body["operation"].as_str().unwrap_or_default() {
            "list-flows" if self.flows.is_some() => (200, json!({"flow-ids": self.flows})),
            "list-collections" => (200, json!({"collections": []})),
            "list-documents" => (200, json!({"document-metadatas": self.documents})),
            "list-processing" if self.away > 0 => {
                self.away -= 1;
                (
                    503,
                    json!({"error": {"type": "nobody-serves", "message": "nobody"}}),
                )
            }
            "list-processing" => {
                let shown = json!({"processing-metadatas": self.processings});
                for one in &mut self.processings {
                    one["status"] = json!(self.ends);
                }
                (200, shown)
            }
            "processing-status" => (
                200,
                json!({"processing-metadatas": [
                {"status": self.ends, "errors": [{"message": "is encrypted"}]}]}),
            ),
            "add-processing" if process["flow"] != "default" => {
                refused("request-error", "there is no flow")
            }
            "add-processing" if body["dry-run"] == true => (200, json!({"estimate": {}})),
            "add-processing" => {
                if self.taken > 0 {
                    self.taken -= 1;
                    return refused("conflict", "Processing already exists");
                }
                // As a repetition of the same second.
                let known = |one: &Value| one["id"] == process["id"];
                if self.processings.iter().any(known) {
                    return (200, json!({}));
                }
                let mut process = process.clone();
                process["status"] = json!("processing");
                process["progress"] = json!({"chunks": 1, "chunks-total": 2});
                self.processings.push(process);
                (200, json!({}))
            }
            "add-document" | "update-document" => {
                let content = STANDARD.decode(body["content"].as_str().expect("content"));
                let mut document = given.clone();
                document["content-hash"] = json!(sum(&content.expect("base64")));
                self.documents.retain(|one| one["id"] != given["id"]);
                self.documents.push(document);
                (200, json!({}))
            }
            "remove-document" => {
                self.documents
                    .retain(|one| one["id"] != body["document-id"]);
                (200, json!({}))
            }
            _ => (404, json!({"error": "none"})),
        }
    }
}

pub(crate) fn sum(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    hex::encode(digest)
}

pub(crate) async fn serve(library: &Arc<Mutex<Library>>) -> Fake {
    let library = library.clone();
    Fake::rest(move |_, body| library.lock().expect("a library").answer(body)).await
}

fn path(at: &Path) -> &str {
    at.to_str().expect("a path")
}

/// The operations that change something, in order.
pub(crate) fn changes(fake: &Fake) -> Vec<String> {
    let asked = asked(fake);
    let changing = asked.iter().filter(|body| {
        let operation = body["operation"].as_str().unwrap_or_default();
        !operation.starts_with("list-") && body["dry-run"] != true && !operation.is_empty()
    });
    changing
        .map(|body| body["operation"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test]
async fn only_what_is_new_or_changed_is_sent() {
    let folder = tempfile::tempdir().expect("a folder");
    let notes = folder.path().join("notes.md");
    fs::write(&notes, "# Lamps\n\nBlue glass.").expect("written");
    let library = Library::ends("complete");
    let fake = serve(&library).await;
    let line = ["add", "--tags", "a,b", path(folder.path())];
    let printed = fake.tg(&line).await.printed();
    assert!(
        printed.contains("notes.md: added as https://trustgraph.ai/doc/"),
        "{printed}"
    );
    assert!(
        printed.ends_with("(\"Lamps\", Markdown)\n1 added.\n"),
        "{printed}"
    );
    assert_eq!(changes(&fake), ["add-document", "add-processing"]);
    let document = asked(&fake)
        .into_iter()
        .find(|body| body["operation"] == "add-document")
        .expect("added");
    let document = &document["document-metadata"];
    assert_eq!(document["kind"], "text/markdown");
    assert_eq!(document["title"], "Lamps");
    assert_eq!(document["comments"], "notes.md");
    assert_eq!(document["tags"], json!(["a", "b"]));

    let again = fake.tg(&line).await.printed();
    assert!(again.ends_with("1 unchanged.\n"), "{again}");
    assert_eq!(changes(&fake).len(), 2);

    fs::write(&notes, "# Lamps\n\nRed glass.").expect("written");
    let changed = fake.tg(&line).await.printed();
    assert!(
        changed.contains("notes.md: changed, replaced as https://"),
        "{changed}"
    );
    assert_eq!(changes(&fake)[2..], ["update-document", "add-processing"]);
    // Back again: another processing of the same content, under another id.
    fs::write(&notes, "# Lamps\n\nBlue glass.").expect("written");
    fake.tg(&line).await.printed();
    assert_eq!(changes(&fake)[4..], ["update-document", "add-processing"]);
    // Another command may take an id at the same time.
    fs::write(&notes, "# Lamps\n\nWhite glass.").expect("written");
    library.lock().expect("a library").taken = 1;
    fake.tg(&line).await.printed();
    assert_eq!(
        changes(&fake)[6..],
        ["update-document", "add-processing", "add-processing"]
    );
    let library = library.lock().expect("a library");
    assert_eq!((library.documents.len(), library.processings.len()), (1, 4));
    assert!(
        library
            .processings
            .iter()
            .all(|one| one["document-id"] == library.documents[0]["id"])
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_not_sent_and_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.png"), b"\x89PNG\r\n\x1a\n").expect("written");
    fs::write(folder.path().join("b.txt"), "good").expect("written");
    let fake = serve(&Library::ends("complete")).await;
    let ran = fake.tg(&["add", path(folder.path()), "/no/such"]).await;
    let wanted = "a.png: not added: is an image, which is not read; convert it to PDF or text";
    assert!(ran.data.contains(wanted), "{}", ran.data);
    assert!(ran.data.contains("1 added, 2 failed:"), "{}", ran.data);
    assert_eq!(ran.error().exit_code(), 1);
    assert_eq!(changes(&fake), ["add-document", "add-processing"]);

    // Nothing is added for a flow that does not take it.
    let other = folder.path().join("c.txt");
    fs::write(&other, "more").expect("written");
    let ran = fake
        .tg(&[
            "add",
            "--json",
            "-f",
            "other",
            path(&other),
            "--id",
            "urn:b",
        ])
        .await;
    let told: Value = serde_json::from_str(&ran.data).expect("JSON");
    assert_eq!(told["documents"][0]["error"], "there is no flow");
    assert_eq!(told["failed"], 1);
    assert_eq!(ran.error().exit_code(), 1);
    assert_eq!(changes(&fake).len(), 2);

    let line = ["add", "--id", "urn:x", path(folder.path()), path(&other)];
    assert_eq!(fake.tg(&line).await.error().exit_code(), 2);
    let line = ["add", "--watch", "http://127.0.0.1:9/a"];
    assert_eq!(fake.tg(&line).await.error().exit_code(), 2);
}

#[tokio::test]
async fn waiting_goes_on_when_the_server_comes_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let notes = folder.path().join("notes.md");
    fs::write(&notes, "# Lamps\n\nBlue glass.").expect("written");
    let library = Library::ends("complete");
    let looks = Arc::new(AtomicUsize::new(0));
    let counting = (library.clone(), looks.clone());
    // The first list is read before anything is sent; then nobody answers for a while.
    let away = Fake::rest(move |_, body| {
        let (library, looks) = &counting;
        let mut library = library.lock().expect("a library");
        if body["operation"] == "list-processing" && looks.fetch_add(1, Ordering::SeqCst) == 0 {
            let answer = library.answer(body);
            library.away = 7;
            return answer;
        }
        library.answer(body)
    })
    .await;
    let ran = away.tg(&["add", "--wait", path(&notes)]).await;
    assert!(
        ran.talk.contains("the server is away, waiting for it"),
        "{}",
        ran.talk
    );
    assert!(ran.printed().ends_with("1 added.\n"));
}

#[tokio::test]
async fn waiting_ends_at_its_timeout_where_nothing_can_move_and_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("words.txt");
    fs::write(&file, "words").expect("written");
    let library = Library::ends("processing");
    let fake = Fake::rest(move |path, body| match path.contains("health/ready") {
        true => (
            503,
            json!({"ready": false, "missing": ["the disk is full"]}),
        ),
        false => library.lock().expect("a library").answer(body),
    })
    .await;
    let line = ["add", "--wait", "--timeout", "1", path(&file)];
    let ran = bounded(fake.tg(&line)).await;
    let error = ran.error();
    assert_eq!(error.exit_code(), 1);
    let told = error.to_string();
    assert!(told.starts_with("Nothing moved for "), "{told}");
    assert!(told.contains("the disk is full"), "{told}");
}

#[tokio::test]
async fn rdf_that_is_added_as_text_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["team.ttl", "team.txt"] {
        fs::write(folder.path().join(name), "<urn:a> <urn:b> <urn:c> .").expect("written");
    }
    let fake = serve(&Library::ends("complete")).await;
    let ran = fake.tg(&["add", path(folder.path())]).await;
    let told: Vec<&str> = ran
        .talk
        .lines()
        .filter(|line| line.contains("RDF"))
        .collect();
    assert_eq!(told.len(), 1, "{}", ran.talk);
    assert!(
        told[0].contains("team.ttl") && told[0].contains("tg load-turtle"),
        "{told:?}"
    );
}

#[tokio::test]
async fn a_document_that_fails_to_be_processed_fails_the_wait() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.txt");
    fs::write(&file, "words").expect("written");
    let fake = serve(&Library::ends("failed")).await;
    let ran = fake
        .tg(&["add", "--wait", path(&file), "--title", "Words"])
        .await;
    assert!(
        ran.data
            .ends_with("1 added, 1 failed:\n  Words: is encrypted\n"),
        "{}",
        ran.data
    );
    assert_eq!(ran.error().exit_code(), 1);
}

#[tokio::test]
async fn an_address_is_fetched_and_kept_without_its_secrets() {
    let place = Fake::rest(|path, _| match path {
        "/docs/page?key=s3cret" => (200, json!("<!doctype html><title>Gauges</title><p>x")),
        _ => (404, json!("none")),
    })
    .await;
    let fake = serve(&Library::ends("complete")).await;
    let url = format!("{}docs/page?key=s3cret", place.url);
    let printed = fake.tg(&["add", &url]).await.printed();
    assert!(printed.contains("(\"Gauges\", HTML)"), "{printed}");
    let asked = asked(&fake);
    let document = asked
        .iter()
        .find(|body| body["operation"] == "add-document")
        .expect("added");
    assert!(!document["document-metadata"].to_string().contains("s3cret"));
    let triples = document["document-metadata"]["metadata"].to_string();
    assert!(triples.contains("docs/page\""), "{triples}");

    let gone = format!("{}gone", place.url);
    let ran = fake.tg(&["add", &gone]).await;
    assert!(
        ran.data.contains("its server answers with status 404"),
        "{}",
        ran.data
    );
    assert_eq!(ran.error().exit_code(), 1);
}

#[tokio::test]
async fn a_directory_is_followed_until_ctrl_c() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.txt"), "one").expect("written");
    let library = Library::ends("complete");
    let fake = serve(&library).await;
    let (switch, interrupt) = Interrupt::manual();
    let line = ["add", "--watch", path(folder.path())];
    let watching = fake.tg_until(&line, interrupt);
    let sees = |file: &'static str| {
        let fake = fake.clone();
        async move {
            fake.hears(|heard| matches!(heard, Heard::Rest(_, _, body)
                if body["operation"] == "add-processing" && body["dry-run"] != true
                    && body["processing-metadata"]["id"].as_str().is_some_and(|id| id.starts_with(file))))
            .await;
        }
    };
    let user = async {
        sees("a.txt").await;
        fs::write(folder.path().join("b.txt"), "two").expect("written");
        sees("b.txt").await;
        // What is on its way comes to its end before the user goes, of which nobody hears.
        tokio::time::sleep(Duration::from_secs(2)).await;
        switch.send_replace(true);
    };
    let (ran, ()) = bounded(async { tokio::join!(watching, user) }).await;
    assert!(ran.printed().ends_with("2 added.\n"));
}

#[tokio::test]
async fn the_commands_one_by_one_find_as_much() {
    let folder = tempfile::tempdir().expect("a folder");
    let notes = folder.path().join("notes.md");
    fs::write(&notes, "# Lamps\n\nBlue glass.").expect("written");
    let library = Library::ends("complete");
    let fake = serve(&library).await;
    let line = ["add-library-document", "--id", "urn:lamps", path(&notes)];
    let printed = fake.tg(&line).await.printed();
    let wanted = "notes.md: Loaded successfully. It is urn:lamps (\"Lamps\").\n";
    assert!(printed.ends_with(wanted), "{printed}");
    assert_eq!(
        library.lock().expect("a library").documents[0]["kind"],
        "text/markdown"
    );

    let printed = fake
        .tg(&["start-library-processing", "urn:lamps"])
        .await
        .printed();
    assert!(
        printed.starts_with("Processing urn:lamps as lamps-"),
        "{printed}"
    );
    let line = [
        "start-library-processing",
        "-d",
        "urn:lamps",
        "--id",
        "p",
        "--wait",
    ];
    let printed = fake.tg(&line).await.printed();
    assert!(printed.contains("| complete"), "{printed}");
    let line = ["start-library-processing", "-d", "urn:lamps", "--id", "q"];
    assert_eq!(fake.tg(&line).await.printed(), "");

    let shown = fake.tg(&["show-library-documents"]).await.printed();
    assert!(
        shown
            .lines()
            .nth(1)
            .is_some_and(|row| row.starts_with("Lamps  Markdown  2")),
        "{shown}"
    );
    let shown = fake
        .tg(&["show-library-documents", "--long"])
        .await
        .printed();
    assert!(shown.contains("| kind  | text/markdown"), "{shown}");
    let shown = fake.tg(&["process-status"]).await.printed();
    let first: Vec<_> = shown
        .lines()
        .map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(
        first,
        [
            Some("document"),
            Some("Lamps"),
            Some("Lamps"),
            Some("Lamps")
        ]
    );
    assert!(
        shown.lines().nth(1).is_some_and(|row| row.ends_with("  q")),
        "the newest first: {shown}"
    );
}

#[tokio::test]
async fn what_a_file_is_not_is_told_and_not_taken_without_a_word() {
    let folder = tempfile::tempdir().expect("a folder");
    let notes = folder.path().join("notes.md");
    fs::write(&notes, "# Lamps\n\nBlue glass.").expect("written");
    let fake = serve(&Library::ends("complete")).await;
    let image = folder.path().join("a.png");
    fs::write(&image, b"\x89PNG\r\n\x1a\n").expect("written");
    let line = ["add-library-document", path(&image)];
    let error = fake.tg(&line).await.error().to_string();
    assert!(
        error.ends_with("a.png: is an image, which is not read; convert it to PDF or text"),
        "{error}"
    );
    let line = [
        "add-library-document",
        "-k",
        "image/png",
        "--name",
        "A",
        path(&image),
    ];
    let ran = fake.tg(&line).await;
    assert!(
        ran.talk.contains("it will not be processed"),
        "{}",
        ran.talk
    );
    assert!(ran.printed().contains("Loaded successfully."));

    let there = Fake::rest(|_, _| {
        (
            200,
            json!({"error": {"type": "request-error", "message": "Document already exists"}}),
        )
    })
    .await;
    let line = ["add-library-document", "--id", "urn:lamps", path(&notes)];
    let error = there.tg(&line).await.error();
    assert!(
        error
            .to_string()
            .ends_with("Document already exists: urn:lamps"),
        "{error}"
    );
    assert_eq!(error.exit_code(), 4);
}

#[tokio::test]
async fn nothing_is_read_or_sent_where_no_flow_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.txt"), "good").expect("written");
    for (flows, wanted) in [
        (vec![], "No flow runs in workspace acme"),
        (
            vec!["other"],
            "flow default does not run in workspace acme; running: other",
        ),
    ] {
        let library = Library::ends("complete");
        library.lock().expect("a library").flows = Some(flows);
        let fake = serve(&library).await;
        let ran = fake.tg(&["add", "-w", "acme", path(folder.path())]).await;
        assert_eq!(ran.data, "");
        let error = ran.error();
        assert_eq!((error.to_string().as_str(), error.exit_code()), (wanted, 3));
        let asked = asked(&fake);
        assert_eq!(asked.len(), 1, "{asked:?}");
    }
}
