//! When an answer is over: the per-type flag that ends a stream of responses (mesh contract, end flags).

use serde_json::{Map, Value};

use crate::error::Error;
use crate::msg::*;
use crate::{Message, Term, Triple};

/// A response body.
pub trait Reply: Message {
    /// Whether this is the last message of the answer. An error always is.
    fn is_last(&self) -> bool;
    /// The error it carries.
    fn error(&self) -> Option<&Error>;
    /// A response that says only that it failed, and ends the answer.
    fn failure(error: Error) -> Self;
    /// How many bytes it has as JSON at most, where that is known without writing it.
    fn longest(&self) -> Option<usize> {
        None
    }
}

/// What names, numbers and flags of a part take as JSON, at most, and those of a triple with its terms.
const PART: usize = 1 << 10;
const TRIPLE: usize = 512;
/// What the names of a call of a tool take.
const CALL: usize = 64;
/// What a number takes, with what stands around it.
const NUMBER: usize = 32;
/// What a text has around it.
const QUOTES: usize = 4;

/// What a text takes as JSON, at most: each byte may be an escape of six.
fn text(text: &str) -> usize {
    6 * text.len() + QUOTES
}

/// What a triple takes; nothing can be said of those with triples in them.
fn triple(one: &Triple) -> Option<usize> {
    let mut size = TRIPLE + one.g.as_deref().map_or(0, text);
    for term in [&one.s, &one.p, &one.o].into_iter().flatten() {
        size += match term {
            Term::Iri(name) | Term::Blank(name) => text(name),
            Term::Literal {
                value,
                datatype,
                language,
            } => text(value) + text(datatype) + text(language),
            Term::Quoted(_) => return None,
        };
    }
    Some(size)
}

fn value(one: &Value) -> usize {
    match one {
        Value::Null | Value::Bool(_) | Value::Number(_) => NUMBER,
        Value::String(said) => text(said),
        Value::Array(all) => all.iter().map(value).sum::<usize>() + QUOTES,
        Value::Object(all) => object(all),
    }
}

fn object(all: &Map<String, Value>) -> usize {
    let fields = all.iter().map(|(name, one)| text(name) + value(one));
    fields.sum::<usize>() + QUOTES
}

macro_rules! reply {
    ($name:ident, $this:ident => $last:expr, { $($field:ident: $value:expr),* }) => {
        impl Reply for $name {
            fn is_last(&self) -> bool {
                let $this = self;
                $this.error.is_some() || $last
            }
            fn error(&self) -> Option<&Error> {
                self.error.as_ref()
            }
            fn failure(error: Error) -> Self {
                Self { error: Some(error), $($field: $value,)* ..Self::default() }
            }
        }
    };
}

impl Reply for AgentResponse {
    fn is_last(&self) -> bool {
        self.error.is_some() || self.end_of_dialog
    }
    fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }
    fn failure(error: Error) -> Self {
        Self {
            message_type: "error".to_owned(),
            content: error.message.clone(),
            end_of_message: true,
            end_of_dialog: true,
            error: Some(error),
            ..Self::default()
        }
    }
    fn longest(&self) -> Option<usize> {
        // Each field is here: whoever adds one sees that it counts.
        let Self {
            message_type,
            content,
            end_of_message: _,
            end_of_dialog: _,
            explain_id,
            explain_graph,
            explain_triples,
            message_id,
            error: None,
            in_token: _,
            out_token: _,
            model,
            citations,
            refused: _,
            trace,
            finish_reason,
            stopped: _,
            loop_window,
            call_id,
            tool_name,
            args,
            usage: None,
            cost: None,
            calls,
        } = self
        else {
            return None;
        };
        if !(citations.is_empty() && loop_window.is_empty() && calls.is_empty()) {
            return None;
        }
        let texts = [message_type, content, message_id, trace];
        let others = [finish_reason, call_id, tool_name];
        let named = [explain_id, explain_graph, model];
        let texts = texts.into_iter().chain(others);
        let texts = texts.chain(named.into_iter().flatten());
        let triples: Option<usize> = explain_triples.iter().map(triple).sum();
        Some(PART + texts.map(|one| text(one)).sum::<usize>() + object(args) + triples?)
    }
}

impl Reply for TextCompletionResponse {
    fn is_last(&self) -> bool {
        self.error.is_some() || self.end_of_stream
    }
    fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }
    fn failure(error: Error) -> Self {
        Self {
            error: Some(error),
            end_of_stream: true,
            ..Self::default()
        }
    }
    fn longest(&self) -> Option<usize> {
        let Self {
            error: None,
            response,
            in_token: _,
            out_token: _,
            model,
            end_of_stream: _,
            models,
            thinking,
            cache_read: _,
            cost: _,
            cache_write: _,
            backend,
            attempts: _,
        } = self
        else {
            return None;
        };
        let named = [model, backend].into_iter().flatten();
        let texts = [response, thinking].into_iter().chain(named);
        let texts = texts.map(|one| text(one)).sum::<usize>();
        models.is_empty().then_some(PART + texts)
    }
}

impl Reply for ChatCompletionResponse {
    fn is_last(&self) -> bool {
        self.error.is_some() || self.end_of_stream
    }
    fn error(&self) -> Option<&Error> {
        self.error.as_ref()
    }
    fn failure(error: Error) -> Self {
        Self {
            error: Some(error),
            end_of_stream: true,
            ..Self::default()
        }
    }
    fn longest(&self) -> Option<usize> {
        let Self {
            error: None,
            failure: None,
            retry_after: _,
            delta,
            content,
            thinking,
            tool_calls,
            finish_reason,
            model,
            backend,
            usage: _,
            cost: _,
            end_of_stream: _,
            models,
            health,
            route: None,
            attempts: _,
        } = self
        else {
            return None;
        };
        if !(models.is_empty() && health.is_empty()) {
            return None;
        }
        let called = tool_calls.iter();
        let called = called.flat_map(|call| [&call.id, &call.name, &call.arguments]);
        let named = [finish_reason, model, backend].into_iter().flatten();
        let texts = [delta, content, thinking].into_iter().chain(named);
        let texts = texts.chain(called).map(|one| text(one)).sum::<usize>();
        Some(PART + CALL * tool_calls.len() + texts)
    }
}

reply!(PromptResponse, this => this.end_of_stream, { end_of_stream: true });
reply!(ToolServiceResponse, this => this.end_of_stream, { end_of_stream: true });
reply!(TriplesQueryResponse, this => this.is_final, { is_final: true });
reply!(SparqlQueryResponse, this => this.is_final, { is_final: true });
reply!(LibrarianResponse, this => this.is_final, { is_final: true });
reply!(PassthroughResponse, this => this.is_final, { is_final: true });
reply!(ToolResponse, _this => true, {});
reply!(ToolHookResponse, _this => true, {});
reply!(ConfigResponse, _this => true, {});
reply!(FlowResponse, _this => true, {});
reply!(CollectionManagementResponse, _this => true, {});
reply!(IamResponse, _this => true, {});
reply!(AuditResponse, _this => true, {});
reply!(CollectionDropped, _this => true, {});
reply!(ReembedResponse, _this => true, {});
reply!(AgentRunsResponse, this => !this.more, { more: false });
reply!(KeptStreamResponse, this => !this.more, { more: false });
reply!(TracesResponse, _this => true, {});
reply!(UsageResponse, _this => true, {});
reply!(NeighbourhoodResponse, _this => true, {});
reply!(MeasureResponse, _this => true, {});
reply!(SourcesResponse, _this => true, {});
reply!(EmbeddingsResponse, _this => true, {});
reply!(GraphEmbeddingsResponse, _this => true, {});
reply!(DocumentEmbeddingsResponse, _this => true, {});
reply!(RowEmbeddingsResponse, _this => true, {});
reply!(KeywordIndexResponse, _this => true, {});
reply!(RerankerResponse, _this => true, {});
reply!(RowsQueryResponse, _this => true, {});
reply!(ViolationsResponse, _this => true, {});
reply!(ThreadsResponse, this => this.end_of_stream, { end_of_stream: true });
reply!(OperationResponse, this => this.last, { last: true });
reply!(ListenerResponse, this => this.end_of_stream, { end_of_stream: true });
reply!(QuestionToStructuredQueryResponse, _this => true, {});
reply!(StructuredQueryResponse, _this => true, {});
reply!(StructuredDataDiagnosisResponse, _this => true, {});
reply!(ImageToTextResponse, _this => true, {});
reply!(KnowledgeResponse, this => this.eos || this.ids.is_some() || KnowledgeResponse::carries_nothing(this), {});
reply!(GraphRagResponse, this => this.end_of_session, { message_type: "chunk".to_owned(), end_of_stream: true, end_of_session: true });
reply!(DocumentRagResponse, this => this.end_of_session, { message_type: "chunk".to_owned(), end_of_stream: true, end_of_session: true });

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds<R: Reply>(part: &R) {
        let written = serde_json::to_vec(part).unwrap().len();
        let most = part.longest().unwrap();
        assert!(written <= most, "{written} of {most}");
    }

    #[test]
    fn no_part_is_longer_than_it_says() {
        let odd = "\u{1}\"\\\n\u{7f}ü\u{fffe}".repeat(200);
        let literal = Term::Literal {
            value: odd.clone(),
            datatype: odd.clone(),
            language: odd.clone(),
        };
        let said = Triple::new(Term::Iri(odd.clone()), Term::Blank(odd.clone()), literal);
        let args = json!({odd.clone(): [odd.clone(), -1.25e-300, null, {"": i64::MIN}], "": true});
        let full = AgentResponse {
            message_type: odd.clone(),
            content: odd.clone(),
            explain_id: Some(odd.clone()),
            explain_graph: Some(odd.clone()),
            explain_triples: vec![said.clone().in_graph(&odd), said, Triple::default()],
            message_id: odd.clone(),
            in_token: Some(i64::MIN),
            out_token: Some(i64::MIN),
            model: Some(odd.clone()),
            trace: odd.clone(),
            finish_reason: odd.clone(),
            call_id: odd.clone(),
            tool_name: odd.clone(),
            args: args.as_object().unwrap().clone(),
            ..AgentResponse::default()
        };
        holds(&full);
        holds(&AgentResponse::default());
        holds(&TextCompletionResponse {
            response: odd.clone(),
            thinking: odd.clone(),
            model: Some(odd.clone()),
            backend: Some(odd.clone()),
            attempts: Some(i64::MIN),
            in_token: Some(i64::MIN),
            cost: Some(-1.25e-300),
            ..TextCompletionResponse::default()
        });
        holds(&TextCompletionResponse::default());
        let call = ChatToolCall {
            id: odd.clone(),
            name: odd.clone(),
            arguments: odd.clone(),
        };
        holds(&ChatCompletionResponse {
            delta: odd.clone(),
            content: odd.clone(),
            thinking: odd.clone(),
            tool_calls: vec![call, ChatToolCall::default()],
            finish_reason: Some(odd.clone()),
            model: Some(odd.clone()),
            backend: Some(odd),
            attempts: Some(i64::MIN),
            retry_after: Some(i64::MIN),
            usage: Some(ChatUsage {
                input: i64::MIN,
                output: i64::MIN,
                cache_read: i64::MIN,
                cache_write: i64::MIN,
                total: i64::MIN,
                estimated: true,
            }),
            cost: Some(-1.25e-300),
            ..ChatCompletionResponse::default()
        });
        holds(&ChatCompletionResponse::default());
    }

    #[test]
    fn what_is_not_told_so_has_to_be_written() {
        let inner = Triple::default();
        let quoted = Term::Quoted(Box::new(inner));
        let part = AgentResponse {
            explain_triples: vec![Triple::new(quoted, Term::iri("p"), Term::iri("o"))],
            ..AgentResponse::default()
        };
        assert_eq!(part.longest(), None);
        let failed = AgentResponse::failure(Error::typed("x", "y"));
        assert_eq!(failed.longest(), None);
        assert_eq!(ConfigResponse::default().longest(), None);
        let failed = ChatCompletionResponse::failure(Error::typed("x", "y"));
        assert_eq!(failed.longest(), None);
        let listed = ChatCompletionResponse {
            models: vec![ModelInfo::default()],
            ..ChatCompletionResponse::default()
        };
        assert_eq!(listed.longest(), None);
    }
}
