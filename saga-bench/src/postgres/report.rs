//! The results, as a table or as JSON.

use super::measure::Sample;
use super::targets::{Measure, Reference, Target, targets};
use super::work::{Spec, Subject, Work};
use crate::figures::median;
use crate::line::Line;

const BENCH: &str = "postgres";
const RESTATE: &str = "restate";

/// What was measured of one contender, one sample a round.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) spec: Spec,
    pub(super) samples: Vec<Sample>,
    /// How many of its runs failed.
    pub(super) failed: u32,
    pub(super) round_trips_per_step: Option<f64>,
}

impl Cell {
    pub(super) fn new(spec: Spec) -> Self {
        Self { spec, samples: Vec::new(), failed: 0, round_trips_per_step: None }
    }

    fn values(&self, measure: Measure) -> Vec<f64> {
        self.samples.iter().map(|sample| value(sample, measure)).collect()
    }

    fn median_of(&self, value: impl Fn(&Sample) -> f64) -> f64 {
        median(&self.samples.iter().map(value).collect::<Vec<_>>())
    }

    fn median_if_any(&self, value: impl Fn(&Sample) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.samples.iter().filter_map(value).collect();
        (!values.is_empty()).then(|| median(&values))
    }

    /// The median over the rounds of the ratio within a round, so that a slow moment of the machine hits both sides.
    fn ratio_to(&self, other: &Self, measure: Measure) -> f64 {
        // A peer may have failed in a round.
        let in_round = |sample: &Sample| other.samples.iter().find(|other| other.round == sample.round);
        let ratio = |sample| Some(value(sample, measure) / value(in_round(sample)?, measure));
        median(&self.samples.iter().filter_map(ratio).collect::<Vec<_>>())
    }
}

/// All that was measured.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) cells: Vec<Cell>,
}

impl Report {
    pub(super) fn print(&self, is_json: bool) {
        if is_json {
            self.measured().for_each(|cell| println!("{}", self.line(cell)));
            self.failed().for_each(|cell| println!("{}", failed_line(cell)));
            for (target, measured) in self.reached() {
                let is_reached = target.is_reached(measured);
                println!("{}", Line::of_target(BENCH, &target.name(), measured, &target.bound(), is_reached));
            }
            return;
        }
        println!(
            "{:<11} {:>5}  {:<24} {:>9} {:<19} {:>8} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7} {:>7}",
            "work",
            "at",
            "subject",
            "steps/s",
            "[least to most]",
            "saga /",
            "commits",
            "trips",
            "cpu ms",
            "client",
            "WAL B",
            "p50 ms",
            "p99 ms"
        );
        self.measured().for_each(|cell| println!("{}", self.row(cell)));
        for Cell { spec, samples, failed, .. } in self.failed() {
            println!("{spec}: {failed} of {} runs failed", samples.len() + *failed as usize);
        }
        println!("\n{:<64} {:>9}  {:<8}", "compared", "measured", "target");
        for (target, measured) in self.reached() {
            let verdict = if target.is_reached(measured) { "reached" } else { "NOT REACHED" };
            println!("{:<64} {measured:>9.2}  {:<8} {verdict}", target.name(), target.bound());
        }
    }

    /// Whether every target that was measured is reached, and no run failed: what failed may be what a target compares with.
    pub(super) fn is_reached(&self) -> bool {
        self.failed().next().is_none() && self.reached().all(|(target, measured)| target.is_reached(measured))
    }

    /// The targets that this run says something about.
    fn reached(&self) -> impl Iterator<Item = (Target, f64)> {
        targets().into_iter().filter_map(|target| {
            let of = self.cell(&target.of)?;
            let measured = match target.to {
                Reference::Nothing => of.values(target.measure).into_iter().fold(0.0, f64::max),
                _ => of.ratio_to(self.reference(&target)?, target.measure),
            };
            Some((target, measured))
        })
    }

    /// What a target compares with, if it was measured.
    fn reference(&self, target: &Target) -> Option<&Cell> {
        match &target.to {
            Reference::Spec(spec) => self.cell(spec),
            Reference::FastestLibrary(work, at) => self.fastest(*work, *at, |name| !name.starts_with(RESTATE)),
            Reference::FastestPeer(work, at) => self.fastest(*work, *at, |_| true),
            Reference::Restate(work, at) => self.fastest(*work, *at, |name| name.starts_with(RESTATE)),
            Reference::Nothing => None,
        }
    }

    fn measured(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| !cell.samples.is_empty())
    }

    fn failed(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.failed > 0)
    }

    fn cell(&self, spec: &Spec) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.spec == *spec && !cell.samples.is_empty())
    }

    fn fastest(&self, work: Work, at: u32, is_meant: impl Fn(&str) -> bool) -> Option<&Cell> {
        let peers = self.cells.iter().filter(|cell| match &cell.spec.subject {
            Subject::Peer(name) => {
                (cell.spec.work, cell.spec.in_flight) == (work, at)
                    && cell.samples.iter().any(|sample| !sample.done.is_volatile)
                    && is_meant(name)
            }
            _ => false,
        });
        let rate = |cell: &&Cell| cell.median_of(|sample| sample.steps_per_s);
        peers.max_by(|one, other| rate(one).total_cmp(&rate(other)))
    }

    fn line(&self, cell: &Cell) -> Line {
        let Spec { work, in_flight, subject } = &cell.spec;
        let median = |value: fn(&Sample) -> f64| cell.median_of(value);
        Line::of(BENCH, &work.to_string(), *in_flight, &subject.to_string())
            .number("steps_per_s", median(|sample| sample.steps_per_s), 1)
            .ratios(self.ratios(cell))
            .number("commits_per_step", median(|sample| sample.commits_per_step), 4)
            .number_if_any("round_trips_per_step", cell.round_trips_per_step, 3)
            .number("cpu_ms_per_step", median(|sample| sample.cpu_ms_per_step), 4)
            .number("client_cpu_ms_per_step", median(|sample| sample.client_cpu_ms_per_step), 4)
            .number("wal_bytes_per_step", median(|sample| sample.wal_bytes_per_step), 0)
            .number_if_any("p50_ms", cell.median_if_any(|sample| sample.done.p50_ms), 3)
            .number_if_any("p99_ms", cell.median_if_any(|sample| sample.done.p99_ms), 3)
            .number_if_any("hand_over_p50_ms", cell.median_if_any(|sample| sample.done.hand_over_p50_ms), 3)
            .number_if_any("longest_pause_s", cell.median_if_any(pause_s), 3)
            .number_if_any("peak_mb", cell.median_if_any(|sample| sample.peak_mb), 1)
            .with("rounds", cell.samples.len().into())
    }

    /// How many times as fast as the others at the same work, and as whom a target names.
    fn ratios(&self, cell: &Cell) -> Vec<(String, f64)> {
        let Spec { work, in_flight, subject } = &cell.spec;
        let others = self.cells.iter().filter(|other| !other.samples.is_empty());
        let beside = others.filter_map(|other| {
            let spec = &other.spec;
            let is_beside = (spec.work, spec.in_flight) == (*work, *in_flight);
            (is_beside && spec.subject != *subject).then(|| (spec.subject.to_string(), other))
        });
        let targets = targets().into_iter().filter(|target| target.of == cell.spec);
        let named = targets.filter_map(|target| {
            let other = self.reference(&target)?;
            let spec = &other.spec;
            let is_beside = (spec.work, spec.in_flight) == (*work, *in_flight);
            let name = || format!("{} {} at {}", spec.work, spec.subject, spec.in_flight);
            (!is_beside && target.measure == Measure::StepsPerSecond).then(|| (name(), other))
        });
        beside.chain(named).map(|(name, other)| (name, cell.ratio_to(other, Measure::StepsPerSecond))).collect()
    }

    fn row(&self, cell: &Cell) -> String {
        let rates = cell.values(Measure::StepsPerSecond);
        let (least, most) =
            (rates.iter().copied().fold(f64::INFINITY, f64::min), rates.iter().copied().fold(0.0, f64::max));
        // Beside what the runtime itself does with this work.
        let Spec { work, in_flight, subject } = &cell.spec;
        let saga = self.cell(&Spec::new(*work, *in_flight, Subject::Saga)).filter(|_| *subject != Subject::Saga);
        let ratio = saga.map(|saga| saga.ratio_to(cell, Measure::StepsPerSecond));
        let or_dash =
            |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
        format!(
            "{:<11} {:>5}  {:<24} {:>9.0} {:<19} {:>8} {:>8.3} {:>8} {:>8.3} {:>7.3} {:>7.0} {:>7} {:>7}",
            work.to_string(),
            in_flight,
            subject.to_string(),
            cell.median_of(|sample| sample.steps_per_s),
            format!("[{least:.0} to {most:.0}]"),
            or_dash(ratio, 2),
            cell.median_of(|sample| sample.commits_per_step),
            or_dash(cell.round_trips_per_step, 2),
            cell.median_of(|sample| sample.cpu_ms_per_step),
            cell.median_of(|sample| sample.client_cpu_ms_per_step),
            cell.median_of(|sample| sample.wal_bytes_per_step),
            or_dash(cell.median_if_any(|sample| sample.done.p50_ms), 1),
            or_dash(cell.median_if_any(|sample| sample.done.p99_ms), 1),
        )
    }
}

fn failed_line(cell: &Cell) -> Line {
    let Spec { work, in_flight, subject } = &cell.spec;
    let line = Line::of(BENCH, &work.to_string(), *in_flight, &subject.to_string());
    line.with("failed", cell.failed.into())
}

fn value(sample: &Sample, measure: Measure) -> f64 {
    match measure {
        Measure::StepsPerSecond => sample.steps_per_s,
        Measure::P50 => sample.done.p50_ms.unwrap_or(f64::NAN),
        // A saga that waits for no other is what a hand-over is compared with.
        Measure::HandOver => sample.done.hand_over_p50_ms.or(sample.done.p50_ms).unwrap_or(f64::NAN),
        Measure::Pause => pause_s(sample).unwrap_or(f64::NAN),
        Measure::PeakMb => sample.peak_mb.unwrap_or(f64::NAN),
    }
}

fn pause_s(sample: &Sample) -> Option<f64> {
    sample.done.longest_pause.map(|pause| pause.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(failed: u32) -> Report {
        let spec = Spec::new(Work::Orders, 64, Subject::Peer("dbos".to_owned()));
        Report { cells: vec![Cell { failed, ..Cell::new(spec) }] }
    }

    #[test]
    fn a_run_that_failed_leaves_the_targets_unreached() {
        assert!(report(0).is_reached());
        assert!(!report(1).is_reached());
    }

    #[test]
    fn failed_runs_have_a_line_of_json() {
        let line = failed_line(&report(3).cells[0]).to_string();
        assert_eq!(line, r#"{"bench":"postgres","work":"W","in_flight":64,"subject":"dbos","failed":3}"#);
    }
}
