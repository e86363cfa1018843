//! The dialect as published packs use it, and the bounds.

use serde_json::{Value, json};

use super::{Engine, TemplateError};

fn render(source: &str, values: Value) -> Result<String, TemplateError> {
    let mut engine = Engine::default();
    engine.add("t", source)?;
    engine.render("t", values.as_object().cloned().unwrap_or_default())
}

#[test]
fn the_dialect_renders_as_its_packs_expect() {
    let values = json!({
        "name": "Ada <b>", "none": null, "n": 3, "empty": [], "flag": true,
        "tools": [{"name": "z", "arguments": {"q": "1", "a": "2"}}, {"name": "y", "arguments": {}}],
        "deep": {"list": [["x", "y"], ["z"]]},
    });
    for (source, expected) in [
        (
            "{{ name }}|{{ missing }}|{{ missing.a.b }}|{{ none }}",
            "Ada <b>|||",
        ),
        (
            "{% for t in tools %}{{ loop.index }}{{ loop.count }}{{ t.name }}{% if not loop.is_last %}, {% endif %}{% endfor %}",
            "01z, 12y",
        ),
        (
            "{% for x in empty %}x{% empty %}nothing{% endfor %}",
            "nothing",
        ),
        (
            "{% for x in missing %}x{% empty %}nothing{% endfor %}",
            "nothing",
        ),
        (
            "{% for k, v in tools.0.arguments.items() %}{{ k }}={{ v }};{% endfor %}",
            "q=1;a=2;",
        ),
        ("[{% trim %}  a  {% endtrim %}]", "[a]"),
        (
            "{% spaceless %} <a> <b> x </b> {% endspaceless %}",
            "<a><b> x </b>",
        ),
        (
            "{% with a = name & b = n %}{{ a }}{{ b }}{% endwith %}",
            "Ada <b>3",
        ),
        (
            "{% for t in tools %}{% cycle 'odd', 'even' %} {% endfor %}",
            "odd even ",
        ),
        ("{{ missing or name }}{{ missing || 'x' }}", "Ada <b>x"),
        ("{{ flag ?? 'yes' :: 'no' }}", "yes"),
        ("{$ name $} costs {$5", "Ada &lt;b&gt; costs {$5"),
        (
            "{{ deep.list.0.1 }}{{ deep.list.1.0 }}{{ deep.list.7.0 }}",
            "yz",
        ),
        (
            "{% if flag && n == 3 || missing %}a{% elif name %}b{% else %}c{% endif %}",
            "a",
        ),
        (
            "{% if none %}a{% else %}b{% endif %}{# a comment {{ x }} #}",
            "b",
        ),
        (
            "{{ 'a.0.b || c' }}{{ \"it's ?? :: \" }}",
            "a.0.b || cit's ?? :: ",
        ),
        ("{% raw %}{{ x || y }}{% endraw %}", "{{ x || y }}"),
        ("a\n{%- if flag -%} b {%- endif %}\n", "ab\n"),
        ("{ \"json\": {} }", "{ \"json\": {} }"),
    ] {
        assert_eq!(
            render(source, values.clone()).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
}

#[test]
fn filters_work_and_never_fail_on_what_is_missing() {
    for (source, expected) in [
        ("{{ 'abcdefgh'|truncatechars(6) }}", "abc..."),
        ("{{ 'a b c'|truncatewords(2) }}", "a b [...]"),
        (
            "{{ l|join(', ') }} {{ l|len }} {{ l|first }}{{ l|last }}",
            "a, b, c 3 ac",
        ),
        ("{{ l|slice(1)|join }}{{ 'hello'|slice(1, -1) }}", "bcell"),
        (
            "{{ ''|default('d') }}{{ x|if_undefined('u') }}{{ x|is_defined }}",
            "duFalse",
        ),
        (
            "{{ \"it's ok\"|title }}{{ l|index(1) }}{{ 'x'|wrap('p') }}",
            "It's Okb<p>x</p>",
        ),
        (
            "{{ '<b>x</b>'|striptags }}{{ 4|even }}{{ 'Ab'|upper|lower }}",
            "xTrueab",
        ),
    ] {
        assert_eq!(
            render(source, json!({"l": ["a", "b", "c"]})).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
    for filter in [
        "upper",
        "lower",
        "title",
        "join",
        "join(', ')",
        "length",
        "len",
        "first",
        "last",
        "trim",
        "escape",
        "e",
        "default('')",
        "slice(1)",
        "truncatechars(3)",
        "truncatewords(3)",
        "striptags",
        "spaceless",
        "reverse",
        "sort",
        "unique",
        "list",
        "items",
        "dictsort",
        "replace('a', 'b')",
        "split",
        "lines",
        "round",
        "abs",
        "int",
        "float",
        "min",
        "max",
        "sum",
        "batch(2)",
        "indent(2)",
        "string",
        "bool",
        "pprint",
        "attr('x')",
        "groupby('x')",
        "map('upper')",
        "select",
        "reject",
        "index(0)",
        "wrap('b')",
        "startswith('a')",
        "even",
        "tojson",
        "format",
        "chain",
        "zip",
        "teaser",
    ] {
        for value in ["missing", "none"] {
            let source = format!("{{{{ {value}|{filter} }}}}");
            let rendered = render(&source, json!({"none": null}));
            assert!(rendered.is_ok(), "{source}: {rendered:?}");
        }
    }
}

#[test]
fn faults_name_their_line_and_reach_nothing() {
    for (source, line) in [
        ("a\n{% if %}", 2),
        ("a\n\n{{ x", 3),
        ("{% include 'secret' %}", 1),
        ("{% extends 'base' %}", 1),
        ("{% for x in %}{% endfor %}", 1),
        ("{{ x|nofilter }}", 1),
    ] {
        match render(source, json!({})) {
            Err(TemplateError::Syntax { line: found, .. }) => assert_eq!(found, line, "{source}"),
            Err(TemplateError::Render(why)) => assert!(why.contains("filter"), "{source}: {why}"),
            other => panic!("{source}: {other:?}"),
        }
    }
}

/// The smallest number has no quotient by -1.
#[test]
fn every_number_is_divided() {
    let divided = |by: i64| {
        let source = format!("{{{{ n|divisible_by({by}) }}}}");
        render(&source, json!({"n": i64::MIN}))
    };
    for (by, expected) in [(-1, "True"), (2, "True"), (3, "False"), (0, "False")] {
        assert_eq!(divided(by).as_deref(), Ok(expected), "{by}");
    }
}

#[test]
fn work_and_size_are_bounded() {
    let endless = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
    assert_eq!(render(endless, json!({})), Err(TemplateError::TooLarge));
    let wide = "{% for a in range(99) %}{{ x }}{% endfor %}";
    let values = json!({"x": "y".repeat(1 << 20)});
    assert_eq!(render(wide, values), Err(TemplateError::TooLarge));
    for number in ["99999999999", "18446744073709551615"] {
        for source in [
            format!("{{{{ '%{number}d'|format(1) }}}}"),
            format!("{{{{ '%d%% %(a).{number}f'|format(1) }}}}"),
            format!("{{{{ l|batch({number}, 0) }}}}"),
            format!("{{{{ l|tojson({number}) }}}}"),
            format!("{{{{ l|tojson(indent={number}) }}}}"),
        ] {
            let rendered = render(&source, json!({"l": [1]}));
            assert_eq!(rendered, Err(TemplateError::TooLarge), "{source}");
        }
    }
    let narrow = "{{ '%4d %.1f%% of 70000'|format(1, 2.0) }}{{ l|batch(2, 0) }}{{ l|tojson }}";
    let rendered = render(narrow, json!({"l": [1]}));
    assert_eq!(rendered.as_deref(), Ok("   1 2.0% of 70000[[1, 0]][1]"));
    let long = "x".repeat(super::SOURCE + 1);
    assert_eq!(render(&long, json!({})), Err(TemplateError::TooLarge));
}
