//! The threadgraph binary: all services in one process, or some.
