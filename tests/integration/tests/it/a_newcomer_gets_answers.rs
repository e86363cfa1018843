//! A newcomer's first ten minutes at the command line: an empty directory, three documents of their own, questions,
//! citations that can be read and checked, and the same answers when the server was killed and started again.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tg_testkit::pdf::{LEFT, Pdf, line};
use tg_testkit::process::{Output, free_port, tg};

use crate::world::{Bus, Installation};

const LETTER: &str = "# Letters from Aldmere\n\n## Spring\n\nThe Quillon bridge was opened by Marguerite Alder in 1911. \
    Its towers are made of grey basalt.\n\n## Autumn\n\nThe ferry to Tarn Isle leaves at nine.\n";
const PAGE: &str = "<!doctype html><html><head><title>Pumps of Brackmoor</title></head><body><nav>Home</nav>\
    <p>The Ostrava pump lifts 40 litres a second. It was installed by Tobias Wren.</p></body></html>";
const REPORT: [&str; 2] = [
    "The Selwick mill was bought by Henrietta Moss in 1866.",
    "The Selwick wheel has a diameter of 12 metres.",
];

/// A question, what its answer has to say, and the document that says it.
const QUESTIONS: [(&str, &str, &str); 6] = [
    (
        "Who opened the Quillon bridge?",
        "Marguerite Alder",
        "Letters from Aldmere",
    ),
    // The words of a document's own title are no answer, and letters inside other words none either.
    (
        "What do the Letters from Aldmere say of the ferry?",
        "leaves at nine",
        "Letters from Aldmere",
    ),
    (
        "How many litres does the pump of Brackmoor lift?",
        "40 litres",
        "Pumps of Brackmoor",
    ),
    (
        "Who installed the Ostrava pump?",
        "Tobias Wren",
        "Pumps of Brackmoor",
    ),
    (
        "Who bought the Selwick mill?",
        "Henrietta Moss",
        "selwick.pdf, page 1",
    ),
    (
        "What is the diameter of the Selwick wheel?",
        "12 metres",
        "selwick.pdf, page 2",
    ),
];

fn write_documents(folder: &Path) -> Result<()> {
    fs::write(folder.join("letters.md"), LETTER)?;
    fs::write(folder.join("pumps.html"), PAGE)?;
    let mut pdf = Pdf::courier();
    for text in REPORT {
        pdf.page(&line(LEFT, 700.0, text));
    }
    fs::write(folder.join("selwick.pdf"), pdf.finish(""))?;
    Ok(())
}

async fn run(url: &str, args: &[&str]) -> Result<Output> {
    let ran = tg(url, args).await?;
    ensure!(ran.code == Some(0), "{args:?}: {ran:?}");
    Ok(ran)
}

/// What is printed of a question: the answer with its citations.
async fn asked(url: &str, question: &str) -> Result<Output> {
    run(url, &["ask", question]).await
}

/// The answer to each question, checked as a person would: the words, the source under its number, the trace.
async fn answers(url: &str) -> Result<Vec<String>> {
    let mut answers = Vec::new();
    for (question, words, source) in QUESTIONS {
        let ran = asked(url, question).await?;
        ran.expect(words)?.expect("[1]")?;
        let cited = ran
            .stdout
            .lines()
            .find(|line| line.starts_with("[1] "))
            .with_context(|| format!("{ran:?}"))?;
        ensure!(cited.contains(source), "{question}: {cited}");
        let trace = ran
            .stderr
            .lines()
            .find_map(|line| line.strip_prefix("trace: "))
            .and_then(|line| line.split_whitespace().nth(2))
            .with_context(|| format!("{ran:?}"))?;
        let verified = run(url, &["verify", trace]).await?;
        ensure!(verified.stderr.contains("links hold."), "{verified:?}");
        let told = run(url, &["verify", trace, "--json"]).await?;
        let told: Value = serde_json::from_str(&told.stdout)?;
        ensure!(told["verified"] == true, "{told}");
        answers.push(ran.stdout);
    }
    Ok(answers)
}

/// The same through JSON, for whoever writes a script on the first day.
async fn a_script_reads_it(url: &str) -> Result<()> {
    let (question, words, _) = QUESTIONS[5];
    let ran = run(url, &["ask", question, "--json"]).await?;
    let told: Value = serde_json::from_str(&ran.stdout)?;
    let citation = &told["citations"][0];
    ensure!(
        citation["n"] == 1
            && citation["page"] == 2
            && citation["title"] == "selwick.pdf"
            && citation["text"]
                .as_str()
                .is_some_and(|text| text.contains(words))
            && told["trace"].is_string(),
        "{told}"
    );
    Ok(())
}

async fn newcomer(bus: Bus) -> Result<()> {
    let installation = Installation::new(bus).await?;
    // The next one is found there, too.
    let port = free_port()?;
    let server = installation.up(Some(port)).await?;
    let url = server.url();
    let folder = tempfile::tempdir()?;
    write_documents(folder.path())?;
    let documents = folder.path().to_string_lossy().into_owned();

    run(&url, &["doctor"]).await?;
    let added = run(&url, &["add", "--wait", &documents]).await?;
    added
        .expect("(\"Letters from Aldmere\", Markdown)")?
        .expect("(\"Pumps of Brackmoor\", HTML)")?
        .expect("(\"selwick.pdf\", PDF, 2 pages)")?
        .expect("3 added.")?;
    let listed = run(&url, &["show-library-documents"]).await?;
    listed
        .expect("Letters from Aldmere")?
        .expect("selwick.pdf")?;
    let first = answers(&url).await?;
    a_script_reads_it(&url).await?;
    // What the documents do not say is not made up, and nothing is cited for it.
    let refused = tg(&url, &["ask", "Who painted the Larkspur portrait?"]).await?;
    ensure!(!refused.stdout.contains("[1]"), "{refused:?}");

    server.kill9().await?;
    let server = installation.up(Some(port)).await?;
    let second = answers(&server.url()).await?;
    ensure!(first == second, "{first:?} is now {second:?}");
    let again = run(&url, &["add", "--wait", &documents]).await?;
    again.expect("3 unchanged")?;
    run(&url, &["doctor"]).await?;
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    newcomer(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    newcomer(Bus::Rabbit).await
}
