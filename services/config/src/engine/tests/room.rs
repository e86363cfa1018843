//! What a workspace may hold: bytes, which bound the number of rows and types, too.

use tg_schemas::limits::{CONFIG_ROW, config_type};

use super::*;

fn within(most: usize) -> Given {
    Given { most, ..GIVEN }
}

/// Puts rows of one byte, until one is refused; how many there are then, and what was said.
fn fill(kind: fn(usize) -> String) -> (usize, tg_schemas::Error) {
    let mut rows = Rows::new(1, []);
    let given = within(1 << 20);
    for n in 0.. {
        let tiny = value(&kind(n), &n.to_string(), "");
        match plan(&rows, Write::Put("acme".into(), vec![tiny]), &given) {
            Ok(change) => change.apply(&mut rows),
            Err(error) => return (n, error),
        }
    }
    unreachable!("it has no end")
}

#[test]
fn bytes_bound_the_number_of_rows_and_of_types() {
    let (count, error) = fill(|_| "t".to_owned());
    assert_eq!(error.code(), ErrorCode::TooLarge);
    assert!(error.message.contains("of type 't'"), "{error}");
    assert!(
        error.message.ends_with("must not exceed 512 KiB"),
        "{error}"
    );
    assert!((1_900..=(1 << 19) / CONFIG_ROW).contains(&count), "{count}");
    let (count, error) = fill(|n| format!("t{n}"));
    assert!(error.message.ends_with("must not exceed 1 MiB"), "{error}");
    // Each has a type of its own, which counts as a row does.
    let most = (1 << 20) / (2 * CONFIG_ROW);
    assert!((most * 9 / 10..=most).contains(&count), "{count}");
}

#[test]
fn one_type_has_half_of_what_the_workspace_may_hold() {
    for most in [1 << 20, 4 << 20] {
        let fits = config_type(most) - 2 * CONFIG_ROW - "tool".len() - "k".len();
        let put = |bytes: usize| {
            let large = value("tool", "k", &"x".repeat(bytes));
            let write = Write::Put("acme".into(), vec![large]);
            plan(&Rows::new(1, []), write, &within(most)).map(|_| ())
        };
        assert_eq!(put(fits), Ok(()));
        assert_eq!(put(fits + 1).unwrap_err().code(), ErrorCode::TooLarge);
    }
}

#[test]
fn what_goes_counts_no_more() {
    let mut rows = Rows::new(1, []);
    let empty = rows.bytes("acme");
    put(
        &mut rows,
        "acme",
        vec![value("tool", "a", "1"), value("tool", "b", "2")],
    );
    put(&mut rows, "acme", vec![value("tool", "a", "12345")]);
    assert_eq!(rows.bytes("acme"), rows.type_bytes("acme", "tool"));
    let two = 2 * (CONFIG_ROW + "tool".len() + 1) + 6;
    assert_eq!(rows.bytes("acme"), two + CONFIG_ROW);
    let keys = vec![key("tool", "a"), key("tool", "b")];
    run(
        &mut rows,
        ConfigRequest {
            keys,
            ..request("delete", "acme")
        },
    );
    assert_eq!((rows.bytes("acme"), empty), (0, 0));
}

#[test]
fn a_type_that_is_fuller_than_it_may_be_is_replaced_and_removed() {
    let mut rows = Rows::new(1, []);
    let large = "x".repeat(300_000);
    for name in ["a", "b"] {
        put(&mut rows, "acme", vec![value("tool", name, &large)]);
    }
    let given = within(1 << 20);
    let plan_for = |key: &str, text: &str| {
        plan(
            &rows,
            Write::Put("acme".into(), vec![value("tool", key, text)]),
            &given,
        )
    };
    assert!(plan_for("a", &large).is_ok());
    assert!(plan_for("a", "short").is_ok());
    let error = plan_for("c", "short").unwrap_err();
    assert!(error.message.contains("of type 'tool'"), "{error}");
}
