//! What a server of Wikipedia, or whoever answers in its place, may say.

use tg_testkit::fuzz::run;

use super::*;

#[test]
fn answers_of_wikipedia() {
    let seeds: [&[u8]; 4] = [
        br#"{"pages": [{"title": "A", "description": null, "excerpt": "a <span class=\"m\">b</span> &amp; &quot;c&quot; <"},
            {"title": "B", "description": "<<>>", "excerpt": ""}]}"#,
        br#"{"pages": [], "more": [[[]]]}"#,
        br#"{"title": "A", "extract": "b", "content_urls": {"desktop": {"page": "https://w.example/wiki/A"}}}"#,
        br#"{"title": "A", "content_urls": [{"desktop": 1}, null]}"#,
    ];
    run("answers of Wikipedia", &seeds, |bytes| {
        if let Ok(found) = serde_json::from_slice::<Found>(bytes) {
            let lines = listed("q", &found);
            assert!(!lines.is_empty());
        }
        if let Ok(page) = serde_json::from_slice::<Summary>(bytes) {
            assert!(told(&page).starts_with(&page.title));
        }
        let text = String::from_utf8_lossy(bytes);
        assert!(plain(&text).len() <= text.len(), "marks are left out");
    });
}
