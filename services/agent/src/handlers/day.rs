//! Days as questions name them.

use tg_schemas::{Error, ErrorCode};

use crate::run::day::today;

/// A day that is over, or today, which is what nothing means.
pub(super) fn read(field: &str, asked: &str) -> Result<String, Error> {
    let today = today();
    let shape = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    let why = match asked {
        "" => return Ok(today),
        day if day.len() == today.len() && day.bytes().enumerate().all(shape) => {
            if day <= today.as_str() {
                return Ok(day.to_owned());
            }
            "has not begun yet (days are those of UTC)"
        }
        _ => "must be a date, YYYY-MM-DD",
    };
    Err(Error::new(ErrorCode::BadRequest, format!("{field}: {why}")))
}
