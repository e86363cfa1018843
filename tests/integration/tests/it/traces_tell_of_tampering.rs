//! A trace that somebody changes is found, and the first link that does not hold is named: at the gateway, in files without
//! it, and by a program that was written from the documentation alone.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;
use tg_testkit::process::{Output, root, tg};
use tokio::process::Command;

use crate::traces;
use crate::world::{Bus, World, on_both_buses};

const BOUND: Duration = Duration::from_secs(120);
const ARGUMENTS: &str = "<https://trustgraph.ai/ns/arguments>";
const GRAPH: &str = "<urn:graph:retrieval>";

/// Some runs that were answered, and where files go.
struct Story {
    world: World,
    dir: TempDir,
    runs: Vec<String>,
}

impl Story {
    async fn of(bus: Bus, runs: usize) -> Result<Self> {
        let world = World::two_step(bus).await?;
        let mut story = Self {
            world,
            dir: tempfile::tempdir()?,
            runs: Vec::new(),
        };
        for _ in 0..runs {
            story.run().await?;
        }
        Ok(story)
    }

    /// One more run, whose trace is stored.
    async fn run(&mut self) -> Result<()> {
        let socket = self.world.socket().await?;
        let nonce = format!("nonce-{}", self.runs.len());
        let frames = traces::begin(&socket, "default", &nonce, false).await?;
        match traces::end(frames, &nonce, BOUND).await? {
            traces::Ended::Answered(run) => self.runs.push(run),
            failed @ traces::Ended::Failed(_) => anyhow::bail!("{failed:?}"),
        }
        traces::check(&socket, &self.runs).await
    }

    async fn tg(&self, args: &[&str]) -> Result<Output> {
        tg(&self.world.server.url(), args).await
    }

    fn file(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Whether the chain of a run in a collection holds, and what is told of it.
    async fn online(&self, run: &str, collection: &str) -> Result<Value> {
        let args = ["verify-trace", run, "-C", collection, "--chain", "--json"];
        told(&self.tg(&args).await?)
    }

    /// The same in files.
    async fn offline(&self, run: &str, args: &[&str]) -> Result<Value> {
        let args = [&["verify-trace", run, "--json"], args].concat();
        let ran = tg("http://127.0.0.1:9/", &args).await?;
        Ok(told_of_files(&ran)?["chains"][0].take())
    }

    /// Puts quads of traces into a collection, as whoever may write the graph can.
    async fn put(&self, collection: &str, quads: &str) -> Result<()> {
        let triples: String = quads
            .lines()
            .map(|quad| quad.replace(GRAPH, "") + "\n")
            .collect();
        let url = self.world.server.url();
        let path = format!("{url}api/v1/flow/default/graph/{collection}?graph=urn:graph:retrieval");
        let request = tg_testkit::process::client()?.post(path).body(triples);
        let response = request
            .header("Content-Type", "application/n-triples")
            .send()
            .await?;
        let status = response.status().as_u16();
        ensure!(status == 202, "{status} {}", response.text().await?);
        Ok(())
    }

    /// What is told of a run in a collection once it is no longer told that there is no such trace, and `wanted` holds.
    async fn soon(
        &self,
        run: &str,
        collection: &str,
        wanted: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let end = tokio::time::Instant::now() + BOUND;
        loop {
            let told = self.online(run, collection).await;
            match told {
                Ok(told) if wanted(&told) => return Ok(told),
                told if tokio::time::Instant::now() > end => return told,
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

/// What a command says of one chain; its exit code agrees.
fn told(ran: &Output) -> Result<Value> {
    let told: Value = serde_json::from_str(&ran.stdout).with_context(|| format!("{ran:?}"))?;
    let code = if told["whole"] == true { 0 } else { 1 };
    ensure!(ran.code == Some(code), "{ran:?}");
    Ok(told)
}

fn told_of_files(ran: &Output) -> Result<Value> {
    let told: Value = serde_json::from_str(&ran.stdout).with_context(|| format!("{ran:?}"))?;
    let code = if told["verified"] == true { 0 } else { 1 };
    ensure!(ran.code == Some(code), "{ran:?}");
    Ok(told)
}

/// The files of a bundle that hold triples.
fn quads_of(bundle: &Path) -> Result<String> {
    let file = flate2::read::GzDecoder::new(std::fs::File::open(bundle)?);
    let mut tar = tar::Archive::new(file);
    let mut quads = String::new();
    for entry in tar.entries()? {
        let mut entry = entry?;
        if entry.path()?.extension().is_some_and(|end| end == "nq") {
            entry.read_to_string(&mut quads)?;
        }
    }
    Ok(quads)
}

/// What the program that was written from the documentation finds.
async fn independently(quads: &Path, head: &str, key: &str) -> Result<Value> {
    let work = Command::new("python3")
        .arg(root().join("tests/integration/clients/verify_traces.py"))
        .arg("default")
        .arg(quads)
        .args(["--", head, key])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(BOUND, work).await??;
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).with_context(|| errors.into_owned())
}

/// Ways to tamper with the quads of a run: what each is, the quads after it, and what is to be told.
fn tampered(quads: &str, run: &str) -> Vec<(&'static str, String, String, &'static str)> {
    let subject = |name: &str| format!("<{run}{name}> ");
    let (step, seen) = (subject("/i1"), subject("/i1/observation"));
    let swapped = quads.lines().map(|line| match line {
        line if line.starts_with(&step) => line.replacen(&step, &seen, 1) + "\n",
        line if line.starts_with(&seen) => line.replacen(&seen, &step, 1) + "\n",
        line => line.to_owned() + "\n",
    });
    let without = |name: &str| -> String {
        let lines = quads
            .lines()
            .filter(|line| !line.starts_with(&subject(name)));
        lines.map(|line| line.to_owned() + "\n").collect()
    };
    let changed = |line: &str| line.starts_with(&step) && line.contains(ARGUMENTS);
    let statement = quads.lines().map(|line| match changed(line) {
        true => line.replace("6*7", "6*8") + "\n",
        false => line.to_owned() + "\n",
    });
    let added = format!("{seen}<https://trustgraph.ai/ns/toolError> \"none\" {GRAPH} .\n");
    let named = |name: &str| format!("{run}{name}");
    vec![
        (
            "a statement",
            statement.collect(),
            named("/i1"),
            "statement-changed",
        ),
        (
            "one more",
            quads.to_owned() + &added,
            named("/i1/observation"),
            "statement-changed",
        ),
        ("a step", without("/i1"), named("/i1"), "entity-missing"),
        (
            "a thought",
            without("/i1/thought"),
            named("/i1/thought"),
            "entity-missing",
        ),
        (
            "the question",
            without(""),
            run.to_owned(),
            "entity-missing",
        ),
        (
            "the end",
            without("/final"),
            named("/final"),
            "entity-missing",
        ),
        (
            "two that were swapped",
            swapped.collect(),
            named("/i1"),
            "statement-changed",
        ),
    ]
}

async fn what_is_changed_is_found_and_named(bus: Bus) -> Result<()> {
    let story = Story::of(bus, 2).await?;
    let run = &story.runs[0];
    let whole = story.online(run, "default").await?;
    ensure!(
        whole["whole"] == true && whole["entities"] == 6 && whole["texts"] == 4,
        "{whole}"
    );
    let bundle = story.file("all.tgx");
    let ran = story
        .tg(&["export-workspace", "-o", &bundle, "-c", "default"])
        .await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    let offline = story.offline(run, &["--file", &bundle]).await?;
    ensure!(
        offline["whole"] == true && offline["texts"] == 4,
        "{offline}"
    );

    let quads = quads_of(Path::new(&bundle))?;
    for (at, (what, quads, entity, fault)) in tampered(&quads, run).into_iter().enumerate() {
        let file = PathBuf::from(story.file("tampered.nq"));
        std::fs::write(&file, &quads)?;
        let file = file.display().to_string();
        let told = story.offline(run, &["--file", &file]).await;
        let told = told.with_context(|| what.to_owned())?;
        // Of two that were swapped either is the first, by whose hash one goes.
        let other = told["entity"] == format!("{run}/i1/observation") && what.contains("swapped");
        ensure!(
            told["fault"] == fault && (told["entity"] == *entity || other),
            "{what}: {told}"
        );
        // The other run is none of it.
        let other = story.offline(&story.runs[1], &["--file", &file]).await?;
        ensure!(other["whole"] == true, "{what}: {other}");
        if what == "the question" {
            continue;
        }
        let collection = format!("tampered-{at}");
        story.put(&collection, &quads).await?;
        let there = |told: &Value| told["whole"] == false;
        let online = story.soon(run, &collection, there).await?;
        ensure!(
            online["fault"] == told["fault"] && online["entity"] == told["entity"],
            "{what}: {online} {told}"
        );
    }
    what_is_changed_where_it_is_kept(&story).await
}

/// In the stores of the system itself: a text of the library, and one more statement in the graph.
async fn what_is_changed_where_it_is_kept(story: &Story) -> Result<()> {
    let (first, second) = (&story.runs[0], &story.runs[1]);
    let id = format!("{first}/answer");
    let library = async |request: Value| {
        let (status, reply) = story.world.post("api/v1/librarian", request).await?;
        ensure!(status == 200 && reply["error"].is_null(), "{reply}");
        Ok(())
    };
    let missing = json!({"operation": "remove-document", "document-id": id});
    library(missing).await?;
    let told = story.online(first, "default").await?;
    ensure!(
        told["fault"] == "text-missing" && told["entity"] == format!("{first}/final"),
        "{told}"
    );
    let document = json!({"id": id, "title": "Agent Answer", "kind": "text/plain", "time": 1,
        "document-type": "answer"});
    let content = STANDARD.encode("Another answer.");
    library(
        json!({"operation": "add-document", "document-metadata": document, "content": content}),
    )
    .await?;
    let told = story.online(first, "default").await?;
    ensure!(
        told["fault"] == "text-changed" && told["entity"] == format!("{first}/final"),
        "{told}"
    );
    let more =
        format!("<{second}> <https://trustgraph.ai/ns/query> \"Something else?\" {GRAPH} .\n");
    story.put("default", &more).await?;
    let told = story
        .soon(second, "default", |told| told["whole"] == false)
        .await?;
    ensure!(
        told["fault"] == "statement-changed" && told["entity"] == *second,
        "{told}"
    );
    // Without a flag it is told beside the links, and first.
    let ran = story.tg(&["verify-trace", second]).await?;
    ran.expect(&format!(
        "✗ {second}: broken at {second}: what is said of it is not what was hashed"
    ))?;
    ensure!(
        ran.stderr.contains("the chain is broken at") && ran.code == Some(1),
        "{ran:?}"
    );
    Ok(())
}

/// A run whose end was rewritten with a hash that fits: only who has the head can tell.
fn rewritten(quads: &str, run: &str) -> String {
    let end = format!("<{run}/final> ");
    let hashed = "<https://trustgraph.ai/ns/entityHash>";
    let reason = "\"final-answer\"";
    let lines = quads.lines().filter(|line| line.starts_with(&end));
    let left_out =
        |line: &&str| line.contains(hashed) || line.contains("<https://trustgraph.ai/ns/document>");
    let lines = lines.filter(|line| !left_out(line));
    let lines: BTreeSet<String> = lines
        .map(|line| {
            line.replace(reason, "\"error\"")
                .replace(&format!(" {GRAPH}"), "")
                + "\n"
        })
        .collect();
    let hash = tg_provenance::text_hash(&lines.into_iter().collect::<String>());
    let rewrite = |line: &str| match line.starts_with(&end) {
        true if line.contains(hashed) => format!("{end}{hashed} \"{hash}\" {GRAPH} .\n"),
        true => line.replace(reason, "\"error\"") + "\n",
        false => line.to_owned() + "\n",
    };
    quads.lines().map(rewrite).collect()
}

/// The runs of today come in pages as they ended.
async fn ended_runs_are_listed(story: &Story) -> Result<()> {
    let (mut listed, mut after) = (Vec::new(), String::new());
    loop {
        let ask = json!({"operation": "list-ended-runs", "workspace": "default", "limit": 1, "after": after});
        let (status, page) = story.world.post("api/v1/traces", ask).await?;
        ensure!(
            status == 200 && page["runs"].as_array().is_some_and(|runs| runs.len() <= 1),
            "{page}"
        );
        listed.extend(page["runs"][0]["run"].as_str().map(str::to_owned));
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    ensure!(listed == story.runs, "{listed:?} {:?}", story.runs);
    for (day, why) in [
        ("tomorrow", "day: must be a date"),
        ("9999-01-01", "day: has not begun"),
        ("2020-01-01", "day: is too long ago"),
    ] {
        let ran = story.tg(&["sign-traces", "--day", day]).await?;
        ensure!(ran.stderr.contains(why) && ran.code == Some(2), "{ran:?}");
    }
    Ok(())
}

async fn heads_hold_a_day_without_the_system(bus: Bus) -> Result<()> {
    let mut story = Story::of(bus, 2).await?;
    let (key, first, again) = (
        story.file("key.pem"),
        story.file("1.json"),
        story.file("2.json"),
    );
    for args in [
        &["sign-traces", "--public-key", "-o", &key][..],
        &["sign-traces", "-o", &first],
        &["sign-traces", "-o", &again],
    ] {
        let ran = story.tg(args).await?;
        ensure!(ran.code == Some(0), "{ran:?}");
    }
    ensure!(
        std::fs::read(&first)? == std::fs::read(&again)?,
        "the same head as before"
    );
    story.run().await?;
    ended_runs_are_listed(&story).await?;
    // Another key signs the second head; what verifies both is told.
    let rotated = story
        .tg(&["sign-traces", "--rotate-key", "-o", &key])
        .await?;
    ensure!(rotated.code == Some(0), "{rotated:?}");
    let keys = std::fs::read_to_string(&key)?;
    ensure!(keys.matches("BEGIN PUBLIC KEY").count() == 2, "{keys}");
    let second = again;
    let ran = story.tg(&["sign-traces", "-o", &second]).await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    let head: Value = serde_json::from_slice(&std::fs::read(&second)?)?;
    let text = head["head"].as_str().context("a head")?;
    let before: Value = serde_json::from_slice(&std::fs::read(&first)?)?;
    let before = tg_provenance::text_hash(before["head"].as_str().context("a head")?);
    ensure!(
        text.contains("\nruns: 3\n") && text.contains(&format!("\nprevious: {before}\n")),
        "{text}"
    );

    let bundle = story.file("all.tgx");
    let ran = story
        .tg(&["export-workspace", "-o", &bundle, "-c", "default"])
        .await?;
    ensure!(ran.code == Some(0), "{ran:?}");
    let quads = PathBuf::from(story.file("all.nq"));
    std::fs::write(&quads, quads_of(Path::new(&bundle))?)?;
    let signs = text.lines().find_map(|line| line.strip_prefix("key: "));
    let nq = quads.display().to_string();
    a_revoked_key_counts_no_more(&story, signs.context("a key")?, &second, &nq).await?;
    // Nobody is there to be asked any more.
    let runs = story.runs.clone();
    let dir = story.dir;
    drop(story.world);
    let files = Files {
        dir,
        quads,
        key,
        runs,
    };
    files.hold(&bundle, &first, &second).await
}

async fn a_revoked_key_counts_no_more(
    story: &Story,
    kid: &str,
    head: &str,
    nq: &str,
) -> Result<()> {
    let (keys, day) = (story.file("revoked.pem"), "2026-01-01T00:00:00Z");
    let revoke = ["sign-traces", "-o", &keys, "--revoke-key", kid];
    let ran = story
        .tg(&[&revoke[..], &["--revoked-from", day]].concat())
        .await?;
    ensure!(ran.code == Some(0), "not revoked");
    let told = std::fs::read_to_string(&keys)?;
    ensure!(told.contains(&format!("revoked-from: {kid} ")), "{told}");
    let verify = [
        "verify-trace",
        "--file",
        nq,
        "--heads",
        head,
        "--key",
        &keys,
    ];
    let ran = story.tg(&verify).await?;
    ensure!(ran.stderr.contains("does not count"), "{ran:?}");
    Ok(())
}

struct Files {
    dir: TempDir,
    quads: PathBuf,
    key: String,
    runs: Vec<String>,
}

impl Files {
    async fn verify(&self, files: &[&str], heads: &[&str], key: &str) -> Result<Output> {
        let mut args = vec!["verify-trace", "--json", "--key", key];
        files.iter().for_each(|file| args.extend(["--file", file]));
        heads.iter().for_each(|head| args.extend(["--heads", head]));
        tg("http://127.0.0.1:9/", &args).await
    }

    fn write(&self, name: &str, text: &str) -> Result<String> {
        let file = self.dir.path().join(name);
        std::fs::write(&file, text)?;
        Ok(file.display().to_string())
    }

    async fn hold(&self, bundle: &str, first: &str, second: &str) -> Result<()> {
        let (key, nq) = (self.key.as_str(), self.quads.display().to_string());
        let told = told_of_files(&self.verify(&[bundle], &[first, second], key).await?)?;
        let signed = told["chains"].as_array().context("chains")?;
        ensure!(
            signed.len() == 3
                && signed
                    .iter()
                    .all(|one| one["signed"] == true && one["texts"] == 4),
            "{told}"
        );
        ensure!(
            told["heads"]
                .as_array()
                .is_some_and(|heads| heads.iter().all(|one| one["follows"] == true)),
            "{told}"
        );
        let told = independently(&self.quads, second, key).await?;
        let mut expected = json!({"runs": {}, "head": null});
        for run in &self.runs {
            expected["runs"][run] = Value::Null;
        }
        ensure!(told == expected, "{told}");

        let (run, end) = (&self.runs[1], format!("{}/final", self.runs[1]));
        let quads = std::fs::read_to_string(&self.quads)?;
        // All of the run is gone, or its end is another that hangs together.
        let lines = quads.lines().filter(|line| !line.contains(run.as_str()));
        let gone: String = lines.map(|line| line.to_owned() + "\n").collect();
        for (what, quads, fault, entity) in [
            ("gone", gone, "entity-missing", run),
            ("rewritten", rewritten(&quads, run), "not-as-signed", &end),
        ] {
            let file = self.write("other.nq", &quads)?;
            let told = told_of_files(&self.verify(&[&file], &[second], key).await?)?;
            let chains = told["chains"].as_array().context("chains")?;
            let broken: Vec<_> = chains.iter().filter(|one| one["whole"] == false).collect();
            ensure!(
                broken.len() == 1 && broken[0]["run"] == **run,
                "{what}: {told}"
            );
            ensure!(
                broken[0]["fault"] == fault && broken[0]["entity"] == **entity,
                "{what}: {told}"
            );
            let told = independently(Path::new(&file), second, key).await?;
            let wrong = |run: &String| !told["runs"][run].is_null();
            ensure!(
                wrong(run) && !wrong(&self.runs[0]) && !wrong(&self.runs[2]),
                "{told}"
            );
        }
        // Every file of tampered quads is one to the other program, too.
        for (what, quads, ..) in tampered(&quads, run) {
            let file = self.write("other.nq", &quads)?;
            let told = independently(Path::new(&file), second, key).await?;
            ensure!(!told["runs"][run].is_null(), "{what}: {told}");
        }
        self.heads_of_others(&nq, second).await
    }

    /// Another key, another text, other runs.
    async fn heads_of_others(&self, nq: &str, head: &str) -> Result<()> {
        let other = tg_jwt::SigningKey::generate()?;
        let other_key = self.write("other.pem", &other.public().to_pem())?;
        let ran = self.verify(&[nq], &[head], &other_key).await?;
        ensure!(
            ran.stderr.contains("signed by another key") && ran.code == Some(1),
            "{ran:?}"
        );
        let written: Value = serde_json::from_slice(&std::fs::read(head)?)?;
        let text = written["head"].as_str().context("a head")?;
        let mut forged = written.clone();
        forged["signature"] = other.sign_text(text)?.into();
        let mut renamed = written.clone();
        renamed["head"] = text
            .replace("workspace: default", "workspace: another")
            .into();
        let mut fewer = written.clone();
        fewer["runs"].as_array_mut().context("runs")?.pop();
        let mut swapped = written.clone();
        swapped["runs"].as_array_mut().context("runs")?.swap(0, 1);
        for (body, wrong, short) in [
            (
                forged,
                "the signature of the head is wrong",
                "the signature is wrong",
            ),
            (
                renamed,
                "the signature of the head is wrong",
                "the signature is wrong",
            ),
            (fewer, "the runs are not those of the head", "not all runs"),
            (swapped, "the runs are not those of the head", "other runs"),
        ] {
            let file = self.write("forged.json", &body.to_string())?;
            let ran = self.verify(&[nq], &[&file], &self.key).await?;
            ensure!(
                ran.stderr.contains(wrong) && ran.code == Some(1),
                "{wrong}: {ran:?}"
            );
            let told = independently(&self.quads, &file, &self.key).await?;
            ensure!(told["head"] == short, "{told}");
        }
        Ok(())
    }
}

on_both_buses!(
    what_is_changed_is_found_and_named,
    heads_hold_a_day_without_the_system,
);
