use std::collections::BTreeMap;

use super::calls::{AuditRecord, Call, Restarted, Told};
use super::is_behind;
use super::violation::{Guarantee, Violation};
use super::{
    Act, Entry, Final, Kind, Ledger, Left, Op, RecordSeen, Recorded, SagaPlan, Standing, StepPlan, Variant, What,
};

/// The ledger, sorted by saga and by call. Places in it are places in `ledger.entries`.
pub(super) struct Book<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) sagas: Vec<SagaBook<'a>>,
    pub(super) calls: BTreeMap<u64, Call<'a>>,
}

/// What is known of one saga.
pub(super) struct SagaBook<'a> {
    pub(super) plan: &'a SagaPlan,
    pub(super) end: &'a Final,
    /// The variant that runs, by what is stored, else by what a client was told.
    pub(super) accepted: Option<u8>,
    /// The calls of its step functions, in the order in which they began.
    pub(super) calls: Vec<u64>,
    /// The starts: place, variant, number.
    pub(super) starts: Vec<(usize, u8, u64)>,
    /// What clients were told.
    pub(super) outcomes: Vec<(usize, Standing)>,
    /// What operators did, or tried to do.
    pub(super) acts: Vec<AuditRecord>,
    /// Where it was seen stuck.
    pub(super) stuck: Vec<usize>,
    /// Where clients cancelled it: the number of the call, and where they were told that it compensates, or nothing
    /// where no answer came. Those that were refused are not here.
    pub(super) cancels: Vec<(usize, u64, Option<usize>)>,
    /// The first place at which it may have been called off for its deadline, and the first behind that moment.
    pub(super) overdue: Option<usize>,
    pub(super) overdue_for_certain: Option<usize>,
    /// The calls that start it instead of another saga.
    pub(super) restarts: Vec<Restarted>,
    /// The steps that it took over from that one.
    pub(super) taken: Vec<u8>,
}

/// The step of the saga that is a step.
pub(super) const SUB_STEP: u8 = u8::MAX;

impl<'a> Book<'a> {
    pub(super) fn of(ledger: &'a Ledger) -> Self {
        let sagas = ledger.sagas.iter().zip(&ledger.finals);
        let sagas = sagas.map(|(plan, end)| SagaBook {
            plan,
            end,
            accepted: end.variant,
            calls: Vec::new(),
            starts: Vec::new(),
            outcomes: Vec::new(),
            acts: Vec::new(),
            stuck: Vec::new(),
            cancels: Vec::new(),
            overdue: end.overdue_at.map(|at| ledger.entries.partition_point(|entry| entry.at < at)),
            // What was committed before that is entered before anything that is no commit.
            overdue_for_certain: end.overdue_at.and_then(|at| {
                let is_behind = |entry: &Entry| entry.at > at && !matches!(entry.what, What::Wrote { .. });
                ledger.entries.iter().position(is_behind)
            }),
            restarts: Vec::new(),
            taken: Vec::new(),
        });
        let mut book = Self { ledger, sagas: sagas.collect(), calls: BTreeMap::new() };
        for at in 0..ledger.entries.len() {
            book.enter(at);
        }
        book.take_over();
        book
    }

    fn enter(&mut self, at: usize) {
        let entry = &self.ledger.entries[at];
        match &entry.what {
            What::RestartCalled { .. } => self.enter_restart(at, &entry.what),
            What::StartAnswered { call, answer } if self.answer_restart(at, *call, *answer) => {}
            What::StartCalled { call, saga, variant } => {
                self.sagas[*saga as usize].starts.push((at, *variant, *call));
            }
            What::StartAnswered { call, answer: super::Answer::Started { .. } } => {
                let of = |saga: &SagaBook<'_>| saga.starts.iter().find(|start| start.2 == *call).map(|start| start.1);
                let started = self.sagas.iter_mut().find_map(|saga| of(saga).map(|variant| (saga, variant)));
                if let Some((saga, variant)) = started {
                    saga.accepted = saga.accepted.or(Some(variant));
                }
            }
            What::OutcomeSeen { saga, standing } => self.sagas[*saga as usize].outcomes.push((at, *standing)),
            What::AuditRecord { saga, row, act, call, revision } => {
                self.sagas[*saga as usize].acts.push(AuditRecord {
                    at,
                    act: *act,
                    row: *row,
                    call: *call,
                    revision: *revision,
                    is_done: None,
                    times: 0,
                });
            }
            What::ActAnswered { call, is_done } => {
                let mut acts = self.sagas.iter_mut().flat_map(|saga| &mut saga.acts);
                if let Some(act) = acts.find(|act| act.call == *call) {
                    act.is_done = Some(*is_done);
                    act.times += u32::from(*is_done);
                }
            }
            What::CancelCalled { call, saga } => self.sagas[*saga as usize].cancels.push((at, *call, None)),
            What::CancelAnswered { call, is_turned } => {
                for saga in &mut self.sagas {
                    saga.cancels.retain(|cancel| cancel.1 != *call || *is_turned);
                    saga.cancels.iter_mut().filter(|cancel| cancel.1 == *call).for_each(|cancel| cancel.2 = Some(at));
                }
            }
            What::StuckSeen { saga } => self.sagas[*saga as usize].stuck.push(at),
            What::Entered { call, saga, variant, step, op, fence, reads, transaction } => {
                self.sagas[*saga as usize].calls.push(*call);
                self.calls.insert(
                    *call,
                    Call {
                        number: *call,
                        saga: *saga as usize,
                        variant: *variant,
                        step: *step,
                        op: *op,
                        fence: *fence,
                        reads: *reads,
                        transaction: *transaction,
                        process: entry.process,
                        entered: at,
                        left: None,
                        key: None,
                        took: Vec::new(),
                        barred: None,
                        found: None,
                        hauled: Vec::new(),
                        told: None,
                        reports: Vec::new(),
                        wrote: Vec::new(),
                    },
                );
            }
            what => self.enter_call(at, what),
        }
    }

    fn enter_call(&mut self, at: usize, what: &'a What) {
        let (What::Left { call, .. }
        | What::Called { call, .. }
        | What::Took { call }
        | What::Barred { call }
        | What::Found { call, .. }
        | What::Hauled { call }
        | What::Told { call, .. }
        | What::Reported { call, .. }
        | What::Wrote { call }) = what
        else {
            return;
        };
        // An effect without a call is found by `effects::check`, which reads the entries themselves.
        let Some(call) = self.calls.get_mut(call) else {
            return;
        };
        match what {
            What::Left { how, .. } => call.left = Some((at, *how)),
            What::Called { key, .. } => call.key = Some(key),
            What::Took { .. } => call.took.push(at),
            What::Hauled { .. } => call.hauled.push(at),
            What::Told { key, attempt, report, .. } => {
                call.told = Some(Told { key, attempt: *attempt, report: *report });
            }
            What::Reported { report, .. } => call.reports.push(*report),
            What::Barred { .. } => call.barred = Some(at),
            What::Found { saga, .. } => call.found = call.found.or(Some((at, *saga as usize))),
            _ => call.wrote.push(at),
        }
    }

    /// Whether a process may have lost its claim before that place: a crash, a stop, a fault that repeats runs, or a
    /// process that does not know its steps.
    pub(super) fn is_disturbed_before(&self, place: usize) -> bool {
        self.repeats_before(place) > 0 || self.disturbances_before(place) > 0
    }

    /// How often the engine may have run something once more without counting it, before that place.
    pub(super) fn repeats_before(&self, place: usize) -> usize {
        let before = self.ledger.entries[..place].iter().filter(|entry| entry.what == What::Repeated);
        before.count() + self.ledger.rest.repeats as usize
    }

    /// How often a process lost what it had, or did not know its steps, before that place.
    pub(super) fn disturbances_before(&self, place: usize) -> usize {
        let disturbs = |what: &What| matches!(what, What::Crashed | What::Paused | What::CutOff | What::Ignorant);
        self.ledger.entries[..place].iter().filter(|entry| disturbs(&entry.what)).count()
    }

    /// When that was.
    pub(super) fn time_of(&self, place: usize) -> u64 {
        self.ledger.entries[place].at
    }

    /// The calls of one step of a saga, in the order in which they began.
    pub(super) fn calls_of(&self, saga: usize, step: u8, op: Op) -> impl Iterator<Item = &Call<'a>> {
        let calls = self.sagas[saga].calls.iter().filter_map(|number| self.calls.get(number));
        calls.filter(move |call| call.step == step && call.op == op)
    }

    /// The calls of one step of a saga that ended well before `call` began, in the same transaction.
    pub(super) fn ran_together<'b>(
        &'b self,
        saga: usize,
        step: u8,
        op: Op,
        call: &'b Call<'a>,
    ) -> impl Iterator<Item = &'b Call<'a>> {
        let ended_before = |other: &Call<'_>| matches!(other.left, Some((at, Left::Done)) if at < call.entered);
        self.calls_of(saga, step, op).filter(move |other| {
            other.transaction.is_some() && other.transaction == call.transaction && ended_before(other)
        })
    }

    /// Where one step of a saga took effect, and by which call: the first time.
    pub(super) fn effect_of(&self, saga: usize, step: u8, op: Op) -> Option<(usize, &Call<'a>)> {
        let effects = self.calls_of(saga, step, op).filter_map(|call| call.effect().map(|at| (at, call)));
        effects.min_by_key(|(at, _)| *at)
    }
}

impl<'a> SagaBook<'a> {
    pub(super) fn variant(&self) -> Option<&'a Variant> {
        self.plan.variants.get(usize::from(self.accepted?))
    }

    /// Whether the two stand in branches beside each other.
    pub(super) fn are_apart(&self, one: u8, other: u8) -> bool {
        one != other && !self.is_behind(one, other) && !self.is_behind(other, one)
    }

    /// Whether the later step only begins when the earlier one is done.
    pub(super) fn is_behind(&self, later: u8, earlier: u8) -> bool {
        let steps = self.variant().map(|variant| variant.steps.as_slice()).unwrap_or_default();
        is_behind(steps, later, earlier)
    }

    /// The steps of what was accepted, with their numbers.
    pub(super) fn steps(&self) -> impl Iterator<Item = (u8, &'a StepPlan)> + use<'a> {
        self.variant().into_iter().flat_map(|variant| (0..).zip(&variant.steps))
    }

    /// What operators did, as far as it was not refused.
    pub(super) fn acts(&self) -> impl Iterator<Item = Act> {
        self.acts.iter().filter(|act| act.is_done != Some(false)).map(|act| act.act)
    }

    /// Whether an operator ended it, or the saga that is a step of it.
    pub(super) fn is_forced(&self) -> bool {
        self.acts.iter().any(AuditRecord::ends_saga_or_sub_saga)
    }

    /// Whether an operator ended one of its steps where it is hosted.
    pub(super) fn is_forced_at_a_host(&self) -> bool {
        self.steps().any(|(step, _)| self.is_forced_at_its_host(step))
    }

    /// Whether it may have been called off before that place, by a client or for its deadline.
    pub(super) fn may_be_called_off_before(&self, place: usize) -> bool {
        self.cancels.iter().any(|(at, ..)| *at < place) || self.overdue.is_some_and(|overdue| overdue <= place)
    }

    /// Where a client was first told that it compensates, or where its deadline had certainly called it off.
    pub(super) fn compensated_from(&self) -> Option<usize> {
        self.cancels.iter().filter_map(|(.., told)| *told).chain(self.overdue_for_certain).min()
    }

    /// Whether it is a step of the saga that is a step of this one.
    pub(super) fn is_sub(&self, step: u8) -> bool {
        self.variant().and_then(|variant| variant.steps.get(usize::from(step))).is_some_and(|step| step.is_sub)
    }

    /// Whether the step stands in an arm that was not taken.
    pub(super) fn is_passed_by(&self, step: u8) -> bool {
        let arms = self.variant().and_then(|variant| variant.steps.get(usize::from(step))).map(|step| &step.arms);
        arms.into_iter().flatten().any(|arm| {
            self.end.chosen.iter().any(|chosen| chosen.choice == arm.choice && chosen.arm.as_ref() != Some(&arm.arm))
        })
    }

    /// Whether a step is none that this saga itself does: it stands in an arm that was not taken, or was taken over.
    pub(super) fn is_left_out(&self, step: u8) -> bool {
        self.is_passed_by(step) || self.taken.contains(&step)
    }

    /// Whether an operator ended that step where it is hosted.
    pub(super) fn is_forced_at_its_host(&self, step: u8) -> bool {
        self.acts.iter().any(|act| act.ends_hosted(step))
    }

    /// Whether an operator went past that step.
    pub(super) fn is_skipped(&self, step: u8, op: Op) -> bool {
        self.acts().any(|act| act == Act::Skip { step, op })
    }

    /// Whether an operator left as it is what a call of that step did, or may still do.
    pub(super) fn is_left_as_it_is(&self, call: &Call<'_>) -> bool {
        let (skip, is_hosted) = (Act::Skip { step: call.step, op: Op::Undo }, self.host(call.step).is_some());
        let mut not_refused = self.acts.iter().filter(|act| act.is_done != Some(false));
        // Nothing begins behind the undo that was skipped, unless a host does: what it begins, it undoes.
        not_refused.any(|act| act.act == skip && (is_hosted || call.entered < act.at))
    }

    /// How many undos of a step came to an end, by a call or by an operator.
    pub(super) fn undos_ended(&self, step: u8) -> usize {
        let ended = |record: &&RecordSeen| matches!(record.outcome, Recorded::Done | Recorded::Skipped);
        let records = self.end.records.iter().filter(|record| record.step == step && record.op == Op::Undo);
        records.filter(ended).count()
    }

    /// What a step or its undo acts on; nothing where there is no such step.
    pub(super) fn kind(&self, step: u8, op: Op) -> Option<Kind> {
        let plan = self.variant()?.steps.get(usize::from(step))?;
        match op {
            Op::Do => Some(plan.kind),
            Op::Undo => plan.undo.as_ref().map(|undo| undo.kind),
        }
    }

    /// The service that does a step, where that is not the saga's own.
    pub(super) fn host(&self, step: u8) -> Option<u8> {
        self.variant()?.steps.get(usize::from(step))?.host
    }

    /// The step's name, for messages.
    pub(super) fn name(&self, step: u8, op: Op) -> String {
        let name = self.variant().and_then(|variant| variant.steps.get(usize::from(step)));
        let name = name.map_or("?", |step| &step.name);
        let undo = if op == Op::Undo { ":undo" } else { "" };
        format!("{}:{name}{undo}", self.plan.key)
    }
}

/// Notes a violation.
pub(super) fn broken(found: &mut Vec<Violation>, guarantee: Guarantee, saga: Option<usize>, about: impl Into<String>) {
    found.push(Violation { guarantee, saga, about: about.into() });
}
