//! Names of the config types that the flow service keeps: flow records, blueprints and processor rows live there.

pub(crate) use tg_clients::config::{Config, Key};
pub(crate) use tg_schemas::flow_record::KIND as FLOW;

/// Config type of blueprints.
pub(crate) const BLUEPRINT: &str = "flow-blueprint";
/// Config type of parameter types.
pub(crate) const PARAMETER_TYPE: &str = "parameter-type";
/// Config type of processors that people add.
pub(crate) const PROCESSOR_SPEC: &str = "processor-spec";
/// Config types of processor rows begin so.
pub(crate) const PROCESSOR: &str = "processor:";
