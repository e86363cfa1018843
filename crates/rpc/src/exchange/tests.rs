//! The timing of an exchange, on paused time.

use tokio::time::advance;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn frame(from: &str, frame: Frame, seq: u64) -> Envelope {
    Envelope {
        headers: Arc::new(Headers {
            from: Some(from.to_owned()),
            frame: Some(frame),
            seq: Some(seq),
            ..Headers::default()
        }),
        ..Envelope::default()
    }
}

fn tell(to: &str, frame: Frame, seq: u64) -> Tell {
    Tell {
        to: to.into(),
        frame,
        seq,
    }
}

fn asked() -> Exchange {
    let mut exchange = Exchange::new(false);
    assert!(matches!(exchange.read(), Next::Ask));
    exchange.asked(Instant::now());
    exchange
}

#[tokio::test(start_paused = true)]
async fn a_question_nobody_answers_is_asked_again_after_doubling_pauses() {
    let mut exchange = asked();
    for pause in [700, 1400, 2800, 5600, 11_200, 12_000, 12_000] {
        advance(pause * MS).await;
        assert_eq!(exchange.look(Instant::now(), false), Look::Fine);
        advance(MS).await;
        assert_eq!(exchange.look(Instant::now(), false), Look::AskAgain);
        // Once: the reader is to ask now.
        assert_eq!(exchange.look(Instant::now(), false), Look::Fine);
        assert!(matches!(exchange.read(), Next::Ask));
        exchange.asked(Instant::now());
    }
}

#[tokio::test(start_paused = true)]
async fn each_sign_of_life_doubles_the_patience_up_to_twelve_seconds() {
    let mut exchange = asked();
    for patience in [3000, 6000, 12000, 12000] {
        exchange.hear(frame("a", Frame::Alive, 0), Instant::now());
        advance(patience * MS).await;
        assert_eq!(
            exchange.look(Instant::now(), false),
            Look::Fine,
            "{patience}"
        );
    }
    advance(MS).await;
    assert_eq!(exchange.look(Instant::now(), false), Look::AskAgain);
}

#[tokio::test(start_paused = true)]
async fn a_part_makes_patience_short_again() {
    let mut exchange = asked();
    exchange.hear(frame("a", Frame::Alive, 0), Instant::now());
    exchange.hear(frame("a", Frame::Part, 0), Instant::now());
    advance(1501 * MS).await;
    let resend = Look::Tell(tell("a", Frame::Resend, 1));
    assert_eq!(exchange.look(Instant::now(), false), resend);
}

/// Of a question that was passed on, only who has sent parts knows anything: a pause of it does not end the answer.
#[tokio::test(start_paused = true)]
async fn who_has_sent_parts_is_asked_for_the_rest_before_others_are_asked_again() {
    let mut exchange = asked();
    exchange.hear(frame("a", Frame::Part, 0), Instant::now());
    let resend = Look::Tell(tell("a", Frame::Resend, 1));
    advance(MS).await;
    for _ in 0..2 {
        advance(1500 * MS).await;
        assert_eq!(exchange.look(Instant::now(), false), resend);
        assert_eq!(exchange.look(Instant::now(), false), Look::Fine);
    }
    // What another says of it does not count.
    exchange.hear(frame("b", Frame::Refuse, 0), Instant::now());
    assert!(
        exchange
            .hear(frame("a", Frame::Part, 1), Instant::now())
            .wake
    );
    advance(12_001 * MS).await;
    assert_eq!(exchange.look(Instant::now(), false), Look::AskAgain);
    exchange.read();
    exchange.read();
    assert!(matches!(exchange.read(), Next::Ask));
    exchange.asked(Instant::now());
    exchange.hear(frame("b", Frame::Refuse, 0), Instant::now());
    assert!(matches!(exchange.read(), Next::Failed(_)));
}

/// Its heartbeats may have been lost; another that is too busy to take the question as well says nothing about it.
#[tokio::test(start_paused = true)]
async fn who_has_only_said_that_it_lives_is_asked_once_before_others_are() {
    let mut exchange = asked();
    for _ in 0..2 {
        exchange.hear(frame("a", Frame::Alive, 0), Instant::now());
        exchange.set_patience(|_| FIRST_SIGN);
        advance(1501 * MS).await;
        let nudge = Look::Tell(tell("a", Frame::Resend, 0));
        assert_eq!(exchange.look(Instant::now(), false), nudge);
        exchange.hear(frame("b", Frame::Refuse, 0), Instant::now());
        advance(400 * MS).await;
        assert_eq!(exchange.look(Instant::now(), false), Look::Fine);
    }
    advance(MS).await;
    assert_eq!(exchange.look(Instant::now(), false), Look::AskAgain);
}

/// Over a bus that loses much, a long answer needs to be asked for several times: what was lost before says nothing of
/// what comes.
#[tokio::test(start_paused = true)]
async fn a_part_makes_the_pauses_between_questions_short_again() {
    let mut exchange = asked();
    for seq in 0..4 {
        exchange.hear(frame("a", Frame::Part, seq), Instant::now());
        advance(12_001 * MS).await;
        for pause in [700, 1400] {
            assert_eq!(exchange.look(Instant::now(), false), Look::AskAgain);
            while !matches!(exchange.read(), Next::Ask) {}
            exchange.asked(Instant::now());
            advance(pause * MS).await;
            assert_eq!(exchange.look(Instant::now(), false), Look::Fine);
            advance(MS).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_gap_is_asked_for_by_number_until_it_is_filled() {
    let mut exchange = asked();
    exchange.hear(frame("a", Frame::Part, 1), Instant::now());
    assert_eq!(exchange.look(Instant::now(), false), Look::Fine);
    for _ in 0..2 {
        advance(51 * MS).await;
        let resend = Look::Tell(tell("a", Frame::Resend, 0));
        assert_eq!(exchange.look(Instant::now(), false), resend);
    }
    exchange.hear(frame("a", Frame::Last, 0), Instant::now());
    advance(51 * MS).await;
    assert_eq!(exchange.look(Instant::now(), false), Look::Fine);
}

#[tokio::test(start_paused = true)]
async fn after_a_reconnect_a_server_is_asked_for_the_rest_and_nobody_is_asked_again() {
    let mut exchange = asked();
    assert_eq!(exchange.look(Instant::now(), true), Look::AskAgain);
    exchange.read();
    exchange.hear(frame("a", Frame::Part, 0), Instant::now());
    let resend = Look::Tell(tell("a", Frame::Resend, 1));
    assert_eq!(exchange.look(Instant::now(), true), resend);
}

#[tokio::test(start_paused = true)]
async fn another_takes_over_only_from_a_server_that_says_nothing_when_asked() {
    let mut exchange = asked();
    exchange.hear(frame("a", Frame::Part, 0), Instant::now());
    advance(MS).await;
    let probe = exchange.take_over("b".into(), Instant::now());
    assert_eq!(probe, Some(tell("a", Frame::Resend, 1)));
    advance(399 * MS).await;
    assert_eq!(exchange.take_over("b".into(), Instant::now()), None);
    // It lives.
    exchange.hear(frame("a", Frame::Alive, 1), Instant::now());
    advance(MS).await;
    assert_eq!(exchange.take_over("b".into(), Instant::now()), None);
    // The next time it does not.
    assert!(exchange.take_over("b".into(), Instant::now()).is_some());
    advance(400 * MS).await;
    let go_on = exchange.take_over("b".into(), Instant::now());
    assert_eq!(go_on, Some(tell("b", Frame::Resend, 1)));
    // What the first still says comes too late.
    assert_eq!(
        exchange.hear(frame("a", Frame::Part, 1), Instant::now()),
        Heard::default()
    );
    assert!(
        exchange
            .hear(frame("b", Frame::Last, 1), Instant::now())
            .wake
    );
    assert!(matches!(exchange.read(), Next::Part((_, false), _)));
    assert!(matches!(exchange.read(), Next::Part((_, true), None)));
}

#[tokio::test(start_paused = true)]
async fn a_server_known_to_be_dead_is_not_waited_for() {
    let mut exchange = asked();
    exchange.hear(frame("a", Frame::Alive, 0), Instant::now());
    assert!(!exchange.server_died("b"));
    assert!(exchange.server_died("a"));
    assert!(exchange.has_lost_its_server());
    assert!(matches!(exchange.read(), Next::Ask));
    exchange.asked(Instant::now());
    assert!(!exchange.has_lost_its_server());
}

#[tokio::test(start_paused = true)]
async fn what_nobody_serves_ends_by_how_much_was_passed_on() {
    let mut exchange = asked();
    assert_eq!(exchange.unserved().code(), ErrorCode::NobodyServes);
    let mut exchange = asked();
    exchange.hear(frame("a", Frame::Part, 0), Instant::now());
    assert_eq!(exchange.unserved().code(), ErrorCode::Interrupted);
    // The reader still gets what was there.
    assert!(matches!(exchange.read(), Next::Part(..)));
    assert!(matches!(exchange.read(), Next::Failed(_)));
}

#[tokio::test(start_paused = true)]
async fn a_publication_that_was_given_up_is_made_again() {
    let mut exchange = Exchange::new(false);
    assert!(matches!(exchange.read(), Next::Ask));
    assert!(matches!(exchange.read(), Next::Wait));
    exchange.not_asked();
    assert!(matches!(exchange.read(), Next::Ask));
}

#[tokio::test(start_paused = true)]
async fn a_foreign_server_is_taken_as_it_comes() {
    let mut exchange = Exchange::new(true);
    exchange.read();
    exchange.asked(Instant::now());
    advance(60_000 * MS).await;
    assert_eq!(exchange.look(Instant::now(), true), Look::Fine);
    assert!(exchange.hear(Envelope::default(), Instant::now()).wake);
    assert!(matches!(exchange.read(), Next::Part((_, false), None)));
}

/// A question that was asked again may be answered twice: one reader never gets the words of two answers.
#[tokio::test(start_paused = true)]
async fn the_parts_of_two_servers_are_never_mixed() {
    let mut exchange = asked();
    let now = Instant::now();
    exchange.hear(frame("a", Frame::Part, 0), now);
    exchange.hear(frame("a", Frame::Part, 1), now);
    // Another begins anew, and is ahead soon.
    for seq in 0..5 {
        assert!(!exchange.hear(frame("b", Frame::Part, seq), now).wake);
    }
    assert!(!exchange.hear(frame("b", Frame::Alive, 5), now).wake);
    assert!(!exchange.hear(frame("b", Frame::Last, 5), now).wake);
    assert_eq!(exchange.silent_server(now).expect("one").0, "a".into());
    assert!(exchange.hear(frame("a", Frame::Last, 2), now).wake);
    for _ in 0..3 {
        let Next::Part((part, _), _) = exchange.read() else {
            panic!("a part is missing");
        };
        assert_eq!(part.headers.from.as_deref(), Some("a"));
    }
}

/// One that begins where parts of the other are there already, if only behind a gap, is no successor.
#[tokio::test(start_paused = true)]
async fn who_fills_a_gap_of_another_answer_is_a_rival() {
    let mut exchange = asked();
    let now = Instant::now();
    exchange.hear(frame("a", Frame::Part, 1), now);
    assert!(!exchange.hear(frame("b", Frame::Part, 0), now).wake);
    assert!(exchange.hear(frame("a", Frame::Part, 0), now).wake);
}

/// A run moves to another process without a word: that one begins after what is there.
#[tokio::test(start_paused = true)]
async fn who_goes_on_after_what_is_there_is_the_server() {
    let mut exchange = asked();
    let now = Instant::now();
    exchange.hear(frame("a", Frame::Part, 0), now);
    assert!(exchange.hear(frame("b", Frame::Part, 1), now).wake);
    assert_eq!(exchange.silent_server(now).expect("one").0, "b".into());
}

#[tokio::test(start_paused = true)]
async fn a_rival_is_heard_once_the_server_is_gone() {
    let mut exchange = asked();
    let now = Instant::now();
    exchange.hear(frame("a", Frame::Part, 0), now);
    exchange.hear(frame("b", Frame::Part, 0), now);
    assert!(exchange.server_died("a"));
    assert!(exchange.hear(frame("b", Frame::Part, 1), now).wake);
}
