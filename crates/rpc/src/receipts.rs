//! The keeper's end of receipts: reports to the writers of records what became of them, several in a message where several are
//! reported at about the same time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_bus::pause::ONCE_UP;
use tg_bus::{BusError, Envelope, Link, PublishMode, Target, TaskKind};
use tg_schemas::codec::{self, ContentType};
use tg_schemas::msg::{Receipt, Receipts};
use tg_schemas::receipt::{Fate, Slip};
use tg_schemas::{Frame, Headers};

use crate::port::Port;

/// Receipts that wait to be sent; beyond, new ones are dropped.
const MOST: usize = 8_192;
/// Receipts of one message.
const AT_ONCE: usize = 256;
/// How long receipts wait for a bus that is away.
const TIMEOUT: Duration = Duration::from_secs(10);

/// All receipts of this process. Cheap to clone.
#[derive(Clone)]
pub struct ReceiptSender(Arc<Inner>);

struct Inner {
    port: Port,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(String, Receipt)>,
    /// A task sends what waits.
    sending: bool,
}

impl ReceiptSender {
    pub(crate) fn new(port: Port) -> Self {
        Self(Arc::new(Inner {
            port,
            state: Mutex::default(),
        }))
    }

    /// Notifies a writer, soon. One that is gone is sent nothing, nor is any beyond the bound: their writers find
    /// that they know nothing of those records.
    pub fn tell(&self, slip: &Slip, fate: &Fate) {
        let mut state = self.0.state.lock();
        if state.waiting.len() >= MOST {
            metrics::counter!("tg_receipts_dropped_total").increment(1);
            return;
        }
        state
            .waiting
            .push_back((slip.inbox.clone(), slip.receipt(fate)));
        if !std::mem::replace(&mut state.sending, true) {
            let all = self.clone();
            self.0
                .port
                .spawn(TaskKind::Handler, async move { all.send().await });
        }
    }

    async fn send(&self) {
        loop {
            let next = self.0.state.lock().next();
            let Some((inbox, receipts)) = next else {
                return;
            };
            let count = receipts.len() as u64;
            if self.publish(inbox.into(), receipts).await.is_err() {
                metrics::counter!("tg_receipts_dropped_total").increment(count);
            }
        }
    }

    async fn publish(&self, inbox: Arc<str>, receipts: Vec<Receipt>) -> Result<(), BusError> {
        let Ok(body) = codec::encode(&Receipts { receipts }, ContentType::Json) else {
            return Ok(());
        };
        let port = &self.0.port;
        let envelope = Envelope {
            headers: Arc::new(Headers {
                from: Some(port.inbox().to_owned()),
                frame: Some(Frame::Receipts),
                ..Headers::default()
            }),
            body,
            ..Envelope::default()
        };
        let to = Target::Inbox(inbox);
        let told = port.publish(&to, envelope.clone(), PublishMode::Confirmed);
        let Err(BusError::Down) = told.await else {
            return Ok(());
        };
        let mut link = port.bus().link();
        let up = link.wait_for(|link| matches!(link, Link::Up { .. }));
        // It is tried once more in either case.
        let _ = tokio::time::timeout(TIMEOUT, up).await;
        tokio::time::sleep(ONCE_UP).await;
        let told = port.publish(&to, envelope, PublishMode::Confirmed).await;
        told.map(|_| ())
    }
}

impl State {
    /// The next receipts of one writer. With none it is noted that nobody sends.
    fn next(&mut self) -> Option<(String, Vec<Receipt>)> {
        let Some((inbox, first)) = self.waiting.pop_front() else {
            self.sending = false;
            return None;
        };
        let mut receipts = vec![first];
        while receipts.len() < AT_ONCE
            && let Some((to, _)) = self.waiting.front()
            && *to == inbox
            && let Some((_, receipt)) = self.waiting.pop_front()
        {
            receipts.push(receipt);
        }
        Some((inbox, receipts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_to_one_writer_goes_together_and_in_order() {
        let mut state = State {
            sending: true,
            ..State::default()
        };
        let waits = |inbox: &str, of: i64| {
            let receipt = Receipt {
                of,
                ..Receipt::default()
            };
            (inbox.to_owned(), receipt)
        };
        state.waiting.extend((0..300).map(|of| waits("a", of)));
        state.waiting.push_back(waits("b", 300));
        let mut seen = Vec::new();
        while let Some((inbox, receipts)) = state.next() {
            seen.push((inbox, receipts[0].of, receipts.len()));
        }
        let of = |inbox: &str, from, count| (inbox.to_owned(), from, count);
        let wanted = [of("a", 0, 256), of("a", 256, 44), of("b", 300, 1)];
        assert_eq!(seen, wanted);
        assert!(!state.sending);
    }
}
