//! The body of a part of an answer: a tree, a chunk of the agent, which is serialised as it is, or results of a SPARQL query. The
//! triples that explain a step are thousands of pieces as a tree, and most chunks are only written. Results become a tree where they
//! are written, off the runtime's threads. It never decides what a client may read.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Value, json};
use tg_schemas::Triple;
use tg_schemas::msg::{AgentResponse, AnswerCost, ChatUsage, SparqlQueryResponse};
use tg_schemas::rdf::ApiForm;

use super::answered::Answered;
use super::fields::{Body, Reply};
use super::results::results;

/// What a part says, in the API form.
#[derive(Debug, Clone, PartialEq)]
pub enum PartBody {
    /// As a tree.
    Tree(Body),
    /// A chunk of the agent without an error. It becomes a tree where somebody asks for one.
    Chunk(Box<AgentResponse>),
    /// Results of a SPARQL query without an error, and warnings about its request. They become a tree where somebody asks for one.
    Results(Box<SparqlQueryResponse>, Vec<Value>),
}

impl PartBody {
    /// Whether it says nothing. A chunk always says whether it ends something, and results say of which kind they are.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Tree(body) => body.is_empty(),
            Self::Chunk(_) | Self::Results(..) => false,
        }
    }

    /// The tree, if it is one.
    pub fn as_tree(&self) -> Option<&Body> {
        match self {
            Self::Tree(body) => Some(body),
            Self::Chunk(_) | Self::Results(..) => None,
        }
    }

    /// Whether it takes long to make the tree, or to write it: this is done off the runtime's threads.
    pub fn is_long(&self) -> bool {
        matches!(self, Self::Results(..))
    }

    /// The same with warnings about the request, which come before those of the service. Results stay results, so that they are
    /// made into a tree off the runtime's threads.
    pub fn warned(self, mut warnings: Vec<Value>) -> Self {
        if let Self::Results(part, _) = self {
            return Self::Results(part, warnings);
        }
        let mut body = self.into_tree();
        if let Some(Value::Array(own)) = body.remove("warnings") {
            warnings.extend(own);
        }
        body.insert("warnings".to_owned(), warnings.into());
        Self::Tree(body)
    }

    /// The tree, which a chunk is made into.
    pub fn tree(&self) -> Cow<'_, Body> {
        match self {
            Self::Tree(body) => Cow::Borrowed(body),
            Self::Chunk(part) => Cow::Owned(chunk(part)),
            Self::Results(part, warnings) => Cow::Owned(warned_results(part, warnings)),
        }
    }

    /// The same, for its new owner.
    pub fn into_tree(self) -> Body {
        match self {
            Self::Tree(body) => body,
            Self::Chunk(part) => chunk(&part),
            Self::Results(part, warnings) => warned_results(&part, &warnings),
        }
    }

    /// The tree without the triples that explain a step, for readers that never show them.
    pub fn into_unexplained(self) -> Body {
        match self {
            Self::Chunk(mut part) => {
                part.explain_triples.clear();
                chunk(&part)
            }
            Self::Results(part, warnings) => warned_results(&part, &warnings),
            Self::Tree(body) => body,
        }
    }
}

impl From<Body> for PartBody {
    fn from(body: Body) -> Self {
        Self::Tree(body)
    }
}

impl Serialize for PartBody {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tree(body) => body.serialize(ser),
            Self::Chunk(part) => Chunk(part).serialize(ser),
            Self::Results(part, warnings) => warned_results(part, warnings).serialize(ser),
        }
    }
}

/// Results as a tree. Without warnings there is no key for them.
fn warned_results(part: &SparqlQueryResponse, warnings: &[Value]) -> Body {
    let mut body = results(part);
    if !warnings.is_empty() {
        body.insert("warnings".to_owned(), warnings.into());
    }
    body
}

/// A chunk of the agent as a tree.
pub fn chunk(part: &AgentResponse) -> Body {
    match serde_json::to_value(Chunk(part)) {
        Ok(Value::Object(body)) => body,
        // Texts, numbers and lists of them can always be written.
        _ => Body::new(),
    }
}

/// A chunk of the agent in the API form. `chunk_type` is how the npm client spells `message_type`.
struct Chunk<'a>(&'a AgentResponse);

impl Serialize for Chunk<'_> {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        let part = self.0;
        let mut out = ser.serialize_map(None)?;
        text(&mut out, "message_type", &part.message_type)?;
        text(&mut out, "chunk_type", &part.message_type)?;
        text(&mut out, "content", &part.content)?;
        out.serialize_entry("end_of_message", &part.end_of_message)?;
        out.serialize_entry("end_of_dialog", &part.end_of_dialog)?;
        text(&mut out, "message_id", &part.message_id)?;
        text(&mut out, "call_id", &part.call_id)?;
        text(&mut out, "tool_name", &part.tool_name)?;
        if !part.args.is_empty() {
            out.serialize_entry("args", &part.args)?;
        }
        let explained = part.explain_id.as_deref().unwrap_or_default();
        text(&mut out, "explain_id", explained)?;
        some(&mut out, "explain_graph", part.explain_graph.as_ref())?;
        if !part.explain_triples.is_empty() {
            out.serialize_entry("explain_triples", &Triples(&part.explain_triples))?;
        }
        some(&mut out, "in_token", part.in_token)?;
        some(&mut out, "out_token", part.out_token)?;
        some(&mut out, "model", part.model.as_ref())?;
        text(&mut out, "finish_reason", &part.finish_reason)?;
        if part.stopped {
            out.serialize_entry("stopped", &true)?;
        }
        some(&mut out, "usage", part.usage.as_ref().map(usage))?;
        let calls = part.cost.as_ref().map(|cost| cost.sub_calls);
        some(&mut out, "sub_calls", calls)?;
        some(&mut out, "cost", part.cost.as_ref().map(cost))?;
        let answered = Answered {
            citations: part.citations.clone(),
            refused: part.refused,
            trace: part.trace.clone(),
            ..Answered::default()
        };
        for (key, value) in &answered.add_to(Reply::new()).done() {
            out.serialize_entry(key, value)?;
        }
        out.end()
    }
}

/// A text, which is left out where it is empty.
fn text<M: SerializeMap>(out: &mut M, key: &str, text: &str) -> Result<(), M::Error> {
    match text.is_empty() {
        true => Ok(()),
        false => out.serialize_entry(key, text),
    }
}

/// What may be unknown, and is left out then.
fn some<M: SerializeMap, T: Serialize>(
    out: &mut M,
    key: &str,
    value: Option<T>,
) -> Result<(), M::Error> {
    match value {
        Some(value) => out.serialize_entry(key, &value),
        None => Ok(()),
    }
}

/// Triples in the API form.
struct Triples<'a>(&'a [Triple]);

impl Serialize for Triples<'_> {
    fn serialize<S: Serializer>(&self, ser: S) -> Result<S::Ok, S::Error> {
        let mut out = ser.serialize_seq(Some(self.0.len()))?;
        for triple in self.0 {
            out.serialize_element(&ApiForm(triple))?;
        }
        out.end()
    }
}

/// Tokens by the names of sessions.
fn usage(usage: &ChatUsage) -> Value {
    json!({
        "input": usage.input,
        "output": usage.output,
        "cacheRead": usage.cache_read,
        "cacheWrite": usage.cache_write,
        "total": usage.total,
    })
}

/// What is not known of the cost is left out.
fn cost(cost: &AnswerCost) -> Value {
    let mut told = json!({"source": cost.source, "sub_calls": cost.sub_calls});
    for (money, amount) in [("usd", cost.usd), ("eur", cost.eur)] {
        if let Some(amount) = amount {
            told[money] = json!(amount);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use tg_schemas::Term;
    use tg_schemas::msg::Citation;

    use super::*;

    fn full() -> AgentResponse {
        let args = json!({"b": 1, "a": [null, "x"]});
        AgentResponse {
            message_type: "answer".into(),
            content: "4 \"is\" it\n".into(),
            end_of_message: true,
            end_of_dialog: true,
            explain_id: Some("urn:x".into()),
            explain_graph: Some(String::new()),
            explain_triples: vec![
                Triple::new(Term::iri("urn:a"), Term::iri("urn:p"), Term::literal("v")),
                Triple::default(),
            ],
            message_id: "m".into(),
            in_token: Some(0),
            out_token: Some(2),
            model: Some("m1".into()),
            citations: vec![Citation::default()],
            refused: true,
            trace: "urn:t".into(),
            finish_reason: "stop".into(),
            stopped: true,
            call_id: "c".into(),
            tool_name: "t".into(),
            args: args.as_object().cloned().unwrap(),
            usage: Some(ChatUsage::default()),
            cost: Some(AnswerCost {
                usd: Some(0.5),
                eur: None,
                source: "table".into(),
                sub_calls: 2,
            }),
            ..AgentResponse::default()
        }
    }

    #[test]
    fn a_chunk_has_its_keys_in_their_order_and_none_that_says_nothing() {
        let written = |part: AgentResponse| {
            let body = PartBody::Chunk(Box::new(part));
            assert!(!body.is_empty() && body.as_tree().is_none());
            let text = serde_json::to_string(&body).unwrap();
            let tree = Value::Object(body.tree().into_owned());
            assert_eq!(tree.to_string(), text, "the tree is the same");
            assert_eq!(Value::Object(body.into_tree()), tree);
            text
        };
        assert_eq!(
            written(AgentResponse::default()),
            r#"{"end_of_message":false,"end_of_dialog":false}"#
        );
        let expected = [
            r#"{"message_type":"answer","chunk_type":"answer","content":"4 \"is\" it\n","#,
            r#""end_of_message":true,"end_of_dialog":true,"message_id":"m","call_id":"c","tool_name":"t","#,
            r#""args":{"b":1,"a":[null,"x"]},"explain_id":"urn:x","explain_graph":"","#,
            r#""explain_triples":[{"s":{"t":"i","i":"urn:a"},"p":{"t":"i","i":"urn:p"},"o":{"t":"l","v":"v"}},{}],"#,
            r#""in_token":0,"out_token":2,"model":"m1","finish_reason":"stop","stopped":true,"#,
            r#""usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0},"sub_calls":2,"#,
            r#""cost":{"source":"table","sub_calls":2,"usd":0.5},"citations":[{"n":0,"document":"","title":"","#,
            r#""page":null,"chunk":"","text":""}],"refused":true,"trace":"urn:t"}"#,
        ];
        assert_eq!(written(full()), expected.concat());
    }

    #[test]
    fn triples_are_left_out_for_readers_that_show_none() {
        let whole = PartBody::Chunk(Box::new(full()));
        let mut expected = whole.tree().into_owned();
        assert!(expected.shift_remove("explain_triples").is_some());
        assert_eq!(whole.into_unexplained(), expected);
        let tree = Body::from_iter([("explain_triples".to_owned(), json!(1))]);
        assert_eq!(PartBody::from(tree.clone()).into_unexplained(), tree);
    }

    #[test]
    fn results_are_written_as_their_tree() {
        let part = SparqlQueryResponse {
            query_type: "ask".into(),
            ask_result: true,
            ..SparqlQueryResponse::default()
        };
        let body = PartBody::Results(Box::new(part), Vec::new());
        assert!(body.is_long() && !body.is_empty() && body.as_tree().is_none());
        let warned = body.clone().warned(vec![json!("w")]);
        assert!(
            warned.is_long(),
            "the request is no reason to write it elsewhere"
        );
        let told = r#"{"query-type":"ask","ask-result":true,"warnings":["w"]}"#;
        assert_eq!(serde_json::to_string(&warned).unwrap(), told);
        assert_eq!(Value::Object(warned.into_tree()).to_string(), told);
        let text = serde_json::to_string(&body).unwrap();
        assert_eq!(text, r#"{"query-type":"ask","ask-result":true}"#);
        let tree = body.tree().into_owned();
        assert_eq!(Value::Object(tree.clone()).to_string(), text);
        assert_eq!(body.clone().into_unexplained(), tree);
        assert_eq!(body.into_tree(), tree);
    }

    #[test]
    fn a_tree_is_written_as_it_is() {
        assert!(PartBody::from(Body::new()).is_empty());
        let tree = Body::from_iter([("b".to_owned(), json!(1)), ("a".to_owned(), json!(2))]);
        let body = PartBody::from(tree.clone());
        assert_eq!(serde_json::to_string(&body).unwrap(), r#"{"b":1,"a":2}"#);
        assert_eq!(body.as_tree(), Some(&tree));
    }
}
