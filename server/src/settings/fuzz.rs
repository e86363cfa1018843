//! Settings files as people write them, in each of their languages.

use tg_testkit::fuzz::run;

use super::*;

#[test]
fn settings_files() {
    let seeds: [&[u8]; 4] = [
        b"listen = \"127.0.0.1:8088\"\nauth = 'none'\n[gateway]\nbody_mb = 3\n[log]\nformat = \"json\"\n[a.b]\nc = [1, 2.5, true]\n",
        b"{\"data_dir\": \"x\", \"graph\": {\"query_memory_mb\": \"256\"}, \"bus\": null}",
        b"drain_seconds: 0x1F\nrag:\n  reranker_dialect: jina\n  list: [a, &b {c: d}, *b]\n",
        b"[[x]]\ny = 1979-05-27T07:32:00Z\nz = \"\"\"\\\n  \\u00fc\"\"\"\n",
    ];
    let folder = tempfile::tempdir().expect("a folder");
    run("settings files", &seeds, |bytes| {
        for language in ["toml", "yaml", "json"] {
            let path = folder.path().join("settings").with_extension(language);
            std::fs::write(&path, bytes).expect("written");
            let flags = Flags {
                config: Some(path),
                ..Flags::default()
            };
            if let Err(faults) = Settings::load(&flags, Texts::new()) {
                faults.iter().for_each(|fault| drop(fault.to_string()));
            }
        }
    });
}
