//! Files that anybody may have written, to be made a schema of.

use tg_testkit::fuzz::run;

use super::propose;
use crate::commands::structured::descriptor::Descriptor;

#[test]
fn files_to_make_a_schema_of() {
    let seeds: [&[u8]; 4] = [
        b"\xef\xbb\xbfid;n\n1;\"2\n3\"\r\n;2020-01-01",
        b"{\"a\": [{\"b\": {\"c.d\": 1, \"\": 2}}, {\"b\": null}]}",
        b"{\"a\": 1}\n{\"a\": \"x\"}",
        b"<r><x:i a=\"1\"><n>2</n></x:i><x:i/></r>",
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data");
    run("files to make a schema of", &seeds, |bytes| {
        std::fs::write(&path, bytes).expect("written");
        if let Ok(proposal) = propose(&path) {
            Descriptor::of(&proposal.descriptor).expect("a descriptor that is understood");
            let schema = proposal.schema.to_string();
            tg_schemas::table::Table::read("x", &schema).expect("a schema");
        }
    });
}
