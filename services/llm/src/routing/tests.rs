//! Routers over scripted clients, on a clock that is not the world's.

use std::collections::VecDeque;
use std::time::Duration;

use futures::{StreamExt, stream};
use tg_provider_http::Outage;
use tokio::time::Instant;

use super::*;
use crate::engine::tokens::Counts;
use crate::model::{ChatEvent, Completion};

pub(super) const LONG: Duration = Duration::from_secs(3600);

/// What a client does with a call.
#[derive(Clone)]
pub(super) enum Does {
    Answers(&'static [&'static str]),
    Fails(LlmError),
    /// After one piece.
    Breaks,
    Stalls,
    /// Begins, and ends after this time.
    Takes(Duration),
}

/// A client that does what it is told, call by call; then it answers.
pub(super) struct Fake {
    does: Mutex<VecDeque<Does>>,
    pub(super) calls: Mutex<Vec<(Instant, String)>>,
}

impl Fake {
    pub(super) fn new(does: &[Does]) -> Arc<Self> {
        Arc::new(Self {
            does: Mutex::new(does.iter().cloned().collect()),
            calls: Mutex::default(),
        })
    }

    pub(super) fn calls(&self) -> usize {
        self.calls.lock().len()
    }

    /// Seconds between its calls.
    pub(super) fn pauses(&self) -> Vec<f64> {
        let calls = self.calls.lock();
        let pairs = calls.windows(2);
        pairs
            .map(|pair| (pair[1].0 - pair[0].0).as_secs_f64())
            .collect()
    }
}

#[async_trait]
impl ChatModel for Fake {
    fn provider(&self) -> &'static str {
        "fake"
    }

    fn default_model(&self) -> &'static str {
        "m"
    }

    async fn chat(&self, request: &ChatRequest) -> Result<ChatStream, LlmError> {
        let model = request.model.clone().unwrap_or_default();
        self.calls.lock().push((Instant::now(), model.clone()));
        let does = self.does.lock().pop_front();
        let done = ChatEvent::Done(Completion {
            counts: Counts {
                total: Some(40),
                ..Counts::default()
            },
            ..Completion::of(&model)
        });
        let piece = |text: &str| Ok(ChatEvent::Delta(text.to_owned()));
        match does.unwrap_or(Does::Answers(&["yes"])) {
            Does::Answers(pieces) => {
                let pieces: Vec<_> = pieces.iter().map(|text| piece(text)).collect();
                Ok(stream::iter(pieces.into_iter().chain([Ok(done)])).boxed())
            }
            Does::Fails(error) => Err(error),
            Does::Breaks => Ok(stream::iter([piece("half "), Err(LlmError::BrokenOff)]).boxed()),
            Does::Stalls => std::future::pending().await,
            Does::Takes(time) => {
                let end = stream::once(async move {
                    tokio::time::sleep(time).await;
                    Ok(done)
                });
                Ok(stream::iter([piece("slow")]).chain(end).boxed())
            }
        }
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, LlmError> {
        Err(LlmError::Unsupported)
    }
}

pub(super) fn about(name: &str, priority: u32) -> Backend {
    Backend {
        name: name.to_owned(),
        provider: name.to_owned(),
        serves: crate::engine::router::serving::Serves::Everything,
        model: None,
        priority,
        tokens_per_minute: 100_000,
        most: 20,
        timeout: Duration::from_secs(120),
    }
}

pub(super) fn router(backends: &[(Backend, &Arc<Fake>)], strategy: Strategy) -> Arc<Router> {
    let backends = backends.iter().map(|(about, fake)| {
        let client: Arc<dyn ChatModel> = (*fake).clone();
        (about.clone(), client)
    });
    let rules = Rules {
        strategy,
        policy: Policy::default(),
    };
    let mut router = Router::new(backends.collect(), "m", rules);
    router.chance = || 0.5;
    Arc::new(router)
}

pub(super) fn asks(model: &str, fallbacks: &[&str]) -> ChatRequest {
    ChatRequest {
        prompt: "p".to_owned(),
        streaming: true,
        model: Some(model.to_owned()),
        fallbacks: fallbacks.iter().map(|model| (*model).to_owned()).collect(),
        ..ChatRequest::default()
    }
}

pub(super) async fn ask_for(
    router: &Arc<Router>,
    request: &ChatRequest,
) -> Result<(String, Completion), (String, LlmError)> {
    let mut text = String::new();
    let opened = router.open(request, Instant::now() + LONG).await;
    let (first, rest) = opened.map_err(|error| (String::new(), error))?;
    let mut events = stream::iter([Ok(first)]).chain(rest);
    while let Some(event) = events.next().await {
        match event {
            Ok(ChatEvent::Delta(piece) | ChatEvent::Thinking(piece)) => text += &piece,
            Ok(ChatEvent::Done(completion)) => return Ok((text, completion)),
            Err(error) => return Err((text, error)),
        }
    }
    panic!("the answer has no end");
}

pub(super) async fn ask(router: &Arc<Router>) -> Result<(String, Completion), (String, LlmError)> {
    ask_for(router, &asks("m", &[])).await
}

pub(super) fn away() -> Does {
    Does::Fails(LlmError::Unavailable(Outage::Status(500)))
}

pub(super) fn limited(seconds: Option<u64>) -> Does {
    Does::Fails(LlmError::RateLimited {
        retry_after: seconds.map(Duration::from_secs),
        status: Some(429),
    })
}

#[tokio::test(start_paused = true)]
async fn line_151_the_next_backend_answers_at_once_and_all_failing_are_four_attempts() {
    let (first, second) = (Fake::new(&[away()]), Fake::new(&[]));
    let all = [(about("b", 2), &second), (about("a", 1), &first)];
    let router = router(&all, Strategy::Failover);
    let begun = Instant::now();
    let (text, completion) = ask(&router).await.unwrap();
    assert_eq!((text.as_str(), completion.backend.as_str()), ("yes", "b"));
    assert_eq!(completion.attempts, 2);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    // It rests a minute: nobody asks it meanwhile.
    ask(&router).await.unwrap();
    assert_eq!((first.calls(), second.calls()), (1, 2));
    tokio::time::advance(Duration::from_secs(61)).await;

    *first.does.lock() = [away(), away()].into();
    *second.does.lock() = [away(), away()].into();
    let (_, error) = ask(&router).await.unwrap_err();
    assert_eq!(error, LlmError::Unavailable(Outage::Status(500)));
    assert_eq!((first.calls(), second.calls()), (3, 4));
    assert!(!error.to_string().contains("500"));
}

/// 108: through a router, where a question that fails is one failure however often it was tried, and a refused key is
/// none.
#[tokio::test(start_paused = true)]
async fn line_108_questions_that_fail_make_the_rests_longer_and_a_refused_key_makes_none() {
    let refused = Does::Fails(LlmError::Auth(Some(401)));
    let model = Fake::new(&[refused]);
    let router = router(&[(about("a", 1), &model)], Strategy::Failover);
    assert_eq!(ask(&router).await.unwrap_err().1, LlmError::Auth(Some(401)));
    assert!(
        router
            .health
            .lock()
            .resting("a/m", Instant::now())
            .is_none()
    );
    for minutes in [1, 5, 25, 60, 60] {
        *model.does.lock() = [away(), away(), away(), away()].into();
        ask(&router).await.unwrap_err();
        let left = router.health.lock().resting("a/m", Instant::now());
        assert_eq!(left, Some(Duration::from_secs(60 * minutes)));
        tokio::time::advance(Duration::from_secs(60 * minutes)).await;
    }
    ask(&router).await.unwrap();
    assert_eq!(router.health.lock().failures("a/m"), 0);
}

/// 108, 110: the only provider rests as one of several does. It takes the names of models as they are.
#[tokio::test(start_paused = true)]
async fn line_108_the_only_provider_rests_and_takes_names_as_they_are() {
    let model = Fake::new(&[away(), away(), away(), away()]);
    let mut one = Router::of_one(model.clone(), Policy::default());
    one.chance = || 0.5;
    let one = Arc::new(one);
    let (_, error) = ask(&one).await.unwrap_err();
    assert_eq!(error, LlmError::Unavailable(Outage::Status(500)));
    assert_eq!(model.pauses(), [1.0, 2.0, 4.0]);
    let (_, error) = ask(&one).await.unwrap_err();
    assert_eq!(error, LlmError::Resting(Duration::from_secs(60)));
    let (_, other) = ask_for(&one, &asks("fake/n", &[])).await.unwrap();
    assert_eq!(
        (other.model.as_str(), other.backend.as_str()),
        ("fake/n", "")
    );
    let names = ["m", "fake/n"].map(str::to_owned);
    let told = one.health(&names).into_iter();
    let told: Vec<_> = told.map(|one| one.reason).collect();
    assert_eq!(told, [Some("cooling, 60 s left".to_owned()), None]);
    let usual = one.health(&[]);
    assert_eq!((usual.len(), usual[0].model.as_str()), (1, "m"));
    let route = one.explain(None, 0);
    assert_eq!((route.strategy.as_str(), route.chosen), ("single", None));
    assert_eq!((route.backends[0].failures, model.calls()), (1, 5));
    tokio::time::advance(Duration::from_secs(60)).await;
    ask(&one).await.unwrap();
    assert_eq!(one.health.lock().failures("fake/m"), 0);
}

/// Questions that fail together fail of one outage.
#[tokio::test(start_paused = true)]
async fn questions_in_flight_that_fail_together_make_one_rest() {
    let does: Vec<_> = (0..16).map(|_| away()).collect();
    let model = Fake::new(&does);
    let one = router(&[(about("a", 1), &model)], Strategy::Failover);
    let done = tokio::join!(ask(&one), ask(&one), ask(&one), ask(&one));
    assert!(done.0.is_err() && done.1.is_err() && done.2.is_err() && done.3.is_err());
    let health = one.health.lock();
    let left = health.resting("a/m", Instant::now());
    assert_eq!(left, Some(Duration::from_secs(60)));
    assert_eq!(health.failures("a/m"), 1);
}

/// 108: failures in a row are those with no answer between them.
#[tokio::test(start_paused = true)]
async fn line_108_a_question_that_fails_while_another_is_answered_makes_no_rest() {
    let answers = Does::Answers(&["yes"]);
    let model = Fake::new(&[away(), answers, away(), away(), away()]);
    let one = router(&[(about("a", 1), &model)], Strategy::Failover);
    let (odd, other) = tokio::join!(ask(&one), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        ask(&one).await
    });
    let error = odd.unwrap_err().1;
    assert_eq!(error, LlmError::Unavailable(Outage::Status(500)));
    assert!(other.is_ok());
    assert_eq!(one.health.lock().failures("a/m"), 0);
    ask(&one).await.unwrap();
    // Where nobody is answered meanwhile, it rests.
    *model.does.lock() = [away(), away(), away(), away()].into();
    ask(&one).await.unwrap_err();
    assert_eq!(one.health.lock().failures("a/m"), 1);
}

/// 109
#[tokio::test(start_paused = true)]
async fn line_109_a_resting_model_is_not_asked_and_the_fallback_is() {
    let (first, second) = (Fake::new(&[]), Fake::new(&[]));
    let router = router(
        &[(about("a", 1), &first), (about("b", 1), &second)],
        Strategy::Failover,
    );
    let chain = asks("a/m", &["b/n"]);
    router.health.lock().failed("a/m", None, Instant::now());
    let (_, completion) = ask_for(&router, &chain).await.unwrap();
    assert_eq!((completion.model.as_str(), first.calls()), ("n", 0));
    tokio::time::advance(Duration::from_secs(20)).await;
    router.health.lock().failed("b/n", None, Instant::now());
    let (_, error) = ask_for(&router, &chain).await.unwrap_err();
    // Of both rests the shorter is told.
    assert_eq!(error, LlmError::Resting(Duration::from_secs(40)));
    assert_eq!((first.calls(), second.calls()), (0, 1));
    let told = tg_schemas::Error::from(error);
    assert_eq!(told.code(), tg_schemas::ErrorCode::Unavailable);
    assert!(
        told.message.ends_with("try again in 40 s"),
        "{}",
        told.message
    );
}

/// 110
#[tokio::test(start_paused = true)]
async fn line_110_health_tells_who_rests_and_who_is_unknown_without_asking_anybody() {
    let model = Fake::new(&[]);
    let mut only = about("a", 1);
    only.serves = crate::engine::router::serving::Serves::Listed(vec!["m".into(), "n".into()]);
    let router = router(&[(only, &model)], Strategy::Failover);
    router.health.lock().failed("a/m", None, Instant::now());
    tokio::time::advance(Duration::from_millis(1_500)).await;
    let names = ["a/m", "a/n", "nobody/x"].map(str::to_owned);
    let told = router.health(&names);
    let told: Vec<_> = told
        .iter()
        .map(|one| (one.provider.as_str(), one.available, one.reason.as_deref()))
        .collect();
    assert_eq!(
        told,
        [
            ("a", false, Some("cooling, 59 s left")),
            ("a", true, None),
            ("nobody", false, Some("provider unknown")),
        ]
    );
    let all: Vec<_> = router
        .health(&[])
        .into_iter()
        .map(|one| one.model)
        .collect();
    assert_eq!(all, ["a/m", "a/n", "m"]);
    // What nobody but a question named is not told of to all.
    let any = self::router(&[(about("b", 1), &model)], Strategy::Failover);
    any.health
        .lock()
        .failed("b/of-a-customer", None, Instant::now());
    let all = any.health(&[]);
    let all: Vec<_> = all.iter().map(|one| one.model.as_str()).collect();
    assert_eq!(all, ["b/m", "m"]);
    let route = router.explain(Some("m"), 1_000);
    assert_eq!(route.chosen, None);
    let only = &route.backends[0];
    assert_eq!((only.state.as_str(), only.until), ("skipped", Some(1_059)));
    assert_eq!(router.explain(Some("n"), 0).chosen.as_deref(), Some("a"));
    assert_eq!(
        router.explain(Some("x"), 0).backends[0].reason,
        "does not serve this model"
    );
    assert_eq!(model.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn line_152_a_single_backend_is_asked_again_after_the_pause_it_wants() {
    let model = Fake::new(&[limited(Some(7))]);
    let one = router(&[(about("a", 1), &model)], Strategy::Failover);
    ask(&one).await.unwrap();
    assert_eq!(model.pauses(), [7.0]);
    let model = Fake::new(&[limited(None), away(), limited(None)]);
    let one = router(&[(about("a", 1), &model)], Strategy::Failover);
    ask(&one).await.unwrap();
    assert_eq!(model.pauses(), [1.0, 2.0, 4.0]);
    // A pause that ends after the time that there is is not begun.
    let model = Fake::new(&[limited(Some(7))]);
    let one = router(&[(about("a", 1), &model)], Strategy::Failover);
    let begun = Instant::now();
    let told = one
        .open(&asks("m", &[]), begun + Duration::from_secs(5))
        .await;
    assert!(matches!(told.err(), Some(LlmError::RateLimited { .. })));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn line_153_strategies_spread_the_questions() {
    let (first, second) = (Fake::new(&[]), Fake::new(&[]));
    let all = [(about("a", 1), &first), (about("b", 2), &second)];
    let turns = router(&all, Strategy::RoundRobin);
    for _ in 0..4 {
        ask(&turns).await.unwrap();
    }
    assert_eq!((first.calls(), second.calls()), (2, 2));
    *first.does.lock() = [Does::Takes(LONG / 2)].into();
    let idle = router(&all, Strategy::LeastLoaded);
    let until = Instant::now() + LONG;
    let slow = idle.open(&asks("m", &[]), until).await.unwrap();
    let (_, completion) = ask(&idle).await.unwrap();
    assert_eq!(completion.backend, "b");
    drop(slow);
    assert_eq!(ask(&idle).await.unwrap().1.backend, "a");
}

#[tokio::test(start_paused = true)]
async fn line_154_tokens_and_places_are_waited_for_and_given_back() {
    let model = Fake::new(&[]);
    let mut small = about("a", 1);
    small.tokens_per_minute = 6_000;
    let one = router(&[(small.clone(), &model)], Strategy::Failover);
    let empty = |one: &Router| {
        let left = one.backends[0].bucket.lock().left(Instant::now());
        one.backends[0]
            .bucket
            .lock()
            .take(Instant::now(), left)
            .unwrap();
    };
    empty(&one);
    let begun = Instant::now();
    ask(&one).await.unwrap();
    assert_eq!(begun.elapsed().as_millis(), 1_000);
    // It used 40 of 100.
    assert_eq!(one.backends[0].bucket.lock().left(Instant::now()), 60);

    // A workspace has two of them, however few there are.
    small.most = 2;
    let slow = Does::Takes(Duration::from_secs(9));
    let model = Fake::new(&[slow.clone(), slow]);
    let one = router(&[(small, &model)], Strategy::Failover);
    let begun = Instant::now();
    let done = tokio::join!(ask(&one), ask(&one), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        ask(&one).await
    });
    assert!(done.0.is_ok() && done.1.is_ok() && done.2.is_ok());
    assert_eq!(model.calls.lock()[2].0 - begun, Duration::from_secs(9));
    assert_eq!(one.backends[0].active(), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_twice_and_a_stall_is_left_in_time() {
    let (first, second) = (Fake::new(&[Does::Breaks]), Fake::new(&[]));
    let mut quick = about("a", 1);
    quick.timeout = Duration::from_secs(3);
    let all = [(quick, &first), (about("b", 2), &second)];
    let one = router(&all, Strategy::Failover);
    let (text, error) = ask(&one).await.unwrap_err();
    assert_eq!((text.as_str(), error), ("half ", LlmError::BrokenOff));
    assert_eq!((first.calls(), second.calls()), (1, 0));
    assert!(one.health.lock().resting("a/m", Instant::now()).is_some());
    tokio::time::advance(LONG).await;

    *first.does.lock() = [Does::Stalls].into();
    let begun = Instant::now();
    assert_eq!(ask(&one).await.unwrap().1.backend, "b");
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
    // Who is cut off by whoever asks did not fail, and keeps nothing.
    tokio::time::advance(LONG).await;
    *first.does.lock() = [Does::Stalls].into();
    let cut = tokio::time::timeout(Duration::from_secs(1), ask(&one)).await;
    assert!(cut.is_err());
    assert!(one.health.lock().resting("a/m", Instant::now()).is_none());
    assert_eq!(one.backends[0].active(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_goes_elsewhere_and_a_wrong_question_nowhere() {
    for (error, next) in [
        (LlmError::Auth(Some(401)), true),
        (LlmError::UnknownModel(Some(404)), true),
        (LlmError::BadRequest(Some(400)), false),
        (LlmError::TooLong(Some(400)), false),
    ] {
        let (first, second) = (Fake::new(&[Does::Fails(error.clone())]), Fake::new(&[]));
        let all = [(about("a", 1), &first), (about("b", 2), &second)];
        let one = router(&all, Strategy::Failover);
        let told = ask(&one).await;
        assert_eq!(told.is_ok(), next, "{error}");
        assert!(one.health.lock().resting("a/m", Instant::now()).is_none());
    }
    let only = Fake::new(&[]);
    let mut listed = about("a", 1);
    listed.serves = crate::engine::router::serving::Serves::Listed(vec!["n".to_owned()]);
    let one = router(&[(listed, &only)], Strategy::Failover);
    assert_eq!(ask(&one).await.unwrap_err().1, LlmError::UnknownModel(None));
}

#[tokio::test(start_paused = true)]
async fn a_long_name_is_not_heard_of_another_process() {
    let model = Fake::new(&[]);
    let one = router(&[(about("a", 1), &model)], Strategy::Failover);
    for (length, heard) in [(256, true), (257, false)] {
        let told = ModelRest {
            backend: "a".to_owned(),
            model: "n".repeat(length),
            failures: 1,
            rest_ms: 1_000,
            ..ModelRest::default()
        };
        one.heard(&told);
        let id = format!("a/{}", told.model);
        let left = one.health.lock().resting(&id, Instant::now());
        assert_eq!(left.is_some(), heard);
    }
}
