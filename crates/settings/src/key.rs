//! A setting as the listing and the page show it.

use std::fmt::{self, Display};
use std::ops::RangeInclusive;

/// The values that a number may have.
#[derive(Debug, Clone, PartialEq)]
pub enum Bounds {
    /// Whole numbers.
    Whole(RangeInclusive<u64>),
    /// Numbers.
    Number(RangeInclusive<f64>),
}

impl Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(range) => {
                let (least, most) = (grouped(*range.start()), grouped(*range.end()));
                write!(f, "{least} to {most}")
            }
            Self::Number(range) => write!(f, "{} to {}", range.start(), range.end()),
        }
    }
}

/// A whole number as people read it: 1,024.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Name as in a file, e.g. `log.format`.
    pub name: String,
    /// Default, as text.
    pub default: String,
    /// The values that it may have, if it is a number.
    pub bounds: Option<Bounds>,
    /// What it means, with its unit.
    pub text: String,
}

impl Key {
    /// The same setting within a section.
    #[must_use]
    pub fn within(mut self, section: &str) -> Self {
        self.name = format!("{section}.{}", self.name);
        self
    }

    /// What it means, with the values that it may have.
    pub fn meaning(&self) -> String {
        match &self.bounds {
            Some(bounds) => format!("{} From {bounds}.", self.text),
            None => self.text.clone(),
        }
    }
}

/// A setting that was left open, as it is filled in by what the environment says or by what is usual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filled {
    /// Its name, without its section.
    pub name: &'static str,
    /// What counts; a secret as stars.
    pub value: String,
    /// The variable, or the other setting, that says so; `None`: it is the usual value.
    pub by: Option<&'static str>,
}
