//! Licence expressions as crates state them: `MIT OR Apache-2.0`, `(A OR B) AND C`, `A/B`.

/// Whether the expression can be met with allowed licences alone.
pub fn allowed(expression: &str, list: &[&str]) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = any(&tokens, &mut at, list);
    met && at == tokens.len()
}

fn any(tokens: &[&str], at: &mut usize, list: &[&str]) -> bool {
    let mut met = all(tokens, at, list);
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all(tokens, at, list);
    }
    met
}

fn all(tokens: &[&str], at: &mut usize, list: &[&str]) -> bool {
    let mut met = one(tokens, at, list);
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(tokens, at, list);
    }
    met
}

fn one(tokens: &[&str], at: &mut usize, list: &[&str]) -> bool {
    let Some(token) = tokens.get(*at) else {
        return false;
    };
    *at += 1;
    if *token == "(" {
        let met = any(tokens, at, list);
        *at += 1;
        return met;
    }
    let mut name = (*token).to_owned();
    if tokens.get(*at) == Some(&"WITH") {
        name = format!("{name} WITH {}", tokens.get(*at + 1).unwrap_or(&""));
        *at += 2;
    }
    list.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read() {
        let list = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"];
        for (text, met) in [
            ("MIT", true),
            ("GPL-3.0", false),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("(GPL-3.0 OR MIT) AND ISC", true),
            ("(GPL-3.0 OR MIT) AND BSD", false),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0", true),
            ("Apache-2.0", false),
            ("", false),
        ] {
            assert_eq!(allowed(text, &list), met, "{text}");
        }
    }
}
