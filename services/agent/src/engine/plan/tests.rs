//! Plans by example, and properties of any.

use proptest::prelude::*;

use super::*;

fn following(steps: Vec<PlanStep>, revisions_left: i64) -> AgentRun {
    let mut run = AgentRun::default();
    adopt(&mut run, &steps, revisions_left);
    run
}

fn statuses(run: &AgentRun) -> Vec<&str> {
    run.plan.iter().map(|step| step.status.as_str()).collect()
}

#[test]
fn a_plan_is_read_with_what_models_put_around_it() {
    let steps = read(
        "Here you are:\n```json\n[{\"goal\": \" find \", \"tool_hint\": \"t\", \"depends_on\": []},
          {\"goal\": \"use\", \"depends_on\": [0, 0, 1, 7, -1]}, 4, {\"goal\": \"\"}, \"alone\"]\n```",
        9,
    )
    .unwrap();
    let goals: Vec<_> = steps.iter().map(|step| step.goal.as_str()).collect();
    assert_eq!(goals, ["find", "use", "alone"]);
    assert_eq!(steps[0].tool_hint, "t");
    assert_eq!(steps[1].depends_on, [0]);
    assert_eq!(read("[]", 9), Some(Vec::new()));
    assert_eq!(read("no list", 9), None);
    assert_eq!(read("[\"a\", \"b\", \"c\"]", 2).unwrap().len(), 2);
    assert_eq!(read(r#"{"steps": ["a"]}"#, 2).unwrap().len(), 1);
    assert_eq!(goals_of("[\"a\", 4, \"b\", \"c\"]"), ["a", "b"]);
}

fn goals_of(text: &str) -> Vec<String> {
    super::goals(text, 2).unwrap()
}

#[test]
fn a_step_waits_for_a_later_one_that_it_depends_on_but_never_in_a_circle() {
    let steps = read(r#"[{"goal": "a", "depends_on": [1]}, {"goal": "b"}]"#, 9).unwrap();
    assert_eq!(ready(&steps), Some(1));
    let steps = read(
        r#"[{"goal": "a", "depends_on": [1]}, {"goal": "b", "depends_on": [0]}]"#,
        9,
    )
    .unwrap();
    assert_eq!(ready(&steps), Some(0));
    assert_eq!(steps[1].depends_on, [0]);
}

#[test]
fn steps_that_wait_for_nothing_are_taken_together() {
    let steps = read(
        r#"["a", {"goal": "b", "depends_on": [0]}, "c", {"goal": "d", "depends_on": [2]}]"#,
        9,
    );
    let mut run = following(steps.unwrap(), 0);
    assert_eq!(together(&run.plan, 9), [0, 2]);
    assert_eq!(together(&run.plan, 1), [0]);
    settle(&mut run, 2, "c", false, true);
    assert_eq!(together(&run.plan, 9), [0, 3]);
    settle(&mut run, 0, "no", true, true);
    settle(&mut run, 3, "d", false, true);
    assert_eq!(together(&run.plan, 9), [0; 0], "{:?}", statuses(&run));
}

#[test]
fn what_depends_on_a_failure_is_skipped_and_the_rest_goes_on() {
    let steps = read(
        r#"[{"goal": "a"}, {"goal": "b", "depends_on": [0]}, {"goal": "c", "depends_on": [1]}, {"goal": "d"}]"#,
        9,
    );
    let mut run = following(steps.unwrap(), 0);
    settle(&mut run, 0, "no", true, true);
    assert_eq!(statuses(&run), [FAILED, SKIPPED, SKIPPED, PENDING]);
    assert_eq!(ready(&run.plan), Some(3));
    assert!(!is_to_be_revised(&run));
}

#[test]
fn a_revision_takes_the_place_of_what_waits() {
    let steps = read(r#"["a", "b"]"#, 9).unwrap();
    let mut run = following(steps, 1);
    settle(&mut run, 0, "no", true, true);
    assert!(is_to_be_revised(&run));
    let new = read(r#"["c", {"goal": "d", "depends_on": [0]}]"#, 9).unwrap();
    adopt(&mut run, &new, 0);
    assert_eq!(statuses(&run), [FAILED, SKIPPED, PENDING, PENDING]);
    assert_eq!((current(&run), run.plan[3].depends_on[0]), (2, 2));
    assert!(!is_to_be_revised(&run));
    settle(&mut run, 2, "yes", false, true);
    assert_eq!((ready(&run.plan), taken(&run.plan)), (Some(3), 2));
}

fn plans() -> impl Strategy<Value = Vec<PlanStep>> {
    let step = prop::collection::vec(-2_i64..12, 0..4);
    prop::collection::vec(step, 0..10).prop_map(|all| {
        let steps = all
            .into_iter()
            .map(|after| serde_json::json!({"goal": "g", "tool_hint": "", "depends_on": after}));
        let text = serde_json::Value::from(steps.collect::<Vec<_>>()).to_string();
        read(&text, 10).unwrap()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever the plan, whatever fails and however many are taken together: each step is taken once at most, after all that it
    /// depends on, and in the end none waits.
    #[test]
    fn every_plan_comes_to_an_end(
        first in plans(),
        later in plans(),
        revisions in 0_i64..3,
        fails in prop::collection::vec(any::<bool>(), 64),
        may_revise in any::<bool>(),
        most in 1_usize..5,
    ) {
        let mut run = following(first, revisions);
        let (mut seen, mut fails) = (Vec::new(), fails.into_iter());
        for _ in 0..64 {
            if is_to_be_revised(&run) {
                let left = run.revisions_left - 1;
                adopt(&mut run, &later, left);
                continue;
            }
            let now = together(&run.plan, most);
            prop_assert_eq!(now.first().copied(), ready(&run.plan));
            if now.is_empty() {
                break;
            }
            for at in &now {
                prop_assert!(!seen.contains(at));
                for other in places(&run.plan[*at]) {
                    prop_assert_eq!(run.plan[other].status.as_str(), COMPLETED);
                }
            }
            for at in now {
                seen.push(at);
                let failed = fails.next().unwrap_or(false);
                settle(&mut run, at, "r", failed, may_revise);
            }
        }
        prop_assert!(!is_to_be_revised(&run) && ready(&run.plan).is_none());
        prop_assert!(run.plan.iter().all(|step| step.status != PENDING));
        prop_assert_eq!(taken(&run.plan), seen.len());
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}") {
        let _ = (read(&text, 5), super::goals(&text, 5));
    }
}
