//! Reads options from texts by key. A wrong value is reported, left out and read as its default, so that the next
//! mistake is found as well.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::error::SettingError;
use crate::key::{Bounds, Key};
use crate::near;
use crate::options::Options;

/// What was given, by key: `log.format` → `json`.
pub type Texts = BTreeMap<String, String>;

/// Reads options and reports all mistakes; where there is one, the default is taken.
pub fn read<T: Options>(mut given: Texts) -> (T, Vec<SettingError>) {
    let keys: BTreeMap<String, Key> = T::keys()
        .into_iter()
        .map(|key| (key.name.clone(), key))
        .collect();
    let (known, unknown) = given
        .into_iter()
        .partition(|(key, _): &(String, _)| keys.contains_key(key));
    given = known;
    let unknown: Texts = unknown;
    let mut faults: Vec<SettingError> = unknown
        .keys()
        .map(|key| near::not_there(key, keys.keys()))
        .collect();
    loop {
        let root = SettingDeserializer {
            given: &given,
            keys: &keys,
            key: String::new(),
        };
        match T::deserialize(root) {
            Ok(options) => return (options, faults),
            Err(fault) => {
                let left = given.remove(&fault.key);
                faults.push(fault);
                if left.is_none() {
                    return (T::default(), faults);
                }
            }
        }
    }
}

/// Reads options from environment variables that are named as their keys, in capitals. Others, and empty ones, mean
/// nothing.
pub fn variables<T: Options>(environment: &Texts) -> (T, Vec<SettingError>) {
    let given = |key: Key| {
        let text = environment.get(&key.name.to_uppercase())?;
        (!text.trim().is_empty()).then(|| (key.name, text.clone()))
    };
    let (options, mut faults) = read(T::keys().into_iter().filter_map(given).collect());
    for fault in &mut faults {
        fault.key = fault.key.to_uppercase();
    }
    (options, faults)
}

/// A setting, or a section of them.
struct SettingDeserializer<'a> {
    given: &'a Texts,
    keys: &'a BTreeMap<String, Key>,
    key: String,
}

impl SettingDeserializer<'_> {
    fn text(&self) -> &str {
        self.given.get(&self.key).map_or("", |text| text.trim())
    }

    fn whole(&self) -> Result<u64, SettingError> {
        let within = |number: &u64| match self.bounds() {
            Some(Bounds::Whole(range)) => range.contains(number),
            _ => true,
        };
        self.number("a whole number", within)
    }

    fn fraction(&self) -> Result<f64, SettingError> {
        let within = |number: &f64| match self.bounds() {
            Some(Bounds::Number(range)) => range.contains(number),
            _ => number.is_finite(),
        };
        self.number("a number", within)
    }

    fn number<N: FromStr>(
        &self,
        what: &str,
        within: impl Fn(&N) -> bool,
    ) -> Result<N, SettingError> {
        let number = self.text().parse().ok().filter(within);
        let wanted = || match self.bounds() {
            Some(bounds) => format!("must be {what} from {bounds}"),
            None => format!("must be {what}"),
        };
        number.ok_or_else(|| SettingError::custom(wanted()))
    }

    fn bounds(&self) -> Option<&Bounds> {
        self.keys.get(&self.key)?.bounds.as_ref()
    }

    /// What is below this section, by the next word of the keys.
    fn below(&self) -> impl Iterator<Item = (String, Self)> {
        let start = match self.key.as_str() {
            "" => String::new(),
            section => format!("{section}."),
        };
        let own = self.given.keys().filter_map(|key| key.strip_prefix(&start));
        let words = own.map(|rest| rest.split('.').next().unwrap_or(rest));
        let words: BTreeSet<String> = words.map(str::to_owned).collect();
        let (given, keys) = (self.given, self.keys);
        words.into_iter().map(move |word| {
            let key = format!("{start}{word}");
            (word, SettingDeserializer { given, keys, key })
        })
    }
}

/// What is below a section. Names the setting in what is wrong with it.
struct Section<'a, I> {
    rest: I,
    value: Option<SettingDeserializer<'a>>,
}

impl<'a, 'de, I: Iterator<Item = (String, SettingDeserializer<'a>)>> MapAccess<'de>
    for Section<'a, I>
{
    type Error = SettingError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, SettingError> {
        let Some((word, place)) = self.rest.next() else {
            return Ok(None);
        };
        self.value = Some(place);
        seed.deserialize(word.into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, SettingError> {
        let place = self.value.take();
        let place = place.ok_or_else(|| SettingError::custom("has no value"))?;
        let key = place.key.clone();
        seed.deserialize(place)
            .map_err(|fault| match fault.key.is_empty() {
                true => SettingError::new(key, fault.message),
                false => fault,
            })
    }
}

impl<'de> Deserializer<'de> for SettingDeserializer<'_> {
    type Error = SettingError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingError> {
        visitor.visit_str(self.text())
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingError> {
        match self.text() {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(SettingError::custom("must be true or false")),
        }
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingError> {
        visitor.visit_u64(self.whole()?)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingError> {
        self.deserialize_u64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingError> {
        visitor.visit_f64(self.fraction()?)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, SettingError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SettingError> {
        visitor.visit_enum(self.text().into_deserializer())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SettingError> {
        visitor.visit_map(Section {
            rest: self.below(),
            value: None,
        })
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u128 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Colour {
        Red,
        Blue,
    }

    crate::options! {
        /// All of a toy.
        pub struct Toy {
            /// Its
            /// colour.
            colour: Colour = Colour::Red;
            /// Where it stands.
            at: std::net::SocketAddr = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        }
        sections {
            /// Its wheels.
            wheels: Wheels,
        }
        given {
            /// Whose it is.
            owner: String,
        }
    }

    crate::options! {
        /// Wheels.
        pub struct Wheels {
            /// How many.
            many: u32 = 4, Whole(1..=1_000);
            /// Their size in metres.
            size: f32 = 0.5, Number(0.1..=2.5);
            /// Who made them.
            maker: Option<String> = None;
            /// Whether there is one more.
            spare: bool = true;
        }
    }

    fn toy(pairs: &[(&str, &str)]) -> (Toy, Vec<String>) {
        let own = |(key, text): &(&str, &str)| ((*key).to_owned(), (*text).to_owned());
        let (toy, faults) = read(pairs.iter().map(own).collect());
        (toy, faults.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_is_given_counts_and_the_rest_is_default() {
        let given = [
            ("colour", "blue"),
            ("wheels.many", " 6 "),
            ("wheels.size", "2"),
            ("wheels.maker", "m"),
            ("wheels.spare", "false"),
        ];
        let (read, faults) = toy(&given);
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!(
            (read.colour, read.wheels.many, read.wheels.size),
            (Colour::Blue, 6, 2.0)
        );
        assert_eq!(read.wheels.maker.as_deref(), Some("m"));
        assert!(!read.wheels.spare && toy(&[("wheels.spare", "true")]).0.wheels.spare);
        assert_eq!(toy(&[]), (Toy::default(), vec![]));
    }

    #[test]
    fn every_mistake_is_told_once_with_its_key_and_without_its_value() {
        let (read, faults) = toy(&[
            ("colour", "hidden"),
            ("at", "hidden"),
            ("wheels.many", "0"),
            ("wheels.size", "NaN"),
            ("wheels.maker", "kept"),
            ("wheels.spare", "hidden"),
            ("wheels.spokes", "hidden"),
            ("owner", "hidden"),
            ("wheels", "hidden"),
        ]);
        assert_eq!(
            faults,
            [
                "owner: is not a setting; `threadgraph settings` prints those there are",
                "wheels: is not a setting; `threadgraph settings` prints those there are",
                "wheels.spokes: is not a setting; `threadgraph settings` prints those there are",
                "at: invalid socket address syntax",
                "colour: must be one of red, blue",
                "wheels.many: must be a whole number from 1 to 1,000",
                "wheels.size: must be a number from 0.1 to 2.5",
                "wheels.spare: must be true or false",
            ]
        );
        let (_, faults) = toy(&[
            ("wheels.sparre", "true"),
            ("wheels_many", "3"),
            ("maker", "m"),
        ]);
        let meant = ["wheels.maker", "wheels.spare", "wheels.many"];
        for (fault, meant) in faults.iter().zip(meant) {
            assert!(fault.contains(&format!("did you mean {meant}?")), "{fault}");
        }
        assert_eq!(faults.len(), meant.len());
        assert_eq!(read.wheels.maker.as_deref(), Some("kept"));
    }

    #[test]
    fn keys_have_their_defaults_and_meanings() {
        let keys = Toy::keys();
        let shown: Vec<_> = keys
            .iter()
            .map(|key| (key.name.as_str(), key.default.as_str(), key.meaning()))
            .collect();
        let many = "How many. From 1 to 1,000.".to_owned();
        assert_eq!(shown[0], ("colour", "red", "Its colour.".to_owned()));
        assert_eq!(shown[1].1, "127.0.0.1:1");
        assert_eq!(shown[2], ("wheels.many", "4", many));
        assert_eq!(shown[4], ("wheels.maker", "", "Who made them.".to_owned()));
        assert_eq!(shown[5].1, "true");
        assert_eq!(shown.len(), 6);
    }

    #[test]
    fn variables_are_named_in_capitals() {
        let own = |(key, text): (&str, &str)| (key.to_owned(), text.to_owned());
        let environment = [
            ("MANY", "none"),
            ("SIZE", " "),
            ("MAKER", "m"),
            ("PATH", "/"),
        ];
        let (wheels, faults) = variables::<Wheels>(&environment.map(own).into());
        assert_eq!(
            faults,
            [SettingError::new(
                "MANY",
                "must be a whole number from 1 to 1,000"
            )]
        );
        assert_eq!((wheels.size, wheels.maker.as_deref()), (0.5, Some("m")));
    }
}
