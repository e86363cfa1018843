//! Models that are known by name, each file with its size and SHA-256. Pure.

/// Where models come from when the user names no other place.
pub const SOURCE: &str = "https://huggingface.co";

/// A file of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its SHA-256 in lower case.
    pub sha256: String,
}

/// A model that is known by name.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Its name here.
    pub name: &'static str,
    /// What it is, for people.
    pub about: &'static str,
    /// Where its files lie below [`SOURCE`]: one fixed state of it.
    path: &'static str,
    files: &'static [(&'static str, &'static str)],
}

/// The model that is taken when none is named.
pub const USUAL: &str = "potion-base-8M";

const MODELS: &[Known] = &[Known {
    name: USUAL,
    about: "English, 256 numbers a vector, 31 MB, MIT licence",
    path: "minishlab/potion-base-8M/resolve/bf8b056651a2c21b8d2565580b8569da283cab23",
    files: &[
        (
            "config.json",
            "2a6ac0e9aaa356a68a5688070db78fc3a464fefe85d2f06a1905ce3718687553",
        ),
        (
            "tokenizer.json",
            "e67e803f624fb4d67dea1c730d06e1067e1b14d830e2c2202569e3ef0f70bb50",
        ),
        (
            "model.safetensors",
            "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2",
        ),
    ],
}];

impl Known {
    /// The known model of a name.
    pub fn find(name: &str) -> Option<&'static Self> {
        MODELS.iter().find(|model| model.name == name)
    }

    /// All of them.
    pub fn all() -> &'static [Self] {
        MODELS
    }

    /// Where its files are.
    pub fn address(&self) -> String {
        format!("{SOURCE}/{}", self.path)
    }

    /// Its files.
    pub fn files(&self) -> Vec<File> {
        let file = |(name, sha256): &(&str, &str)| File {
            name: (*name).to_owned(),
            sha256: (*sha256).to_owned(),
        };
        self.files.iter().map(file).collect()
    }
}

/// Files a text in the form of `sha256sum` names. The error says which line is wrong.
pub fn read_sums(text: &str) -> Result<Vec<File>, String> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let file = |(at, line): (usize, &str)| {
        let wrong = || format!("line {} is not of the form that sha256sum writes", at + 1);
        let (sum, name) = line.split_once([' ', '\t']).ok_or_else(wrong)?;
        let name = name.trim_start_matches([' ', '*']).trim();
        let hex = sum.len() == 64 && sum.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !hex || !plain(name) {
            return Err(wrong());
        }
        Ok(File {
            name: name.to_owned(),
            sha256: sum.to_ascii_lowercase(),
        })
    };
    lines.enumerate().map(file).collect()
}

/// The files in the form of `sha256sum`.
pub fn write_sums(files: &[File]) -> String {
    let line = |file: &File| format!("{}  {}\n", file.sha256, file.name);
    files.iter().map(line).collect()
}

/// Whether a name can be a file's or a directory's here, and nothing else.
pub fn plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 100
        && !name.starts_with('.')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_read_as_they_are_written() {
        for model in Known::all() {
            assert_eq!(read_sums(&write_sums(&model.files())), Ok(model.files()));
            assert!(plain(model.name) && model.address().starts_with("https://"));
        }
        let sum = "AB".repeat(32);
        let read = read_sums(&format!("\n{sum} *a.json\n")).expect("read");
        assert_eq!(read[0].sha256, sum.to_lowercase());
        for wrong in [
            "x a",
            &format!("{sum}  ../a"),
            &format!("{sum}  .a"),
            &format!("{sum}  a/b"),
            &sum,
        ] {
            assert!(read_sums(wrong).is_err(), "{wrong}");
        }
    }
}
