//! What came out, as a table or as JSON.

use serde_json::{Map, Value, json};

use super::measure::Sample;
use super::targets::{Measure, Reference, Target, targets};
use super::work::{Spec, Subject, Work};
use crate::figures::median;

const RESTATE: &str = "restate";

/// What was measured of one contender, one sample a round.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) spec: Spec,
    pub(super) samples: Vec<Sample>,
    pub(super) round_trips_per_step: Option<f64>,
}

impl Cell {
    pub(super) fn new(spec: Spec) -> Self {
        Self { spec, samples: Vec::new(), round_trips_per_step: None }
    }

    fn values(&self, measure: Measure) -> Vec<f64> {
        let value = |sample: &Sample| match measure {
            Measure::StepsPerSecond => sample.steps_per_s,
            Measure::P50 => sample.done.p50_ms.unwrap_or(f64::NAN),
            Measure::Pause => sample.done.longest_pause.map_or(f64::NAN, |pause| pause.as_secs_f64()),
            Measure::PeakMb => sample.peak_mb.unwrap_or(f64::NAN),
        };
        self.samples.iter().map(value).collect()
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
        let (own, other) = (self.values(measure), other.values(measure));
        median(&own.iter().zip(&other).map(|(own, other)| own / other).collect::<Vec<_>>())
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
            self.cells.iter().for_each(|cell| println!("{}", self.json(cell)));
            self.reached().for_each(|(target, measured)| println!("{}", json_of(&target, measured)));
            return;
        }
        println!(
            "{:<11} {:>5}  {:<24} {:>9} {:<19} {:>8} {:>8} {:>8} {:>7} {:>7} {:>7} {:>7}",
            "work",
            "at",
            "subject",
            "steps/s",
            "[least to most]",
            "commits",
            "trips",
            "cpu ms",
            "client",
            "WAL B",
            "p50 ms",
            "p99 ms"
        );
        self.cells.iter().for_each(|cell| println!("{}", row(cell)));
        println!("\n{:<64} {:>9}  {:<8}", "compared", "measured", "target");
        for (target, measured) in self.reached() {
            let verdict = if target.is_reached(measured) { "reached" } else { "NOT REACHED" };
            println!("{:<64} {measured:>9.2}  {:<8} {verdict}", target.name(), target.bound());
        }
    }

    /// Whether every target that was measured is reached.
    pub(super) fn is_reached(&self) -> bool {
        self.reached().all(|(target, measured)| target.is_reached(measured))
    }

    /// The targets that this run says something about.
    fn reached(&self) -> impl Iterator<Item = (Target, f64)> {
        targets().into_iter().filter_map(|target| {
            let of = self.cell(&target.of)?;
            let measured = match &target.to {
                Reference::Spec(spec) => of.ratio_to(self.cell(spec)?, target.measure),
                Reference::FastestLibrary(work, at) => {
                    of.ratio_to(self.fastest(*work, *at, |name| !name.starts_with(RESTATE))?, target.measure)
                }
                Reference::FastestPeer(work, at) => of.ratio_to(self.fastest(*work, *at, |_| true)?, target.measure),
                Reference::Restate(work, at) => {
                    of.ratio_to(self.fastest(*work, *at, |name| name.starts_with(RESTATE))?, target.measure)
                }
                Reference::Nothing => of.values(target.measure).into_iter().fold(0.0, f64::max),
            };
            Some((target, measured))
        })
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

    fn json(&self, cell: &Cell) -> Value {
        let Spec { work, in_flight, subject } = &cell.spec;
        let beside = self.cells.iter().filter(|other| {
            other.spec != cell.spec
                && !other.samples.is_empty()
                && (other.spec.work, other.spec.in_flight) == (*work, *in_flight)
        });
        let mut ratios: Map<String, Value> = beside
            .map(|other| (other.spec.subject.to_string(), rounded(cell.ratio_to(other, Measure::StepsPerSecond), 3)))
            .collect();
        for target in targets().into_iter().filter(|target| target.of == cell.spec) {
            if let (Reference::Spec(spec), Measure::StepsPerSecond) = (&target.to, target.measure)
                && let Some(other) = self.cell(spec)
                && (spec.work, spec.in_flight) != (*work, *in_flight)
            {
                let name = format!("{} {} at {}", spec.work, spec.subject, spec.in_flight);
                ratios.insert(name, rounded(cell.ratio_to(other, target.measure), 3));
            }
        }
        let mut line = json!({
            "bench": "postgres", "work": work.to_string(), "in_flight": in_flight, "subject": subject.to_string(),
            "rounds": cell.samples.len(),
            "steps_per_s": rounded(cell.median_of(|sample| sample.steps_per_s), 1),
            "ratios": ratios,
            "commits_per_step": rounded(cell.median_of(|sample| sample.commits_per_step), 4),
            "cpu_ms_per_step": rounded(cell.median_of(|sample| sample.cpu_ms_per_step), 4),
            "client_cpu_ms_per_step": rounded(cell.median_of(|sample| sample.client_cpu_ms_per_step), 4),
            "wal_bytes_per_step": rounded(cell.median_of(|sample| sample.wal_bytes_per_step), 0),
        });
        let optional = [
            ("round_trips_per_step", cell.round_trips_per_step, 3),
            ("p50_ms", cell.median_if_any(|sample| sample.done.p50_ms), 3),
            ("p99_ms", cell.median_if_any(|sample| sample.done.p99_ms), 3),
            (
                "longest_pause_s",
                cell.median_if_any(|sample| sample.done.longest_pause.map(|pause| pause.as_secs_f64())),
                3,
            ),
            ("peak_mb", cell.median_if_any(|sample| sample.peak_mb), 1),
        ];
        for (name, value, digits) in optional {
            if let Some(value) = value {
                line[name] = rounded(value, digits);
            }
        }
        line
    }
}

fn row(cell: &Cell) -> String {
    let rates = cell.values(Measure::StepsPerSecond);
    let (least, most) =
        (rates.iter().copied().fold(f64::INFINITY, f64::min), rates.iter().copied().fold(0.0, f64::max));
    let or_dash = |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
    format!(
        "{:<11} {:>5}  {:<24} {:>9.0} {:<19} {:>8.3} {:>8} {:>8.3} {:>7.3} {:>7.0} {:>7} {:>7}",
        cell.spec.work.to_string(),
        cell.spec.in_flight,
        cell.spec.subject.to_string(),
        cell.median_of(|sample| sample.steps_per_s),
        format!("[{least:.0} to {most:.0}]"),
        cell.median_of(|sample| sample.commits_per_step),
        or_dash(cell.round_trips_per_step, 2),
        cell.median_of(|sample| sample.cpu_ms_per_step),
        cell.median_of(|sample| sample.client_cpu_ms_per_step),
        cell.median_of(|sample| sample.wal_bytes_per_step),
        or_dash(cell.median_if_any(|sample| sample.done.p50_ms), 1),
        or_dash(cell.median_if_any(|sample| sample.done.p99_ms), 1),
    )
}

fn json_of(target: &Target, measured: f64) -> Value {
    json!({
        "bench": "postgres", "target": target.name(), "measured": rounded(measured, 3), "wanted": target.wanted,
        "bound": target.bound(), "reached": target.is_reached(measured),
    })
}

fn rounded(value: f64, digits: i32) -> Value {
    let scale = 10_f64.powi(digits);
    json!((value * scale).round() / scale)
}
