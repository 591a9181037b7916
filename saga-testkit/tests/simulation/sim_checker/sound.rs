//! Makes ledgers of runs in which nothing went wrong that a runtime may not live with.

use std::collections::BTreeMap;

use saga_testkit::checker::{
    Answer, Entry, Final, Kind, Ledger, Left, Nap, Op, RecordSeen, Recorded, SagaPlan, SagaTime, Sent, Standing,
    StepPlan, UndoPlan, Variant, What,
};
use saga_testkit::sim::Random;

/// A few sagas side by side; the first two have one key in two tenants.
pub(crate) fn ledger(random: &mut Random) -> Ledger {
    let mut ledger = Ledger::default();
    let mut numbers = 0;
    let mut lanes = Vec::new();
    for saga in 0..random.between(3, 5) as u32 {
        let plan = SagaPlan {
            tenant: if saga == 1 { "other".to_owned() } else { String::new() },
            key: if saga < 2 { "twice".to_owned() } else { format!("k{saga}") },
            is_taken_back: false,
            reborn_of: None,
            time: SagaTime { begins_in: 0, within: random.per_mille(300).then(|| random.below(9)) },
            variants: (0..random.between(1, 2)).map(|_| variant(random)).collect(),
        };
        let mut run = Run {
            saga,
            random,
            plan: &plan,
            numbers: &mut numbers,
            entries: Vec::new(),
            records: Vec::new(),
            told: Vec::new(),
            reported: BTreeMap::new(),
        };
        let standing = run.whole();
        let end = Final {
            standing,
            variant: Some(0),
            records: run.records,
            told: run.told,
            chosen: Vec::new(),
            signal: None,
            overdue_at: None,
        };
        lanes.push(run.entries.into_iter());
        ledger.finals.push(end);
        ledger.sagas.push(plan);
    }
    while !lanes.is_empty() {
        let lane = random.below(lanes.len() as u64) as usize;
        match lanes[lane].next() {
            Some(what) => {
                let at = ledger.entries.len() as u64;
                let process = u16::from(!matches!(what, What::StartCalled { .. } | What::OutcomeSeen { .. }));
                ledger.entries.push(Entry { at, process, what });
            }
            None => drop(lanes.remove(lane)),
        }
    }
    ledger
}

fn variant(random: &mut Random) -> Variant {
    let count = random.between(2, 5) as u8;
    let pivot = random.per_mille(300).then(|| random.between(1, u64::from(count) - 1) as u8);
    let definition = format!("d{}", random.below(3));
    let steps = (0..count).map(|step| {
        let kind = if random.per_mille(500) { Kind::Transactional } else { Kind::External };
        let has_undo = pivot.is_none_or(|pivot| step < pivot) && random.per_mille(900);
        StepPlan {
            name: format!("s{step}"),
            kind,
            is_exclusive: false,
            locks: None,
            held: Vec::new(),
            host: random.per_mille(300).then(|| random.between(1, 2) as u8),
            undo: has_undo.then(|| UndoPlan {
                kind,
                takes_unknown: random.per_mille(600),
                emits: random.below(2) as u8,
                attempts: 3,
            }),
            after: None,
            arms: Vec::new(),
            is_sub: false,
            nap: Nap::default(),
            reads: (step > 0 && random.per_mille(500)).then(|| random.below(u64::from(step)) as u8),
            is_pivot: pivot == Some(step),
            emits: random.below(3) as u8,
            attempts: 3,
        }
    });
    let steps = steps.collect();
    Variant { definition, steps }
}

/// One saga on its way.
struct Run<'a> {
    saga: u32,
    random: &'a mut Random,
    plan: &'a SagaPlan,
    numbers: &'a mut u64,
    entries: Vec<What>,
    records: Vec<RecordSeen>,
    told: Vec<RecordSeen>,
    /// What each step, or its undo, reported last.
    reported: BTreeMap<(u8, Op), u64>,
}

/// How a step ended.
enum Turn {
    /// The call that was recorded, and the one that took effect.
    Done(u64),
    Rejected,
    /// The call that took effect, if one did.
    Unknown(Option<u64>),
}

impl Run<'_> {
    fn whole(&mut self) -> Standing {
        self.starts();
        let plan = self.plan;
        let mut effects: Vec<Option<u64>> = Vec::new();
        let mut has_passed_pivot = false;
        for (step, plan) in (0..).zip(&plan.variants[0].steps) {
            let reads = plan.reads.and_then(|earlier| effects[usize::from(earlier)]);
            self.asks(step, Op::Do);
            match self.step(step, plan, reads, !has_passed_pivot) {
                Turn::Done(effect) => effects.push(Some(effect)),
                Turn::Rejected => {
                    self.record(step, Op::Do, Recorded::NotDone, None);
                    return self.compensate(&effects, None);
                }
                Turn::Unknown(effect) => {
                    self.record(step, Op::Do, Recorded::Unknown, None);
                    return self.compensate(&effects, Some((step, effect)));
                }
            }
            has_passed_pivot |= plan.is_pivot;
        }
        self.outcome(Standing::Completed)
    }

    fn outcome(&mut self, standing: Standing) -> Standing {
        let saga = self.saga;
        for _ in 0..self.random.below(3) {
            self.entries.push(What::OutcomeSeen { saga, standing });
        }
        standing
    }

    fn starts(&mut self) {
        let saga = self.saga;
        let answers = [
            (0, Answer::Started { is_new: Some(true) }),
            (0, Answer::Started { is_new: Some(false) }),
            (1, Answer::Refused),
        ];
        for (nth, (variant, answer)) in answers.into_iter().enumerate() {
            let exists = usize::from(variant) < self.plan.variants.len();
            if nth == 0 || (exists && self.random.per_mille(500)) {
                let call = self.number();
                self.entries.push(What::StartCalled { call, saga, variant });
                self.entries.push(What::StartAnswered { call, answer });
            }
        }
    }

    /// A step, with some attempts that fail first.
    fn step(&mut self, step: u8, plan: &StepPlan, reads: Option<u64>, may_fail: bool) -> Turn {
        let can_be_unknown = plan.kind == Kind::External && plan.undo.as_ref().is_some_and(|undo| undo.takes_unknown);
        let mut took = None;
        for attempt in 1..=plan.attempts {
            let call = self.enter(step, Op::Do, reads);
            if may_fail && took.is_none() && self.random.per_mille(100) {
                self.arrives(step, Op::Do, plan.kind, call);
                self.left(call, Left::Rejected);
                return if attempt > 1 && can_be_unknown { Turn::Unknown(None) } else { Turn::Rejected };
            }
            let is_last = attempt == plan.attempts;
            let is_given_up = is_last && may_fail && can_be_unknown && self.random.per_mille(700);
            if is_given_up || (!is_last && self.random.per_mille(300)) {
                // The answer is lost: outside it may have happened, in a transaction it is rolled back.
                self.arrives(step, Op::Do, plan.kind, call);
                if plan.kind == Kind::External && took.is_none() && self.random.per_mille(500) {
                    self.entries.push(What::Took { call });
                    took = Some(call);
                }
                self.left(call, Left::Failed);
                if is_given_up {
                    return Turn::Unknown(took);
                }
                continue;
            }
            self.arrives(step, Op::Do, plan.kind, call);
            let effect = *took.get_or_insert(call);
            self.succeeds(step, Op::Do, plan.kind, call, effect == call, plan.emits);
            return Turn::Done(effect);
        }
        unreachable!("the last attempt of a step always ends it")
    }

    /// Everything that took effect, and what may have, is undone from the end to the beginning.
    fn compensate(&mut self, effects: &[Option<u64>], unknown: Option<(u8, Option<u64>)>) -> Standing {
        let plan = self.plan;
        let done = (0..).zip(effects).map(|(step, effect)| (step, *effect, *effect));
        let all: Vec<_> = done.chain(unknown.map(|(step, effect)| (step, effect, None))).collect();
        for (step, effect, reads) in all.into_iter().rev() {
            let Some(undo) = &plan.variants[0].steps[usize::from(step)].undo else { continue };
            self.asks(step, Op::Undo);
            let is_repeated = self.random.per_mille(200);
            if is_repeated {
                let call = self.enter(step, Op::Undo, reads);
                self.arrives(step, Op::Undo, undo.kind, call);
                self.left(call, Left::Failed);
            }
            let call = self.enter(step, Op::Undo, reads);
            self.arrives(step, Op::Undo, undo.kind, call);
            if effect.is_none() {
                self.entries.push(What::Barred { call });
            }
            self.succeeds(step, Op::Undo, undo.kind, call, effect.is_some(), undo.emits);
        }
        self.outcome(Standing::Compensated)
    }

    fn number(&mut self) -> u64 {
        *self.numbers += 1;
        *self.numbers
    }

    fn enter(&mut self, step: u8, op: Op, reads: Option<u64>) -> u64 {
        let call = self.number();
        let is_same =
            |what: &&What| matches!(what, What::Entered { step: of, op: how, .. } if (*of, *how) == (step, op));
        let fence = self.entries.iter().filter(is_same).count() as u64 + 1;
        self.entries.push(What::Entered {
            call,
            saga: self.saga,
            variant: 0,
            step,
            op,
            fence,
            reads,
            transaction: None,
        });
        call
    }

    fn arrives(&mut self, step: u8, op: Op, kind: Kind, call: u64) {
        if kind == Kind::External {
            let (tenant, key) = (&self.plan.tenant, &self.plan.key);
            let key = format!("{tenant}/{key}:s{step}{}", if op == Op::Undo { ":undo" } else { "" });
            let attempt = self.entries.iter().find_map(|what| match what {
                What::Entered { call: entered, fence, .. } if *entered == call => Some(*fence as u32),
                _ => None,
            });
            let report = self.reported.get(&(step, op)).copied();
            self.entries.push(What::Told { call, key: key.clone(), attempt: attempt.unwrap_or(1), report });
            self.entries.push(What::Called { call, key });
            for _ in 0..self.random.below(3) {
                let report = self.number();
                self.entries.push(What::Reported { call, report });
                self.reported.insert((step, op), report);
            }
        }
    }

    fn left(&mut self, call: u64, how: Left) {
        self.entries.push(What::Left { call, how });
    }

    fn succeeds(&mut self, step: u8, op: Op, kind: Kind, call: u64, is_first: bool, emits: u8) {
        if kind == Kind::External && is_first {
            self.entries.push(What::Took { call });
        }
        self.left(call, Left::Done);
        if kind == Kind::Transactional {
            self.entries.push(What::Wrote { call });
        }
        self.record(step, op, Recorded::Done, (op == Op::Do).then_some(call));
        for nth in
            (0..emits).flat_map(|nth| std::iter::repeat_n(nth, self.random.between(1, 2) as usize)).collect::<Vec<_>>()
        {
            let (tenant, key) = (self.plan.tenant.clone(), self.plan.key.clone());
            self.entries.push(What::Delivered { message: format!("m{call}-{nth}"), tenant, key, call, nth });
        }
    }

    /// A step of another service is asked for, once or more often.
    fn asks(&mut self, step: u8, op: Op) {
        if self.plan.variants[0].steps[usize::from(step)].host.is_none() {
            return;
        }
        let kind = if op == Op::Do { Sent::Command } else { Sent::Undo };
        for _ in 0..self.random.between(1, 2) {
            self.entries.push(What::Sent {
                message: self.question(step, op),
                kind,
                saga: self.saga,
                step,
                asked: None,
                input: Some(format!("input of {}-{step}", self.saga)),
            });
        }
    }

    fn question(&self, step: u8, op: Op) -> String {
        format!("{op:?}-{}-{step}", self.saga)
    }

    fn record(&mut self, step: u8, op: Op, outcome: Recorded, call: Option<u64>) {
        let position = self.records.len() as u32;
        let record = RecordSeen { step, op, outcome, call, is_late: false, position };
        if self.plan.variants[0].steps[usize::from(step)].host.is_some() {
            self.told.push(record.clone());
            let asked = Some(self.question(step, op));
            let message = format!("reply-{op:?}-{}-{step}", self.saga);
            self.entries.push(What::Sent { message, kind: Sent::Reply, saga: self.saga, step, asked, input: None });
        }
        self.records.push(record);
    }
}
