//! Bundles as another system, or a slip of the hand, may have packed them.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tg_testkit::fuzz::run;
use tokio::runtime::Builder;

use super::reading::Items;
use super::said::Said;
use crate::commands::workspace::bundle::{Member, to_library};

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, body) in members {
        let mut header = tar::Header::new_gnu();
        header.set_size(body.len() as u64);
        header.set_mode(0o600);
        tar.append_data(&mut header, path, *body).expect("packed");
    }
    tar.into_inner().expect("packed")
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
    gz.write_all(bytes).expect("packed");
    gz.finish().expect("packed")
}

#[test]
fn bundles() {
    let seed = archive(&[
        ("manifest.json", br#"{"version": 1, "workspace": "w"}"#),
        ("config/prompt/system.json", br#"{"type": "prompt", "key": "system", "value": "x"}"#),
        ("knowledge/library/urn%3Ad.meta.json", br#"{"id": "urn:d", "time": "2026-01-05T00:00:00", "metadata": [{"s": "urn:a", "p": "urn:b", "o": "c"}]}"#),
        ("knowledge/library/urn%3Ad.content", b"text"),
        ("knowledge/default/triples.nq", b"<urn:a> <urn:b> \"c\"@en <urn:g> .\n"),
    ]);
    let whole = packed(&seed);
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bundle");
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("written");
        runtime.block_on(async {
            if let Ok(said) = Said::read(&path).await {
                said.documents
                    .values()
                    .for_each(|one| drop(to_library(one)));
            }
            let mut items = Items::open(&path, |member| {
                matches!(member, Member::Content(_) | Member::Triples(..))
            });
            while let Ok(Some(_)) = items.next().await {}
        });
    };
    run("bundles", &[&seed], |bytes| read(&packed(bytes)));
    run("packed bundles", &[&whole], read);
}
