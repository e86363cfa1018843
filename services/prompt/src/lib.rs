//! Prompt templates rendered and sent to the model.
