//! The settings as people read them: what `threadgraph settings` prints, and docs/settings.md.

use tg_settings::{Key, Options};

use super::Settings;

/// The variables of model providers, by their names.
fn variables() -> Vec<Key> {
    let mut keys = tg_llm::Options::keys();
    for key in &mut keys {
        key.name = key.name.to_uppercase();
    }
    keys
}

/// Every setting with its meaning and default, as a file has it.
pub fn listing() -> String {
    let keys = Settings::keys();
    let line = |key: &Key| format!("# {}\n{} = {:?}\n\n", key.meaning(), key.name, key.default);
    keys.iter().map(line).collect()
}

/// The page of all settings, as docs/settings.md has it.
pub fn page() -> String {
    let mut page = String::from(
        "# Settings\n\nMade from the program's own structs by `UPDATE=1 cargo test -p tg-server settings_page`; do not edit.\n\n\
         A setting comes from its flag, else from the environment (`THREADGRAPH_` and its name in capitals, with `__` for \
         each dot), else from `threadgraph.toml`, else it has its default. All mistakes are told at once. An empty value in a \
         section counts as not set.\n\n",
    );
    page.push_str(&table("setting", &Settings::keys()));
    page.push_str(
        "\nHow retrieval uses `rag.…`: [retrieval.md](retrieval.md).\n\nFlags only: `--adopt-store NAME` (repeatable) \
         serves with a store although another one of its name served before.\n\n## Model providers\n\nThe model that \
         answers is chosen by the variables that providers' own tools use: the first of OpenAI, Anthropic and Ollama \
         that is configured serves, variables of the others mean nothing. None: the extractive reader that is built \
         in.\n\n",
    );
    page.push_str(&table("variable", &variables()));
    page
}

fn table(of: &str, keys: &[Key]) -> String {
    let row = |key: &Key| {
        let default = match key.default.as_str() {
            "" => String::new(),
            default => format!("`{default}`"),
        };
        format!("| `{}` | {default} | {} |\n", key.name, key.meaning())
    };
    let rows: String = keys.iter().map(row).collect();
    format!("| {of} | default | meaning |\n|---|---|---|\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_page() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap();
        assert_eq!(
            written,
            page(),
            "run UPDATE=1 cargo test -p tg-server settings_page"
        );
    }
}
