//! What a reply to a prompt is, without bus and model: the shape that the prompt promises. Pure.

pub mod shape;
