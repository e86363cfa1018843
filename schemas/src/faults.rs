//! The faults of a record's items as one text: each item by its number, as far as an error has room.

/// Most bytes of the text. Clients are shown 1,000 bytes of an error.
const MOST: usize = 800;

/// The faults, such as `values[3].n: must be a number`, with "; " between them, and how many more there are. `None`: there is none.
/// The first is always whole.
pub fn joined(faults: impl IntoIterator<Item = String>) -> Option<String> {
    let mut faults = faults.into_iter();
    let mut text = faults.next()?;
    let mut left_out = 0_usize;
    for fault in faults {
        if left_out == 0 && text.len() + fault.len() <= MOST {
            text.push_str("; ");
            text.push_str(&fault);
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        text.push_str(&format!(" (and {left_out} more)"));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_named_as_far_as_there_is_room() {
        assert_eq!(joined([]), None);
        let faults =
            |count: usize| (0..count).map(|at| format!("values[{at}].n: must be a number"));
        assert_eq!(
            joined(faults(2)).as_deref(),
            Some("values[0].n: must be a number; values[1].n: must be a number")
        );
        let seven = joined(faults(7)).unwrap_or_default();
        assert!(seven.ends_with("values[6].n: must be a number"), "{seven}");
        let many = joined(faults(1_000)).unwrap_or_default();
        assert!(many.len() < 900 && many.ends_with(" more)"), "{many}");
        let told = many.matches("values[").count();
        assert!(
            many.contains(&format!("(and {} more)", 1_000 - told)),
            "{many}"
        );
    }
}
