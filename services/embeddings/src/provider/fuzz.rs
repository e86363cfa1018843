//! Tables of vectors that somebody downloaded, and answers of servers that embed.

use safetensors::tensor::TensorView;
use safetensors::{Dtype, serialize};
use tg_testkit::fuzz::run;

use super::endpoint::{Dialect, read};
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
