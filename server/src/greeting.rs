//! What a first start prints: where to go, the key if there is one, and how to plug a real model in.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::settings::Auth;

/// The one-time code for the first key, while it is not used.
pub enum FirstKey {
    /// There is none, or none is needed.
    None,
    /// As it is, for who sits at a terminal.
    Code(String),
    /// The file that has it, where others may read what is printed.
    File(PathBuf),
}

/// The lines shown when the system is ready.
pub fn lines(at: SocketAddr, auth: Auth, model: &str, first: bool, key: &FirstKey) -> Vec<String> {
    let mut lines = vec![format!("Threadgraph is ready at http://{at}/")];
    if first {
        lines.push(format!(
            "  ask:      tg-invoke-agent -u http://{at}/ -q \"What is 6 * 7?\""
        ));
        lines.push(format!(
            "  load:     tg-load-turtle -u http://{at}/ -i my-data my-data.ttl"
        ));
        lines.push(format!(
            "  look:     tg-show-flows -u http://{at}/   ·   tg-doctor -u http://{at}/"
        ));
    }
    let waits = !matches!(key, FirstKey::None);
    if auth == Auth::Iam && (first || waits) {
        lines.push(format!(
            "  first key: tg-bootstrap-iam -u http://{at}/   (works once, on this machine)"
        ));
    }
    let elsewhere = "             from elsewhere: tg-bootstrap-iam -u URL --code";
    match key {
        FirstKey::None => {}
        FirstKey::Code(code) => lines.push(format!("{elsewhere} {code}")),
        FirstKey::File(file) => lines.push(format!(
            "{elsewhere} CODE   (the code is in {})",
            file.display()
        )),
    }
    lines.push(format!("  model:    {model}"));
    if model.starts_with("builtin") {
        lines.push(
            "            plug in a real one: OPENAI_API_KEY=… (or OPENAI_BASE_URL, ANTHROPIC_API_KEY, \
             OLLAMA_HOST) threadgraph up"
                .to_owned(),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_shown_until_it_is_used_and_only_at_a_terminal() {
        let text = |auth, first, key| {
            let at = "127.0.0.1:8088".parse().unwrap();
            lines(at, auth, "builtin", first, &key).join("\n")
        };
        let code = || FirstKey::Code("s3cret".to_owned());
        let file = || FirstKey::File("/data/bootstrap-code".into());
        for first in [true, false] {
            assert!(text(Auth::Iam, first, code()).contains("--code s3cret"));
            let elsewhere = text(Auth::Iam, first, file());
            assert!(elsewhere.contains("/data/bootstrap-code"), "{elsewhere}");
            assert!(elsewhere.contains("first key: "));
        }
        assert!(!text(Auth::Iam, false, FirstKey::None).contains("first key"));
        assert!(!text(Auth::None, true, FirstKey::None).contains("first key"));
    }
}
