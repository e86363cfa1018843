//! Answers over a bus that only notes what is said, on paused time.

use bytes::Bytes;
use tg_schemas::limits;
use tg_schemas::msg::TextCompletionResponse;

use super::*;
use crate::deadline::Deadline;
use crate::ended::KEEP_ENDED;
use crate::noted::Notes;
use crate::responder::Responder;
use crate::window::WINDOW_PARTS;

fn server() -> (ReplyServer, Arc<Notes>) {
    let notes = Arc::new(Notes::default());
    let port = Port::new(notes.clone(), "server".into());
    let server = ReplyServer::new(port.clone(), limits::REPEATS);
    port.spawn(TaskKind::Background, server.clone().watch());
    (server, notes)
}

fn address(id: &str, asker: &str) -> ReplyAddress {
    ReplyAddress {
        id: id.to_owned(),
        reply_to: asker.to_owned(),
        deadline: Deadline::after(Duration::from_secs(3600)).millis(),
        ..ReplyAddress::default()
    }
}

fn cancel(server: &ReplyServer, id: &str, asker: &str) {
    server.deliver(&Headers {
        id: Some(id.to_owned()),
        from: Some(asker.to_owned()),
        frame: Some(Frame::Cancel),
        ..Headers::default()
    });
}

async fn say(server: &ReplyServer, held: &Arc<ReplyStream>, size: usize, last: bool) {
    let body = Bytes::from(vec![b'x'; size]);
    let parts = vec![(body, Handover::default())];
    server.send(held, parts, last).await.unwrap();
}

/// A handler that is a window ahead of its asker, and waits.
async fn waiting(server: &ReplyServer, address: &ReplyAddress) -> Arc<ReplyStream> {
    let held = server.open(address).unwrap();
    for _ in 0..WINDOW_PARTS {
        say(server, &held, 1, false).await;
    }
    let (server, waits) = (server.clone(), held.clone());
    tokio::spawn(async move {
        let parts = vec![(Bytes::from_static(b"x"), Handover::default())];
        server.send(&waits, parts, false).await
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    held
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_a_dead_asker_is_stopped_unless_it_is_detached() {
    let (server, notes) = server();
    let slow = waiting(&server, &address("slow", "lives")).await;
    let stuck = waiting(&server, &address("stuck", "dies")).await;
    let detached = ReplyAddress {
        detach: true,
        ..address("detached", "dies")
    };
    let detached = waiting(&server, &detached).await;
    notes.gone.lock().push("dies".to_owned());
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert!(!stuck.cancel.is_cancelled(), "it may only be slow");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(stuck.cancel.is_cancelled());
    assert!(!slow.cancel.is_cancelled());
    assert!(!detached.cancel.is_cancelled());
}

/// An asker in this process need not read what was written; what is kept for another one has no message beside it.
#[tokio::test(start_paused = true)]
async fn an_answer_to_this_process_is_handed_over_beside_its_body() {
    let (server, notes) = server();
    for (asker, here) in [("server", true), ("other", false)] {
        let held = server.open(&address(asker, asker)).unwrap();
        let mut out = Responder::new(server.clone(), held.clone());
        out.send(TextCompletionResponse::default()).await.unwrap();
        assert_eq!(notes.beside.lock().last(), Some(&here));
        let state = held.state.lock();
        assert_eq!(state.parts.len(), 1);
        assert!(state.parts.iter().all(|(_, part)| !part.handover.is_some()));
    }
}

/// A process of an earlier release has no queue by which it could be found.
#[tokio::test(start_paused = true)]
async fn nothing_is_concluded_of_an_asker_that_was_never_found() {
    let (server, notes) = server();
    notes.gone.lock().push("earlier".to_owned());
    let held = waiting(&server, &address("q", "earlier")).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!held.cancel.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_cancel_counts_for_the_questions_of_who_cancelled() {
    let (server, _) = server();
    cancel(&server, "run", "first");
    let again = server.open(&address("run", "first")).unwrap();
    assert!(again.cancel.is_cancelled());
    server.forget(&again);
    let next = server.open(&address("run", "successor")).unwrap();
    assert!(!next.cancel.is_cancelled());
    // One that comes late is not about the successor's either.
    cancel(&server, "run", "first");
    assert!(!next.cancel.is_cancelled());
    cancel(&server, "run", "successor");
    assert!(next.cancel.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn who_asks_under_the_id_of_another_asker_is_answered_anew() {
    let (server, _) = server();
    let old = server.open(&address("q", "first")).unwrap();
    assert!(server.is_held(&address("q", "first")));
    assert!(!old.cancel.is_cancelled());
    assert!(!server.is_held(&address("q", "second")));
    assert!(old.cancel.is_cancelled());
    let new = server.open(&address("q", "second")).unwrap();
    // The end of the old one leaves the new one alone.
    say(&server, &old, 1, true).await;
    server.forget(&old);
    assert!(server.is_held(&address("q", "second")));
    assert!(!new.cancel.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_detached_answer_goes_on_and_who_asks_under_its_id_is_told_to_wait() {
    let (server, notes) = server();
    let detached = ReplyAddress {
        detach: true,
        ..address("q", "first")
    };
    let held = server.open(&detached).unwrap();
    assert!(server.is_held(&address("q", "second")));
    assert!(!held.cancel.is_cancelled());
    tokio::time::sleep(Duration::from_millis(1)).await;
    let said = notes.said.lock();
    let told = |(to, headers): &(Arc<str>, Arc<Headers>)| {
        **to == *"second" && headers.frame == Some(Frame::Alive)
    };
    assert!(said.iter().any(told), "{said:?}");
}

#[tokio::test(start_paused = true)]
async fn of_ended_answers_the_oldest_are_forgotten_first() {
    let (server, _) = server();
    let ids: Vec<_> = (0..9).map(|n| n.to_string()).collect();
    // Two of them fit.
    let size = limits::REPEATS * 2 / 5;
    for id in &ids {
        let held = server.open(&address(id, "asker")).unwrap();
        say(&server, &held, size, true).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let kept: Vec<_> = ids
        .iter()
        .filter(|id| server.is_held(&address(id, "asker")))
        .collect();
    assert_eq!(kept, ["7", "8"]);
}

/// Another process has nothing to send of an answer that is noted as over. All other parts leave without waiting.
#[tokio::test(start_paused = true)]
async fn only_the_end_of_an_answer_that_was_resumed_is_flushed() {
    let (server, notes) = server();
    let begun = server.open(&address("begun", "asker")).unwrap();
    let resumed = server.resume(&address("resumed", "asker")).unwrap();
    for held in [begun, resumed] {
        say(&server, &held, 1, false).await;
        say(&server, &held, 1, true).await;
    }
    // These two do not fit into one message.
    let apart = server.resume(&address("apart", "asker")).unwrap();
    let parts = ["a\n", "b\n"].map(|body| (Bytes::from(body), Handover::default()));
    server.send(&apart, parts.into(), true).await.unwrap();
    let promises = notes.promises.lock().clone();
    let parts = promises.iter().filter_map(|(frame, promise)| match frame {
        Some(Frame::Part | Frame::Last) => Some(*promise),
        _ => None,
    });
    let parts: Vec<PublishMode> = parts.collect();
    let begun = [PublishMode::FireAndForget; 2];
    let resumed = [PublishMode::FireAndForget, PublishMode::Flushed];
    assert_eq!(parts, [begun, resumed, resumed].concat());
}

/// What was seen to be over is not what lies under its id by the time it is let go of.
#[tokio::test(start_paused = true)]
async fn an_old_answer_is_forgotten_and_not_its_successor() {
    let (server, _) = server();
    let old = server.open(&address("q", "asker")).unwrap();
    say(&server, &old, 1, true).await;
    let since = Instant::now();
    server.forget(&old);
    let new = server.open(&address("q", "asker")).unwrap();
    let late = since + KEEP_ENDED + Duration::from_secs(1);
    server.0.ended.lock().add(vec![(since, old)]);
    server.look_after(late, false);
    assert!(server.is_held(&address("q", "asker")));
    assert!(!new.has_ended());
}

#[tokio::test(start_paused = true)]
async fn who_passes_a_question_on_hears_the_asker_until_another_has_it() {
    let (server, notes) = server();
    let passing = |id: &str| {
        let held = server.open(&address(id, "asker")).unwrap();
        let out = Responder::<TextCompletionResponse>::new(server.clone(), held.clone());
        (held, out)
    };
    // It says that it lives, and the asker's cancel reaches it.
    let (held, mut out) = passing("a");
    out.offer();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!notes.said.lock().is_empty());
    cancel(&server, "a", "asker");
    assert!(held.cancel.is_cancelled());
    // Another has it: it is that one's.
    let (held, mut out) = passing("b");
    out.offer();
    out.hand_over();
    assert_eq!(server.open_count(), 0);
    cancel(&server, "b", "asker");
    assert!(!held.cancel.is_cancelled());
    // Who has it may be in this process, and is not forgotten with it.
    let (_, mut out) = passing("c");
    out.offer();
    assert!(!server.is_held(&address("c", "asker")));
    let taken = server.open(&address("c", "asker")).unwrap();
    out.hand_over();
    assert!(server.is_held(&address("c", "asker")));
    assert!(!taken.cancel.is_cancelled());
}
