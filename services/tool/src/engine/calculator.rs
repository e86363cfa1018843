//! Arithmetic on text: numbers, `+ - * / % ^`, parentheses and a few functions. Bounded in length and
//! depth; never runs anything else.
//!
//! ```
//! use tg_tool::engine::calculator::{evaluate, show};
//!
//! assert_eq!(show(evaluate("(3 + 4) * 2^3 - sqrt(16)").unwrap()), "52");
//! assert_eq!(evaluate("1 / 0").unwrap_err().to_string(), "division by zero");
//! ```

/// Longest expression in bytes.
const MAX_LENGTH: usize = 4096;
/// Deepest nesting.
const MAX_DEPTH: usize = 64;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum EvaluationError {
    /// Nothing to work out.
    #[error("the expression is empty")]
    Empty,
    /// Longer than `MAX_LENGTH`.
    #[error("the expression is too long")]
    TooLong,
    /// Nested deeper than `MAX_DEPTH`.
    #[error("the expression is nested too deeply")]
    TooDeep,
    /// Something that does not belong there.
    #[error("unexpected '{0}' at position {1}")]
    Unexpected(char, usize),
    /// It stops too early.
    #[error("the expression is not complete")]
    Incomplete,
    /// Not a number.
    #[error("'{0}' is not a number")]
    Number(String),
    /// Neither function nor constant.
    #[error("'{0}' is not known; there are: {KNOWN}")]
    Unknown(String),
    /// A function with the wrong number of arguments.
    #[error("{0} takes {1}")]
    Arguments(String, &'static str),
    /// Division, or remainder, by zero.
    #[error("division by zero")]
    Zero,
    /// Overflow, or outside a function's domain.
    #[error("the result is not a finite real number")]
    NotFinite,
}

const KNOWN: &str =
    "sqrt, abs, round, floor, ceil, min, max, ln, log, log2, exp, sin, cos, tan, pi, e";

/// The value of an expression.
///
/// # Errors
/// What cannot be read, is too long or too deep, or has no finite value.
pub fn evaluate(expression: &str) -> Result<f64, EvaluationError> {
    if expression.len() > MAX_LENGTH {
        return Err(EvaluationError::TooLong);
    }
    let mut reader = Reader {
        chars: expression.chars().collect(),
        at: 0,
        depth: 0,
    };
    if reader.peek().is_none() {
        return Err(EvaluationError::Empty);
    }
    let value = reader.sum()?;
    match reader.peek() {
        None => finite(value),
        Some(c) => Err(EvaluationError::Unexpected(c, reader.at + 1)),
    }
}

/// A value as text: whole numbers without a point, others without the noise of binary fractions.
pub fn show(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let rounded: f64 = format!("{value:.14e}").parse().unwrap_or(value);
    let magnitude = rounded.abs();
    if (1e-6..1e15).contains(&magnitude) {
        rounded.to_string()
    } else {
        format!("{rounded:e}")
    }
}

fn finite(value: f64) -> Result<f64, EvaluationError> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(EvaluationError::NotFinite)
    }
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

impl Reader {
    /// The next character that is not white space.
    fn peek(&mut self) -> Option<char> {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.chars.get(self.at).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, wanted: char) -> Result<(), EvaluationError> {
        if self.take(wanted) {
            return Ok(());
        }
        Err(match self.peek() {
            Some(c) => EvaluationError::Unexpected(c, self.at + 1),
            None => EvaluationError::Incomplete,
        })
    }

    fn sum(&mut self) -> Result<f64, EvaluationError> {
        let mut value = self.product()?;
        loop {
            if self.take('+') {
                value += self.product()?;
            } else if self.take('-') || self.take('−') {
                value -= self.product()?;
            } else {
                return finite(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, EvaluationError> {
        let mut value = self.signed()?;
        loop {
            if self.starts_power() {
                // `a ** b` was read by `power` already; here it is an operator without left side.
                return Err(EvaluationError::Unexpected('*', self.at + 1));
            }
            if self.take('*') || self.take('×') || self.take('·') {
                value *= self.signed()?;
            } else if self.take('/') || self.take('÷') {
                value /= nonzero(self.signed()?)?;
            } else if self.take('%') {
                value %= nonzero(self.signed()?)?;
            } else {
                return finite(value);
            }
        }
    }

    fn signed(&mut self) -> Result<f64, EvaluationError> {
        let mut negative = false;
        loop {
            if self.take('-') || self.take('−') {
                negative = !negative;
            } else if !self.take('+') {
                break;
            }
        }
        let value = self.power()?;
        Ok(if negative { -value } else { value })
    }

    /// Binds tighter than a sign before it, and to the right: `-2^2` is -4, `2^3^2` is 512.
    fn power(&mut self) -> Result<f64, EvaluationError> {
        let base = self.atom()?;
        let raised = if self.starts_power() {
            self.at += 2;
            true
        } else {
            self.take('^')
        };
        if !raised {
            return Ok(base);
        }
        let exponent = self.deeper(Self::signed)?;
        if base == 0.0 && exponent < 0.0 {
            return Err(EvaluationError::Zero);
        }
        finite(base.powf(exponent))
    }

    fn starts_power(&mut self) -> bool {
        self.peek() == Some('*') && self.chars.get(self.at + 1) == Some(&'*')
    }

    fn atom(&mut self) -> Result<f64, EvaluationError> {
        match self.peek() {
            None => Err(EvaluationError::Incomplete),
            Some('(') => {
                self.at += 1;
                let value = self.deeper(Self::sum)?;
                self.expect(')')?;
                Ok(value)
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_alphabetic() => self.named(),
            Some('π') => {
                self.at += 1;
                Ok(std::f64::consts::PI)
            }
            Some(c) => Err(EvaluationError::Unexpected(c, self.at + 1)),
        }
    }

    fn number(&mut self) -> Result<f64, EvaluationError> {
        let start = self.at;
        let digit =
            |c: Option<&char>| c.is_some_and(|c| c.is_ascii_digit() || matches!(c, '.' | '_'));
        while digit(self.chars.get(self.at)) {
            self.at += 1;
        }
        if matches!(self.chars.get(self.at), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.chars.get(self.at + 1), Some('+' | '-')));
            if self
                .chars
                .get(self.at + 1 + sign)
                .is_some_and(char::is_ascii_digit)
            {
                self.at += 2 + sign;
                while self.chars.get(self.at).is_some_and(char::is_ascii_digit) {
                    self.at += 1;
                }
            }
        }
        let text: String = self.chars[start..self.at]
            .iter()
            .filter(|c| **c != '_')
            .collect();
        text.parse().map_err(|_| EvaluationError::Number(text))
    }

    fn named(&mut self) -> Result<f64, EvaluationError> {
        let start = self.at;
        while self.chars.get(self.at).is_some_and(|c| c.is_alphanumeric()) {
            self.at += 1;
        }
        let name: String = self.chars[start..self.at]
            .iter()
            .collect::<String>()
            .to_lowercase();
        match name.as_str() {
            "pi" | "π" => return Ok(std::f64::consts::PI),
            "e" => return Ok(std::f64::consts::E),
            _ => {}
        }
        if !self.take('(') {
            return Err(EvaluationError::Unknown(name));
        }
        let arguments = self.deeper(Self::arguments)?;
        apply(name, &arguments)
    }

    fn arguments(&mut self) -> Result<Vec<f64>, EvaluationError> {
        let mut values = Vec::new();
        if self.take(')') {
            return Ok(values);
        }
        loop {
            values.push(self.sum()?);
            if !self.take(',') {
                self.expect(')')?;
                return Ok(values);
            }
        }
    }

    fn deeper<T>(
        &mut self,
        inner: fn(&mut Self) -> Result<T, EvaluationError>,
    ) -> Result<T, EvaluationError> {
        if self.depth >= MAX_DEPTH {
            return Err(EvaluationError::TooDeep);
        }
        self.depth += 1;
        let value = inner(self);
        self.depth -= 1;
        value
    }
}

fn nonzero(value: f64) -> Result<f64, EvaluationError> {
    if value == 0.0 {
        Err(EvaluationError::Zero)
    } else {
        Ok(value)
    }
}

fn apply(name: String, values: &[f64]) -> Result<f64, EvaluationError> {
    let value = match (name.as_str(), values) {
        ("sqrt", [x]) => x.sqrt(),
        ("abs", [x]) => x.abs(),
        ("round", [x]) => x.round(),
        ("round", [x, digits]) => {
            let scale = 10_f64.powf(digits.round());
            (x * scale).round() / scale
        }
        ("floor", [x]) => x.floor(),
        ("ceil", [x]) => x.ceil(),
        ("ln", [x]) => x.ln(),
        ("log" | "log10", [x]) => x.log10(),
        ("log", [x, base]) => x.log(*base),
        ("log2", [x]) => x.log2(),
        ("exp", [x]) => x.exp(),
        ("sin", [x]) => x.sin(),
        ("cos", [x]) => x.cos(),
        ("tan", [x]) => x.tan(),
        ("min", [first, rest @ ..]) => rest.iter().fold(*first, |a, b| a.min(*b)),
        ("max", [first, rest @ ..]) => rest.iter().fold(*first, |a, b| a.max(*b)),
        ("min" | "max", []) => {
            return Err(EvaluationError::Arguments(name, "at least one argument"));
        }
        ("round" | "log", _) => {
            return Err(EvaluationError::Arguments(name, "one or two arguments"));
        }
        (
            "sqrt" | "abs" | "floor" | "ceil" | "ln" | "log10" | "log2" | "exp" | "sin" | "cos"
            | "tan",
            _,
        ) => {
            return Err(EvaluationError::Arguments(name, "one argument"));
        }
        _ => return Err(EvaluationError::Unknown(name)),
    };
    finite(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        evaluate(text).map_or_else(|fault| fault.to_string(), show)
    }

    #[test]
    fn expressions_have_their_usual_value() {
        for (text, value) in [
            ("1+2*3", "7"),
            ("(1 + 2) * 3", "9"),
            ("2^3^2", "512"),
            ("2**10", "1024"),
            ("-2^2", "-4"),
            ("2^-1", "0.5"),
            ("--3", "3"),
            ("10 % 4", "2"),
            ("7/2", "3.5"),
            ("0.1 + 0.2", "0.3"),
            ("1e3 + 1_000", "2000"),
            ("2e", "unexpected 'e' at position 2"),
            ("max(1, 2, sqrt(9))", "3"),
            ("round(2.345, 2)", "2.35"),
            ("log(1000)", "3"),
            ("sin(0) + cos(0)", "1"),
            ("2 * PI", "6.28318530717959"),
            ("1/3", "0.333333333333333"),
            ("10^20", "1e20"),
            ("6 × 7 ÷ 2", "21"),
            ("5 - 5", "0"),
        ] {
            assert_eq!(shown(text), value, "{text}");
        }
    }

    #[test]
    fn faults_say_what_is_wrong() {
        for (text, fault) in [
            ("", "the expression is empty"),
            ("1 +", "the expression is not complete"),
            ("(1", "the expression is not complete"),
            ("1)", "unexpected ')' at position 2"),
            ("2 $ 3", "unexpected '$' at position 3"),
            ("1.2.3", "'1.2.3' is not a number"),
            ("1/(2-2)", "division by zero"),
            ("5 % 0", "division by zero"),
            ("0^-1", "division by zero"),
            ("sqrt(-1)", "the result is not a finite real number"),
            ("10^400", "the result is not a finite real number"),
            ("sqrt(1, 2)", "sqrt takes one argument"),
            ("min()", "min takes at least one argument"),
        ] {
            assert_eq!(shown(text), fault, "{text}");
        }
        assert!(shown("import(1)").starts_with("'import' is not known"));
    }

    #[test]
    fn hostile_expressions_are_bounded() {
        assert_eq!(evaluate(&"(".repeat(4000)), Err(EvaluationError::TooDeep));
        assert_eq!(evaluate(&"2^".repeat(2000)), Err(EvaluationError::TooDeep));
        assert_eq!(
            evaluate(&"-".repeat(4000)),
            Err(EvaluationError::Incomplete)
        );
        assert_eq!(evaluate(&"1+".repeat(4000)), Err(EvaluationError::TooLong));
    }
}
