//! What a first start prints: where to go, the key if there is one, and how to plug a real model in.

use std::net::SocketAddr;

use crate::settings::Auth;

/// The lines shown when the system is ready.
pub fn lines(
    at: SocketAddr,
    auth: Auth,
    model: &str,
    first: bool,
    code: Option<&str>,
) -> Vec<String> {
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
    if auth == Auth::Iam && first {
        lines.push(format!(
            "  first key: tg-bootstrap-iam -u http://{at}/   (works once, on this machine)"
        ));
    }
    if let Some(code) = code {
        lines.push(format!(
            "             from elsewhere: tg-bootstrap-iam -u URL --code {code}"
        ));
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
