//! The flow's own `agent-step`: a record of a step comes in, and the step is taken, unless that was done already.

use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use serde::Deserialize;
use tg_mesh::{ConsumeError, Cx, Envelope, IsDone, RecordConsumer, ReplyAddress};
use tg_schemas::codec;
use tg_schemas::msg::AgentRun;

use crate::error::AgentError;
use crate::run::Agent;
use crate::run::leases::StepLease;
use crate::run::recorded::Recorded;
use crate::run::step::take;

/// Reads `agent-step` of every flow.
pub(crate) struct Steps(pub(crate) Arc<Agent>);

/// Which step a record is of.
#[derive(Deserialize)]
struct Which {
    run: String,
    step: i64,
}

impl Which {
    /// The fields of a record, which grows with each step, and is not read for them.
    fn of(record: &Envelope) -> Option<Self> {
        let at_hand = record.at_hand(|run: &AgentRun| Self {
            run: run.run.clone(),
            step: run.step,
        });
        let written = || {
            let body = record.body_of::<AgentRun>()?;
            codec::fields::<AgentRun, Self>(body, record.content_type)
        };
        at_hand.or_else(written)
    }
}

/// The number of a step, if it is one.
fn number(step: i64) -> Option<u32> {
    u32::try_from(step).ok().filter(|step| *step > 0)
}

impl Steps {
    /// The lease of a step: it was begun here when the record was written, or an earlier delivery of it is still being handled.
    async fn lease(&self, cx: &Cx, run: &str, step: u32) -> Result<StepLease, ConsumeError> {
        tokio::select! {
            lease = self.0.leases.take_soon(run, step) => Ok(lease),
            () = cx.mesh.shutdown().cancelled() => Err(AgentError::InProgress.into()),
        }
    }
}

#[async_trait]
impl RecordConsumer<AgentRun> for Steps {
    async fn consume(&self, cx: Cx, run: AgentRun) -> Result<(), ConsumeError> {
        let agent = &self.0;
        let malformed = || AgentError::MalformedStep;
        let step = number(run.step).ok_or_else(malformed)?;
        let address: ReplyAddress =
            serde_json::from_slice(run.reply.as_bytes()).map_err(|_| malformed())?;
        let claim = self.lease(&cx, &run.run, step).await?;
        if agent.leases.is_done(&run.run, step) {
            return Ok(());
        }
        let run = Arc::new(run);
        take(agent.clone(), cx, run, address, (claim, Recorded::Durable)).await
    }

    /// Nearly every step is done by the process that writes its record.
    fn is_done<'a>(&'a self, cx: &'a Cx, record: &'a Envelope) -> Option<IsDone<'a>> {
        let which = Which::of(record)?;
        let step = number(which.step)?;
        let work = async move {
            let _lease = self.lease(cx, &which.run, step).await?;
            Ok::<bool, ConsumeError>(self.0.leases.is_done(&which.run, step))
        };
        Some(work.boxed())
    }
}

#[cfg(test)]
mod tests {
    use tg_mesh::tg_bus::Handover;
    use tg_schemas::Headers;
    use tg_schemas::codec::ContentType;
    use tg_schemas::sections::Sections;

    use super::*;

    #[test]
    fn a_record_says_which_step_it_is_of_without_being_read() {
        let run = Arc::new(AgentRun {
            run: "r".to_owned(),
            step: 7,
            ..AgentRun::default()
        });
        let mut sections = Sections::default();
        sections.share(&run).unwrap();
        let at_hand = sections.take_shared();
        let (header, body) = sections.finish();
        let together = Envelope {
            headers: Arc::new(Headers {
                sections: Some(header),
                ..Headers::default()
            }),
            content_type: ContentType::Avro,
            body,
            ..Envelope::default()
        };
        let near = Envelope {
            handover: Handover::sections(true, &together.body, at_hand),
            ..together.clone()
        };
        let alone = [ContentType::Avro, ContentType::Json].map(|content_type| Envelope {
            content_type,
            body: codec::encode(&*run, content_type).unwrap(),
            ..Envelope::default()
        });
        for record in [together, near].iter().chain(&alone) {
            let which = Which::of(record).unwrap();
            assert_eq!((which.run.as_str(), which.step), ("r", 7));
        }
        let other = Envelope {
            content_type: ContentType::Avro,
            body: "of another release".into(),
            ..Envelope::default()
        };
        assert!(Which::of(&other).is_none());
    }
}
