//! What a shell offers: commands, flags, and the ids that there are, asked for at the gateway; silence where that is away.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tg_testkit::machine::keeps;
use tg_testkit::process::{bin_dir, free_port, tg};
use tokio::process::Command;

use crate::world::{Bus, post, up};

/// A key press is answered within this time, with the start of the process; on a slower machine more by as much.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Runs a program with the address of a gateway, and gives what it prints.
async fn printed(command: &mut Command, url: &str) -> Result<String> {
    let output = command
        .env("TRUSTGRAPH_URL", url)
        .env("XDG_CONFIG_HOME", "/nowhere")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(Duration::from_secs(60), output)
        .await
        .context("it did not end")??;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(errors.is_empty(), "{errors}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The pieces into which bash cuts a word: at each colon.
fn pieces(word: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.find(':') {
        pieces.extend([&rest[..at], ":"]);
        rest = &rest[at + 1..];
    }
    pieces.push(rest);
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// What bash offers at the end of a line, by the script that `tg completions bash` prints. Words are cut as bash cuts
/// them, and the breaks that others' completions go by stay as they were.
async fn bash(url: &str, words: &[&str]) -> Result<Vec<String>> {
    let tg = bin_dir()?.join("tg");
    let cut = words.iter().flat_map(|word| match pieces(word) {
        none if none.is_empty() => vec![""],
        pieces => pieces,
    });
    let quoted: Vec<String> = cut.map(|word| format!("'{word}'")).collect();
    let current = words.last().context("words")?;
    let script = format!(
        "breaks=$COMP_WORDBREAKS\n\
         source <('{tg}' completions bash --links)\n\
         [[ $COMP_WORDBREAKS == \"$breaks\" && $breaks == *:* ]] || echo breaks >&2\n\
         read -ra how < <(complete -p '{command}')\n\
         while [[ ${{how[0]}} != -F ]]; do how=(\"${{how[@]:1}}\"); done\n\
         COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9\n\
         COMP_WORDS=({words}); COMP_CWORD={last}\n\
         \"${{how[1]}}\" '{command}' '{current}' ''\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        tg = tg.display(),
        line = words.join(" "),
        words = quoted.join(" "),
        last = quoted.len() - 1,
        command = words[0],
        current = current.rsplit(':').next().unwrap_or_default(),
    );
    let told = printed(Command::new("bash").args(["-c", &script]), url).await?;
    Ok(told
        .lines()
        .map(str::to_owned)
        .filter(|line| !line.is_empty())
        .collect())
}

/// What another shell's script would be told.
async fn asked(shell: &str, url: &str, words: &[&str]) -> Result<String> {
    let mut command = Command::new(bin_dir()?.join("tg"));
    command.arg("--").args(words);
    command
        .env("TG_COMPLETE", shell)
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
    printed(&mut command, url).await
}

async fn story(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    let add = json!({"operation": "add-document", "content": "d29yZHM=", "document-metadata": {
        "id": "urn:lamps:1", "kind": "text/plain", "title": "Lamps of Pellworth", "comments": "", "metadata": [],
        "tags": []}});
    post(&url, "api/v1/librarian", add).await?;
    tg(&url, &["set-collection", "lamps", "-n", "Lamps"]).await?;

    let offered = bash(&url, &["tg", "invoke-ag"]).await?;
    ensure!(offered == ["invoke-agent"], "{offered:?}");
    let offered = bash(&url, &["tg", "verify"]).await?;
    ensure!(offered.iter().any(|name| name == "verify"), "{offered:?}");
    let offered = bash(&url, &["tg", "verify-t"]).await?;
    ensure!(offered == ["verify-trace"], "{offered:?}");
    let offered = bash(&url, &["tg", "ask", "-f", ""]).await?;
    ensure!(offered == ["default"], "{offered:?}");
    let offered = bash(&url, &["tg-invoke-agent", "--collection", "la"]).await?;
    ensure!(offered == ["lamps"], "{offered:?}");
    for words in [
        &["tg", "start-library-processing", "-d", "urn:la"][..],
        &["tg", "get-document-content", "urn:"],
        &["tg-remove-library-document", "urn:lamps:"],
    ] {
        let offered = bash(&url, words).await?;
        // Bash puts it in the place of what follows the last colon.
        let typed = words.last().context("words")?;
        let stands = typed.rfind(':').map_or("", |at| &typed[..=at]);
        let whole: Vec<String> = offered.iter().map(|end| format!("{stands}{end}")).collect();
        ensure!(whole == ["urn:lamps:1"], "{words:?}: {offered:?}");
    }
    for shell in ["zsh", "fish"] {
        let told = asked(shell, &url, &["tg", "start-library-processing", "-d", ""]).await?;
        ensure!(
            told.contains("urn:lamps:1") || told.contains("urn\\:lamps\\:1"),
            "{shell}: {told}"
        );
        ensure!(told.contains("Lamps of Pellworth"), "{shell}: {told}");
    }

    // Nobody there: nothing is offered, nothing is said, nobody waits.
    let away = format!("http://127.0.0.1:{}/", free_port()?);
    let nothing = async |url: &str| {
        let began = Instant::now();
        let told = asked("zsh", url, &["tg", "ask", "-f", ""]).await?;
        ensure!(!told.contains("default"), "{told}");
        Ok(began.elapsed())
    };
    keeps("nobody is there", AT_ONCE, async || nothing(&away).await).await?;
    server.freeze()?;
    let kept = keeps("nobody answers", AT_ONCE, async || nothing(&url).await).await;
    server.thaw()?;
    kept
}

/// Held to seconds or less: these have the machine to themselves (`make test`).
mod alone {
    use super::*;

    #[tokio::test]
    async fn on_the_embedded_bus() -> Result<()> {
        story(Bus::Embedded).await
    }

    #[tokio::test]
    async fn on_rabbitmq() -> Result<()> {
        story(Bus::Rabbit).await
    }
}
