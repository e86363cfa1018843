//! Terms as people write them on a command line.

use tg_testkit::fuzz::run;

use super::term::{TermKind, display, read};

#[test]
fn terms_of_commands() {
    let seeds: [&[u8]; 4] = [
        b"<<urn:a urn:b \"c d\"@en>>",
        b"<<(<urn:a> <urn:b> <<urn:c urn:d \"1\"^^<urn:e>>>)>>",
        b"{\"s\": {\"t\": \"i\", \"i\": \"urn:a\"}, \"p\": null}",
        b"<<<<<<",
    ];
    let kinds = [
        None,
        Some(TermKind::Iri),
        Some(TermKind::Literal),
        Some(TermKind::Triple),
    ];
    run("terms of commands", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        for kind in kinds {
            if let Ok(term) = read(&text, kind) {
                let _ = display(Some(&term));
            }
        }
    });
}
