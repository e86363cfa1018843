//! Keeps a session alive: notices its end, connects again, sets everything up as it was, and only then
//! says that the bus is up.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::StreamExt;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::connected::Connected;
use super::consumers::{Entry, Source};
use super::core::Core;
use super::endpoint::ConnectError;
use super::session::Session;
use super::topology;
use super::wire::AmqpError;
use crate::bus::Link;
use crate::pause::doubled;
use crate::task::TaskKind;
use tg_schemas::topic::Class;

/// First and longest pause between attempts to connect.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(500));
/// How often the sockets' state is looked at, beside their events.
const LOOK: Duration = Duration::from_millis(200);
/// Pause before a consumer that could not be set up is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// Consumers set up at a time.
const AT_ONCE: usize = 32;

/// Runs until the bus is closed.
pub(super) async fn run(core: Arc<Core>, first: Arc<Connected>) {
    let mut session = first;
    loop {
        let mending = mend(core.clone(), session.clone());
        let ended = session.ended.clone();
        core.tasks.spawn(TaskKind::Background, async move {
            ended.run_until_cancelled_owned(mending).await;
        });
        tokio::select! {
            () = core.closing.cancelled() => {}
            () = follow(&core, &session) => {}
        }
        core.lower();
        end(&core, &session).await;
        session = tokio::select! {
            () = core.closing.cancelled() => return,
            next = reconnect(&core) => next,
        };
    }
}

/// Follows the link until it breaks.
async fn follow(core: &Core, session: &Session) {
    let mut events = Box::pin(session.publishing.events_listener());
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while session.connected() {
        let state = match session.publishing.status().blocked() {
            true => Link::Blocked,
            false => Link::Up {
                generation: session.generation,
            },
        };
        core.link.send_if_modified(|link| {
            let changed = *link != state;
            *link = state;
            changed
        });
        tokio::select! {
            _ = events.next() => {}
            () = session.reading_changed() => {}
            _ = look.tick() => {}
        }
    }
}

async fn reconnect(core: &Arc<Core>) -> Arc<Connected> {
    let mut pause = PAUSE.0;
    let mut told = ConnectError::Down;
    loop {
        sleep(pause).await;
        pause = doubled(pause, PAUSE.1);
        let generation = core.generation.fetch_add(1, Ordering::Relaxed) + 1;
        let longest = core.reads_longest.load(Ordering::Relaxed);
        let options = &core.options;
        let open = Connected::open(&core.endpoint, longest, generation, &core.tasks, options);
        let session = match open.await {
            Ok(session) => session,
            Err(error) => {
                tracing::debug!(%error, "the broker is not reachable yet");
                let fault = ConnectError::of(&error);
                // That does not pass by itself, as an outage does.
                if fault != ConnectError::Down && fault != told {
                    tracing::warn!(%fault, "there is no secure connection to the broker");
                    told = fault;
                }
                continue;
            }
        };
        match restore(core, &session).await {
            Ok(()) => {
                core.raise(session.clone());
                return session;
            }
            Err(fault) => {
                tracing::warn!(%fault, "the connection was lost while it was restored");
                end(core, &session).await;
            }
        }
    }
}

/// Ends a session. If a frame that was too long ended it, the next one reads it: what stays in a queue until it is
/// acknowledged comes again at once, and would end every session after.
async fn end(core: &Core, session: &Session) {
    session.end().await;
    if session.met_long_frame() && !core.reads_longest.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            "a message came with longer headers than are agreed with the broker; the longest there are will be read from now on"
        );
    }
}

/// Sets up claims and consumers in a new session.
async fn restore(core: &Core, session: &Session) -> Result<(), AmqpError> {
    if let Err(fault) = core.claims.resume(session).await {
        if !session.connected() {
            return Err(fault);
        }
        // Whoever holds no claim must not wait for the one that the broker does not give now.
        tracing::warn!(%fault, "a claim could not be restored yet");
    }
    let (may, waits): (Vec<_>, Vec<_>) = core
        .consumers
        .all()
        .into_iter()
        .partition(|entry| may_consume(core, entry));
    for entry in waits {
        core.consumers.retry(session, &entry);
    }
    let mut setting_up = futures::stream::iter(may)
        .map(async |entry| (core.consumers.set_up(session, &entry).await, entry))
        .buffer_unordered(AT_ONCE);
    while let Some((result, entry)) = setting_up.next().await {
        match result {
            Ok(()) => {}
            Err(AmqpError::Down) if !session.connected() => return Err(AmqpError::Down),
            Err(fault) => {
                tracing::warn!(%fault, "a consumer could not be restored yet");
                core.consumers.retry(session, &entry);
            }
        }
    }
    Ok(())
}

/// Whether a consumer may take anything: what it consumes under a claim is another process's once that is lost.
fn may_consume(core: &Core, entry: &Entry) -> bool {
    entry
        .source
        .claim()
        .is_none_or(|name| core.claims.holds(name))
}

/// Repairs single consumers and claims while the session lasts. Neither waits for the other.
async fn mend(core: Arc<Core>, session: Arc<Connected>) {
    tokio::join!(
        resume_claims(&core, &session),
        mend_consumers(&core, &session)
    );
}

/// Asks for lost claims until each is held, or is another process's. An error says nothing of that: the broker is asked again.
async fn resume_claims(core: &Core, session: &Session) {
    loop {
        let pause = match core.claims.resume(session).await {
            Ok(false) => return,
            Ok(true) => PAUSE.0,
            Err(fault) => {
                tracing::debug!(%fault, "a claim could not be restored yet");
                RETRY
            }
        };
        if !session.connected() {
            return;
        }
        sleep(pause).await;
    }
}

async fn mend_consumers(core: &Core, session: &Session) {
    loop {
        for entry in core.consumers.lost(session).await {
            if !session.connected() {
                return;
            }
            if entry.is_stopped() {
                continue;
            }
            if !may_consume(core, &entry) {
                core.consumers.retry(session, &entry);
                continue;
            }
            if let Err(fault) = repair(core, session, &entry).await {
                tracing::warn!(%fault, "a consumer could not be restored yet");
                core.consumers.retry(session, &entry);
            }
        }
        sleep(RETRY).await;
    }
}

/// The broker cancelled a consumer: its queue was deleted or moved. A record queue that was deleted
/// stays deleted; whatever is private or temporary is declared again.
async fn repair(core: &Core, session: &Session, entry: &Arc<Entry>) -> Result<(), AmqpError> {
    if let Source::Subscription(of, _) = &entry.source
        && of.topic.class() == Class::Flow
    {
        let look = topology::look(session, &of.queue(core.rules.prefix)).await;
        if look == Ok(None) {
            tracing::warn!(topic = %of.topic, "a queue was deleted while it was consumed");
            core.consumers.give_up(entry);
            return Ok(());
        }
    }
    core.consumers.set_up(session, entry).await
}
