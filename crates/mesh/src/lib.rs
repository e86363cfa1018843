//! The fabric: bus adapters, questions and records, processor runtime.
