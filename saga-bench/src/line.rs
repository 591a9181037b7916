//! One line of JSON for each figure and for each target: all benchmarks have the same shape.

use std::fmt;

use serde_json::{Value, json};

/// What was measured: `{"bench":"postgres","work":"W","in_flight":64,"subject":"saga",..}`, its members in their order.
#[derive(Debug)]
pub(crate) struct Line(Vec<(&'static str, Value)>);

impl Line {
    /// What one contender reached with one work.
    pub(crate) fn of(bench: &str, work: &str, in_flight: u32, subject: &str) -> Self {
        let line = Self(vec![("bench", json!(bench)), ("work", json!(work))]);
        line.with("in_flight", json!(in_flight)).with("subject", json!(subject))
    }

    /// What was measured of a target, which is reached or not.
    pub(crate) fn of_target(bench: &str, target: &str, measured: f64, bound: &str, is_reached: bool) -> Self {
        let line = Self(vec![("bench", json!(bench)), ("target", json!(target))]);
        line.number("measured", measured, 3).with("bound", json!(bound)).with("reached", json!(is_reached))
    }

    pub(crate) fn with(mut self, name: &'static str, value: Value) -> Self {
        self.0.push((name, value));
        self
    }

    /// A value with so many digits behind the point.
    pub(crate) fn number(self, name: &'static str, value: f64, digits: i32) -> Self {
        self.with(name, rounded(value, digits))
    }

    /// A value that not every contender has.
    pub(crate) fn number_if_any(self, name: &'static str, value: Option<f64>, digits: i32) -> Self {
        match value {
            Some(value) => self.number(name, value, digits),
            None => self,
        }
    }

    /// How many times as fast as others, by their names.
    pub(crate) fn ratios(self, ratios: impl IntoIterator<Item = (String, f64)>) -> Self {
        let ratios = ratios.into_iter().map(|(to, ratio)| (to, rounded(ratio, 4)));
        self.with("ratios", Value::Object(ratios.collect()))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            write!(f, "{before}\"{name}\":{value}")?;
        }
        f.write_str("}")
    }
}

fn rounded(value: f64, digits: i32) -> Value {
    let scale = 10_f64.powi(digits);
    json!((value * scale).round() / scale)
}

#[cfg(test)]
mod tests {
    use super::Line;

    #[test]
    fn a_line_has_its_members_in_their_order() {
        let line = Line::of("postgres", "W", 64, "saga").number("steps_per_s", 12_345.678, 1);
        let line = line.ratios([("F4".to_owned(), 1.234_56), ("dbos".to_owned(), 10.0)]);
        let line = line.number_if_any("p50_ms", None, 1).number("cpu_ms_per_step", 0.133_33, 4).to_string();
        let wanted = r#"{"bench":"postgres","work":"W","in_flight":64,"subject":"saga","steps_per_s":12345.7,"ratios":{"F4":1.2346,"dbos":10.0},"cpu_ms_per_step":0.1333}"#;
        assert_eq!(line, wanted);
    }

    #[test]
    fn a_target_that_could_not_be_measured_is_null() {
        let line = Line::of_target("postgres", "W at 64 / F4", f64::NAN, ">= 1.8", false).to_string();
        let wanted = r#"{"bench":"postgres","target":"W at 64 / F4","measured":null,"bound":">= 1.8","reached":false}"#;
        assert_eq!(line, wanted);
    }
}
