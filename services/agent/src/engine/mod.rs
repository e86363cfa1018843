//! The loop's logic with plain values: no bus, no clock, no random ids.
//!
//! [`parser`] reads replies · [`toolset`] knows which tools may be used · [`arguments`] checks what the model
//! gives them · [`prompt`] writes what the model is asked · [`router`] chooses how a run is gone about ·
//! [`pattern`] is what it then follows, [`patterns`] those that there are · [`phase`] what a step is for · [`plan`] and [`planning`] are plans and their prompts ·
//! [`bounds`] ends what goes on too long · [`guards`] find loops and break them · [`usage`] is what calls take ·
//! [`compacting`] is what of them it is shown summed up · [`delegating`] is work for other agents · [`confirmation`] what users answer ·
//! [`native`] offers tools by the API of a model · [`exchange`] what a run heard of the outside · [`polls`] says how soon one may be made again ·
//! [`decision`] is what a step decided and saw · [`chunks`] and [`trace`] say it to the asker and to the
//! graph, chained by [`linked`].

pub mod arguments;
pub mod bounds;
pub mod chunks;
pub mod citing;
pub mod compacting;
pub mod confirmation;
pub mod cost;
pub mod decision;
pub mod delegating;
pub mod exchange;
pub mod guards;
pub mod linked;
pub mod native;
pub mod parser;
pub mod pattern;
pub mod patterns;
pub mod phase;
pub mod plan;
pub mod planning;
pub mod polls;
pub mod prompt;
pub mod question;
mod render;
pub mod router;
pub mod splitting;
pub mod toolset;
pub mod trace;
pub mod usage;
