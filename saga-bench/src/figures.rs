//! What was measured, and how it is told.

/// The steps a second of one contender, one value a round.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) name: String,
    pub(crate) steps_per_second: Vec<f64>,
}

impl Figures {
    pub(crate) fn of(name: impl Into<String>) -> Self {
        Self { name: name.into(), steps_per_second: Vec::new() }
    }

    pub(crate) fn median(&self) -> f64 {
        median(&self.steps_per_second)
    }

    /// How many times faster than `floor`: the median over the rounds, so that a slow moment of the machine hits both sides.
    pub(crate) fn ratio_to(&self, floor: &Self) -> f64 {
        let rounds = self.steps_per_second.iter().zip(&floor.steps_per_second);
        median(&rounds.map(|(own, floor)| own / floor).collect::<Vec<_>>())
    }

    pub(crate) fn row(&self) -> String {
        let (least, most) = self.range();
        format!("{:<44} {:>12.0}   [{least:.0} to {most:.0}]", self.name, self.median())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        let (least, most) = self.range();
        serde_json::json!({
            "figure": self.name, "unit": "steps/s", "rounds": self.steps_per_second.len(),
            "median": self.median().round(), "min": least.round(), "max": most.round(),
        })
    }

    fn range(&self) -> (f64, f64) {
        let least = self.steps_per_second.iter().copied().fold(f64::INFINITY, f64::min);
        let most = self.steps_per_second.iter().copied().fold(0.0, f64::max);
        (least, most)
    }
}

/// Prints figures: as a table, or one JSON object a line.
pub(crate) fn print_table(figures: &[&Figures], is_json: bool) {
    if !is_json {
        println!("{:<44} {:>12}", "", "steps/s");
    }
    for figures in figures {
        if is_json {
            println!("{}", figures.json());
        } else {
            println!("{}", figures.row());
        }
    }
}

/// A ratio that must be reached.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) wanted: f64,
    pub(crate) measured: f64,
}

impl Target {
    pub(crate) fn is_reached(&self) -> bool {
        self.measured >= self.wanted
    }

    pub(crate) fn row(&self) -> String {
        let verdict = if self.is_reached() { "reached" } else { "NOT REACHED" };
        format!("{:<44} {:>12.2}   target {:.2}: {verdict}", self.name, self.measured, self.wanted)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "figure": self.name, "unit": "ratio", "median": (self.measured * 100.0).round() / 100.0,
            "target": (self.wanted * 100.0).round() / 100.0, "reached": self.is_reached(),
        })
    }
}

fn median(values: &[f64]) -> f64 {
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
    use super::{Figures, Target};

    #[test]
    fn a_ratio_compares_round_by_round() {
        let fast = Figures { name: "fast".into(), steps_per_second: vec![60.0, 6.0, 30.0] };
        let floor = Figures { name: "floor".into(), steps_per_second: vec![10.0, 1.0, 10.0] };
        assert!((fast.ratio_to(&floor) - 6.0).abs() < 1e-9);
        assert!((fast.median() - 30.0).abs() < 1e-9);
    }

    #[test]
    fn a_target_is_reached_or_not() {
        assert!(Target { name: "a", wanted: 6.0, measured: 6.0 }.is_reached());
        assert!(!Target { name: "a", wanted: 6.0, measured: 5.99 }.is_reached());
    }
}
