//! For tests: a tiny static model, made on the spot.

use std::fs;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// Writes a model of four known words with vectors of two numbers below `inner`.
pub(crate) fn write_model(directory: &Path, inner: &str, plain: bool) {
    let directory = directory.join(inner);
    fs::create_dir_all(&directory).unwrap();
    let rows: [f32; 10] = [9.0, 9.0, 1.0, 0.0, 0.9, 0.1, 0.0, 1.0, 0.1, 0.9];
    let bytes: Vec<u8> = rows.iter().flat_map(|part| part.to_le_bytes()).collect();
    let view = TensorView::new(Dtype::F32, vec![5, 2], &bytes).unwrap();
    let name = if plain {
        "embedding.weight"
    } else {
        "embeddings"
    };
    let content = safetensors::serialize([(name, view)], None).unwrap();
    fs::write(directory.join("model.safetensors"), content).unwrap();
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": null, "decoder": null,
        "model": {
            "type": "WordLevel", "unk_token": "[UNK]",
            "vocab": {"[UNK]": 0, "pump": 1, "boiler": 2, "treaty": 3, "vienna": 4},
        },
    });
    fs::write(directory.join("tokenizer.json"), tokenizer.to_string()).unwrap();
}
