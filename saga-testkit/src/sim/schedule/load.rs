//! Schedules with more work than lines: what waits for one waits for longer than a lease.

use std::ops::Range;
use std::time::Duration;

use saga_core::saga::SagaError;

use super::kinds::LOAD_SEED;
use super::random::Random;
use super::rates::Rates;
use super::scenario::{Counts, Disruption, Load, SagaScript, Scenario};
use crate::checker::SagaTime;
use crate::sim::sagas::{Charge, Haul, Pay, Ship, SimDefinition, named};

const SAGAS: (u64, u64) = (60, 120);
/// Less than the time limit of a step: it lands before its owner gives it up, or soon after.
const CALL_MILLIS: Range<u64> = 600..1_700;
/// Within this time all sagas are started, and every disruption falls.
const STARTED_WITHIN_MILLIS: u64 = 400;
const DISRUPTIONS_WITHIN_MILLIS: u64 = 6_000;
/// How many schedules of a thousand of these have so many lines that a process that vanishes leaves many calls behind.
const WIDE_PER_MILLE: u32 = 250;
const WIDE_LINES: usize = 32;
/// Longer than a membership, and for most of its calls no longer than a lease.
const STALL_MILLIS: Range<u64> = 3_200..6_000;
/// Set the draws of that, and of how often calls report, apart from all others.
const WIDE_SEED: u64 = 0x0000_0000_7769_6465;
const REPORTS_SEED: u64 = 0x7265_706f_7274_7301;
/// How many definitions have a haul, behind the others.
const HAULS: usize = 1;

/// Definitions with calls only.
///
/// # Errors
/// Those of the builder; there are none unless a definition here is wrong.
pub(crate) fn load_definitions() -> Result<Vec<SimDefinition>, SagaError> {
    Ok(vec![
        named("load-charge").step::<Charge<0>>().build()?,
        named("load-ship").step::<Ship<0>>().build()?,
        named("load-both").step::<Ship<0>>().after::<Charge<1>, Ship<0>>(0).build()?,
        named("load-pay").step::<Pay<0>>().step::<Charge<1>>().build()?,
        named("load-haul").step::<Charge<0>>().step::<Haul<1>>().build()?,
    ])
}

/// The schedule of that seed, with more work than lines.
pub(crate) fn draw_load(seed: u64, counts: Counts) -> Scenario {
    let mut random = Random::new(seed ^ LOAD_SEED);
    let random = &mut random;
    let first = counts.local + counts.remote + counts.external;
    let plain = counts.load - HAULS;
    // Most often of one kind, so that all of them wait for the same.
    let one = random.per_mille(600).then(|| random.below(plain as u64));
    let hauls = if random.per_mille(300) { 100 } else { 0 };
    let declined = *random.pick(&[0, 100, 300]);
    let count = random.between(SAGAS.0, SAGAS.1);
    let sagas = (0..count).map(|at| {
        let definition = match one {
            _ if random.per_mille(hauls) => plain as u64,
            Some(one) => one,
            None => random.below(plain as u64),
        };
        SagaScript {
            tenant: if at == 1 { "other" } else { "" },
            key: if at < 2 { "twice".to_owned() } else { format!("key-{at}") },
            variants: vec![first + definition as usize],
            starts: vec![(Duration::from_millis(random.below(STARTED_WITHIN_MILLIS)), 0)],
            refused_step: random.per_mille(declined).then(|| random.below(2) as u8),
            time: SagaTime::default(),
            signals: Vec::new(),
            is_foreign: false,
            restart_of: None,
            reborn_of: None,
        }
    });
    let sagas = sagas.collect();
    let replicas = *random.pick(&[1, 2, 2, 3]);
    // A third of them meets nothing but its own work.
    let disruptions = random.below(3);
    let disruptions = (0..disruptions).map(|_| {
        let moment = Duration::from_millis(random.below(DISRUPTIONS_WITHIN_MILLIS));
        (moment, draw_disruption(random, replicas))
    });
    let mut disruptions: Vec<_> = disruptions.collect();
    let is_faulty = random.per_mille(400);
    let mut rate = |often: &[u32]| if is_faulty && random.per_mille(500) { *random.pick(often) } else { 0 };
    let mut rates = Rates {
        fails: rate(&[20, 100]),
        not_sent: rate(&[20, 100]),
        answer_lost: rate(&[20, 100]),
        commit_unknown: rate(&[5, 20]),
        commit_crashes: rate(&[1, 2]),
        store_slow: rate(&[5, 30]),
        reports: *Random::new(seed ^ REPORTS_SEED).pick(&[0, 0, 1000]),
        ..Rates::default()
    };
    let mut lines = *random.pick(&[4, 8]);
    // Drawn apart from all else, so that what a seed means does not change with it.
    let mut wide = Random::new(seed ^ WIDE_SEED);
    if wide.per_mille(WIDE_PER_MILLE) {
        lines = WIDE_LINES;
        disruptions.push(draw_disruption_in_flight(&mut wide, replicas));
        if wide.per_mille(500) {
            (rates.not_sent, rates.reports) = (300, 1000);
        }
    }
    let load = Load { lines, call_millis: CALL_MILLIS };
    let poll_max = Duration::from_nanos(*random.pick(&[0, 200, 20_000]));
    Scenario {
        seed,
        replicas,
        hosts: Vec::new(),
        sagas,
        disruptions,
        rates,
        poll_max,
        load: Some(load),
        retention: None,
        mutant: None,
    }
}

/// A process is crashed while it makes as many calls at a time as it can, or stands still for about as long as it takes others
/// to make them again.
fn draw_disruption_in_flight(random: &mut Random, replicas: u64) -> (Duration, Disruption) {
    let replica = random.below(replicas);
    let moment = Duration::from_millis(random.between(STARTED_WITHIN_MILLIS, 4 * STARTED_WITHIN_MILLIS));
    let disruption = if random.per_mille(500) {
        Disruption::Crash { replica, polls: random.between(1, 20) }
    } else {
        Disruption::Pause {
            replica,
            duration: Duration::from_millis(random.between(STALL_MILLIS.start, STALL_MILLIS.end)),
        }
    };
    (moment, disruption)
}

/// Most often a process is cut off from the store: for less time than its membership lasts, or for longer.
fn draw_disruption(random: &mut Random, replicas: u64) -> Disruption {
    let replica = random.below(replicas);
    let (least, most) = *random.pick(&[(200, 2_500), (3_500, 12_000)]);
    let duration = Duration::from_millis(random.between(least, most));
    match random.below(10) {
        0..6 => Disruption::CutOff { replica, duration },
        6..8 => Disruption::Pause { replica, duration },
        _ => Disruption::Crash { replica, polls: random.between(1, 200) },
    }
}
