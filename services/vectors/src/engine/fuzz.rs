//! Questions and filters of searches.

use serde_json::Value;
use tg_testkit::fuzz::run;

use super::point::{Condition, check_vector};
use super::words::expression;

#[test]
fn questions_of_searches() {
    let seeds: [&[u8]; 3] = [
        b"What is the \"warp\" core's NEAR(temp) OR -x* ?",
        b"{\"a\": [1, 1.0, \"1\", true], \"b\": 1e308}",
        b"\0\x01\x02 ^:col",
    ];
    run("questions of searches", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Some(asked) = expression(&text) {
            assert!(asked.len() <= 64 * (2 * 4 * 200 + 8));
            assert!(asked.matches('"').count().is_multiple_of(2));
        }
        if let Ok(Value::Object(asked)) = serde_json::from_slice(bytes) {
            let _ = Condition::of_attributes(&asked);
        }
        let vector: Vec<f32> = bytes
            .chunks_exact(4)
            .map(|part| f32::from_le_bytes([part[0], part[1], part[2], part[3]]))
            .collect();
        let _ = check_vector("vector", &vector);
    });
}
