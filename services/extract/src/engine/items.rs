//! The items of a model's reply, as the prompt service hands it on or as an agent wrote it. Knows no kind of
//! item.

use serde_json::Value;

/// Most items that one reply can have; the rest counts as bad.
pub const MOST: usize = 2_000;

/// What a reply holds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Items {
    /// Objects, in order.
    pub values: Vec<Value>,
    /// How many lines or values are none.
    pub bad: usize,
}

impl Items {
    /// Adds a value; lists count as their items, and so does an object around nothing but a list.
    fn take(&mut self, value: Value) {
        match value {
            Value::Array(list) => list.into_iter().for_each(|value| self.take(value)),
            Value::Object(mut map) => {
                let around = map.len() == 1 && map.values().all(Value::is_array);
                if around {
                    map.values_mut().for_each(|list| self.take(list.take()));
                } else if self.values.len() < MOST {
                    self.values.push(Value::Object(map));
                } else {
                    self.bad += 1;
                }
            }
            Value::Null => {}
            _ => self.bad += 1,
        }
    }
}

/// Items of a reply that is one JSON value.
pub fn of_json(text: &str) -> Items {
    let mut items = Items::default();
    match serde_json::from_slice(text.as_bytes()) {
        Ok(value) => items.take(value),
        Err(_) => items.bad += 1,
    }
    items
}

/// Items of a reply in running text: JSON as a whole or a line at a time, whatever is around it.
pub fn of_text(text: &str) -> Items {
    let read = tg_replies::lines(text);
    let mut items = Items {
        bad: read.bad,
        ..Items::default()
    };
    read.values.into_iter().for_each(|value| items.take(value));
    items
}

/// The first of the fields that is there and not null.
pub fn field<'a>(item: &'a Value, names: &[&str]) -> Option<&'a Value> {
    names
        .iter()
        .find_map(|name| item.get(*name))
        .filter(|value| !value.is_null())
}

/// A field as text: a text itself, numbers and truth values as they are written. `None` for anything else.
pub fn text(item: &Value, names: &[&str]) -> Option<String> {
    match field(item, names)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_come_in_many_forms() {
        let (one, two) = (json!({"n": 1}), json!({"n": 2}));
        for text in [
            r#"[{"n": 1}, {"n": 2}]"#,
            "{\"n\": 1}\n{\"n\": 2}\n",
            "```json\n[{\"n\": 1},\n{\"n\": 2}]\n```",
            "Here they are:\n```\n{\"n\": 1}\n\n{\"n\": 2},\n```\nDone.",
            r#"{"items": [{"n": 1}, [{"n": 2}], null]}"#,
        ] {
            let items = of_text(text);
            assert_eq!(items.values, [one.clone(), two.clone()], "{text}");
            assert_eq!(items.bad, 0, "{text}");
        }
        let items = of_text("{\"n\": 1}\nsure!\n3\n{\"n\": ");
        assert_eq!((items.values.len(), items.bad), (1, 3));
        assert_eq!(of_text(""), Items::default());
        assert_eq!(of_json("[]"), Items::default());
        assert_eq!(of_json("no").bad, 1);
    }

    #[test]
    fn a_flood_is_cut() {
        let many = vec![json!({"n": 1}); MOST + 5];
        let items = of_json(&json!(many).to_string());
        assert_eq!((items.values.len(), items.bad), (MOST, 5));
    }

    #[test]
    fn fields_are_read_as_text() {
        let item = json!({"a": "x", "b": 3.5, "c": true, "d": null, "e": []});
        let texts = ["a", "b", "c", "d", "e", "f"].map(|name| text(&item, &[name]));
        let expected = [Some("x"), Some("3.5"), Some("true"), None, None, None];
        assert_eq!(texts, expected.map(|text| text.map(str::to_owned)));
    }
}
