//! What one question, one answer or one workspace may do to a backend and to others.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::tests::{Does, Fake, LONG, about, ask, ask_for, asks, away, limited, router};
use super::*;
use crate::error::LlmError;

#[tokio::test(start_paused = true)]
async fn a_whole_answer_that_takes_long_is_not_asked_for_again_and_blames_nobody() {
    let (first, second) = (Fake::new(&[Does::Stalls]), Fake::new(&[]));
    let mut quick = about("a", 1);
    quick.timeout = Duration::from_secs(3);
    quick.tokens_per_minute = 600;
    let all = [(quick, &first), (about("b", 2), &second)];
    let one = router(&all, Strategy::Failover);
    let whole = ChatRequest {
        streaming: false,
        ..asks("m", &[])
    };
    let (_, error) = ask_for(&one, &whole).await.unwrap_err();
    assert_eq!(error, LlmError::Timeout);
    assert_eq!((first.calls(), second.calls()), (1, 0));
    let rests = one.health.lock().resting("a/m", Instant::now());
    assert_eq!(rests, None);
    // It has read the question: of what was taken nothing is given back, 3 s bring 30.
    let left = one.backends[0].bucket.lock().left(Instant::now());
    assert_eq!(left, 530);
}

#[tokio::test(start_paused = true)]
async fn after_a_whole_answer_that_takes_long_the_next_model_is_asked() {
    let stalls = || Fake::new(&[Does::Stalls, Does::Stalls]);
    let whole = ChatRequest {
        streaming: false,
        ..asks("m", &["n"])
    };
    let model = Fake::new(&[Does::Stalls]);
    let one = router(&[(about("a", 1), &model)], Strategy::Failover);
    let (text, done) = ask_for(&one, &whole).await.unwrap();
    assert_eq!((text.as_str(), done.model.as_str()), ("yes", "n"));
    let asked: Vec<String> = model
        .calls
        .lock()
        .iter()
        .map(|call| call.1.clone())
        .collect();
    assert_eq!(asked, ["m", "n"]);
    assert_eq!(model.pauses(), [60.0]);
    let rests = one.health.lock().resting("a/m", Instant::now());
    assert_eq!(rests, None, "it blames nobody");

    // Each model is asked once, and a question out of time goes to none.
    let model = stalls();
    let one = router(&[(about("a", 1), &model)], Strategy::Failover);
    let failed = ask_for(&one, &whole).await.unwrap_err().1;
    assert_eq!((failed, model.calls()), (LlmError::Timeout, 2));
    let model = stalls();
    let one = router(&[(about("a", 1), &model)], Strategy::Failover);
    let until = Instant::now() + Duration::from_secs(60);
    let opened = one.open(&whole, until).await.map(|_| ());
    assert_eq!(opened.unwrap_err(), LlmError::Timeout);
    assert_eq!(model.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_unknown_kind_ends_an_answer_and_is_no_outage() {
    let model = Fake::new(&[Does::Fails(LlmError::Interrupted)]);
    let one = router(&[(about("a", 1), &model)], Strategy::Failover);
    assert_eq!(ask(&one).await.unwrap_err().1, LlmError::Interrupted);
    assert!(one.health.lock().resting("a/m", Instant::now()).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_workspace_has_half_of_the_places_and_others_go_past_it() {
    let slow = Does::Takes(LONG / 2);
    let model = Fake::new(&[slow.clone(), slow]);
    let mut small = about("a", 1);
    small.most = 4;
    let one = router(&[(small, &model)], Strategy::Failover);
    let of = |workspace: &str| ChatRequest {
        workspace: workspace.to_owned(),
        ..asks("m", &[])
    };
    let (greedy, other) = (of("greedy"), of("other"));
    let until = Instant::now() + LONG;
    let held = [
        one.open(&greedy, until).await.unwrap(),
        one.open(&greedy, until).await.unwrap(),
    ];
    let mut waiting = Box::pin(one.open(&greedy, until));
    assert!(futures::poll!(&mut waiting).is_pending());
    let begun = Instant::now();
    ask_for(&one, &other).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(one.backends[0].active(), 2);
    drop(held);
    assert!(waiting.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_server_is_asked_again_after_its_own_pause_and_never_after_one_without_end() {
    let (first, second) = (
        Fake::new(&[limited(Some(30)), away()]),
        Fake::new(&[away(), away()]),
    );
    let all = [(about("a", 1), &first), (about("b", 2), &second)];
    let one = router(&all, Strategy::Failover);
    ask(&one).await.unwrap_err();
    assert_eq!((first.pauses(), second.calls()), (vec![30.0], 2));

    let model = Fake::new(&[limited(Some(10_000_000_000_000_000_000))]);
    let one = router(&[(about("a", 1), &model)], Strategy::Failover);
    let (_, error) = ask(&one).await.unwrap_err();
    assert!(matches!(error, LlmError::RateLimited { .. }));
    assert_eq!(model.calls(), 1);
    let rests = one.health.lock().resting("a/m", Instant::now());
    assert_eq!(rests, Some(LONG));
}

#[tokio::test(start_paused = true)]
async fn who_leaves_in_the_middle_has_used_what_was_said() {
    let model = Fake::new(&[Does::Takes(LONG)]);
    let mut small = about("a", 1);
    small.tokens_per_minute = 1_000;
    let one = router(&[(small, &model)], Strategy::Failover);
    let tool = tg_schemas::msg::ChatTool {
        description: "d".repeat(2_000),
        ..tg_schemas::msg::ChatTool::default()
    };
    let request = ChatRequest {
        dialog: Some(Arc::new(crate::model::Dialog {
            tools: vec![tool],
            ..crate::model::Dialog::default()
        })),
        ..asks("m", &[])
    };
    // Tools are sent, too.
    let opened = one.open(&request, Instant::now() + LONG).await.unwrap();
    drop(opened);
    let left = one.backends[0].bucket.lock().left(Instant::now());
    // Of 2000 characters 500 tokens, and one of what was said.
    assert_eq!(left, 499);
}

/// Lists one model, the first time never.
#[derive(Default)]
struct Lists(AtomicUsize, bool);

#[async_trait]
impl ChatModel for Lists {
    fn provider(&self) -> &'static str {
        "lists"
    }

    fn default_model(&self) -> &'static str {
        "m"
    }

    async fn chat(&self, _: &ChatRequest) -> Result<ChatStream, LlmError> {
        Err(LlmError::Unsupported)
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        if self.1 {
            std::future::pending::<()>().await;
        }
        Ok(vec![ModelInfo {
            id: "m".to_owned(),
            ..ModelInfo::default()
        }])
    }
}

#[tokio::test(start_paused = true)]
async fn a_backend_lists_within_5_seconds_and_once_in_30() {
    let (quick, stuck) = (
        Arc::new(Lists::default()),
        Arc::new(Lists(AtomicUsize::new(0), true)),
    );
    let all: Vec<(Backend, Arc<dyn ChatModel>)> = vec![
        (about("a", 1), quick.clone()),
        (about("b", 2), stuck.clone()),
    ];
    let one = Router::new(all, "m", Rules::default());
    let begun = Instant::now();
    assert_eq!(one.list_models().await.unwrap().len(), 1);
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
    one.list_models().await.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
    let asked = || {
        (
            quick.0.load(Ordering::Relaxed),
            stuck.0.load(Ordering::Relaxed),
        )
    };
    assert_eq!(asked(), (1, 1));
    tokio::time::advance(Duration::from_secs(31)).await;
    one.list_models().await.unwrap();
    assert_eq!(asked(), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn while_another_model_is_left_a_stream_begins_within_30_seconds() {
    let stalls = [Does::Stalls, Does::Stalls, Does::Stalls];
    let model = Fake::new(&stalls);
    let one = router(&[(about("a", 1), &model)], Strategy::Failover);
    ask_for(&one, &asks("m", &["n"])).await.unwrap();
    let calls = model.calls.lock();
    let pause = (calls[1].0 - calls[0].0).as_secs();
    assert!((30..32).contains(&pause), "{pause}");
}
