//! A picture is described by the model of the provider: by the official command, ours, and over REST. What is not a picture
//! is refused by its field, and never sent on.

use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule};
use tg_testkit::model_router::name_of;

use crate::shared::Workspace;
use crate::world::{Bus, on_both_buses};

on_both_buses!(
    a_model_says_what_a_picture_shows,
    builtin_says_that_it_reads_none
);

/// A picture of one dot.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";
const SHOWS: &str = "One dot nonce-picture-7.";
const ASKED: &str = "What is shown?";

/// The file of a picture, and its folder.
fn picture() -> Result<(tempfile::TempDir, String)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("dot.png");
    std::fs::write(&file, STANDARD.decode(PNG)?)?;
    let file = file.display().to_string();
    Ok((folder, file))
}

async fn a_model_says_what_a_picture_shows(bus: Bus) -> Result<()> {
    let rules = vec![Rule::contains(
        ASKED,
        Reply::pieces(["One dot ", "nonce-picture-7."]),
    )];
    let (place, model) = Workspace::scripted(bus, rules).await?;
    let (_folder, file) = picture()?;
    let args = ["-i", file.as_str(), "-p", ASKED, "-s", "Be brief."];
    let theirs = place.official("tg-describe-image", &args).await?;
    ensure!(
        theirs.stdout.trim() == SHOWS,
        "{}{}",
        theirs.stdout,
        theirs.stderr
    );
    let ours = place.tg(&[&["describe-image"], &args[..]].concat()).await?;
    ensure!(
        ours.stdout.trim() == SHOWS,
        "{}{}",
        ours.stdout,
        ours.stderr
    );

    let calls = model.calls();
    let asked: Vec<&Value> = calls
        .iter()
        .filter(|call| call.path.ends_with("/chat/completions"))
        .map(|call| &call.body["messages"])
        .collect();
    let expected = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [
            {"type": "text", "text": ASKED},
            {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{PNG}")}},
        ]},
    ]);
    ensure!(asked == [&expected, &expected], "{asked:#?}");

    let door = "api/v1/flow/default/service/image-to-text";
    let ask = json!({"image": PNG, "mime_type": "image/png", "prompt": ASKED});
    let (status, body) = place.post(door, ask).await?;
    ensure!(
        status == 200 && body["description"] == SHOWS,
        "{status}: {body}"
    );
    ensure!(
        body["model"] == name_of(model.port()) && body["out_token"] == 7,
        "{body}"
    );
    for (wrong, field) in [
        (json!({"image": PNG, "mime_type": "image/gif"}), "mime_type"),
        (json!({"image": PNG, "mime_type": "text/html"}), "mime_type"),
        (
            json!({"image": "aGVsbG8=", "mime_type": "image/png"}),
            "image",
        ),
    ] {
        let (_, body) = place.post(door, wrong).await?;
        ensure!(body["error"]["type"] == "bad-request", "{body}");
        let told = body["error"]["message"].as_str().unwrap_or_default();
        ensure!(told.starts_with(&format!("{field}: must be ")), "{body}");
    }
    ensure!(
        model.calls().len() == calls.len() + 1,
        "no picture was sent on"
    );
    Ok(())
}

async fn builtin_says_that_it_reads_none(bus: Bus) -> Result<()> {
    let place = Workspace::shared(bus).await?;
    let (_folder, file) = picture()?;
    let told = place.official("tg-describe-image", &["-i", &file]).await?;
    told.expect("the builtin extractive reader reads no pictures")?;
    let told = place.tg(&["describe-image", "-i", &file]).await?;
    ensure!(told.code != Some(0), "{}", told.stdout);
    ensure!(told.stderr.contains("reads no pictures"), "{}", told.stderr);
    Ok(())
}
