use std::ops::Range;
use std::time::Duration;

use super::heirs::heirs;
use super::load::{Load, has_load};
use super::{Random, Rates};
use crate::checker::SagaTime;

/// One schedule: which sagas run on how many replicas, and what is done to them. All of it is drawn from the seed.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The seed.
    pub seed: u64,
    /// How many processes run the engine where the sagas are.
    pub replicas: u64,
    /// How many processes each of the other services has; none where there is one service only.
    pub hosts: Vec<u64>,
    /// The sagas.
    pub sagas: Vec<SagaScript>,
    /// What is done to the processes and the store, and when.
    pub blows: Vec<(Duration, Blow)>,
    /// How often everything else happens.
    pub rates: Rates,
    /// How much virtual time one poll takes at most.
    pub poll_max: Duration,
    /// What is special where there is more work than lines.
    pub load: Option<Load>,
    /// What is broken on purpose.
    pub plant: Option<Plant>,
}

/// A mistake that is made on purpose, to see that it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plant {
    /// A receiver says that it has a message before it has stored it.
    SettlesBeforeStoring,
    /// A command that is sent again goes under another id.
    SendsUnderNewIds,
    /// A reply names a message that nobody sent.
    AnswersNothing,
    /// Of a step whose input a mapping made, an undo brings what the mapping had not put there.
    UndoesWithOtherInputs,
    /// A batch step writes for an input that it rejects.
    WritesForRejected,
    /// An undo of a step that nobody asked for yet is answered, and leaves nothing behind that bars the step.
    NoTombstone,
    /// What stands behind a group begins when its first branch is done.
    JoinsEarly,
    /// What a branch did is never undone.
    ForgetsABranch,
    /// A branch is done and undone as if what stands in front of its group stood beside it.
    DetachesBranches,
    /// What was done for the items of a list is never undone.
    ForgetsItems,
    /// All arms of a choice run.
    RunsEveryArm,
    /// What an arm of a choice did is never undone.
    ForgetsArms,
    /// What a saga did that is a step of another one is never undone.
    ForgetsSubSagas,
    /// A saga that is started instead of another one does all of it once more.
    TakesNothingOver,
    /// What a call reports is kept whoever has its claim by then.
    ReportsUnfenced,
    /// What an attempt reports last is not written down any more.
    ForgetsLastReport,
    /// What only waited when its owner vanished counts as begun.
    TakesWaitingForBegun,
    /// A member that comes back does not have its rows, and whoever claims takes over at once what others left.
    LeavesOwnRows,
    /// Of what vanished owners had begun one command is recovered at a time.
    RecoversOneByOne,
    /// A process begins calls of which it had the claim once, though it may be somebody else's by then.
    BeginsBlindly,
    /// The same, and where such a call ends without an answer that is forgotten.
    BeginsAndForgets,
    /// That a call ended without an answer is forgotten, where somebody else has its claim by then.
    ForgetsLateUnknown,
}

impl Plant {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::SettlesBeforeStoring,
        Self::SendsUnderNewIds,
        Self::AnswersNothing,
        Self::UndoesWithOtherInputs,
        Self::WritesForRejected,
        Self::NoTombstone,
        Self::JoinsEarly,
        Self::ForgetsABranch,
        Self::DetachesBranches,
        Self::ForgetsItems,
        Self::RunsEveryArm,
        Self::ForgetsArms,
        Self::ForgetsSubSagas,
        Self::TakesNothingOver,
        Self::ReportsUnfenced,
        Self::ForgetsLastReport,
        Self::TakesWaitingForBegun,
        Self::LeavesOwnRows,
        Self::RecoversOneByOne,
        Self::BeginsBlindly,
        Self::BeginsAndForgets,
        Self::ForgetsLateUnknown,
    ];
}

/// How many definitions there are, in this order: without steps of other services, with such steps, with one that
/// somebody else asks for, and those of which there are to be many.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Without steps of other services.
    pub near: usize,
    /// How many of these, the last ones, have batch steps.
    pub batch: usize,
    /// With such steps.
    pub far: usize,
    /// With one step that somebody else asks for.
    pub foreign: usize,
    /// With calls only, of which there are to be many.
    pub load: usize,
}

/// A key of a tenant, and who starts what under it.
#[derive(Debug, Clone)]
pub struct SagaScript {
    /// Whose it is; the empty text is the default tenant.
    pub tenant: &'static str,
    /// The saga's key.
    pub key: String,
    /// The definitions that are offered, by their places. All but the first are offered in vain, or the first is.
    pub variants: Vec<usize>,
    /// Who starts it: when, and which variant.
    pub starts: Vec<(Duration, u8)>,
    /// The step that always rejects.
    pub refused_step: Option<u8>,
    /// When it begins, and how long it has. One that begins later has all the time that it needs.
    pub time: SagaTime,
    /// The words that are sent to it: when, and which.
    pub words: Vec<(Duration, u64)>,
    /// Whether somebody else, whose store is none of ours, asks for its only step and takes it back.
    pub is_foreign: bool,
    /// The saga that has to end before somebody starts this one instead.
    pub heir_of: Option<u32>,
}

/// Something that is done to a replica or to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blow {
    /// Crash a replica, at its so manyth poll from now.
    Crash {
        /// Which.
        replica: u64,
        /// After how many polls.
        polls: u64,
    },
    /// Stop a replica for so long.
    Pause {
        /// Which.
        replica: u64,
        /// For how long.
        duration: Duration,
    },
    /// Shut a replica down, and start it again.
    Drain {
        /// Which.
        replica: u64,
    },
    /// A replica does not reach the store for so long. Everybody else does.
    CutOff {
        /// Which.
        replica: u64,
        /// For how long.
        duration: Duration,
    },
    /// Nobody reaches the store of a service for so long.
    StoreDown {
        /// The number of the service.
        service: u8,
        /// For how long.
        duration: Duration,
    },
}

/// The least sagas of a schedule.
pub const SAGAS_MIN: u64 = 3;
const SAGAS_MAX: u64 = 5;
/// How many schedules of a thousand have several services; they take longer than others.
const SERVICES_PER_MILLE: u32 = 150;
/// Sets the draw of how often calls report apart from all others.
const REPORTS_SEED: u64 = 0x7265_706f_7274_7300;
/// Sets the draw of which have several services apart from all others.
const SERVICES_SEED: u64 = 0x7365_7276_6963_6573;
/// How many schedules of a thousand have a crowd of sagas with batch steps, where they have one service.
const CROWD_PER_MILLE: u32 = 150;
/// Sets the draw of that apart from all others.
const CROWD_SEED: u64 = 0x0000_6372_6f77_6421;
/// Sets the draw of beginnings and deadlines apart from all others.
const TIME_SEED: u64 = 0x0000_0000_7469_6d65;
/// How many sagas of a thousand begin later, and how many have a deadline.
const LATER_PER_MILLE: u32 = 120;
const DEADLINE_PER_MILLE: u32 = 250;
/// How many sagas a crowd has.
const CROWD: Range<u64> = 8..16;
/// Within this time everything is started and every blow falls.
const BUSY: Duration = Duration::from_secs(4);

impl Scenario {
    /// The schedule of that seed, with sagas of so many definitions.
    pub fn draw(seed: u64, definitions: Counts) -> Self {
        let mut random = Random::new(seed);
        let has_services = has_services(seed);
        if has_load(seed) {
            return Self::draw_load(seed, definitions);
        }
        let Counts { near, batch, far, foreign, .. } = definitions;
        let (least, most, kinds) = match (has_services, has_crowd(seed)) {
            (true, _) => (SAGAS_MIN, SAGAS_MIN, near..near + far),
            // Of batch steps, or of one definition with others, whose handlers share savepoints.
            (false, true) if seed.is_multiple_of(2) => (CROWD.start, CROWD.end, near - batch..near),
            (false, true) => {
                let one = (seed / 2) as usize % (near - batch);
                (CROWD.start, CROWD.end, one..one + 1)
            }
            (false, false) => (SAGAS_MIN, SAGAS_MAX, 0..near),
        };
        let count = random.between(least, most);
        let mut sagas: Vec<_> = (0..count).map(|at| SagaScript::draw(&mut random, at, kinds.clone())).collect();
        if has_crowd(seed) && !has_services {
            // A batch is made of what waits at the same time.
            let together = moment(&mut random);
            sagas.iter_mut().filter_map(|saga| saga.starts.first_mut()).for_each(|start| start.0 = together);
        }
        if has_services && random.per_mille(500) {
            sagas.push(SagaScript::draw_foreign(&mut random, near + far..near + far + foreign));
        }
        // Drawn apart from all else, so that what a seed means does not change with it.
        let mut times = Random::new(seed ^ TIME_SEED);
        for saga in sagas.iter_mut().filter(|saga| !saga.is_foreign) {
            (saga.time, saga.words) = (draw_time(&mut times), draw_words(&mut times));
        }
        let replicas = random.between(1, 3);
        let hosts = if has_services { random.between(1, 2) } else { 0 };
        let hosts: Vec<u64> = (0..hosts).map(|_| random.between(1, 2)).collect();
        let all = replicas + hosts.iter().sum::<u64>();
        let blows = if random.per_mille(700) { random.below(4) } else { 0 };
        let services = hosts.len() as u64 + 1;
        let blows = (0..blows).map(|_| (moment(&mut random), Blow::draw(&mut random, all, services))).collect();
        let reports = Rates::draw_reports(&mut Random::new(seed ^ REPORTS_SEED));
        let rates = Rates { reports, ..Rates::draw(&mut random, seed) };
        sagas.extend(heirs(seed, &rates, &sagas));
        let poll_max = Duration::from_nanos(*random.pick(&[0, 200, 20_000, 1_000_000]));
        Self { seed, replicas, hosts, sagas, blows, rates, poll_max, load: None, plant: None }
    }
}

/// Whether the schedule of that seed has several services.
pub fn has_services(seed: u64) -> bool {
    Random::new(seed ^ SERVICES_SEED).per_mille(SERVICES_PER_MILLE)
}

/// Whether in the schedule of that seed many sagas with batch steps are started, where it has one service.
pub fn has_crowd(seed: u64) -> bool {
    Random::new(seed ^ CROWD_SEED).per_mille(CROWD_PER_MILLE)
}

impl SagaScript {
    fn draw(random: &mut Random, at: u64, definitions: Range<usize>) -> Self {
        // The first two have one key, in two tenants: they must never meet.
        let tenant = if at == 1 { "other" } else { "" };
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
            words: Vec::new(),
            is_foreign: false,
            heir_of: None,
        }
    }

    fn draw_foreign(random: &mut Random, definitions: Range<usize>) -> Self {
        let variants = vec![definitions.start + random.below(definitions.len() as u64) as usize];
        let starts = vec![(moment(random), 0)];
        let key = "foreign".to_owned();
        let (time, words) = (SagaTime::default(), Vec::new());
        Self { tenant: "", key, variants, starts, refused_step: None, time, words, is_foreign: true, heir_of: None }
    }
}

impl Blow {
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

/// Sagas that wait for no word refuse them.
fn draw_words(random: &mut Random) -> Vec<(Duration, u64)> {
    let count = random.below(4);
    (0..count).map(|_| (moment(random), random.between(1, 2))).collect()
}

/// A moment of the busy time, most often an early one.
fn moment(random: &mut Random) -> Duration {
    let max = *random.pick(&[1, 50, 500, BUSY.as_millis() as u64]);
    Duration::from_millis(random.below(max))
}
