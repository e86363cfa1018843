//! What stands below an answer: its citations, and on stderr whether it rests on anything and where its trace is.

use std::time::Duration;

use serde_json::{Value, json};

use crate::args::InCollection;
use crate::client::{Error, Result, Socket};
use crate::commands::explain::fetch::entity_call;
use crate::commands::graph::triples;
use crate::fields::{in_shell, list, text};
use crate::output::Output;

/// What traces of an agent's runs are called.
pub(crate) const AGENT: &str = "urn:trustgraph:agent:";
/// Pauses between looks whether a trace is stored, in milliseconds: a second together.
const PAUSES: [u64; 6] = [16, 32, 64, 128, 256, 512];

/// Said of an answer that cites nothing.
const UNSUPPORTED: &str = "No sentence of this answer is supported by a passage";

/// What the last part of an answer says of it.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    citations: Vec<Value>,
    refused: bool,
    trace: String,
    warnings: Vec<Value>,
}

impl Answered {
    /// Reads the last part.
    pub(crate) fn read(last: &Value) -> Self {
        Self {
            citations: list(last, "citations").to_vec(),
            refused: last.get("refused").and_then(Value::as_bool) == Some(true),
            trace: text(last, "trace"),
            warnings: list(last, "warnings").to_vec(),
        }
    }

    /// Whether it cites something.
    fn cites(&self) -> bool {
        !self.citations.is_empty()
    }

    /// Adds it to what `--json` shows.
    pub(crate) fn add_to(&self, shown: &mut Value) {
        shown["citations"] = json!(self.citations);
        shown["refused"] = json!(self.refused);
        shown["trace"] = match self.trace.as_str() {
            "" => Value::Null,
            trace => json!(trace),
        };
        if !self.warnings.is_empty() {
            shown["warnings"] = json!(self.warnings);
        }
    }

    /// The citations for people, if there are any.
    pub(crate) fn below(&self) -> Option<String> {
        let lines: Vec<String> = self.citations.iter().map(line).collect();
        self.cites().then(|| format!("\n{}", lines.join("\n")))
    }

    /// Ends an answer: says whether it rests on anything.
    pub(crate) async fn end(&self, out: &mut Output, socket: &mut Socket, place: &InCollection) {
        self.settle(socket, place).await;
        self.talk(out, place);
    }

    /// Waits for a moment until the graph has the whole trace, so that the next command finds it: what is confirmed is
    /// stored a little later.
    async fn settle(&self, socket: &mut Socket, place: &InCollection) {
        if self.trace.is_empty() {
            return;
        }
        // What a run leaves last; of other questions the question itself.
        let last = match self.trace.starts_with(AGENT) {
            true => format!("{}/final", self.trace),
            false => self.trace.clone(),
        };
        let call = entity_call(&place.flow.flow_id, &place.collection, &last);
        for pause in PAUSES.map(Duration::from_millis) {
            match socket.ask(&call).await {
                Ok(reply) if triples(&reply).is_empty() => tokio::time::sleep(pause).await,
                // Found, or nobody to ask: the answer does not depend on it.
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Says what is no part of the answer. Gateways of others do not name the trace, and know nothing of citations.
    fn talk(&self, out: &mut Output, place: &InCollection) {
        for warning in self.warnings.iter().filter_map(Value::as_str) {
            out.talk(format!("warning: {warning}"));
        }
        if self.trace.is_empty() {
            return;
        }
        if !self.cites() && !self.refused {
            out.talk(UNSUPPORTED);
        }
        out.talk(format!("trace: {}", shows(&self.trace, place)));
    }
}

/// The command that shows a trace, with what says where it is.
fn shows(trace: &str, place: &InCollection) -> String {
    let option = |flag: &str, value: &str| match value {
        "default" | "" => String::new(),
        value => format!(" {flag} {}", in_shell(value)),
    };
    let flow = option("-f", &place.flow.flow_id);
    let collection = option("-C", &place.collection);
    // Said with the question, it is not said by anything else.
    let workspace = place.flow.common.workspace.as_deref();
    let workspace = option("-w", workspace.unwrap_or_default());
    format!("tg show-explain-trace {trace}{flow}{collection}{workspace}")
}

/// `[1] Title, page 23: "the passage's words"`.
fn line(citation: &Value) -> String {
    let number = citation.get("n").and_then(Value::as_i64).unwrap_or(0);
    let title = match (text(citation, "title"), text(citation, "document")) {
        (title, document) if title.is_empty() && document.is_empty() => {
            "a fact without a source".to_owned()
        }
        (title, document) if title.is_empty() => document,
        (title, _) => title,
    };
    let page = match citation.get("page").and_then(Value::as_i64) {
        Some(page) => format!(", page {page}"),
        None => String::new(),
    };
    let words = text(citation, "text");
    format!("[{number}] {title}{page}: \"{words}\"")
}

/// Refuses a question to a collection that does not exist, with those that there are.
///
/// # Errors
/// `Error::Missing`, or as [`Socket::all`] where the connection breaks.
pub(crate) async fn must_exist(socket: &mut Socket, name: &str) -> Result<()> {
    if name == "default" {
        return Ok(());
    }
    let request = json!({"operation": "list-collections"});
    let reply = match socket.all("collection-management", request).await {
        Ok(reply) => reply,
        // Who may ask need not be allowed to list.
        Err(Error::Service { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let known = list(&reply, "collections").iter();
    let known: Vec<String> = known.map(|one| text(one, "collection")).collect();
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    let there = match known.is_empty() {
        true => "there is none yet".to_owned(),
        false => format!("there are: {}", known.join(", ")),
    };
    Err(Error::Missing(format!(
        "There is no collection {name}; {there}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_for_the_trace_says_where_it_is() {
        use clap::{Args, Command, FromArgMatches};
        let told = |line: &[&str]| {
            let command = InCollection::augment_args(Command::new("ask").no_binary_name(true));
            let matches = command.get_matches_from(line);
            let place = InCollection::from_arg_matches(&matches).expect("arguments");
            shows("urn:t", &place)
        };
        assert_eq!(told(&[]), "tg show-explain-trace urn:t");
        assert_eq!(
            told(&["-w", "second", "-C", "hr", "-f", "own"]),
            "tg show-explain-trace urn:t -f own -C hr -w second"
        );
    }

    #[test]
    fn a_citation_can_be_read() {
        let last = json!({"trace": "urn:t", "citations": [
            {"n": 1, "document": "urn:d", "title": "FHS 3.0", "page": 23, "chunk": "urn:c", "text": "It is so."},
            {"n": 2, "document": "urn:e", "title": "", "page": null, "chunk": "", "text": "a b c"},
            {"n": 3, "document": "", "title": "", "page": null, "chunk": "", "text": "x y z"},
        ]});
        let answered = Answered::read(&last);
        assert_eq!(
            answered.below().as_deref(),
            Some(
                "\n[1] FHS 3.0, page 23: \"It is so.\"\n[2] urn:e: \"a b c\"\n\
                 [3] a fact without a source: \"x y z\""
            )
        );
        let mut shown = json!({});
        answered.add_to(&mut shown);
        assert_eq!(
            (&shown["trace"], &shown["refused"]),
            (&json!("urn:t"), &json!(false))
        );
        assert_eq!(shown["citations"][0]["page"], 23);
        assert_eq!(Answered::read(&json!({})).below(), None);
    }
}
