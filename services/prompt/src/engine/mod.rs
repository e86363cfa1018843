//! What a prompt is, without bus and model: templates, the prompts of a workspace, the shape of replies. Pure.

pub mod prompts;
pub mod shape;
pub mod template;
