//! When time passes, and to which moment.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

use super::kinds::{SleepId, SleepKind, TimeStatistics, UnitId, UnitKind, Woken};

/// How often every process looks at one moment, as long as one of them finds something each time.
const ROUNDS_MAX: u32 = 1_000;

/// How far the clock moves at first when nothing is due, and a caller waits all the same: for another process, whose death
/// becomes visible by its silence.
const PATIENCE_MIN: Duration = Duration::from_millis(100);

/// How far it moves at most then. Each time it moves twice as far.
const PATIENCE_MAX: Duration = Duration::from_mins(1);

/// How often it moves so, before it stands still: what is waited for does not happen by itself.
const BARREN_MAX: u32 = 1_000;

/// Something that goes on.
#[derive(Debug)]
pub(super) struct UnitState {
    pub(super) kind: UnitKind,
    pub(super) within: Within,
    pub(super) is_polled: bool,
    pub(super) is_woken: bool,
    /// In how many places a step awaits virtual time.
    pub(super) asleep: usize,
    /// Whether it holds the clock.
    pub(super) is_active: bool,
}

/// Where a unit began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// In a test, which is no task of a runtime.
    Test,
    Task,
    /// In this step: it waits for another saga.
    Call(UnitId),
}

impl UnitState {
    pub(super) fn new(kind: UnitKind, within: Within) -> Self {
        Self { kind, within, is_polled: false, is_woken: true, asleep: 0, is_active: false }
    }

    /// Whether time may pass because of it.
    pub(super) fn lets_pass(&self) -> bool {
        self.kind == UnitKind::Waiting && self.within == Within::Test
    }

    fn holds(&self) -> bool {
        let is_running = self.is_polled || self.is_woken;
        match self.kind {
            UnitKind::Task | UnitKind::Waiting => is_running,
            UnitKind::Call | UnitKind::Transaction => is_running || self.asleep == 0,
            UnitKind::Store => true,
        }
    }
}

/// A sleep that is awaited.
#[derive(Debug)]
pub(super) struct Sleep {
    until: Duration,
    kind: SleepKind,
    owner: Option<UnitId>,
    pub(super) waker: Option<Waker>,
    woken: Option<Woken>,
    /// Whether it holds the clock, since it has ended and is not polled yet.
    is_active: bool,
    pub(super) of_call: Option<UnitId>,
    pub(super) lets_pass: bool,
}

impl Sleep {
    pub(super) fn new(until: Duration, kind: SleepKind, owner: Option<UnitId>) -> Self {
        let (waker, woken, is_active, of_call, lets_pass) = (None, None, false, None, false);
        Self { until, kind, owner, waker, woken, is_active, of_call, lets_pass }
    }

    /// How it has ended. One that a test awaits ends when everything else was done.
    pub(super) fn woken_at(&self, now: Duration) -> Option<Woken> {
        let is_over = self.until <= now && self.kind != SleepKind::Advance;
        self.woken.or(is_over.then_some(Woken::AtEnd))
    }

    /// When the clock has to stop for it.
    fn event(&self) -> Option<Duration> {
        let event = match self.kind {
            SleepKind::Event | SleepKind::OfStep => Some(self.until),
            SleepKind::Look { due_at } => due_at,
            SleepKind::Advance => None,
        };
        event.filter(|event| self.woken.is_none() && *event < Duration::MAX)
    }

    fn is_look(&self) -> bool {
        matches!(self.kind, SleepKind::Look { .. }) && self.woken.is_none()
    }
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) now: Duration,
    pub(super) units: BTreeMap<UnitId, UnitState>,
    pub(super) sleeps: BTreeMap<SleepId, Sleep>,
    /// How many units and sleeps hold the clock.
    pub(super) active: usize,
    /// How many units and sleeps let time pass.
    pub(super) waiting: usize,
    /// The moment to which the clock may jump: every process has looked for work, and said how long it lives.
    pub(super) looked_until: Option<Duration>,
    /// Whether there may be something to find for them all the same.
    found: bool,
    rounds: u32,
    patience: Duration,
    barren: u32,
    ids: u64,
    pub(super) seed: u64,
    pub(super) statistics: TimeStatistics,
}

impl State {
    pub(super) fn next_id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    /// Something has happened that another process may have to look for.
    pub(super) fn has_moved(&mut self) {
        (self.found, self.patience, self.barren) = (true, PATIENCE_MIN, 0);
    }

    /// Takes note of whether a unit holds the clock.
    pub(super) fn update(&mut self, id: UnitId) {
        let Some(unit) = self.units.get_mut(&id) else { return };
        let holds = unit.holds();
        match (unit.is_active, holds) {
            (false, true) => self.active += 1,
            (true, false) => self.active -= 1,
            _ => {}
        }
        unit.is_active = holds;
    }

    pub(super) fn wake_unit(&mut self, id: UnitId) {
        if let Some(unit) = self.units.get_mut(&id) {
            unit.is_woken = true;
            self.update(id);
        }
    }

    pub(super) fn fall_asleep(&mut self, call: UnitId) {
        self.units.entry(call).and_modify(|unit| unit.asleep += 1);
        self.update(call);
    }

    pub(super) fn wake_up(&mut self, call: UnitId) {
        self.units.entry(call).and_modify(|unit| unit.asleep -= 1);
        self.update(call);
    }

    /// Removes a sleep. It is dropped by the caller, when the clock is not locked.
    pub(super) fn remove_sleep(&mut self, id: SleepId) -> Option<Sleep> {
        let sleep = self.sleeps.remove(&id)?;
        self.active -= usize::from(sleep.is_active);
        self.waiting -= usize::from(sleep.lets_pass);
        if let Some(call) = sleep.of_call {
            self.wake_up(call);
        }
        Some(sleep)
    }

    /// Lets time pass until something is to be done; answers whom to wake.
    pub(super) fn pass(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        while self.active == 0 && self.waiting > 0 && self.pass_once(&mut woken) {}
        woken
    }

    /// One move; false if there is none.
    fn pass_once(&mut self, woken: &mut Vec<Waker>) -> bool {
        let event = self.sleeps.values().filter_map(Sleep::event).min();
        let advance = self.sleeps.values().filter(|sleep| sleep.woken.is_none() && sleep.kind == SleepKind::Advance);
        let advance = advance.map(|sleep| sleep.until).min();
        let next = event.into_iter().chain(advance).min();
        if next.is_none() && self.barren > BARREN_MAX {
            return false;
        }
        let until = next.unwrap_or_else(|| self.now.saturating_add(self.patience)).max(self.now);
        let is_looked = self.looked_until.is_some_and(|looked| looked >= until) && !self.found;
        if !is_looked && self.rounds < ROUNDS_MAX {
            self.look(until, woken);
            return true;
        }
        if next.is_none() {
            self.patience = (self.patience * 2).min(PATIENCE_MAX);
            self.barren += 1;
            if self.barren > BARREN_MAX {
                tracing::warn!("virtual time stands still: a caller waits, and nothing is due");
            }
        }
        if until > self.now {
            self.jump(until, woken);
        } else {
            self.wake(woken, |sleep| {
                (sleep.kind == SleepKind::Advance && sleep.until <= until).then_some(Woken::AtEnd)
            });
        }
        true
    }

    /// Makes every process look for work, before the clock jumps.
    fn look(&mut self, until: Duration, woken: &mut Vec<Waker>) {
        (self.looked_until, self.found) = (Some(until), false);
        self.rounds += 1;
        self.statistics.rounds += 1;
        self.wake(woken, |sleep| sleep.is_look().then_some(Woken::Early));
    }

    fn jump(&mut self, until: Duration, woken: &mut Vec<Waker>) {
        (self.now, self.looked_until, self.rounds) = (until, None, 0);
        self.statistics.jumps += 1;
        self.wake(woken, |sleep| {
            let is_due = sleep.event().is_some_and(|event| event <= until) || sleep.is_look() && sleep.until <= until;
            is_due.then_some(Woken::AtEnd)
        });
    }

    /// Ends the sleeps for which `how` says how.
    fn wake(&mut self, woken: &mut Vec<Waker>, how: impl Fn(&Sleep) -> Option<Woken>) {
        let mut owners = Vec::new();
        for sleep in self.sleeps.values_mut().filter(|sleep| sleep.woken.is_none()) {
            let Some(end) = how(sleep) else { continue };
            sleep.woken = Some(end);
            woken.extend(sleep.waker.take());
            match sleep.owner {
                Some(owner) if self.units.contains_key(&owner) => owners.push(owner),
                _ => {
                    sleep.is_active = true;
                    self.active += 1;
                }
            }
        }
        for owner in owners {
            self.wake_unit(owner);
        }
    }
}
