//! What was measured, and how it is told.

use crate::line::Line;

/// What is done a second.
const STEPS: &str = "steps/s";
const REQUESTS: &str = "requests/s";
const MESSAGES: &str = "messages/s";
const OPERATIONS: &str = "operations/s";
const SAGAS: &str = "sagas/s";
const PAIRS: &str = "pairs/s";
const MILLISECONDS: &str = "ms";
const MICROSECONDS: &str = "us";
/// Processor time.
const CPU: &str = "cpu ms/step";

/// What one contender reached, one value a round.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) name: String,
    unit: &'static str,
    pub(crate) values: Vec<f64>,
}

impl Figures {
    pub(crate) fn of_steps(name: impl Into<String>) -> Self {
        Self::of(name, STEPS)
    }

    pub(crate) fn of_requests(name: impl Into<String>) -> Self {
        Self::of(name, REQUESTS)
    }

    pub(crate) fn of_operations(name: impl Into<String>) -> Self {
        Self::of(name, OPERATIONS)
    }

    pub(crate) fn of_messages(name: impl Into<String>) -> Self {
        Self::of(name, MESSAGES)
    }

    pub(crate) fn of_sagas(name: impl Into<String>) -> Self {
        Self::of(name, SAGAS)
    }

    pub(crate) fn of_pairs(name: impl Into<String>) -> Self {
        Self::of(name, PAIRS)
    }

    pub(crate) fn of_microseconds(name: impl Into<String>) -> Self {
        Self::of(name, MICROSECONDS)
    }

    pub(crate) fn of_milliseconds(name: impl Into<String>) -> Self {
        Self::of(name, MILLISECONDS)
    }

    pub(crate) fn of_cpu(name: impl Into<String>) -> Self {
        Self::of(name, CPU)
    }

    fn of(name: impl Into<String>, unit: &'static str) -> Self {
        Self { name: name.into(), unit, values: Vec::new() }
    }

    pub(crate) fn median(&self) -> f64 {
        median(&self.values)
    }

    /// How many times faster than `floor`: the median over the rounds, so that a slow moment of the machine hits both sides.
    pub(crate) fn ratio_to(&self, floor: &Self) -> f64 {
        let rounds = self.values.iter().zip(&floor.values);
        median(&rounds.map(|(own, floor)| own / floor).collect::<Vec<_>>())
    }

    pub(crate) fn row(&self) -> String {
        let (least, most) = self.range();
        let digits = self.digits();
        format!("{:<44} {:>12.digits$}   [{least:.digits$} to {most:.digits$}]", self.name, self.median())
    }

    /// How many digits of a value mean something.
    fn digits(&self) -> usize {
        match self.unit {
            MILLISECONDS => 2,
            CPU => 3,
            _ => 0,
        }
    }

    fn range(&self) -> (f64, f64) {
        let least = self.values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.values.iter().copied().fold(0.0, f64::max);
        (least, most)
    }
}

/// Prints figures of one unit as a table.
pub(crate) fn print_table(figures: &[&Figures]) {
    println!("{:<44} {:>12}", "", figures.first().map_or("", |figures| figures.unit));
    for figures in figures {
        println!("{}", figures.row());
    }
}

/// A value or a ratio that must be reached.
#[derive(Debug)]
pub(crate) struct Target {
    name: String,
    wanted: f64,
    measured: f64,
    is_less_better: bool,
}

impl Target {
    pub(crate) fn at_least(name: impl Into<String>, wanted: f64, measured: f64) -> Self {
        Self { name: name.into(), wanted, measured, is_less_better: false }
    }

    pub(crate) fn at_most(name: impl Into<String>, wanted: f64, measured: f64) -> Self {
        Self { is_less_better: true, ..Self::at_least(name, wanted, measured) }
    }

    pub(crate) fn is_reached(&self) -> bool {
        if self.is_less_better { self.measured <= self.wanted } else { self.measured >= self.wanted }
    }

    /// Prints it below the table, or as a line of JSON.
    pub(crate) fn print(&self, bench: &str, is_json: bool) {
        let Self { name, measured, .. } = self;
        let wanted = (self.wanted * 1e3).round() / 1e3;
        let bound = format!("{} {wanted}", if self.is_less_better { "<=" } else { ">=" });
        if is_json {
            println!("{}", Line::of_target(bench, name, *measured, &bound, self.is_reached()));
        } else {
            let verdict = if self.is_reached() { "reached" } else { "NOT REACHED" };
            println!("{name:<44} {measured:>12.2}   target {bound}: {verdict}");
        }
    }
}

/// The value below which `share` of the values lie: 0.5 is the median.
pub(crate) fn percentile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    #[expect(clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "a benchmark has few values")]
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}

/// The middle one of the values, or between the two in the middle.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::{Figures, STEPS, Target, percentile};

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let values: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let of = |share| percentile(&values, share).to_string();
        assert_eq!([of(0.5), of(0.99), of(0.0), of(1.0)], ["100", "198", "1", "200"]);
        assert!(percentile(&[], 0.5).is_nan());
    }

    #[test]
    fn a_ratio_compares_round_by_round() {
        let fast = Figures { name: "fast".into(), unit: STEPS, values: vec![60.0, 6.0, 30.0] };
        let floor = Figures { name: "floor".into(), unit: STEPS, values: vec![10.0, 1.0, 10.0] };
        assert!((fast.ratio_to(&floor) - 6.0).abs() < 1e-9);
        assert!((fast.median() - 30.0).abs() < 1e-9);
    }

    #[test]
    fn a_target_is_reached_or_not() {
        assert!(Target::at_least("a", 6.0, 6.0).is_reached() && Target::at_most("a", 6.0, 6.0).is_reached());
        assert!(!Target::at_least("a", 6.0, 5.99).is_reached() && !Target::at_most("a", 6.0, 6.01).is_reached());
        assert!(
            !Target::at_least("a", 6.0, f64::NAN).is_reached() && !Target::at_most("a", 6.0, f64::NAN).is_reached()
        );
    }
}
