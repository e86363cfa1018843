//! The services beside the flows.

use super::declare::{ProcessorScope, ProcessorSpec, Rows, count, flatten, processors};
use super::shared;
use super::spec::{Reads, Serves, Spec, SpecRow};
use crate::msg::*;

processors! {
    /// Keeps the configuration.
    config_svc("config-svc", System, hosted: true) {
        CONFIG: Serves<ConfigRequest, ConfigResponse> = Spec::new("config").system();
        CONFIG_OF_WORKSPACE: Serves<ConfigRequest, ConfigResponse> =
            Spec::new("config").workspace();
    }

    /// Keeps who may do what, and who did what.
    iam_svc("iam-svc", System, hosted: true) {
        AUDIT: Serves<AuditRequest, AuditResponse> = Spec::new("audit").system();
        IAM: Serves<IamRequest, IamResponse> = Spec::new("iam").system();
    }

    /// Starts and stops flows, and keeps dead letters.
    flow_svc("flow-svc", Workspace, hosted: true) {
        DEAD_LETTERS: Reads<DeadLetter> = shared::DEAD_LETTERS.read();
        FLOW: Serves<FlowRequest, FlowResponse> = Spec::new("flow").workspace();
        FLOW_OF_SYSTEM: Serves<FlowRequest, FlowResponse> = Spec::new("flow").system();
    }

    /// Keeps documents and collections, and counts what is done of a run.
    librarian("librarian", Workspace, hosted: true) {
        COLLECTION: Serves<CollectionManagementRequest, CollectionManagementResponse> =
            Spec::new("collection").workspace();
        LIBRARIAN: Serves<LibrarianRequest, LibrarianResponse> = Spec::new("librarian").workspace();
        LIBRARY_TEXTS: Reads<LibraryTexts> = shared::LIBRARY_TEXTS.read();
        RUN_TALLY: Reads<RunTally> = shared::RUN_TALLY.read();
        + [RETRACT];
    }

    /// Keeps knowledge cores.
    knowledge("knowledge", Workspace, hosted: true) {
        KNOWLEDGE: Serves<KnowledgeRequest, KnowledgeResponse> = Spec::new("knowledge").workspace();
        + [RETRACT];
    }

    /// Keeps statements that do not fit the ontologies.
    violations("violations", Workspace, hosted: true) {
        VIOLATIONS: Serves<ViolationsRequest, ViolationsResponse> = Spec::new("violations").workspace();
    }

    /// Writes the messages between listeners.
    threads("threads", Workspace, hosted: true) {
        THREADS: Serves<ThreadsRequest, ThreadsResponse> = Spec::new("threads").workspace();
    }

    /// Keeps agents over time: their definitions, and sessions with their turns.
    sessions("sessions", Workspace, hosted: true) {
        DROP: Serves<CollectionDrop, CollectionDropped> = Spec::new("drop-sessions").system();
        NOTICES: Serves<SessionNotice, OperationResponse> = Spec::new("session-notices").workspace();
        SESSIONS: Serves<OperationRequest, OperationResponse> = Spec::new("sessions").workspace();
    }

    /// Lets clients in. It asks; only another gateway asks it, on a topic of this one alone, for streams that it keeps.
    api_gateway("api-gateway", System, hosted: true) {
    }
}
