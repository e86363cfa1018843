//! The last look at an error text before it leaves: errors can come from foreign processors, which put
//! whatever they caught into them.
//!
//! It works word by word and knows only shapes (addresses, names of queues, paths, keys), no meanings. Where whoever asks
//! runs the system, web addresses without credentials stay: a provider that fails is reported with where it is.

use tg_schemas::{Error, ErrorCode};

use super::secret_words::is_secret;

/// Longest error text that leaves.
const MAX: usize = 1000;
/// What stands for a word that may not leave.
const MASK: &str = "[…]";

/// The error as any client may see it.
pub(crate) fn scrub(error: Error) -> Error {
    scrub_for(error, false)
}

/// The error as a client may see it; `operator`: one who runs the system.
pub(crate) fn scrub_for(error: Error, operator: bool) -> Error {
    let inner = matches!(
        error.code(),
        ErrorCode::Internal | ErrorCode::Provider | ErrorCode::Unavailable | ErrorCode::Storage
    );
    Error {
        kind: if is_kind(&error.kind) {
            error.kind
        } else {
            "unexpected-error".to_owned()
        },
        message: text(&error.message, inner, operator),
    }
}

/// `kebab-case`, short.
fn is_kind(kind: &str) -> bool {
    !kind.is_empty()
        && kind.len() <= 48
        && kind
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_')
}

/// Masks words, keeps everything else as it is. With `inner`, also every URL: it comes from behind the
/// services, not from the caller's data.
fn text(message: &str, inner: bool, operator: bool) -> String {
    let mut out = String::with_capacity(message.len().min(MAX) + 8);
    let mut masked = false;
    for piece in message.split_inclusive(|c: char| c.is_whitespace()) {
        let word = piece.trim_end();
        // A bare number after an address is its port.
        let shown = operator && is_web_address(word);
        masked = !word.is_empty() && !shown && (leaks(word, inner) || (masked && is_number(word)));
        if masked {
            out.push_str(MASK);
            out.push_str(&piece[word.len()..]);
        } else {
            out.push_str(piece);
        }
        if out.len() > MAX {
            let cut = (0..=MAX).rev().find(|at| out.is_char_boundary(*at));
            out.truncate(cut.unwrap_or(0));
            out.push('…');
            break;
        }
    }
    out
}

const SCHEMES: [&str; 8] = [
    "amqp:", "amqps:", "redis:", "postgres", "mysql:", "mongodb", "kafka:", "pulsar:",
];
/// Places in a blueprint, written as JSON pointers.
const SECTIONS: [&str; 4] = ["/flow/", "/blueprint/", "/interfaces/", "/parameters/"];
const CLASSES: [&str; 4] = ["flow", "request", "response", "notify"];

fn leaks(word: &str, inner: bool) -> bool {
    let lower = word.to_ascii_lowercase();
    let has = |needle: &str| lower.contains(needle);
    let topic = CLASSES.iter().any(|class| {
        starts_inside(&lower, &format!("{class}:tg:"))
            || starts_inside(&lower, &format!("tg.{class}."))
            || starts_inside(&lower, &format!("nt.{class}."))
    });
    topic
        || starts_inside(&lower, "nt.inbox.")
        || starts_inside(&lower, "tg.inbox.")
        || starts_inside(&lower, "nt.claim.")
        || starts_inside(&lower, "tg.claim.")
        || starts_inside(&lower, "guest:")
        || (has("://") && (inner || SCHEMES.iter().any(|scheme| has(scheme))))
        || has("host=")
        || has("port=")
        || has("url=")
        || is_secret(word)
        || is_path(word)
        || is_address(word)
}

/// An address of HTTP in which nothing is said but where.
fn is_web_address(word: &str) -> bool {
    let bare = word.trim_start_matches(['\'', '"', '(', '[', '<']);
    let http = bare.starts_with("http://") || bare.starts_with("https://");
    http && !bare.contains(['@', '?', '#']) && !is_secret(bare)
}

/// Whether a name begins somewhere in the word, and not in the middle of another name.
fn starts_inside(word: &str, name: &str) -> bool {
    word.match_indices(name).any(|(at, _)| {
        !word[..at]
            .chars()
            .next_back()
            .is_some_and(|c| c.is_ascii_alphanumeric())
    })
}

/// Digits, perhaps in brackets or before a comma.
fn is_number(word: &str) -> bool {
    let digits = word.chars().filter(char::is_ascii_digit).count();
    digits >= 2 && !word.chars().any(char::is_alphabetic)
}

/// An absolute path of at least two steps.
fn is_path(word: &str) -> bool {
    let bare = word.trim_start_matches(['\'', '"', '(', '[', '`', '<']);
    if SECTIONS.iter().any(|section| bare.starts_with(section)) {
        return false;
    }
    let unix = bare.starts_with('/') && !bare.starts_with("//") && bare[1..].contains('/');
    let windows = bare.get(1..3) == Some(":\\");
    unix || windows
}

/// `1.2.3.4`, or `name:5672`.
fn is_address(word: &str) -> bool {
    word.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':')))
        .any(|part| {
            let quads: Vec<&str> = part.split(':').next().unwrap_or("").split('.').collect();
            let ip = quads.len() == 4 && quads.iter().all(|quad| quad.parse::<u8>().is_ok());
            let port = part.rsplit_once(':').is_some_and(|(name, port)| {
                let named = name.chars().any(|c| c.is_ascii_alphabetic());
                named && !name.contains(':') && port.len() >= 4 && port.parse::<u16>().is_ok()
            });
            ip || port
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topology_and_secrets_do_not_leave() {
        for leak in [
            "no queue 'nt.request.agent:default:default'",
            "publish to tg.flow.triples-store:a:b failed",
            "cannot reach amqp://guest:guest@rabbit:5672/%2f",
            "HTTPConnectionPool(host='ollama', port=11434): Max retries exceeded",
            "connect to 10.0.0.7 refused",
            "connect call failed ('10.0.0.7', 5672)",
            "connect to rabbitmq-0.svc:5672 refused",
            "[Errno 2] No such file: '/var/lib/threadgraph/agent.sqlite'",
            "invalid key sk-abcdefghijklmnopqrstuvwx for project",
            "topic request:tg:agent:other:default has no consumer",
            "POST https://api.example.com/v1/chat failed",
            "key tg_0123456789abcdefghij",
            "no queue nt.claim.graph",
            "login (guest:hunter2) refused",
        ] {
            let out = scrub(Error::typed("unexpected-error", leak)).message;
            assert!(out.contains(MASK), "{leak} → {out}");
            for word in [
                "nt.request",
                "tg.flow",
                "amqp",
                "ollama",
                "11434",
                "10.0.0.7",
                "5672",
                "/var/",
                "sk-abc",
                "request:tg",
                "api.example",
                "tg_0123",
                ".claim.",
                "hunter2",
            ] {
                assert!(!out.contains(word), "{out}");
            }
        }
    }

    #[test]
    fn who_runs_the_system_reads_web_addresses_without_credentials_and_nothing_else() {
        let told = |text: &str| scrub_for(Error::new(ErrorCode::Provider, text), true).message;
        let fine = "did not accept the key (HTTP 401 at http://127.0.0.1:8080/v1); set by llm.url";
        assert_eq!(told(fine), fine);
        for (leak, word) in [
            ("at http://u:hunter2@10.0.0.7/v1", "hunter2"),
            ("at https://h.example/v1?key=abc", "abc"),
            ("at https://h.example/sk-abcdefghijklmnopqrstuvwx", "sk-abc"),
            ("at amqp://rabbit/x", "rabbit"),
            ("connect to 10.0.0.7 refused", "10.0.0.7"),
            ("no queue nt.request.agent:default:default", "nt.request"),
        ] {
            assert!(!told(leak).contains(word), "{leak}");
        }
    }

    #[test]
    fn ordinary_texts_stay_whole() {
        for fine in [
            "Flow already exists",
            "blueprint.flow.chunker:{id}.topics.input: unmatched {x}",
            "line 3, column 12: expected '}' near <http://example.org/a>",
            "and/or, 24/7, 12:30, a: b, status 404",
        ] {
            let error = Error::typed("sparql-parse-error", fine);
            assert_eq!(scrub(error).message, fine);
        }
    }

    #[test]
    fn long_texts_are_cut_and_odd_types_replaced() {
        let out = scrub(Error::typed("<Exception Host>", "ü".repeat(5000)));
        assert!(out.message.len() < MAX + 8);
        assert_eq!(out.kind, "unexpected-error");
    }
}
