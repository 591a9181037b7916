use std::ops::Range;
use std::time::Duration;

use super::kinds::{RETENTION_SEED, has_crowd, has_load, has_locks, has_retention, has_services, shares_tenants};
use super::load::draw_load;
use super::random::Random;
use super::rates::Rates;
use super::retention::RetentionPlan;
use super::scenario::{Counts, Disruption, SagaScript, Scenario};
use crate::checker::SagaTime;

/// The least sagas of a schedule.
pub const SAGAS_MIN: u64 = 3;
const SAGAS_MAX: u64 = 5;
/// Sets the draw of how often calls report apart from all others.
const REPORTS_SEED: u64 = 0x7265_706f_7274_7300;
/// Sets the draw of beginnings and deadlines apart from all others.
const TIME_SEED: u64 = 0x0000_0000_7469_6d65;
/// How many sagas of a thousand begin later, and how many have a deadline.
const LATER_PER_MILLE: u32 = 120;
const DEADLINE_PER_MILLE: u32 = 250;
/// Sets the draws of what restarts are like apart from all others.
const RESTARTS_SEED: u64 = 0x0000_6865_6972_7321;
/// How many keys of a thousand are used again where sagas are deleted.
const REBORN_PER_MILLE: u32 = 500;
/// How many sagas a crowd has.
const CROWD: Range<u64> = 8..16;
/// The tenant besides the default one.
const OTHER_TENANT: &str = "other";
/// Within this time everything is started and every disruption falls.
const BUSY: Duration = Duration::from_secs(4);

impl Scenario {
    /// The schedule of that seed, with sagas of so many definitions.
    pub fn draw(seed: u64, definitions: Counts) -> Self {
        let mut random = Random::new(seed);
        let has_services = has_services(seed);
        if has_load(seed) {
            return draw_load(seed, definitions);
        }
        let Counts { local, batch, remote, external, load, locks } = definitions;
        let (least, most, kinds) = match (has_services, has_crowd(seed)) {
            (true, _) => (SAGAS_MIN, SAGAS_MIN, local..local + remote),
            // Of batch steps, or of one definition with others, whose handlers share savepoints.
            (false, true) if seed.is_multiple_of(2) => (CROWD.start, CROWD.end, local - batch..local),
            (false, true) => {
                let one = (seed / 2) as usize % (local - batch);
                (CROWD.start, CROWD.end, one..one + 1)
            }
            (false, false) => (SAGAS_MIN, SAGAS_MAX, 0..local),
        };
        let count = random.between(least, most);
        let mut sagas: Vec<_> = (0..count).map(|at| SagaScript::draw(&mut random, at, kinds.clone())).collect();
        if has_crowd(seed) && !has_services {
            // A batch is made of what waits at the same time.
            let together = moment(&mut random);
            sagas.iter_mut().filter_map(|saga| saga.starts.first_mut()).for_each(|start| start.0 = together);
            if shares_tenants(seed) {
                for saga in sagas.iter_mut().skip(1).step_by(2) {
                    saga.tenant = OTHER_TENANT;
                }
            }
        }
        if has_services && random.per_mille(500) {
            sagas.push(SagaScript::draw_foreign(&mut random, local + remote..local + remote + external));
        }
        if has_locks(seed) {
            // What was drawn stands for one of these instead.
            let first = local + remote + external + load;
            sagas
                .iter_mut()
                .flat_map(|saga| &mut saga.variants)
                .for_each(|variant| *variant = first + *variant % locks);
        }
        // Drawn apart from all else, so that what a seed means does not change with it.
        let mut times = Random::new(seed ^ TIME_SEED);
        for saga in sagas.iter_mut().filter(|saga| !saga.is_foreign) {
            (saga.time, saga.signals) = (draw_time(&mut times), draw_signals(&mut times));
        }
        let replicas = random.between(1, 3);
        let hosts = if has_services { random.between(1, 2) } else { 0 };
        let hosts: Vec<u64> = (0..hosts).map(|_| random.between(1, 2)).collect();
        let all = replicas + hosts.iter().sum::<u64>();
        let disruptions = if random.per_mille(700) { random.below(4) } else { 0 };
        let services = hosts.len() as u64 + 1;
        let disruptions =
            (0..disruptions).map(|_| (moment(&mut random), Disruption::draw(&mut random, all, services))).collect();
        let reports = Rates::draw_reports(&mut Random::new(seed ^ REPORTS_SEED));
        let mut rates = Rates { reports, ..Rates::draw(&mut random, seed) };
        let retention = has_retention(seed).then(|| RetentionPlan::draw(seed, has_services));
        if retention.is_some() {
            // A key is used again instead.
            rates.restarts = 0;
            sagas.extend(draw_reborn(seed, &sagas));
        }
        sagas.extend(draw_restarts(seed, &rates, &sagas));
        let poll_max = Duration::from_nanos(*random.pick(&[0, 200, 20_000, 1_000_000]));
        let shares_tenants = shares_tenants(seed);
        Self {
            seed,
            replicas,
            hosts,
            sagas,
            disruptions,
            rates,
            poll_max,
            load: None,
            shares_tenants,
            retention,
            mutant: None,
        }
    }
}

impl SagaScript {
    fn draw(random: &mut Random, at: u64, definitions: Range<usize>) -> Self {
        // The first two have one key, in two tenants: they must never meet.
        let tenant = if at == 1 { OTHER_TENANT } else { "" };
        let key = if at < 2 { "twice".to_owned() } else { format!("key-{at}") };
        let variants = 1 + u64::from(random.per_mille(250));
        let count = definitions.len() as u64;
        let variants = (0..variants).map(|_| definitions.start + random.below(count) as usize);
        let variants: Vec<usize> = variants.collect();
        let starts = (0..random.between(1, 3)).map(|nth| {
            let variant = if nth == 0 { 0 } else { random.below(variants.len() as u64) as u8 };
            (moment(random), variant)
        });
        let starts = starts.collect();
        let refused_step = random.per_mille(400).then(|| random.below(5) as u8);
        Self {
            tenant,
            key,
            variants,
            starts,
            refused_step,
            time: SagaTime::default(),
            signals: Vec::new(),
            is_foreign: false,
            restart_of: None,
            reborn_of: None,
        }
    }

    fn draw_foreign(random: &mut Random, definitions: Range<usize>) -> Self {
        let variants = vec![definitions.start + random.below(definitions.len() as u64) as usize];
        let starts = vec![(moment(random), 0)];
        let key = "foreign".to_owned();
        let (time, signals) = (SagaTime::default(), Vec::new());
        Self {
            tenant: "",
            key,
            variants,
            starts,
            refused_step: None,
            time,
            signals,
            is_foreign: true,
            restart_of: None,
            reborn_of: None,
        }
    }
}

impl Disruption {
    fn draw(random: &mut Random, replicas: u64, services: u64) -> Self {
        let replica = random.below(replicas);
        match random.below(10) {
            0..3 => Self::Crash { replica, polls: random.between(1, 200) },
            3..6 => {
                let (least, most) = *random.pick(&[(100, 4_000), (4_000, 15_000)]);
                Self::Pause { replica, duration: Duration::from_millis(random.between(least, most)) }
            }
            6..8 => Self::Drain { replica },
            _ => Self::StoreDown {
                service: if services > 1 { random.below(services) as u8 } else { 0 },
                duration: Duration::from_millis(random.between(50, 9_000)),
            },
        }
    }
}

fn draw_time(random: &mut Random) -> SagaTime {
    let millis = |random: &mut Random, most: &[u64]| {
        let most = *random.pick(most);
        random.between(1, most) * 1_000
    };
    let begins_in = if random.per_mille(LATER_PER_MILLE) { millis(random, &[10, 500, 6_000]) } else { 0 };
    let has_deadline = begins_in == 0 && random.per_mille(DEADLINE_PER_MILLE);
    SagaTime { begins_in, within: has_deadline.then(|| millis(random, &[5, 100, 1_000, 8_000])) }
}

/// Sagas that wait for no signal refuse them.
fn draw_signals(random: &mut Random) -> Vec<(Duration, u64)> {
    let count = random.below(4);
    (0..count).map(|_| (moment(random), random.between(1, 2))).collect()
}

/// The sagas that may be started instead of these, and instead of those, behind them in the scenario.
fn draw_restarts(seed: u64, rates: &Rates, sagas: &[SagaScript]) -> Vec<SagaScript> {
    let mut random = Random::new(seed ^ RESTARTS_SEED);
    let mut restarts: Vec<SagaScript> = Vec::new();
    let own = sagas.iter().enumerate().filter(|(_, script)| !script.is_foreign);
    for (of, script) in own.filter(|_| rates.restarts > 0) {
        let (mut of, mut key) = (of, script.key.clone());
        // A restarted saga may be restarted; a saga may have several restarts.
        while random.per_mille(rates.restarts) {
            let is_second = random.per_mille(300);
            key = format!("{key}-{}", if is_second { "too" } else { "again" });
            let refused_step = random.per_mille(400).then(|| random.below(5) as u8);
            let restart_of = Some(of as u32);
            if !is_second {
                of = sagas.len() + restarts.len();
            }
            let time = SagaTime { within: script.time.within, ..SagaTime::default() };
            let (key, starts) = (key.clone(), Vec::new());
            restarts.push(SagaScript { key, starts, refused_step, time, restart_of, ..script.clone() });
        }
    }
    restarts
}

/// The sagas that are started under the keys of these when those are deleted.
fn draw_reborn(seed: u64, sagas: &[SagaScript]) -> Vec<SagaScript> {
    let mut random = Random::new(!seed ^ RETENTION_SEED);
    let own = (0..).zip(sagas).filter(|(_, script)| !script.is_foreign);
    let own: Vec<(u32, &SagaScript)> = own.filter(|_| random.per_mille(REBORN_PER_MILLE)).collect();
    let reborn = own.into_iter().map(|(of, script)| SagaScript {
        starts: Vec::new(),
        signals: Vec::new(),
        refused_step: random.per_mille(400).then(|| random.below(5) as u8),
        time: SagaTime::default(),
        reborn_of: Some(of),
        ..script.clone()
    });
    reborn.collect()
}

/// A moment of the busy time, most often an early one.
fn moment(random: &mut Random) -> Duration {
    let max = *random.pick(&[1, 50, 500, BUSY.as_millis() as u64]);
    Duration::from_millis(random.below(max))
}
