//! Answers of servers that rank.

use tg_testkit::fuzz::run;

use crate::endpoint::Dialect;

#[test]
fn answers_of_rerankers() {
    let seeds: [&[u8]; 3] = [
        br#"{"results": [{"index": 1, "relevance_score": 0.5}, {"index": 0, "relevance_score": -1e308}]}"#,
        br#"[{"index": 0, "score": 3}]"#,
        br#"{"results": [{"index": 18446744073709551615, "relevance_score": null}]}"#,
    ];
    run("answers of rerankers", &seeds, |bytes| {
        if let Ok(answer) = serde_json::from_slice(bytes) {
            for dialect in [Dialect::Cohere, Dialect::Tei] {
                let _ = dialect.read(&answer);
            }
        }
    });
}
