//! Summaries by a model that replies as it is told to.

use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

/// Gives its replies in turn; behind them none.
#[derive(Default)]
struct Model {
    replies: VecDeque<Option<&'static str>>,
    asked: Vec<String>,
    pauses: Vec<u32>,
    stops_at: Option<usize>,
}

impl Summariser for Model {
    type Stop = &'static str;

    async fn ask(&mut self, asked: Asked<'_>) -> Result<Option<String>, Self::Stop> {
        if self.stops_at == Some(self.asked.len()) {
            return Err("cancelled");
        }
        self.asked.push(match asked {
            Asked::Chunk { text, .. } => text.to_owned(),
            Asked::Merge { text } => format!("merge {text}"),
        });
        Ok(self.replies.pop_front().flatten().map(str::to_owned))
    }

    async fn pause(&mut self, attempts: u32) -> Result<(), Self::Stop> {
        self.pauses.push(attempts);
        Ok(())
    }
}

fn of(replies: &[Option<&'static str>]) -> Model {
    Model {
        replies: replies.iter().copied().collect(),
        ..Model::default()
    }
}

/// The model never waits.
fn sum_up(
    rows: &[Row],
    window: u64,
    mask: bool,
    by: &mut Model,
) -> Result<Summary, Failure<&'static str>> {
    let mut work = pin!(summarise(rows, window, mask, by));
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("it waits"),
    }
}

fn talk() -> Vec<Row> {
    vec![
        Row::text(Role::User, "Look at https://x.test/a."),
        Row::call("I look.", "fetch", "{}"),
        Row::result("secret text of /etc/passwd", "fetch"),
        Row::text(Role::Tool, "more"),
    ]
}

#[test]
fn what_tools_returned_is_only_named_where_it_is_masked() {
    let mut model = of(&[Some("They looked at https://x.test/a.")]);
    let summary = sum_up(&talk(), 128_000, true, &mut model).unwrap();
    assert_eq!(summary.tier, Tier::Full);
    assert_eq!(
        model.asked[0],
        "[user]: Look at https://x.test/a.\n[assistant]: I look.\n[tool]: [tool result: fetch]\n[tool]: [tool result: unknown]"
    );
    assert_eq!(summary.text, "They looked at https://x.test/a.");
    let mut model = of(&[Some("They looked.")]);
    let summary = sum_up(&talk(), 128_000, false, &mut model).unwrap();
    assert!(model.asked[0].contains("secret text"));
    assert_eq!(
        summary.text,
        "They looked.\nIdentifiers: https://x.test/a, /etc/passwd"
    );
}

#[test]
fn line_103_identifiers_that_a_summary_omits_are_appended() {
    let id = "3f2b8c1e-9a47-4d0e-8b66-0c5d1e2f3a4b";
    let rows = [Row::text(
        Role::User,
        format!("Order {id}, see https://x.test/a and /etc/hosts."),
    )];
    let mut model = of(&[Some("An order was asked about.")]);
    let summary = sum_up(&rows, 128_000, false, &mut model).unwrap();
    let missing = ["https://x.test/a", "/etc/hosts", id];
    assert!(
        missing.iter().all(|name| summary.text.contains(name)),
        "{}",
        summary.text
    );
}

/// 98
#[test]
fn line_098_a_window_that_leaves_no_room_is_too_small() {
    let mut model = Model::default();
    assert_eq!(
        sum_up(&talk(), 4_900, true, &mut model),
        Err(Failure::TooSmall)
    );
    assert!(model.asked.is_empty());
}

/// 100
#[test]
fn line_100_what_fails_whole_is_summed_up_without_its_longest_rows() {
    let mut rows = talk();
    rows.push(Row::text(Role::User, "long ".repeat(16_000)));
    let mut model = of(&[
        Some("Before."),
        None,
        None,
        None,
        Some("Short."),
        Some("Both."),
    ]);
    let summary = sum_up(&rows, 20_000, true, &mut model).unwrap();
    assert_eq!((summary.tier, model.pauses), (Tier::Partial, vec![1, 2]));
    assert_eq!(
        model.asked[4],
        "[user]: [user message of about 20004 tokens left out of the summary]"
    );
    assert_eq!(summary.text, "Both.\nIdentifiers: https://x.test/a");
}

/// 101
#[test]
fn line_101_where_every_call_fails_a_note_stands_for_the_rows() {
    let mut model = Model::default();
    let summary = sum_up(&talk(), 128_000, true, &mut model).unwrap();
    assert_eq!((summary.text.as_str(), summary.tier), (NOTE, Tier::Note));
    assert_eq!(model.asked.len(), 3);
}

/// 102
#[test]
fn line_102_summaries_that_cannot_be_made_one_are_joined() {
    let rows = [
        Row::text(Role::User, "a ".repeat(8_000)),
        Row::text(Role::User, "b ".repeat(8_000)),
    ];
    let mut model = of(&[Some("First."), Some("Second."), None]);
    let summary = sum_up(&rows, 16_000, true, &mut model).unwrap();
    assert_eq!(
        model.asked.last().unwrap(),
        "merge 1.\nFirst.\n\n2.\nSecond."
    );
    assert_eq!(
        (summary.text.as_str(), summary.tier),
        ("First.\n---\nSecond.", Tier::Full)
    );
}

#[test]
fn who_goes_no_further_is_not_asked_again() {
    let mut model = Model {
        stops_at: Some(1),
        ..Model::default()
    };
    let stopped = sum_up(&talk(), 128_000, true, &mut model);
    assert_eq!(stopped, Err(Failure::Stopped("cancelled")));
    assert_eq!(model.asked.len(), 1);
}
