//! The ReAct loop: iterations, tools, provenance events.
