//! What users are asked before tools are used.

use super::*;
use crate::engine::confirmation::Answer;

fn asking(workspace: &str, id: &str, until_ms: i64) -> Asking {
    Asking {
        workspace: workspace.into(),
        user: String::new(),
        id: id.into(),
        until_ms,
    }
}

fn user(name: &str) -> Whose {
    Whose::User(name.into())
}

/// A run of somebody, which asks in its first step until then.
async fn asks(store: &Store, who: &str, run: &str, until_ms: i64) -> Confirmation {
    let question = format!("q-{run}");
    let begun = store.begin(detached(who, &question, 1_000_000), began(run), 1);
    assert!(begun.await.unwrap().is_some());
    let what = Asking {
        user: who.into(),
        ..asking("ws#3", &format!("of {run}"), until_ms)
    };
    ask(store, of(run), 1, what, 10).await.expect("it is asked")
}

async fn ask(
    store: &Store,
    run: RunKey,
    step: u32,
    what: Asking,
    now_ms: i64,
) -> Option<Confirmation> {
    store
        .ask_user(&run, (step, 0), &what, now_ms)
        .await
        .unwrap()
}

pub(super) async fn a_user_answers_once_and_in_time(store: Store) {
    let row = asks(&store, "u", "r", 500).await;
    assert_eq!((row.until_ms, row.answer, row.used), (500, None, false));
    // Asked again by who takes the step up, it stands as it is.
    let again = ask(&store, of("r"), 1, asking("ws#3", "other", 900), 20);
    assert_eq!(again.await, Some(row));
    let reply = async |whose: Whose, asked: &str, answer, now_ms| {
        let said = (answer, "u");
        store
            .answer_user(&whose, ("q-r", asked), said, now_ms)
            .await
            .unwrap()
    };
    assert_eq!(reply(user("v"), "", Answer::Yes, 30).await, Replied::NoRun);
    let other = Whose::Workspace("ws#4".into());
    assert_eq!(reply(other, "", Answer::Yes, 30).await, Replied::NoRun);
    let nothing = Replied::NothingAsked;
    assert_eq!(reply(user("u"), "another", Answer::Yes, 30).await, nothing);
    assert_eq!(reply(user("u"), "", Answer::Yes, 500).await, nothing);
    assert_eq!(
        reply(user("u"), "of r", Answer::Yes, 499).await,
        Replied::Noted
    );
    assert_eq!(reply(user("u"), "", Answer::No, 499).await, nothing);
    store.close_question("r", (1, 0)).await.unwrap();
    let row = store.confirmation("r", (1, 0)).await.unwrap().unwrap();
    assert_eq!((row.answer, row.by.as_str()), (Some(Answer::Yes), "u"));
    assert!(!row.used);
    store.begin_use("r", (1, 0)).await.unwrap();
    assert!(store.confirmation("r", (1, 0)).await.unwrap().unwrap().used);

    asks(&store, "u", "late", 50).await;
    store.close_question("late", (1, 0)).await.unwrap();
    let row = store.confirmation("late", (1, 0)).await.unwrap().unwrap();
    assert_eq!(row.answer, Some(Answer::Unanswered));
    let all = Whose::Workspace("ws#3".into());
    let late = store.answer_user(&all, ("q-late", ""), (Answer::Yes, "u"), 40);
    assert_eq!(late.await.unwrap(), Replied::NothingAsked);
    let over = ask(&store, of_ended("late"), 2, asking("ws#3", "x", 90), 20);
    assert_eq!(over.await, None);
}

pub(super) async fn questions_of_subagents_are_answered_with_their_run(store: Store) {
    asks(&store, "u", "r", 500).await;
    store.close_question("r", (1, 0)).await.unwrap();
    // Two of its own, one of one of these, and one of another run.
    let all = [
        ("r/0", "s0"),
        ("r/1", "s1"),
        ("s0/256", "deep"),
        ("rr/0", "other"),
    ];
    for (key, sub) in all {
        let asked = asked("ws#3", &format!("subagent/{key}"), "goal");
        store.begin(asked, began(sub), 1).await.unwrap();
        let what = asking("ws#3", sub, 500);
        store.ask_user(&of(sub), (1, 0), &what, 10).await.unwrap();
    }
    let reply = async |asked: &str| {
        let said = (Answer::No, "u");
        store
            .answer_user(&user("u"), ("q-r", asked), said, 20)
            .await
            .unwrap()
    };
    assert_eq!(reply("").await, Replied::Several);
    assert_eq!(reply("s1").await, Replied::Noted);
    assert_eq!(reply("deep").await, Replied::Noted);
    assert_eq!(reply("other").await, Replied::NothingAsked);
    assert_eq!(reply("").await, Replied::Several, "the run asked before");
    assert_eq!(reply("s0").await, Replied::Noted);
    let row = store.confirmation("s0", (1, 0)).await.unwrap().unwrap();
    assert_eq!(row.answer, Some(Answer::No));
}

pub(super) async fn a_bare_answer_is_for_the_first_question_of_a_run(store: Store) {
    let reply = async |asked: &str, now_ms| {
        let said = (Answer::Yes, "u");
        store
            .answer_user(&user("u"), ("q-r", asked), said, now_ms)
            .await
            .unwrap()
    };
    asks(&store, "u", "r", 500).await;
    assert_eq!(reply("", 20).await, Replied::Noted);
    assert_eq!(reply("", 20).await, Replied::NothingAsked);
    ask(&store, of("r"), 2, asking("ws#3", "second", 500), 30).await;
    assert_eq!(reply("", 40).await, Replied::Several);
    let row = store.confirmation("r", (2, 0)).await.unwrap().unwrap();
    assert_eq!(row.answer, None, "a late answer is not for the second");
    assert_eq!(reply("second", 40).await, Replied::Noted);
    // One whose time is over without an answer was asked, too.
    ask(&store, of("r"), 3, asking("ws#3", "third", 60), 50).await;
    ask(&store, of("r"), 4, asking("ws#3", "fourth", 500), 70).await;
    assert_eq!(reply("third", 80).await, Replied::NothingAsked);
    assert_eq!(reply("", 80).await, Replied::Several);
}

pub(super) async fn open_questions_of_a_workspace_are_bounded(store: Store) {
    // Eight users have 16 each. One who has them gets no more, and leaves the others theirs.
    for number in 0..128 {
        let (who, run) = (format!("u{}", number / 16), format!("r{number}"));
        assert_eq!(asks(&store, &who, &run, 500).await.answer, None, "{number}");
        if number % 16 == 15 {
            let more = asks(&store, &who, &format!("more-{number}"), 500).await;
            assert_eq!(more.answer, Some(Answer::TooMany), "{number}");
        }
    }
    // Nor does anybody else: the workspace has too many.
    assert_eq!(
        asks(&store, "u", "more", 500).await.answer,
        Some(Answer::TooMany)
    );
    // Another workspace has its own, and what is over counts no more.
    let other = ask(&store, of("other"), 1, asking("ws#4", "o", 500), 10);
    assert_eq!(other.await.unwrap().answer, None);
    let later = ask(&store, of("later"), 1, asking("ws#3", "l", 900), 501);
    assert_eq!(later.await.unwrap().answer, None);
}
