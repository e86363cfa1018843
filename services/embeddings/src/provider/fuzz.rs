//! Tables of vectors that somebody downloaded, and answers of servers that embed.

use safetensors::tensor::TensorView;
use safetensors::{Dtype, serialize};
use tg_testkit::fuzz::run;

use super::endpoint::{Dialect, OllamaModels, names, read};
use super::lexical;
use super::table::Table;

fn table() -> Vec<u8> {
    let numbers: Vec<u8> = (0..6_u8).flat_map(|n| f32::from(n).to_le_bytes()).collect();
    let places: Vec<u8> = [0_i64, 2, 1].iter().flat_map(|n| n.to_le_bytes()).collect();
    let tensors = [
        ("embeddings", Dtype::F32, vec![3, 2], &numbers),
        ("mapping", Dtype::I64, vec![3], &places),
        ("weights", Dtype::F16, vec![12], &numbers),
    ];
    let views = tensors.map(|(name, kind, shape, bytes)| {
        (name, TensorView::new(kind, shape, bytes).expect("a tensor"))
    });
    serialize(views, None).expect("written")
}

#[test]
fn tables_of_vectors() {
    let seed = table();
    Table::read(&seed, None).expect("a table");
    run("tables of vectors", &[&seed], |bytes| {
        for dimension in [None, Some(1), Some(usize::MAX)] {
            let Ok(table) = Table::read(bytes, dimension) else {
                continue;
            };
            let mut sum = vec![0.0; table.dimension()];
            for token in [0, 1, 2, u32::MAX] {
                table.add(token, &mut sum);
            }
        }
    });
}

#[test]
fn answers_of_servers_that_embed() {
    let seeds: [&[u8]; 3] = [
        br#"{"data": [{"index": 1, "embedding": [0.5, 1]}, {"embedding": [1e39, -0.0]}]}"#,
        br#"{"embeddings": [[1, 2], [3, 4]]}"#,
        br#"{"data": [{"index": 18446744073709551615, "embedding": [null]}]}"#,
    ];
    run("answers of servers that embed", &seeds, |bytes| {
        for dialect in [Dialect::OpenAi, Dialect::Ollama] {
            if let Ok(vectors) = read(dialect, bytes, 2) {
                assert!(vectors.len() == 2 && vectors[0].len() == vectors[1].len());
            }
        }
    });
}

#[test]
fn lists_of_models() {
    let seeds: [&[u8]; 3] = [
        br#"{"object": "list", "data": [{"id": "a"}, {"id": "b\ud800"}]}"#,
        br#"{"models": [{"name": "c:latest", "details": {}}]}"#,
        br#"{"data": null, "models": [null]}"#,
    ];
    run("lists of models that embed", &seeds, |bytes| {
        let _ = serde_json::from_slice(bytes).map(|listed| names(&listed));
        let _ = serde_json::from_slice(bytes).map(OllamaModels::names);
    });
}

#[test]
fn texts_to_embed() {
    let seeds: [&[u8]; 3] = [
        b"The lamp, made of blue glass: 3.5 \xe2\x82\xac!",
        "東京の古い橋 e\u{301} \u{200d}𝄞".as_bytes(),
        b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ];
    run("texts to embed", &seeds, |bytes| {
        let vector = lexical::embed(&String::from_utf8_lossy(bytes));
        assert!(vector.iter().all(|part| part.is_finite()));
    });
}
