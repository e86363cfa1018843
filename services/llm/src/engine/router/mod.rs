//! Which backend a question to a model goes to, and when. Plain functions over plain values: time and chance come in.
//! `serving` says who has a model, `choice` who is next, `health` who is left alone and until when, `bucket` how much is
//! sent a minute, `pauses` how long is waited between two attempts.

pub mod bucket;
pub mod choice;
pub mod health;
pub mod pauses;
pub mod serving;
