//! Every metric that any part of the system records: what it is, and in which buckets. A test of the architecture holds
//! this table against the code, both ways. Names end in their unit; what the process is in and of itself stands beside.

use Kind::{Counter, Counts, Gauge, Seconds};

/// What a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// A histogram of durations in seconds.
    Seconds,
    /// A histogram of whole numbers.
    Counts,
}

impl Kind {
    /// Upper bounds of a histogram's buckets.
    pub fn buckets(self) -> Option<&'static [f64]> {
        match self {
            Self::Counter | Self::Gauge => None,
            Self::Seconds => Some(SECONDS),
            Self::Counts => Some(COUNTS),
        }
    }
}

/// Bus and store work in milliseconds, model calls up to minutes.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 120.0,
];

/// From one to as many as batches and runs have.
const COUNTS: &[f64] = &[
    1.0, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0,
];

/// A metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// The names of its labels, with blanks between. What they say is of small closed lists, or bounded.
    pub labels: &'static str,
    /// What it says, in a sentence.
    pub meaning: &'static str,
}

impl Metric {
    /// Gives it its meaning with the recorder that is installed.
    pub(super) fn describe(&self) {
        match self.kind {
            Counter => metrics::describe_counter!(self.name, self.meaning),
            Gauge => metrics::describe_gauge!(self.name, self.meaning),
            Seconds | Counts => metrics::describe_histogram!(self.name, self.meaning),
        }
    }
}

const fn row(
    name: &'static str,
    kind: Kind,
    labels: &'static str,
    meaning: &'static str,
) -> Metric {
    Metric {
        name,
        kind,
        labels,
        meaning,
    }
}

/// All of them, sorted by name.
#[rustfmt::skip]
pub const METRICS: &[Metric] = &[
    row("tg_agent_budget_total", Counter, "limit", "Agent runs that were stopped, and other calls of models that were refused, as they did not fit a budget, by its bound."),
    row("tg_agent_compactions_total", Counter, "tier", "Times that earlier steps of a run were summed up, by how well."),
    row("tg_agent_confirmations_total", Counter, "", "Questions to users whether an agent may use a tool."),
    row("tg_agent_guard_total", Counter, "detector rung", "Rungs that guards of agents climbed about loops of tool calls."),
    row("tg_agent_hooks_total", Counter, "when outcome", "Questions to hooks of flows before and after tool calls, by what was decided."),
    row("tg_agent_iterations_total", Counter, "", "Steps of agent runs that were begun."),
    row("tg_agent_poll_held_total", Counter, "", "Polls of agents that were asked too soon and answered with their last result."),
    row("tg_agent_program_calls_total", Counter, "outcome", "Messages to agents that are programs, by what came of them."),
    row("tg_agent_run_iterations", Counts, "", "Steps that an agent run had when it ended."),
    row("tg_agent_session_total", Counter, "outcome", "Agent runs that ended, by outcome."),
    row("tg_agent_tool_duration_seconds", Seconds, "tool", "How long a tool call of an agent took, by kind of tool."),
    row("tg_agent_tool_error_total", Counter, "tool", "Tool calls of agents that failed, by kind of tool."),
    row("tg_agent_tool_invocation_total", Counter, "tool", "Tool calls of agents, by kind of tool."),
    row("tg_agent_unreadable_replies_total", Counter, "", "Replies of a model in which an agent found no step."),
    row("tg_answers_cancelled_total", Counter, "", "Answers that were cancelled because no caller waited for them any more."),
    row("tg_answers_too_large_total", Counter, "", "Answers that ended because a part was larger than a message may be."),
    row("tg_audit_lost_total", Counter, "", "Decisions that are counted in the audit, but not told one by one, for want of room."),
    row("tg_bus_records_refused_total", Counter, "", "Records that the embedded bus refused because too much of their workspace waits."),
    row("tg_consumer_processing_total", Counter, "processor status", "Messages that processors handled, by processor and outcome."),
    row("tg_consumer_request_duration_seconds", Seconds, "processor", "How long a processor took for a message."),
    row("tg_dead_letter_oldest_seconds", Gauge, "reason", "Age of the oldest dead letter, by reason; 0: none waits."),
    row("tg_dead_letter_quotas_full", Gauge, "", "Workspaces and flows whose quota of dead letters is full."),
    row("tg_dead_letters", Gauge, "reason", "Dead letters, by reason: dead (will never work as they are), retry (tried again when due), stale (of another start of their flow), parked (left by a stop)."),
    row("tg_dead_letters_evicted_total", Counter, "", "Oldest dead letters that were evicted for newer ones."),
    row("tg_disk_free_bytes", Gauge, "", "Bytes that can still be written below data_dir."),
    row("tg_embeddings_batch_texts", Counts, "", "Texts that one call of the embedding model held."),
    row("tg_embeddings_texts_total", Counter, "", "Texts that the embedding model made vectors of."),
    row("tg_extract_replies_total", Counter, "from", "Replies that extractors worked with, by where they came from: the model, or the ledger of what it said before."),
    row("tg_extract_violations_total", Counter, "", "Extracted facts that the ontology does not allow."),
    row("tg_flow_dead_letters", Gauge, "workspace flow reason", "Dead letters of a flow, by workspace, flow and reason; beyond 256 flows the others share one series."),
    row("tg_flow_waiting_messages", Gauge, "workspace flow", "Messages that wait in the queues of a running flow, by workspace and flow; beyond 256 flows the others share one series."),
    row("tg_gateway_certificate_expiry_timestamp_seconds", Gauge, "", "When the certificate of the gateway ends, in seconds since 1970."),
    row("tg_gateway_certificate_refused", Gauge, "", "1 where the files of the certificate hold none that can be used, and the one before is shown."),
    row("tg_gateway_handshakes_failed_total", Counter, "reason", "Connections that did not become secure ones, by reason: plain (HTTP without TLS), late (too slow), broken (anything else)."),
    row("tg_gateway_request_seconds", Seconds, "endpoint service", "How long a request took, from its coming to the end of its answer."),
    row("tg_gateway_requests_total", Counter, "endpoint service outcome", "Requests that ended, by endpoint, service and outcome."),
    row("tg_gateway_slowed_total", Counter, "whose", "Requests that were refused as one too many a second, by whose pace: key, user or address."),
    row("tg_gateway_sockets", Gauge, "", "Open WebSockets."),
    row("tg_graph_commits_total", Counter, "", "Commits of the graph store."),
    row("tg_graph_merges_total", Counter, "", "Merges of a graph's journal into one."),
    row("tg_graph_policy_hidden_total", Counter, "", "Things that a policy hid from a reader, once a question."),
    row("tg_graph_triples_refused_total", Counter, "", "Invalid triples that were refused."),
    row("tg_graph_triples_retracted_total", Counter, "", "Triples that were removed with a document, run or collection."),
    row("tg_graph_triples_written_total", Counter, "", "Triples that were written."),
    row("tg_graph_writes_refused_total", Counter, "", "Writes that a quota of the graph refused."),
    row("tg_idle_consumers", Gauge, "", "Processors that took none of the messages that wait for them for report.idle_consumer_seconds; only where report.listen is set."),
    row("tg_image_to_text_duration_seconds", Seconds, "", "How long the description of a picture took."),
    row("tg_input_tokens_total", Counter, "processor", "Tokens of prompts, as the model's provider counts them."),
    row("tg_keywords_indexed_total", Counter, "", "Chunks that were added to the keyword index."),
    row("tg_keywords_retracted_total", Counter, "", "Chunks that were removed from the keyword index with a document, run or collection."),
    row("tg_knowledge_late_records_total", Counter, "", "Records for a knowledge core whose collection had ended."),
    row("tg_knowledge_pieces_kept_total", Counter, "", "Pieces of knowledge cores that were kept while documents were worked on."),
    row("tg_knowledge_pieces_put_total", Counter, "", "Pieces of knowledge cores that were uploaded."),
    row("tg_library_upload_chunks_total", Counter, "outcome", "Chunks of uploads that the library took, by whether their content was there already: written or repeated."),
    row("tg_model_attempts_total", Counter, "backend outcome", "Attempts to ask a backend of a model, by how they began to be answered, where there are several backends."),
    row("tg_model_backend_up", Gauge, "backend", "Whether a backend of a model answered when it was asked last: 1 or 0, where there are several."),
    row("tg_model_up", Gauge, "", "Whether the language model answered when it was asked last: 1 or 0."),
    row("tg_output_tokens_total", Counter, "processor", "Tokens of answers, as the model's provider counts them."),
    row("tg_publish_stuck_total", Counter, "", "Messages that the bus neither took nor refused in time."),
    row("tg_purging_refused", Gauge, "store", "1 where a store purges no deleted workspace because the configuration is another one, or older, than it knew."),
    row("tg_questions_asked_again_total", Counter, "", "Questions that were sent again because no process answered."),
    row("tg_questions_in_progress_bytes", Gauge, "", "Memory that large questions in progress count for in this process."),
    row("tg_questions_malformed_total", Counter, "", "Questions that cannot be read."),
    row("tg_questions_open", Gauge, "", "Questions of this process that wait for their answer."),
    row("tg_questions_refused_total", Counter, "code", "Questions that were refused before a handler saw them, by error code."),
    row("tg_rag_answer_seconds", Seconds, "from", "How long an answer of retrieval took, by what it searched."),
    row("tg_rag_answers_total", Counter, "from outcome", "Answers of retrieval, by what it searched and outcome."),
    row("tg_rag_reranker_failed_total", Counter, "", "Calls of the reranker that failed; ranking was by words instead."),
    row("tg_rag_retrieval_seconds", Seconds, "from", "How long the search before an answer took, by what was searched."),
    row("tg_receipts_dropped_total", Counter, "", "Receipts of records that could not be sent to their writers, who do not know what became of those records."),
    row("tg_records_cut_total", Counter, "", "Records of which only the beginning could be kept as a dead letter."),
    row("tg_records_dead_lettered_total", Counter, "reason", "Records that could not be handled and became dead letters, by reason."),
    row("tg_records_held_back_total", Counter, "", "Records that stay in their queue because the quota of dead letters is full."),
    row("tg_records_of_ended_collections_total", Counter, "", "Changes of stores that were dropped because they were sent for a collection that was deleted since."),
    row("tg_records_of_ended_workspaces_total", Counter, "", "Records of deleted workspaces that were dropped."),
    row("tg_reembedded_collections_total", Counter, "", "Collections of which the vectors of another embeddings model took over."),
    row("tg_reembedded_vectors_total", Counter, "", "Vectors that were made again by another embeddings model."),
    row("tg_reembeddings_refused_total", Counter, "", "Texts that another embeddings model refused, each time it was asked."),
    row("tg_reembeddings_stuck", Gauge, "", "Collections whose change to another embeddings model does not get on, of those under way."),
    row("tg_reembeddings_under_way", Gauge, "", "Collections that are changed to another embeddings model and not yet switched."),
    row("tg_rows_refused_total", Counter, "", "Rows that their schema does not allow."),
    row("tg_rows_retracted_total", Counter, "", "Rows that were removed with a document, run or collection."),
    row("tg_rows_written_total", Counter, "", "Rows that were written."),
    row("tg_spans_dropped_total", Counter, "why", "Spans of traces that nobody will see, by why: full (too many waited), refused (by the receiver), unsent (it was away, or the process ended)."),
    row("tg_spans_exported_total", Counter, "", "Spans of traces that the receiver took."),
    row("tg_store_commits_total", Counter, "store", "Commits that changed something, by the store whose file it was."),
    row("tg_tally_batch_entries", Counts, "", "Completion reports that one message held."),
    row("tg_tally_retries_total", Counter, "", "Messages with completion reports that were tried again."),
    row("tg_tasks_total", Counter, "kind", "Tasks that were started, by kind."),
    row("tg_text_completion_duration_seconds", Seconds, "processor", "How long a call of the language model took, by processor."),
    row("tg_tool_invocation_total", Counter, "tool", "Calls of the tool service, by tool."),
    row("tg_tool_mcp_processes_total", Counter, "", "Programs that are MCP servers that were started."),
    row("tg_trace_texts_lost_total", Counter, "", "Texts of traces that could not be stored."),
    row("tg_vectors_commits_total", Counter, "", "Commits of the vector store."),
    row("tg_vectors_loads_total", Counter, "", "Collections of vectors that were read into memory."),
    row("tg_vectors_memory_bytes", Gauge, "", "Memory that collections of vectors take, in bytes."),
    row("tg_vectors_pass_queries", Counts, "", "Queries that one pass over a collection of vectors answered."),
    row("tg_vectors_retracted_total", Counter, "", "Vectors that were removed with a document, run or collection."),
    row("tg_vectors_unloads_total", Counter, "", "Collections of vectors that were evicted from memory for others."),
    row("tg_vectors_written_total", Counter, "kind", "Vectors that were written, by kind."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_end_as_their_kind_does() {
        assert!(METRICS.is_sorted_by(|a, b| a.name < b.name));
        for Metric {
            name,
            kind,
            labels,
            meaning,
        } in METRICS
        {
            let fits = match kind {
                Counter => name.ends_with("_total"),
                Seconds => name.ends_with("_seconds"),
                Counts => name.ends_with('s') && !name.ends_with("_seconds"),
                Gauge => !name.ends_with("_total"),
            };
            // The endings that a histogram's own samples have would make two metrics of one name.
            let taken = ["_count", "_sum", "_bucket"];
            assert!(
                fits && !taken.iter().any(|end| name.ends_with(end)),
                "{name}"
            );
            assert!(meaning.ends_with('.') && meaning.len() > 15, "{name}");
            // The buckets of a histogram have that one.
            assert!(labels.split(' ').all(|label| label != "le"), "{name}");
        }
    }

    #[test]
    fn buckets_rise() {
        for buckets in [SECONDS, COUNTS] {
            assert!(buckets.is_sorted_by(|a, b| a < b));
        }
    }
}
