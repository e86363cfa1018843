//! When an answer is over: the per-type flag that ends a stream of responses (mesh contract, end flags).

use crate::Message;
use crate::error::Error;
use crate::msg::*;

/// A response body.
pub trait Reply: Message {
    /// Whether this is the last message of the answer. An error always is.
    fn is_last(&self) -> bool;
    /// The error it carries.
    fn error(&self) -> Option<&Error>;
    /// A response that says only that it failed, and ends the answer.
    fn failure(error: Error) -> Self;
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
}

reply!(ChatCompletionResponse, this => this.end_of_stream, { end_of_stream: true });
reply!(TextCompletionResponse, this => this.end_of_stream, { end_of_stream: true });
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
