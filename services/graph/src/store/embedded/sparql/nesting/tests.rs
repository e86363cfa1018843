//! Depth is read past everything that only looks like brackets.

use super::*;

#[test]
fn brackets_in_strings_do_not_count_and_real_ones_do() {
    let many = "(".repeat(500);
    for quote in ["'", "\"", "'''", "\"\"\""] {
        check(&format!("ASK {{ ?s ?p {quote}\\\\ {many}{quote} }}")).unwrap();
    }
    check(&format!("ASK {{ }} # {many}")).unwrap();
    check(&format!(
        "ASK {{ ?s <urn:p> ?o FILTER(?s < 1 && ?o >= 2) }} #{many}"
    ))
    .unwrap();
    check("ASK { ?s ?p 'unfinished").unwrap();
    check(&"{}".repeat(500)).unwrap();
    for open in ["(", "{", "[", "<< "] {
        let text = format!("ASK {{ {} }}", open.repeat(DEPTH));
        assert!(check(&text).is_err(), "{open}");
    }
    assert!(check(&format!("ASK {{ '{}' }}", "x".repeat(LENGTH))).is_err());
}
