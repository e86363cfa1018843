//! When a question is asked again, given up and answered late, over a bus that only notes what is said, on paused time.

use std::sync::atomic::{AtomicUsize, Ordering};

use tg_bus::TaskKind;
use tg_schemas::limits;

use super::*;
use crate::noted::Notes;

/// The look at silent answers comes this late at most.
const LATE: Duration = Duration::from_millis(100);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

async fn asker() -> (RequestClient, Arc<Notes>) {
    let notes = Arc::new(Notes::default());
    let port = Port::new(notes.clone(), "asker".into());
    let client = RequestClient::new(port.clone());
    port.spawn(TaskKind::Background, client.clone().watch());
    port.spawn(TaskKind::Background, port.clone().follow_link());
    // Both see the link as it is now.
    tokio::time::sleep(ms(1)).await;
    (client, notes)
}

fn new_question(left: Duration) -> NewQuestion {
    NewQuestion {
        id: "q".into(),
        target: Target::Topic(Topic::system(Class::Request, "config")),
        question: Envelope::default(),
        deadline: Deadline::after(left),
        gap: Duration::from_secs(600),
        cancel: CancellationToken::new(),
        detach: false,
        taken_over: false,
        plain: false,
        span: Span::none(),
    }
}

fn question(client: &RequestClient, left: Duration) -> Arc<InFlight> {
    client.open(new_question(left))
}

/// A question with whose answer another process goes on.
fn lasting(client: &RequestClient, detach: bool) -> Arc<InFlight> {
    client.open(NewQuestion {
        detach,
        taken_over: true,
        ..new_question(Duration::from_secs(60))
    })
}

fn says(client: &RequestClient, server: &str, frame: Frame, seq: u64) {
    client.deliver(Envelope {
        headers: Arc::new(Headers {
            id: Some("q".to_owned()),
            from: Some(server.to_owned()),
            frame: Some(frame),
            seq: Some(seq),
            ..Headers::default()
        }),
        ..Envelope::default()
    });
}

/// What a question that nobody takes ends with, and after how long.
async fn unserved(client: &RequestClient) -> (ErrorCode, Duration) {
    let asked = question(client, Duration::from_secs(60));
    let began = Instant::now();
    match client.next(&asked).await {
        Got::Failed(error) => (error.code(), began.elapsed()),
        Got::Part(..) => panic!("a part"),
    }
}

#[track_caller]
fn about(took: Duration, wanted: Duration) {
    assert!(
        took >= wanted && took <= wanted + LATE,
        "{took:?}, not {wanted:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_asker_hears_within_a_second_that_nobody_serves() {
    let (client, notes) = asker().await;
    notes.unserved.store(true, Ordering::Relaxed);
    let (code, took) = unserved(&client).await;
    assert_eq!(code, ErrorCode::NobodyServes);
    about(took, UNSERVED);
    assert!(took + ONCE_UP < Duration::from_secs(1));
    // First after 20 ms, later each 100: no more than that.
    let tries = notes.asked.lock().len();
    assert!((7..=12).contains(&tries), "{tries}");
}

#[tokio::test(start_paused = true)]
async fn after_a_reconnect_servers_have_three_seconds_to_come_back() {
    let (client, notes) = asker().await;
    notes.unserved.store(true, Ordering::Relaxed);
    notes.link.send_replace(Link::Up { generation: 2 });
    tokio::time::sleep(ms(1)).await;
    let (code, took) = unserved(&client).await;
    assert_eq!(code, ErrorCode::NobodyServes);
    about(took, UNSERVED_AFTER_RECONNECT);
    // Those three seconds are over: the usual ones count again.
    about(unserved(&client).await.1, UNSERVED);
    // Who comes back meanwhile is asked.
    notes.link.send_replace(Link::Up { generation: 3 });
    tokio::time::sleep(ms(1)).await;
    let asked = question(&client, Duration::from_secs(60));
    let reader = client.clone();
    let reading = tokio::spawn(async move { matches!(reader.next(&asked).await, Got::Part(..)) });
    tokio::time::sleep(ms(2_500)).await;
    notes.unserved.store(false, Ordering::Relaxed);
    tokio::time::sleep(ms(150)).await;
    says(&client, "back", Frame::Last, 0);
    assert!(reading.await.unwrap());
}

/// A server that begins and is not there any more: from its last word until its asker is told it takes less than a second.
#[tokio::test(start_paused = true)]
async fn a_death_is_noticed_and_told_within_a_second() {
    let (client, notes) = asker().await;
    let asked = question(&client, Duration::from_secs(60));
    let reader = client.clone();
    let reading = tokio::spawn(async move { reader.next(&asked).await });
    tokio::time::sleep(ms(10)).await;
    says(&client, "server", Frame::Alive, 0);
    tokio::time::sleep(ms(250)).await;
    says(&client, "server", Frame::Alive, 0);
    let last_word = Instant::now();
    notes.gone.lock().push("server".to_owned());
    notes.unserved.store(true, Ordering::Relaxed);
    let Got::Failed(error) = reading.await.unwrap() else {
        panic!("a part");
    };
    assert_eq!(error.code(), ErrorCode::NobodyServes);
    let took = last_word.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    // Silence, two looks, and the patience with those who could take over.
    assert!(
        took >= SUSPECT + 2 * ms(150) + UNSERVED_AFTER_DEATH,
        "{took:?}"
    );
    let asked = notes.asked.lock();
    let again = asked
        .iter()
        .find(|at| **at > last_word)
        .expect("asked again");
    about(Instant::now() - *again, UNSERVED_AFTER_DEATH);
}

/// A server takes the question, sends so many parts and is killed: nobody serves any more. How many parts came before the last, or
/// what the answer ends with.
async fn killed(
    (client, notes): (&RequestClient, &Arc<Notes>),
    asked: Arc<InFlight>,
    parts: u64,
) -> tokio::task::JoinHandle<Result<u64, ErrorCode>> {
    let reader = client.clone();
    let reading = tokio::spawn(async move {
        let mut read = 0;
        loop {
            match reader.next(&asked).await {
                Got::Part(_, true) => return Ok(read),
                Got::Part(..) => read += 1,
                Got::Failed(error) => return Err(error.code()),
            }
        }
    });
    tokio::time::sleep(ms(10)).await;
    for seq in 0..parts {
        says(client, "server", Frame::Part, seq);
    }
    says(client, "server", Frame::Alive, parts);
    tokio::time::sleep(ms(250)).await;
    says(client, "server", Frame::Alive, parts);
    notes.gone.lock().push("server".to_owned());
    notes.unserved.store(true, Ordering::Relaxed);
    reading
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_goes_on_elsewhere_waits_for_the_successor() {
    for (detach, parts) in [(true, 0), (true, 1), (false, 1)] {
        let (client, notes) = asker().await;
        let reading = killed((&client, &notes), lasting(&client, detach), parts).await;
        tokio::time::sleep(ms(20_000)).await;
        assert!(!reading.is_finished(), "detached: {detach}, {parts} parts");
        // It is tried often enough, and no more than that.
        let tries = notes.asked.lock().len();
        assert!((20..=50).contains(&tries), "{tries}");
        notes.unserved.store(false, Ordering::Relaxed);
        tokio::time::sleep(PAUSE_TAKEN_OVER + LATE).await;
        says(&client, "successor", Frame::Last, parts);
        assert_eq!(reading.await.unwrap(), Ok(parts));
    }
}

#[tokio::test(start_paused = true)]
async fn a_successor_that_never_comes_is_given_up() {
    for (detach, parts, code, patience) in [
        (true, 0, ErrorCode::NobodyServes, UNSERVED_TAKEN_OVER),
        (true, 1, ErrorCode::Interrupted, UNSERVED_TAKEN_OVER),
        (false, 1, ErrorCode::Interrupted, UNSERVED_TAKEN_OVER),
        // Whoever waits for its first part hears it within the second.
        (false, 0, ErrorCode::NobodyServes, UNSERVED_AFTER_DEATH),
    ] {
        let (client, notes) = asker().await;
        let reading = killed((&client, &notes), lasting(&client, detach), parts).await;
        let last_word = Instant::now();
        assert_eq!(reading.await.unwrap(), Err(code));
        let asked = notes.asked.lock();
        let again = asked.iter().find(|at| **at > last_word);
        about(Instant::now() - *again.expect("asked again"), patience);
    }
}

#[test]
fn in_a_system_of_one_process_no_successor_is_waited_for() {
    let asked = InFlight::new(NewQuestion {
        detach: true,
        taken_over: true,
        ..new_question(Duration::from_secs(60))
    });
    assert_eq!(asked.patience(false), (UNSERVED, PAUSE), "nobody had it");
    assert!(matches!(asked.exchange.lock().read(), Next::Ask));
    asked.exchange.lock().asked(Instant::now());
    let (here, elsewhere) = (asked.patience(true), asked.patience(false));
    assert_eq!(here, (UNSERVED_AFTER_SILENCE, PAUSE));
    assert_eq!(elsewhere, (UNSERVED_TAKEN_OVER, PAUSE_TAKEN_OVER));
}

/// A question that reached the queue of a process that was just killed: nobody says a word, then the queue is gone.
#[tokio::test(start_paused = true)]
async fn a_question_that_went_with_its_queue_ends_within_a_second() {
    let (client, notes) = asker().await;
    let asked = question(&client, Duration::from_secs(60));
    let began = Instant::now();
    let reader = client.clone();
    let reading = tokio::spawn(async move { reader.next(&asked).await });
    tokio::time::sleep(ms(10)).await;
    notes.unserved.store(true, Ordering::Relaxed);
    let Got::Failed(error) = reading.await.unwrap() else {
        panic!("a part");
    };
    assert_eq!(error.code(), ErrorCode::NobodyServes);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
    let again = *notes.asked.lock().get(1).expect("asked again");
    about(Instant::now() - again, UNSERVED_AFTER_SILENCE);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_speaks_is_looked_for_once_and_one_that_is_silent_after_300_ms() {
    let (client, notes) = asker().await;
    let asked = question(&client, Duration::from_secs(60));
    let reader = client.clone();
    let reading = tokio::spawn(async move { reader.next(&asked).await });
    for _ in 0..8 {
        tokio::time::sleep(ms(250)).await;
        says(&client, "server", Frame::Alive, 0);
    }
    let spoke = Instant::now();
    assert_eq!(notes.looked.lock().len(), 2, "when it was met");
    tokio::time::sleep(ms(1_000)).await;
    let first = notes.looked.lock().iter().copied().find(|at| *at > spoke);
    about(first.expect("looked for") - spoke, SUSPECT);
    // It is there, only slow: nobody else is asked.
    assert_eq!(notes.asked.lock().len(), 1);
    says(&client, "server", Frame::Last, 0);
    assert!(matches!(reading.await.unwrap(), Got::Part(_, true)));
}

/// A process of an earlier release has no queue by which it could be found; and after an outage everybody is coming back.
#[tokio::test(start_paused = true)]
async fn nothing_is_concluded_of_who_was_never_found_or_just_after_a_reconnect() {
    let (client, notes) = asker().await;
    let asked = question(&client, Duration::from_secs(60));
    let reader = client.clone();
    let reading = tokio::spawn(async move { matches!(reader.next(&asked).await, Got::Part(..)) });
    notes.gone.lock().push("earlier".to_owned());
    tokio::time::sleep(ms(10)).await;
    says(&client, "earlier", Frame::Alive, 0);
    tokio::time::sleep(ms(1_200)).await;
    assert!(notes.looked.lock().len() >= 4, "it is looked for");
    assert_eq!(notes.asked.lock().len(), 1, "and waited for all the same");
    notes.link.send_replace(Link::Up { generation: 2 });
    tokio::time::sleep(ms(350)).await;
    let looks = notes.looked.lock().len();
    for _ in 0..5 {
        says(&client, "earlier", Frame::Alive, 0);
        tokio::time::sleep(ms(500)).await;
    }
    assert_eq!(notes.looked.lock().len(), looks, "they are coming back");
    says(&client, "earlier", Frame::Last, 0);
    assert!(reading.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_server_has_a_moment_after_the_deadline_for_its_last_words() {
    for (late, in_time) in [(100, true), (300, false)] {
        let (client, _) = asker().await;
        // As the clock on the wall counts it, which this test does not stop.
        let asked = question(&client, ms(500));
        let began = Instant::now();
        let reader = client.clone();
        let reading = tokio::spawn(async move {
            let got = reader.next(&asked).await;
            (got, began.elapsed())
        });
        tokio::time::sleep(ms(500 + late)).await;
        says(&client, "server", Frame::Last, 0);
        match (reading.await.unwrap(), in_time) {
            ((Got::Part(_, true), _), true) => {}
            ((Got::Failed(error), took), false) => {
                assert_eq!(error.code(), ErrorCode::Timeout);
                assert!(took >= ms(400) + LAST_WORDS && took <= ms(501) + LAST_WORDS);
            }
            _ => panic!("{late} ms late"),
        }
        assert_eq!(client.open_count(), usize::from(in_time));
    }
}

/// Counts the questions that it is handed.
#[derive(Default)]
struct Handed(AtomicUsize);

impl Sink for Handed {
    fn deliver(&self, _: Delivery) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_bus_would_refuse_or_hold_back_is_handed_to_no_server_of_this_process() {
    let (client, notes) = asker().await;
    let handed = Arc::new(Handed::default());
    let topic = Topic::system(Class::Request, "config");
    let near = client.0.port.near();
    let _server = near.add(topic, handed.clone(), Box::new(|| true));
    let asked = async |user: Option<String>| {
        let mut new = new_question(Duration::from_secs(60));
        Arc::make_mut(&mut new.question.headers).user_id = user;
        client.send_question(&client.open(new)).await.unwrap();
        (handed.0.load(Ordering::Relaxed), notes.asked.lock().len())
    };
    assert_eq!(asked(None).await, (1, 0));
    let long = "x".repeat(limits::HEADERS);
    assert_eq!(asked(Some(long)).await, (1, 1), "its headers are too long");
    // The broker takes no messages for now.
    notes.link.send_replace(Link::Blocked);
    assert_eq!(asked(None).await, (1, 2));
}
