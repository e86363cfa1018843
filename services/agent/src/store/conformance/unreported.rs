//! What counts of calls whose provider reports no tokens. No model is ever called: the ledger gets what a call would report.

use super::usage::{bound, call, reservation, sums, took};
use super::{Store, of};
use crate::engine::cost::Price;
use crate::engine::usage::{Amount, Scope};
use crate::store::{Call, CallKind, Days, Reservation, Used};

/// Dollars a token: a tenth of a millionth.
const PRICE: f64 = 1e-7;

/// The model answered and wrote so many tokens; what it read is not reported.
fn wrote(run: &str, out_token: u64) -> Used {
    Used {
        amount: Amount {
            model_calls: 1,
            out_token,
            ..Amount::default()
        },
        unreported: Some(Price {
            input_price: PRICE,
            output_price: PRICE,
            cache_read_price: None,
        }),
        ..took(run, 0)
    }
}

/// Calls of models, tokens in and out, and billionths of a dollar of the workspace.
async fn all(ledger: &Store) -> (u64, u64, u64, u64) {
    let days = Days {
        scope: Scope::Workspace,
        since: String::new(),
        until: "2026-11-30".into(),
        daily: false,
    };
    let sums = ledger.usage("ws", &days, "", 9).await.unwrap();
    let (_, sum) = &sums[0];
    (
        sum.model_calls,
        sum.in_token,
        sum.out_token,
        sum.nanodollars,
    )
}

async fn reserves(ledger: &Store, call: &Call, next: &Reservation) -> bool {
    let over = ledger.reserve(call, next, 1).await.unwrap();
    over.is_none()
}

pub(super) async fn a_call_whose_tokens_nobody_reports_counts_as_reserved(ledger: Store) {
    let next = |run: &str| Reservation {
        amount: Amount {
            model_calls: 1,
            in_token: 60,
            out_token: 20,
            nanodollars: 9_000_000,
            ..Amount::default()
        },
        ..reservation(run, 0, vec![bound(Scope::Workspace, 1000)])
    };
    let settles = async |call: &Call, used: &Used| {
        // Twice: a call counts once.
        for _ in 0..2 {
            ledger.settle(&of(&call.run), call, used, 1).await.unwrap();
        }
    };
    let first = call("r", 1, CallKind::Model);
    assert!(reserves(&ledger, &first, &next("r")).await);
    settles(&first, &wrote("r", 0)).await;
    // By the price of the model that answered, not by the highest, which was reserved.
    assert_eq!(all(&ledger).await, (1, 60, 20, 8_000));
    let summary = call("r", 1, CallKind::Summary);
    assert!(reserves(&ledger, &summary, &next("r")).await);
    settles(&summary, &wrote("r", 30)).await;
    assert_eq!(all(&ledger).await, (2, 120, 50, 17_000));
    // Nothing was reserved for it.
    settles(&call("r", 2, CallKind::Model), &wrote("r", 5)).await;
    assert_eq!(all(&ledger).await, (3, 120, 55, 17_000));
    // It failed, and took nothing.
    let failed = call("r", 3, CallKind::Model);
    assert!(reserves(&ledger, &failed, &next("r")).await);
    settles(&failed, &took("r", 0)).await;
    assert_eq!(all(&ledger).await, (4, 120, 55, 17_000));
    // What was estimated binds those that follow.
    let large = reservation("r", 830, vec![bound(Scope::Workspace, 1000)]);
    assert!(!reserves(&ledger, &call("r", 4, CallKind::Model), &large).await);
}

/// What others reserve follows from the largest call that was reported.
pub(super) async fn an_estimate_raises_no_later_reservation(ledger: Store) {
    let next = |run: &str| reservation(run, 10, vec![bound(Scope::Workspace, 1_000_000)]);
    let reported = call("reported", 1, CallKind::Model);
    let used = took("reported", 100);
    ledger
        .settle(&of("reported"), &reported, &used, 1)
        .await
        .unwrap();
    for step in 1..=10 {
        let one = call("r", step, CallKind::Model);
        assert!(reserves(&ledger, &one, &next("r")).await);
        ledger
            .settle(&of("r"), &one, &wrote("r", 50), 1)
            .await
            .unwrap();
    }
    // Each as large as the reported one, with what it wrote.
    let sums = sums(&ledger, "ws", Scope::Workspace).await;
    assert_eq!(sums, [(String::new(), 100 + 10 * 150)]);
}
