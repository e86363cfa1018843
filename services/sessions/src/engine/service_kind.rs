//! What a service that a workspace names is for, and how one of each kind is called.

/// What a service is for. No two services of a workspace have one id, whatever they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceKind {
    /// It answers.
    Llm,
    /// It puts passages in order.
    Reranking,
}

impl ServiceKind {
    /// As it is kept.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Llm => "llm",
            Self::Reranking => "reranking",
        }
    }

    /// The field by which an agent names such a service.
    pub fn field(self) -> &'static str {
        match self {
            Self::Llm => "llmServiceId",
            Self::Reranking => "rerankingServiceId",
        }
    }

    /// The parameter by which a request names one.
    pub fn parameter(self) -> &'static str {
        match self {
            Self::Llm => "llm_service_id",
            Self::Reranking => "reranking_service_id",
        }
    }

    /// What errors call one.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Llm => "LLM service",
            Self::Reranking => "reranking service",
        }
    }
}
