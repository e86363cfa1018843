//! From the dialect of published prompt packs to minijinja's: source to source, tag by tag. Text outside
//! tags and whatever is not known here passes unchanged.
//!
//! The dialect: `{% empty %}` in loops, `{% trim %}` and `{% spaceless %}` blocks, `{% with a = x & b = y %}`,
//! `{% cycle a, b %}`, `&&` and `||`, `{{ test ?? yes :: no }}`, `{$ escaped $}`, `list.0`, and `loop` with
//! `index` (from 0), `count` (from 1), `is_first` and `is_last`.

/// Line and reason of a source that cannot be translated.
pub(super) type SyntaxError = (usize, String);

const TAGS: [(&str, &str); 4] = [("{#", "#}"), ("{%", "%}"), ("{{", "}}"), ("{$", "$}")];

/// Translates a whole source.
pub(super) fn translate(source: &str) -> Result<String, SyntaxError> {
    let mut out = String::with_capacity(source.len() + 64);
    let mut rest = source;
    let mut raw = false;
    while let Some((at, open, close)) = next_tag(rest) {
        let (text, tag) = rest.split_at(at);
        out.push_str(text);
        let line = 1 + source[..source.len() - tag.len()].matches('\n').count();
        let Some(end) = tag[2..].find(close) else {
            if open == "{$" {
                // Money, not a tag.
                out.push_str(open);
                rest = &tag[2..];
                continue;
            }
            return Err((line, format!("'{open}' is never closed")));
        };
        let inner = &tag[2..2 + end];
        rest = &tag[2 + end + 2..];
        if raw {
            raw = open != "{%" || keyword(inner) != "endraw";
            out.push_str(&tag[..tag.len() - rest.len()]);
            continue;
        }
        match open {
            "{#" => {}
            "{{" => {
                let (left, inner, right) = marks(inner);
                out.push_str(&format!("{{{{{left} {} {right}}}}}", print(inner)));
            }
            "{$" => out.push_str(&format!("{{{{ ({})|escape }}}}", print(inner))),
            _ => {
                raw = keyword(inner) == "raw";
                let (left, inner, right) = marks(inner);
                let inner = instruction(inner).map_err(|why| (line, why))?;
                match inner {
                    Tag::Instruction(inner) => {
                        out.push_str(&format!("{{%{left} {inner} {right}%}}"));
                    }
                    Tag::Print(inner) => {
                        out.push_str(&format!("{{{{{left} {inner} {right}}}}}"));
                    }
                }
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn next_tag(text: &str) -> Option<(usize, &'static str, &'static str)> {
    TAGS.iter()
        .filter_map(|(open, close)| text.find(open).map(|at| (at, *open, *close)))
        .min_by_key(|(at, ..)| *at)
}

fn keyword(inner: &str) -> &str {
    let (_, inner, _) = marks(inner);
    inner.split_whitespace().next().unwrap_or_default()
}

/// Whitespace marks on both sides of a tag's text.
fn marks(inner: &str) -> (&str, &str, &str) {
    let (left, inner) = match inner.strip_prefix(['-', '+']) {
        Some(rest) => (&inner[..1], rest),
        None => ("", inner),
    };
    match inner.strip_suffix(['-', '+']) {
        Some(rest) => (left, rest.trim(), &inner[inner.len() - 1..]),
        None => (left, inner.trim(), ""),
    }
}

enum Tag {
    Instruction(String),
    Print(String),
}

fn instruction(inner: &str) -> Result<Tag, String> {
    let word = inner.split_whitespace().next().unwrap_or_default();
    let rest = inner[word.len()..].trim();
    let text = match word {
        "empty" if rest.is_empty() => "else".to_owned(),
        "trim" if rest.is_empty() => "filter trim".to_owned(),
        "spaceless" if rest.is_empty() => "filter spaceless".to_owned(),
        "endtrim" | "endspaceless" => "endfilter".to_owned(),
        "with" => format!(
            "with {}",
            split(rest, &["&"])
                .iter()
                .map(|part| expression(part))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        "if" | "elif" => format!("{word} {}", logic(rest)),
        "cycle" => {
            let items = expression(rest);
            return Ok(Tag::Print(format!(
                "[{items}][loop.index0 % ([{items}]|length)]"
            )));
        }
        "include" | "extends" | "import" | "from" => {
            return Err(format!("'{word}' is not available: a prompt stands alone"));
        }
        _ => expression(inner),
    };
    Ok(Tag::Instruction(text))
}

fn print(inner: &str) -> String {
    if let [test, choices] = &split(inner, &["??"])[..]
        && let [yes, no] = &split(choices, &["::"])[..]
    {
        let (test, yes, no) = (expression(test), expression(yes), expression(no));
        return format!("({yes}) if ({test}) else ({no})");
    }
    logic(inner)
}

fn logic(text: &str) -> String {
    let either: Vec<String> = split(text, &["||"])
        .iter()
        .map(|part| {
            let both: Vec<String> = split(part, &["&&"])
                .iter()
                .map(|part| expression(part))
                .collect();
            both.join(" and ")
        })
        .collect();
    either.join(" or ")
}

/// Parts of a text between separators that stand outside quotes.
fn split<'a>(text: &'a str, separators: &[&str]) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut from = 0;
    let mut skip = 0;
    for (at, code) in outside_quotes(text) {
        if !code || at < skip {
            continue;
        }
        if let Some(separator) = separators
            .iter()
            .find(|separator| text[at..].starts_with(**separator))
        {
            parts.push(text[from..at].trim());
            from = at + separator.len();
            skip = from;
        }
    }
    parts.push(text[from..].trim());
    parts
}

/// Every character's position and whether it stands outside quotes.
fn outside_quotes(text: &str) -> impl Iterator<Item = (usize, bool)> + '_ {
    let mut quote = None;
    let mut escaped = false;
    text.char_indices().map(move |(at, c)| match quote {
        Some(open) => {
            if escaped {
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if c == open {
                quote = None;
            }
            (at, false)
        }
        None => {
            let opens = c == '"' || c == '\'';
            if opens {
                quote = Some(c);
            }
            (at, !opens)
        }
    })
}

/// Translates the dotted names of an expression.
fn expression(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut name = String::new();
    for (at, code) in outside_quotes(text) {
        let c = text[at..].chars().next().unwrap_or_default();
        if code && (c.is_alphanumeric() || c == '_' || c == '.') {
            name.push(c);
        } else {
            out.push_str(&dotted(&std::mem::take(&mut name)));
            out.push(c);
        }
    }
    out.push_str(&dotted(&name));
    out
}

fn dotted(name: &str) -> String {
    let starts_as_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if !starts_as_name || !name.contains('.') {
        return name.to_owned();
    }
    match name {
        "loop.index" => return "loop.index0".to_owned(),
        "loop.count" => return "loop.index".to_owned(),
        "loop.is_first" => return "loop.first".to_owned(),
        "loop.is_last" => return "loop.last".to_owned(),
        _ => {}
    }
    let mut out = String::new();
    for (at, part) in name.split('.').enumerate() {
        if at == 0 {
            out.push_str(part);
        } else if !part.is_empty() && part.chars().all(|c| c.is_ascii_digit()) {
            out.push_str(&format!("[{part}]"));
        } else {
            out.push('.');
            out.push_str(part);
        }
    }
    out
}
