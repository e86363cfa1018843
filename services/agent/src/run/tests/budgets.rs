//! Runs whose next call does not fit their budget end with the best that they have.

use std::time::Duration;

use serde_json::{Value, json};
use tg_mesh::{Ask, clock};
use tg_schemas::ErrorCode;
use tg_schemas::msg::{AgentRequest, AgentResponse, AgentRun, AgentRunStep};
use tg_testkit::place::Place;

use super::repeats::{RUN, act, continued, decision, died, of, run};
use super::routed::with_types;
use super::world::{SOON, Say, World, question, rows};
use crate::engine::decision::Observation;
use crate::engine::guards::budget;
use crate::engine::phase::{PLAN, SUPERVISOR};
use crate::engine::usage::{Amount, Scope};
use crate::options::Options;
use crate::store::{
    Account, Asked, Began, Call, CallKind, Counted, Days, IsOver, Reservation, Told,
};

/// Between two looks at whether a run is over.
const LOOK: Duration = Duration::from_millis(20);
const ADD: &str = "Thought: add\nAction: calculator\nArgs: {\"expression\": \"2+2\"}";
/// Takes more than a second to be said: 7 characters each 20 ms.
const SLOW: &str = concat!(
    "Thought: this takes a while, as there is much to be thought of before it is known what is to be done, and it is all",
    " to be said piece by piece, with a pause before each of them, until at last there is nothing more to be said about",
    " it, which is then the time at which something is done, and that is what is asked for here, after all of the many",
    " words that came before it and led to it, slowly but surely, one after the other, without any haste, to the end.",
    "\nAction: calculator\nArgs: {\"expression\": \"2+2\"}"
);

async fn world(place: &Place, budget: &str, say: &'static str) -> World {
    let config = rows();
    config.put("agent", "budget", budget);
    let price = r#"{"input_price": 0.001, "output_price": 0.001}"#;
    config.put("token-cost", "scripted", price);
    World::among(place, (0..20).map(|_| Say::Text(say)), config, Vec::new()).await
}

/// The last chunk of a run that ran out of something.
async fn stopped(world: &World, streaming: bool, why: &str) -> AgentResponse {
    let chunks = world.run(&question("q", streaming)).await;
    let last = chunks.last().expect("an end").clone();
    assert_eq!(
        (last.stopped, last.finish_reason.as_str()),
        (true, "budget")
    );
    assert!(last.content.starts_with(why), "{}", last.content);
    assert_eq!(world.ended().await, "budget");
    last
}

async fn tokens(place: Place) {
    let world = world(&place, r#"{"tokens": 900}"#, ADD).await;
    let why = "Stopped by its budget (tokens): 220 of 900 tokens are used";
    let last = stopped(&world, false, why).await;
    assert!(last.content.ends_with("says 4"), "{}", last.content);
    assert_eq!((world.calls(), last.in_token), (2, Some(200)));
}

async fn a_budget_that_cannot_be_read_begins_no_run(place: Place) {
    for (row, names) in [
        (r#"{"tokens": -5}"#, "agent/budget: tokens: "),
        (
            r#"{"key": {"tool_calls": 1.5}}"#,
            "agent/budget: key.tool_calls: ",
        ),
        (r#"{"token": 5}"#, "agent/budget: unknown field `token`"),
    ] {
        let world = world(&place.another().await, row, ADD).await;
        let chunks = world.run(&question("q", false)).await;
        let error = chunks[0].error.clone().unwrap();
        assert_eq!(error.code(), ErrorCode::BadRequest);
        assert!(error.message.starts_with(names), "{}", error.message);
        assert_eq!(world.calls(), 0);
    }
}

/// Neither what was read of a row before nor that there was none is remembered.
async fn a_row_that_changes_binds_the_next_run(place: Place) {
    let world = world(&place, r#"{"tokens": 5}"#, ADD).await;
    stopped(&world, false, "Stopped by its budget (tokens): 0 of 5").await;
    let change = async |row: Option<Value>| {
        let applied = world
            .config
            .apply(&world.mesh, "agent", "budget", row.as_ref());
        applied.await;
        let chunks = world.run(&question("again", false)).await;
        let last = chunks.last().expect("an end").clone();
        (last.content, world.tools.asked.lock().len())
    };
    for (most, asked) in [(1, 1), (2, 3)] {
        let (text, calls) = change(Some(json!({"tool_calls": most}))).await;
        let why = format!("Stopped by its budget (tool-calls): all {most} calls");
        assert!(text.starts_with(&why), "{text}");
        assert_eq!(calls, asked);
    }
    // Nothing binds it but its iterations.
    let (text, _) = change(None).await;
    assert!(!text.starts_with("Stopped by its budget"), "{text}");
}

/// A question that lets the model write more than is left asks no model.
async fn a_stated_reply_is_reserved_whole(place: Place) {
    let world = world(&place, r#"{"tokens": 900}"#, ADD).await;
    let asked = AgentRequest {
        max_tokens: Some(4096),
        ..question("q", false)
    };
    let chunks = world.run(&asked).await;
    let text = &chunks.last().expect("an end").content;
    let why = "Stopped by its budget (tokens): 0 of 900 tokens are used";
    assert!(text.starts_with(why), "{text}");
    assert_eq!(world.calls(), 0);
}

/// A provider that reports no tokens takes what was reserved, in tokens and in money.
async fn a_model_without_reported_usage_uses_its_budget_up(place: Place) {
    let config = rows();
    config.put("agent", "budget", r#"{"tokens": 900}"#);
    let price = r#"{"input_price": 0.001, "output_price": 0.001}"#;
    config.put("token-cost", "scripted", price);
    let script = (0..20).map(|_| Say::Uncounted(ADD));
    let world = World::among(&place, script, config, Vec::new()).await;
    stopped(&world, false, "Stopped by its budget (tokens): ").await;
    assert_eq!(world.calls(), 1);
    let runs = used(&world, Scope::Run).await;
    let [models, tools, tokens, thousandths] = runs[0].1;
    assert_eq!((models, tools, tokens), (1, 1, thousandths));
    let likely = budget::model_call(&AgentRun::default(), None).tokens();
    assert!((likely..=900).contains(&tokens), "{tokens}");
}

async fn tokens_for_no_call_at_all(place: Place) {
    let world = world(&place, r#"{"tokens": 5}"#, ADD).await;
    let last = stopped(&world, true, "Stopped by its budget (tokens): 0 of 5").await;
    assert!(
        !last.content.contains("The best so far"),
        "{}",
        last.content
    );
    assert_eq!(world.calls(), 0);
}

async fn money(place: Place) {
    let world = world(&place, r#"{"dollars": 1.0}"#, ADD).await;
    stopped(
        &world,
        false,
        "Stopped by its budget (money): 0.220000 of 1.0",
    )
    .await;
    assert_eq!(world.calls(), 2);
}

async fn calls_of_tools(place: Place) {
    let world = world(&place, r#"{"tool_calls": 2}"#, ADD).await;
    let why = "Stopped by its budget (tool-calls): all 2 calls of tools are made";
    stopped(&world, false, why).await;
    assert_eq!((world.calls(), world.tools.asked.lock().len()), (3, 2));
}

async fn seconds(place: Place) {
    let world = world(&place, r#"{"seconds": 1}"#, SLOW).await;
    stopped(
        &world,
        true,
        "Stopped by its budget (time): 1 seconds are over",
    )
    .await;
    assert_eq!(world.calls(), 1);
}

/// What was used, by name: calls of models, of tools, tokens, and thousandths of a dollar.
pub(super) async fn used(world: &World, scope: Scope) -> Vec<(String, [u64; 4])> {
    let days = Days {
        scope,
        since: String::new(),
        until: "9999".into(),
        daily: false,
    };
    let sums = world.ledger.usage("default", &days, "", 99).await.unwrap();
    let sums = sums.into_iter().map(|(name, sum)| {
        let counts = [
            sum.model_calls,
            sum.tool_calls,
            sum.tokens(),
            sum.nanodollars / 1_000_000,
        ];
        (name, counts)
    });
    sums.collect()
}

async fn several_runs_have_one_budget(place: Place) {
    let budget = r#"{"workspace": {"tokens": 1200}, "session": {"tool_calls": 3}}"#;
    let world = world(&place, budget, ADD).await;
    let mut asked = question("q", false);
    asked.conversation_id = "talk".into();
    asked.agent = "maven".into();
    let chunks = world.run(&asked).await;
    let text = &chunks.last().expect("an end").content;
    let why = "Stopped by the budget of its session (tool-calls): all 3 calls of tools are made";
    assert!(text.starts_with(why), "{text}");
    // Another conversation has calls left, and the workspace no tokens.
    let chunks = world.run(&question("q", false)).await;
    let text = &chunks.last().expect("an end").content;
    let why = "Stopped by the budget of its workspace for the day (tokens): 440 of 1200 tokens";
    assert!(text.starts_with(why), "{text}");
    assert_eq!(world.calls(), 4);
    let all = [("".to_owned(), [4, 3, 440, 440])];
    assert_eq!(used(&world, Scope::Workspace).await, all);
    assert_eq!(
        used(&world, Scope::Session).await,
        [("talk".to_owned(), [4, 3, 440, 440])]
    );
    // Line 151: the second question names no agent.
    assert_eq!(
        used(&world, Scope::Agent).await,
        [("maven".to_owned(), [4, 3, 440, 440])]
    );
    assert_eq!(
        used(&world, Scope::Model).await,
        [("scripted".to_owned(), [4, 0, 440, 440])]
    );
    assert_eq!(
        used(&world, Scope::Tool).await,
        [("calculator".to_owned(), [0, 3, 0, 0])]
    );
}

/// What others have reserved is often more than they take: a run waits for that before it stops. Here it lapses after a moment.
async fn a_run_waits_for_what_others_have_reserved(place: Place) {
    let budget = r#"{"workspace": {"tokens": 10000}}"#;
    let world = world(&place, budget, "Final Answer: done").await;
    let now = clock::millis();
    let others = Reservation {
        account: Account {
            workspace: "default".into(),
            run: "other".into(),
            ..Account::default()
        },
        amount: Amount {
            in_token: 9900,
            ..Amount::default()
        },
        like: (Scope::Model, "other".into()),
        bounds: Vec::new(),
        expires_ms: now + 2000,
        day: "2026-11-29".into(),
        waits: false,
        ahead: false,
    };
    let call = Call {
        run: "other".into(),
        step: 1,
        kind: CallKind::Model,
        nth: 0,
    };
    let reserved = world.ledger.reserve(&call, &others, now).await.unwrap();
    assert_eq!(reserved, None);
    let chunks = world.run(&question("q", false)).await;
    let last = chunks.last().expect("an end");
    assert_eq!((&*last.content, last.stopped), ("done", false));
    assert_eq!(world.calls(), 1);
}

/// Each key has its own, known by what the gateway says of who asks; who comes with none has the user's.
async fn a_key_has_a_budget_of_its_own(place: Place) {
    let world = world(&place, r#"{"key": {"tool_calls": 2}}"#, ADD).await;
    let run = async |credential: &str, user: &str| {
        let ask = Ask {
            credential: Some(credential.to_owned()),
            user_id: Some(user.to_owned()),
            ..Ask::default()
        };
        let mut answer = world.ask_with(&question("q", false), ask);
        let mut last = AgentResponse::default();
        while let Some(part) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
            last = part.unwrap();
        }
        last.content
    };
    let why = "Stopped by the budget of its key for the day (tool-calls): all 2 calls";
    for (credential, user, calls) in [
        ("key:a", "rita", 2),
        ("key:a", "will", 2),
        ("key:b", "rita", 4),
        ("jwt", "rita", 6),
    ] {
        let text = run(credential, user).await;
        assert!(text.starts_with(why), "{credential}: {text}");
        assert_eq!(world.tools.asked.lock().len(), calls, "{credential} {user}");
    }
    let names: Vec<String> = used(&world, Scope::Key)
        .await
        .into_iter()
        .map(|one| one.0)
        .collect();
    assert_eq!(names, ["key:a", "key:b", "user:rita"]);
}

async fn subagents_count_for_their_run(place: Place) {
    let config = rows();
    config.put("agent", "budget", r#"{"tool_calls": 3}"#);
    let script = [Say::Text(r#"["a?", "b?"]"#), Say::Text("both")];
    let world = World::among(&place, script, config, Vec::new()).await;
    for goal in ["a?", "b?"] {
        let says = (0..6).map(|_| Say::Text(ADD)).collect();
        world.goals.lock().insert(goal.to_owned(), says);
    }
    let mut asked = question("?", false);
    asked.pattern = SUPERVISOR.into();
    let chunks = world.run(&asked).await;
    let last = chunks.last().expect("an end");
    assert_eq!(last.content, "both");
    assert_eq!(world.tools.asked.lock().len(), 3);
    let runs = used(&world, Scope::Run).await;
    let [(run, [_, calls, tokens, _])] = &runs[..] else {
        panic!("one run: {runs:?}");
    };
    assert!(chunks[0].explain_id.as_ref().unwrap().ends_with(run));
    assert_eq!(*calls, 3);
    let told = last.in_token.unwrap() + last.out_token.unwrap();
    assert_eq!(i64::try_from(*tokens).unwrap(), told);
}

async fn a_plan_counts_its_steps(place: Place) {
    let config = rows();
    config.put("agent", "budget", r#"{"tool_calls": 1}"#);
    let plan = r#"[{"goal": "one", "tool_hint": "calculator"}, {"goal": "two", "tool_hint": "calculator"}]"#;
    let choice = r#"{"tool": "calculator", "arguments": {"expression": "2+2"}}"#;
    // The tool of the second, which does not fit, is chosen again in its turn.
    let mut script = vec![Say::Text(plan)];
    script.extend([choice; 3].map(Say::Text));
    let world = World::among(&place, script, config, Vec::new()).await;
    let mut asked = question("?", false);
    asked.pattern = PLAN.into();
    let chunks = world.run(&asked).await;
    let last = chunks.last().expect("an end");
    let why = "Stopped by its budget (tool-calls): all 1 calls of tools are made";
    assert!(last.content.starts_with(why), "{}", last.content);
    assert!(last.content.ends_with('4'), "{}", last.content);
    assert_eq!(world.ended().await, "budget");
    let runs = used(&world, Scope::Run).await;
    assert_eq!(&runs[0].1[..2], [4, 1]);
}

async fn a_step_taken_up_again_counts_once(place: Place) {
    let world = World::new(&place, [Say::Text("Final Answer: done")]).await;
    let chosen = decision(act("calculator"));
    world
        .ledger
        .decide(&of(RUN), 1, &chosen, &[], 1)
        .await
        .unwrap();
    let chunks = continued(&world, died(run(1, false), Vec::new(), 0)).await;
    assert!(chunks.last().expect("an end").end_of_dialog);
    assert_eq!(used(&world, Scope::Run).await[0].1[..2], [2, 1]);
}

/// What a process has reserved for the model's first call in a step of [`RUN`].
fn reserved(step: u32) -> (Call, Reservation) {
    let next = Reservation {
        account: Account {
            workspace: "default".into(),
            run: RUN.into(),
            ..Account::default()
        },
        amount: Amount {
            in_token: 900,
            ..Amount::default()
        },
        like: (Scope::Model, "m".into()),
        bounds: Vec::new(),
        expires_ms: clock::millis() + 600_000,
        day: "2026-11-29".into(),
        waits: true,
        ahead: true,
    };
    let call = Call {
        run: RUN.into(),
        step,
        kind: CallKind::Model,
        nth: 0,
    };
    (call, next)
}

/// Waits until nothing more comes of a run, after which nothing is reserved for it.
async fn over(world: &World, run: &str) {
    let over = async {
        while !world.ledger.standing(run, 1).await.unwrap()[0].over {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(SOON, over)
        .await
        .expect("the run ends");
}

/// The process died after it had reserved the call of the next step together with what the tool returned.
async fn a_call_that_was_reserved_before_a_death_counts_once(place: Place) {
    let world = world(&place, r#"{"tokens": 100000}"#, "Final Answer: done").await;
    let chosen = decision(act("calculator"));
    let key = of(RUN);
    let kept = world.ledger.decide(&key, 1, &chosen, &[], 1);
    assert!(kept.await.unwrap());
    let seen = Observation {
        text: "4".into(),
        called: true,
        ..Observation::default()
    };
    let (key, next) = (of(RUN), reserved(2));
    let none: Vec<Counted> = Vec::new();
    let with = (&none[..], &next);
    let kept = world
        .ledger
        .observe_and_reserve(&key, 1, &seen, Told::default(), with, 1);
    assert!(kept.await.unwrap());
    let chunks = continued(&world, died(run(1, false), Vec::new(), 0)).await;
    assert!(chunks.last().expect("an end").end_of_dialog);
    over(&world, RUN).await;
    assert_eq!(used(&world, Scope::Run).await[0].1[..3], [2, 1, 120]);
}

/// A question began the run.
async fn begins(world: &World) {
    let asked = Asked {
        workspace: "default".into(),
        is_over: IsOver::when(|| false),
        key: "q".into(),
        text: "q".into(),
        asker: None,
    };
    let began = Began {
        run: RUN.into(),
        started_at: run(1, false).started_at,
        route: None,
    };
    let begun = world.ledger.begin(asked, began, 1).await.unwrap();
    assert_eq!(begun.map(|one| one.run).as_deref(), Some(RUN));
}

/// A step ends before it asks the model, for which the step before has reserved: in the same process, in another one, and with the
/// best that the run has.
async fn what_is_reserved_and_not_asked_is_free_again(place: Place) {
    for (same, own) in [(true, false), (false, false), (false, true)] {
        let world = world(&place.another().await, r#"{"tokens": 100000}"#, ADD).await;
        let most = world.agent.options.max_iterations;
        let step = most + 1;
        begins(&world).await;
        let (call, next) = reserved(step);
        assert_eq!(world.ledger.reserve(&call, &next, 1).await.unwrap(), None);
        if same {
            world.agent.leases.reserved(RUN, step);
        }
        let taken = vec![AgentRunStep::default(); usize::try_from(most).unwrap()];
        let late = AgentRun {
            history: taken,
            max_iterations: if own { i64::from(most) } else { 0 },
            ..run(i64::from(step), false)
        };
        let chunks = continued(&world, died(late, Vec::new(), 0)).await;
        let last = chunks.last().expect("an end");
        assert_eq!((last.stopped, last.error.is_none()), (own, own));
        over(&world, RUN).await;
        assert!(used(&world, Scope::Run).await.is_empty(), "{same} {own}");
    }
}

/// Whoever leaves while the model says nothing yet pays what the step before has reserved.
async fn a_call_that_is_left_counts_as_the_step_before_reserved_it(place: Place) {
    let config = rows();
    config.put("agent", "budget", r#"{"tokens": 100000}"#);
    let script = [Say::Text(ADD), Say::Hang("")];
    let world = World::among(&place, script, config, Vec::new()).await;
    let mut answer = world.ask(&question("q", false));
    answer.next().await.unwrap().unwrap();
    tokio::time::timeout(SOON, world.model.hanging.notified())
        .await
        .expect("the model is asked again");
    drop(answer);
    assert_eq!(world.ended().await, "cancelled");
    let left = async {
        loop {
            let runs = used(&world, Scope::Run).await;
            match runs.first() {
                Some((_, [2, 1, tokens, _])) if *tokens > 110 => break,
                _ => tokio::time::sleep(LOOK).await,
            }
        }
    };
    tokio::time::timeout(SOON, left)
        .await
        .expect("the call counts");
}

/// A run that ends by its iterations has reserved no call that it does not make.
async fn the_last_iteration_reserves_for_no_other(place: Place) {
    let config = rows();
    config.put("agent", "budget", r#"{"tokens": 100000}"#);
    let settings = Options {
        max_iterations: 2,
        ..Options::default()
    };
    let script = (0..3).map(|_| Say::Text(ADD));
    let bus = place.connect().await;
    let world = World::start(bus, script, settings, config, Vec::new()).await;
    let chunks = world.run(&question("q", false)).await;
    assert!(chunks.last().expect("an end").error.is_some());
    let runs = used(&world, Scope::Run).await;
    over(&world, &runs[0].0).await;
    assert_eq!(used(&world, Scope::Run).await[0].1[..3], [2, 2, 220]);
    assert_eq!(used(&world, Scope::Workspace).await[0].1[..3], [2, 2, 220]);
}

/// Each is a call of its own: what the first two took leaves no room for a third.
async fn replies_that_cannot_be_read_count_each(place: Place) {
    let likely = budget::model_call(&AgentRun::default(), None).tokens();
    let budget = format!(r#"{{"tokens": {}}}"#, likely + 150);
    let world = world(&place, &budget, "I would rather not say").await;
    let why = "Stopped by its budget (tokens): 220 of";
    let last = stopped(&world, false, why).await;
    assert_eq!((world.calls(), last.in_token), (2, Some(200)));
    assert_eq!(used(&world, Scope::Run).await[0].1[..3], [2, 0, 220]);
}

/// A workspace that is out of its budget does not ask which way to go about a question, either.
async fn the_router_is_bound(place: Place) {
    let config = with_types();
    config.put("agent", "budget", r#"{"workspace": {"tokens": 5}}"#);
    let says = [Say::Text("Final Answer: none")];
    let world = World::among(&place, says, config, Vec::new()).await;
    let last = stopped(&world, false, "Stopped by the budget of its workspace").await;
    assert_eq!((world.calls(), last.in_token.unwrap_or(0)), (0, 0));
    assert!(used(&world, Scope::Workspace).await.is_empty());
}

async fn the_router_counts(place: Place) {
    let says = [Say::Text("Final Answer: none")];
    let world = World::among(&place, says, with_types(), Vec::new()).await;
    let chunks = world.run(&question("Which?", false)).await;
    let last = chunks.last().expect("an end");
    let told = last.in_token.unwrap() + last.out_token.unwrap();
    let runs = used(&world, Scope::Run).await;
    assert_eq!(i64::try_from(runs[0].1[2]).unwrap(), told);
    assert_eq!(runs[0].1[0], 2);
}

tg_testkit::on_both_buses!(
    replies_that_cannot_be_read_count_each,
    a_budget_that_cannot_be_read_begins_no_run,
    the_router_is_bound,
    the_router_counts,
    several_runs_have_one_budget,
    a_run_waits_for_what_others_have_reserved,
    a_key_has_a_budget_of_its_own,
    subagents_count_for_their_run,
    a_plan_counts_its_steps,
    a_step_taken_up_again_counts_once,
    a_call_that_was_reserved_before_a_death_counts_once,
    what_is_reserved_and_not_asked_is_free_again,
    a_call_that_is_left_counts_as_the_step_before_reserved_it,
    the_last_iteration_reserves_for_no_other,
    tokens,
    a_row_that_changes_binds_the_next_run,
    a_stated_reply_is_reserved_whole,
    a_model_without_reported_usage_uses_its_budget_up,
    tokens_for_no_call_at_all,
    money,
    calls_of_tools,
    seconds,
);
