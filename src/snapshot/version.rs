//! How resource versions compare.

use std::cmp::Ordering;

/// Compares two resource versions: decimal numbers of any length. `None` where one is no
/// number, and nothing can be told.
pub(crate) fn compare(left: &str, right: &str) -> Option<Ordering> {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !number(left) || !number(right) {
        return None;
    }
    let (left, right) = (left.trim_start_matches('0'), right.trim_start_matches('0'));
    Some(left.len().cmp(&right.len()).then_with(|| left.cmp(right)))
}

/// True if `left` is certainly older than `right`.
pub(crate) fn older(left: &str, right: &str) -> bool {
    compare(left, right) == Some(Ordering::Less)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length() {
        assert!(older("9", "10"));
        assert!(older("99999999999999999999999", "100000000000000000000000"));
        assert!(!older("10", "9"));
        assert_eq!(compare("007", "7"), Some(Ordering::Equal));
        assert_eq!(compare("0", "00"), Some(Ordering::Equal));
    }

    #[test]
    fn nothing_is_told_of_what_is_no_number() {
        for (left, right) in [("", "1"), ("a", "1"), ("1", "-1"), ("1.0", "2")] {
            assert_eq!(compare(left, right), None);
            assert!(!older(left, right) && !older(right, left));
        }
    }
}
