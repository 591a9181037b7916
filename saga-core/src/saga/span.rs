use std::fmt;
use std::time::Duration;

/// A duration as a person says it: `30 days`, `3 h 40 min`, `1.5s`.
pub(crate) struct Span(pub(crate) Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() || self.0.subsec_nanos() > 0 {
            return write!(f, "{:?}", self.0);
        }
        let mut rest = self.0.as_secs();
        let mut space = "";
        for (unit, seconds) in [("day", 24 * 3_600), ("h", 3_600), ("min", 60), ("s", 1)] {
            let count = rest / seconds;
            rest %= seconds;
            if count > 0 {
                let plural = if unit == "day" && count > 1 { "s" } else { "" };
                write!(f, "{space}{count} {unit}{plural}")?;
                space = " ";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_shown_by_its_largest_units_and_exactly() {
        let shown = |seconds| Span(Duration::from_secs(seconds)).to_string();
        assert_eq!(shown(30 * 86_400), "30 days");
        assert_eq!(shown(86_400 + 3_600), "1 day 1 h");
        assert_eq!(shown(13_200), "3 h 40 min");
        assert_eq!(shown(3_601), "1 h 1 s");
        assert_eq!(shown(0), "0ns");
        assert_eq!(Span(Duration::from_millis(1_500)).to_string(), "1.5s");
    }
}
