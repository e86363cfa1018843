//! A queue that a program answers without hosting processors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tg_mesh::bus::{Envelope, PublishMode, Routed, Target};
use tg_mesh::{Host, Responder, answer_on};
use tg_schemas::msg::{TextCompletionRequest, TextCompletionResponse};
use tg_schemas::{ErrorCode, Frame, Headers, Subscription};
use tg_testkit::bus::{collector, within};
use tg_testkit::place::Place;

use crate::dialogs::mesh;
use crate::serving::at;

/// Questions that are worked on at once.
const AT_ONCE: usize = 1024;

async fn ask(mesh: &Host, inbox: &str, id: &str, seq: Option<u64>) {
    let envelope = Envelope {
        headers: Arc::new(Headers {
            id: Some(id.to_owned()),
            from: Some(inbox.to_owned()),
            reply_to: Some(inbox.to_owned()),
            frame: Some(Frame::Ask),
            seq,
            ..Headers::default()
        }),
        body: b"{\"prompt\": \"x\"}".to_vec().into(),
        ..Envelope::default()
    };
    let target = Target::Topic(at("answers"));
    let sent = mesh
        .bus()
        .publish(&target, envelope, PublishMode::Confirmed);
    assert_eq!(sent.await, Ok(Routed::Queued), "{id}");
}

/// What is asked again is not begun again, what was begun elsewhere is interrupted, and one too many is refused.
async fn a_question_is_begun_once(place: Place) {
    let mesh = mesh(&place).await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let hangs = move |_: TextCompletionRequest, out: Responder<TextCompletionResponse>| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            out.cancelled().cancelled().await;
            Ok(())
        }
    };
    let of = Subscription::service(at("answers"), "answers");
    let _answering = answer_on(&mesh, of, hangs).await.unwrap();
    let (sink, mut heard) = collector();
    let inbox = format!("nt.inbox.answers.{}", uuid::Uuid::new_v4().simple());
    let _open = mesh.bus().open_inbox(&inbox, sink).await.unwrap();
    ask(&mesh, &inbox, "elsewhere", Some(3)).await;
    for n in 0..AT_ONCE {
        ask(&mesh, &inbox, &format!("asked-{n}"), None).await;
    }
    ask(&mesh, &inbox, "asked-0", None).await;
    ask(&mesh, &inbox, "many", None).await;
    let mut refused = Vec::new();
    while refused.len() < 2 {
        let told = within(heard.recv()).await.unwrap().envelope.clone();
        if told.headers.frame == Some(Frame::Refuse) {
            let error: tg_schemas::Error = serde_json::from_slice(&told.body).unwrap();
            refused.push((told.headers.id.clone().unwrap(), error.code()));
        }
    }
    let expected = [
        ("elsewhere".to_owned(), ErrorCode::Interrupted),
        ("many".to_owned(), ErrorCode::Busy),
    ];
    assert_eq!(refused, expected);
    assert_eq!(calls.load(Ordering::SeqCst), AT_ONCE);
}

tg_testkit::on_both_buses!(a_question_is_begun_once);
