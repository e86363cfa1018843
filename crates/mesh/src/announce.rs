//! Presence on the bus: this process says on `notify:tg:control` what it hosts, at each change and in short every
//! 5 s, and takes what others say.

use std::time::Duration;

use tg_bus::{Envelope, Link, PublishMode, Target};
use tg_rpc::control;
use tg_schemas::codec::{self, ContentType};
use tg_schemas::msg::{HostedProcessor, Presence};

use crate::mesh::Mesh;

/// How often a process says that it lives.
const EVERY: Duration = Duration::from_secs(5);

/// Tells the others, and our own view, of a change: `now` is asked when it is this teller's turn, and tells
/// nothing with `None`.
pub(crate) async fn tell(
    mesh: &Mesh,
    kind: &str,
    now: impl FnOnce() -> Option<Vec<HostedProcessor>>,
) {
    let _turn = mesh.presence().turn().await;
    let Some(processors) = now() else {
        return;
    };
    let presence = Presence {
        process: mesh.inbox().to_owned(),
        kind: kind.to_owned(),
        processors,
        ..Presence::default()
    };
    mesh.presence().hear(presence.clone());
    publish(mesh, presence).await;
}

/// Tells the others, and our own view, which rooms of dead letters are full: all of them, each as `workspace`
/// or `workspace:flow`. For the flow service, which keeps them.
pub async fn tell_full_rooms(mesh: &Mesh, full_rooms: Vec<String>) {
    let _turn = mesh.presence().turn().await;
    let presence = Presence {
        process: mesh.inbox().to_owned(),
        kind: "rooms".to_owned(),
        full_rooms,
        ..Presence::default()
    };
    mesh.presence().hear(presence.clone());
    publish(mesh, presence).await;
}

/// Tells the others, and our own view, that a store of this process purges nothing, and why; `None`: it does again.
/// For the reaper.
pub async fn tell_purging(mesh: &Mesh, store: &str, refused: Option<&str>) {
    let _turn = mesh.presence().turn().await;
    let mut purging_refused = mesh.presence().own_full().purging_refused;
    match refused {
        Some(why) => purging_refused.insert(store.to_owned(), why.to_owned()),
        None => purging_refused.remove(store),
    };
    let presence = Presence {
        process: mesh.inbox().to_owned(),
        kind: "purging".to_owned(),
        purging_refused,
        ..Presence::default()
    };
    mesh.presence().hear(presence.clone());
    publish(mesh, presence).await;
}

/// Tells the others, and our own view, whether the disk below the stores of this process is full.
pub async fn tell_disk(mesh: &Mesh, disk_full: bool) {
    let _turn = mesh.presence().turn().await;
    let presence = Presence {
        process: mesh.inbox().to_owned(),
        kind: "disk".to_owned(),
        disk_full,
        ..Presence::default()
    };
    mesh.presence().hear(presence.clone());
    publish(mesh, presence).await;
}

async fn publish(mesh: &Mesh, presence: Presence) {
    let Ok(body) = codec::encode(&presence, ContentType::Json) else {
        return;
    };
    let envelope = Envelope {
        body,
        ..Envelope::default()
    };
    let _ = mesh
        .bus()
        .publish(
            &Target::Topic(control::topic()),
            envelope,
            PublishMode::FireAndForget,
        )
        .await;
}

/// A presence message from the control topic.
pub(crate) fn deliver(mesh: &Mesh, envelope: &Envelope) {
    let Ok(presence) = codec::decode::<Presence>(&envelope.body, envelope.content_type) else {
        return;
    };
    if *presence.process == *mesh.inbox() {
        return;
    }
    if presence.kind == "who" {
        let mesh = mesh.clone();
        let inner = mesh.clone();
        mesh.spawn(
            tg_bus::TaskKind::Handler,
            async move { say_all(&inner).await },
        );
        return;
    }
    if presence.kind == "alive" && !mesh.presence().knows(&presence.process) {
        let who = Presence {
            process: mesh.inbox().to_owned(),
            kind: "who".into(),
            ..Presence::default()
        };
        let (mesh, inner) = (mesh.clone(), mesh.clone());
        mesh.spawn(tg_bus::TaskKind::Handler, async move {
            publish(&inner, who).await
        });
    }
    mesh.presence().hear(presence);
}

async fn say_all(mesh: &Mesh) {
    let _turn = mesh.presence().turn().await;
    let presence = Presence {
        process: mesh.inbox().to_owned(),
        kind: "full".to_owned(),
        ..mesh.presence().own_full()
    };
    publish(mesh, presence).await;
}

/// Asks everybody at each connect, and says "alive" every 5 s, until the process stops.
pub(crate) async fn run(mesh: Mesh) {
    let mut link = mesh.bus().link();
    let process = mesh.inbox().to_owned();
    loop {
        let up = matches!(*link.borrow_and_update(), Link::Up { .. });
        if up {
            let who = Presence {
                process: process.clone(),
                kind: "who".to_owned(),
                ..Presence::default()
            };
            publish(&mesh, who).await;
            say_all(&mesh).await;
        }
        loop {
            match tokio::time::timeout(EVERY, link.changed()).await {
                Ok(Ok(())) => break,
                Ok(Err(_)) => return,
                Err(_) => {
                    let kind = "alive".to_owned();
                    publish(
                        &mesh,
                        Presence {
                            process: process.clone(),
                            kind,
                            ..Presence::default()
                        },
                    )
                    .await;
                }
            }
        }
    }
}
