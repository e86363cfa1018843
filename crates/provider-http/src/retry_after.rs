//! The pause that a refusal asks for. Pure: a date is measured from the answer's own.

use std::time::Duration;

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// The pause that the headers of a refusal ask for: `retry-after-ms`, else `Retry-After` in seconds or as a
/// date. `None` if they ask for none or cannot be read.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text("retry-after-ms").and_then(|text| text.parse::<u64>().ok()) {
        return Some(Duration::from_millis(millis));
    }
    let told = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = told.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |text: &str| chrono::DateTime::parse_from_rfc2822(text).ok();
    let span = date(told)? - date(text(DATE.as_str())?)?;
    // A date that has passed asks for no pause.
    Some(span.to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_read_in_every_form() {
        let read = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            retry_after(&headers)
        };
        let now = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        let soon = ("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT");
        let past = ("retry-after", "Wed, 21 Oct 2015 07:27:30 GMT");
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(read(&[now, soon]), Some(Duration::from_secs(30)));
        assert_eq!(read(&[now, past]), Some(Duration::ZERO));
        assert_eq!(read(&[soon]), None, "from when on is not said");
        let both = [now, soon, ("retry-after-ms", "250")];
        assert_eq!(read(&both), Some(Duration::from_millis(250)));
        for odd in ["-1e999", "-1", "soon", "NaN"] {
            assert_eq!(read(&[now, ("retry-after", odd)]), None, "{odd}");
        }
    }
}
