//! What the last part of an answer says of it, whoever answered: what its numbers name, whether it is a refusal, the
//! name of its trace, and what it had to do without.

use serde_json::{Value, json};
use tg_schemas::msg::Citation;

use super::fields::Reply;

/// What is known of an answer.
#[derive(Debug, Default)]
pub struct Answered {
    /// What its numbers name.
    pub citations: Vec<Citation>,
    /// It is that there is none.
    pub refused: bool,
    /// What its trace is named by.
    pub trace: String,
    /// What it had to do without.
    pub warnings: Vec<String>,
}

impl Answered {
    /// Adds it to a reply, under keys that a part without it does not have.
    pub fn add_to(self, reply: Reply) -> Reply {
        let citations: Vec<Value> = self.citations.into_iter().map(citation).collect();
        reply
            .put_truthy("citations", citations)
            .put_truthy("refused", self.refused)
            .put_truthy("trace", self.trace)
            .put_truthy("warnings", self.warnings)
    }
}

fn citation(citation: Citation) -> Value {
    let page = Some(citation.page).filter(|page| *page > 0);
    json!({
        "n": citation.n, "document": citation.document, "title": citation.title, "page": page,
        "chunk": citation.chunk, "text": citation.text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_has_all_its_keys_and_a_part_without_any_has_none() {
        assert!(Answered::default().add_to(Reply::new()).done().is_empty());
        let citation = Citation {
            n: 1,
            document: "urn:d".into(),
            title: "D".into(),
            page: 0,
            chunk: "urn:c".into(),
            text: "It says.".into(),
            cites: "urn:s".into(),
        };
        let answered = Answered {
            citations: vec![
                citation.clone(),
                Citation {
                    n: 2,
                    page: 23,
                    ..citation
                },
            ],
            refused: false,
            trace: "urn:t".into(),
            warnings: Vec::new(),
        };
        let body = Value::Object(answered.add_to(Reply::new()).done());
        assert_eq!(
            body["citations"][0],
            json!({"n": 1, "document": "urn:d", "title": "D", "page": null, "chunk": "urn:c", "text": "It says."})
        );
        assert_eq!(body["citations"][1]["page"], 23);
        assert_eq!(
            (&body["trace"], body.get("refused")),
            (&json!("urn:t"), None)
        );
    }
}
