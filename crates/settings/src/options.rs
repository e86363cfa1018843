//! Declares options: a struct for serde, its defaults, and the listing of its keys, all from one place.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::key::{Bounds, Key};

/// A struct of settings, made by [`options!`](crate::options!).
pub trait Options: Default + Serialize + DeserializeOwned {
    /// Its settings with their defaults, in the order of the fields.
    fn keys() -> Vec<Key>;
}

/// Declares a struct of settings.
///
/// ```text
/// tg_settings::options! {
///     /// What the struct is.
///     pub struct Options {
///         /// What the setting means, with its unit.
///         size: usize = 400, Whole(10..=10_000);
///     }
///     sections {
///         /// Settings below `log.`.
///         log: Log,
///     }
///     given {
///         /// No setting: whoever starts the service says it.
///         data_dir: PathBuf,
///     }
/// }
/// ```
///
/// `sections` and `given` may be left out. Every number says its range as `Whole` or `Number`.
#[macro_export]
macro_rules! options {
    (
        $(#[$about:meta])*
        pub struct $name:ident {
            $( $(#[doc = $doc:literal])+ $(#[serde($($serde:tt)*)])?
               $field:ident : $type:ty = $default:expr $(, $kind:ident($range:expr))? ; )*
        }
        $(sections { $( $(#[doc = $sdoc:literal])+ $section:ident : $options:ty, )* })?
        $(given { $( $(#[doc = $gdoc:literal])+ $given:ident : $gtype:ty, )* })?
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, $crate::serde::Serialize, $crate::serde::Deserialize)]
        #[serde(crate = "tg_settings::serde", default, deny_unknown_fields)]
        pub struct $name {
            $( $(#[doc = $doc])+ $(#[serde($($serde)*)])? pub $field: $type, )*
            $($( $(#[doc = $sdoc])+ pub $section: $options, )*)?
            $($( $(#[doc = $gdoc])+ #[serde(skip)] pub $given: $gtype, )*)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $( $field: $default, )*
                    $($( $section: Default::default(), )*)?
                    $($( $given: Default::default(), )*)?
                }
            }
        }

        impl $crate::Options for $name {
            fn keys() -> Vec<$crate::Key> {
                #[allow(unused_mut, reason = "only options with sections add to it")]
                let mut keys = $crate::listing(&Self::default(), vec![
                    $( (
                        stringify!($field),
                        [$($doc),+].concat(),
                        [$($crate::Bounds::$kind($range))?].into_iter().next(),
                    ), )*
                ]);
                $($( keys.extend(
                    <$options as $crate::Options>::keys()
                        .into_iter()
                        .map(|key| key.within(stringify!($section))),
                ); )*)?
                keys
            }
        }
    };
}

/// A value that is no text, as people write it: JSON has single numbers as double ones, with digits that nobody gave.
pub fn shown(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if value.is_f64() && f64::from(number as f32) == number => {
            format!("{:?}", number as f32)
        }
        _ => value.to_string(),
    }
}

/// The settings that are fields of `defaults`, for [`options!`](crate::options!).
pub fn listing<T: Serialize>(
    defaults: &T,
    fields: Vec<(&'static str, String, Option<Bounds>)>,
) -> Vec<Key> {
    let defaults = serde_json::to_value(defaults).unwrap_or_default();
    let key = |(name, text, bounds): (&str, String, Option<Bounds>)| Key {
        name: name.to_owned(),
        default: match defaults.get(name) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => shown(other),
        },
        bounds,
        text: text.trim().to_owned(),
    };
    fields.into_iter().map(key).collect()
}
