//! The figures of two programs, by their names.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Map, Value};

/// What says which figure it is, in the order in which it is told.
const NAMES: [&str; 5] = ["bench", "target", "work", "in_flight", "subject"];

/// What both measured, one value a run.
#[derive(Debug, Default)]
pub(super) struct Compared(BTreeMap<String, [Vec<f64>; 2]>);

impl Compared {
    /// Adds what a run of one side said, 0 or 1.
    pub(super) fn add(&mut self, side: usize, lines: &str) -> Result<()> {
        for line in lines.lines().filter(|line| !line.is_empty()) {
            let figure: Map<String, Value> =
                serde_json::from_str(line).with_context(|| format!("not a line of JSON: {line}"))?;
            let names = NAMES.iter().filter_map(|name| figure.get(*name)).map(as_word);
            let name = names.collect::<Vec<_>>().join(" ");
            let values = figure.iter().filter(|(member, _)| !NAMES.contains(&member.as_str()));
            for (member, value) in values.filter_map(|(member, value)| Some((member, value.as_f64()?))) {
                self.0.entry(format!("{name} {member}")).or_default()[side].push(value);
            }
        }
        Ok(())
    }

    /// The medians of both, and how many times the other's this one's is: the median over the runs, and their range.
    ///
    /// What only one of the two measures is left out.
    pub(super) fn table(&self, other: &str) -> Result<String> {
        let both = self.0.iter().filter(|(_, sides)| sides.iter().all(|values| !values.is_empty()));
        let mut table = format!("{:<64} {other:>14} {:>14}   ratio [least to most]\n", "", "this");
        let mut count = 0;
        for (name, [there, here]) in both {
            let ratios: Vec<f64> = here.iter().zip(there).map(|(here, there)| here / there).collect();
            let (least, most) = ratios
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &ratio| (least.min(ratio), most.max(ratio)));
            let (there, here, ratio) = (median(there), median(here), median(&ratios));
            writeln!(table, "{name:<64} {there:>14.3} {here:>14.3}   {ratio:>5.2} [{least:.2} to {most:.2}]")?;
            count += 1;
        }
        ensure!(count > 0, "the two revisions measure nothing of the same name");
        Ok(table)
    }
}

fn as_word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The middle one of the values, or between the two in the middle.
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
    use super::Compared;

    const LINE: &str =
        r#"{"bench":"memory","work":"W","in_flight":16,"subject":"saga","steps_per_s":100,"ratios":{"F1":2}}"#;

    #[test]
    fn figures_of_one_name_are_compared_run_by_run() {
        let mut compared = Compared::default();
        for (there, here) in [(100, 200), (50, 50), (10, 15)] {
            let line = |value: u32| LINE.replace("100", &value.to_string());
            compared.add(0, &line(there)).unwrap();
            compared.add(1, &line(here)).unwrap();
        }
        compared.add(1, r#"{"bench":"memory","target":"new","measured":1.5}"#).unwrap();
        let table = compared.table("v1").unwrap();
        let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|row| row.split_whitespace().collect()).collect();
        let wanted = ["memory", "W", "16", "saga", "steps_per_s", "50.000", "50.000", "1.50", "[1.00", "to", "2.00]"];
        assert_eq!(rows, [wanted], "the target is measured by one of them only");
    }

    #[test]
    fn what_has_nothing_in_common_is_refused() {
        let mut compared = Compared::default();
        compared.add(0, LINE).unwrap();
        let refused = compared.table("v1").unwrap_err().to_string();
        assert_eq!(refused, "the two revisions measure nothing of the same name");
        assert!(compared.add(1, "steps: 100").unwrap_err().to_string().contains("steps: 100"));
    }
}
