//! Processors of the tests' own, which are in no table.

use std::sync::Arc;

use tg_mesh::{Processor, RequestHandler};
use tg_schemas::processors::{ProcessorSpec, Spec};
use tg_schemas::{Class, Message, Reply, Topic};

/// Where whoever serves under an id is asked.
pub fn at(id: &str) -> Topic {
    Topic::system(Class::Request, id)
}

/// One that answers on the system topic of its id.
pub fn serving<Q: Message, R: Reply>(
    id: impl Into<String>,
    handler: Arc<dyn RequestHandler<Q, R>>,
) -> Processor {
    let id = id.into().leak();
    Processor::new(ProcessorSpec::unlisted(id)).serves(Spec::new(id).system(), handler)
}
