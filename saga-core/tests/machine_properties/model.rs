//! G5 once more, written from its text and from nothing else: a list of the effects that stand, in the order in which
//! they came to stand, a direction, and the commands that nobody has answered.

mod next;
mod operator;

use std::ops::Range;

use saga_core::machine::{Command, Effect, Event, Shape, Side, StepShape, UndoShape};
use saga_core::store::Status;

/// What the model believes.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    shape: Shape,
    /// Whether the first step only begins when the second is done.
    is_behind: Vec<Vec<bool>>,
    /// The steps of the definition, and behind them the items of lists.
    steps: Vec<Known>,
    /// The step that is done for each item of a list, and where its items stand.
    items: Vec<(usize, Range<usize>)>,
    /// The steps whose effect stands or may stand, the oldest first.
    standing: Vec<usize>,
    goes_back: bool,
    ended: Option<Status>,
    /// Whether a person holds it up.
    is_paused: bool,
    /// The commands that nobody has answered.
    open: Vec<Open>,
    /// How often something got stuck.
    stuck: usize,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    command: Command,
    /// Set where a person is to decide about it: the how many-eth that got stuck.
    stuck: Option<usize>,
}

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is something that is known or not")]
struct Known {
    begun: bool,
    settled: bool,
    /// Whether what stands behind it may begin.
    passed: bool,
    success: bool,
    /// Whether a person was called although it may have happened.
    maybe: bool,
    rounds: u32,
    /// A success was reported while an undo that does not know of it is open.
    undo_again: bool,
    /// The open undo was tried without knowing, before a person had it tried again.
    was_tried: bool,
    /// The signal that it waited for, and that decides.
    signal: Option<u128>,
}

fn closure(shape: &Shape) -> Vec<Vec<bool>> {
    let count = shape.steps.len();
    let mut behind = vec![vec![false; count]; count];
    for (step, shape) in shape.steps.iter().enumerate() {
        let before: Vec<usize> = shape.after.clone().unwrap_or_else(|| step.checked_sub(1).into_iter().collect());
        for before in before {
            behind[step][before] = true;
            let further = behind[before].clone();
            for (is_behind, further) in behind[step].iter_mut().zip(further) {
                *is_behind |= further;
            }
        }
    }
    behind
}

impl Model {
    pub(crate) fn start(shape: &Shape) -> (Self, Vec<Command>) {
        let mut model = Self {
            shape: shape.clone(),
            is_behind: closure(shape),
            steps: vec![Known::default(); shape.steps.len()],
            items: Vec::new(),
            standing: Vec::new(),
            goes_back: false,
            ended: None,
            is_paused: false,
            open: Vec::new(),
            stuck: 0,
        };
        let commands = model.next();
        (model, commands)
    }

    pub(crate) fn status(&self) -> Status {
        if self.is_paused {
            return Status::Paused;
        }
        match (self.is_stuck(), self.ended, self.goes_back) {
            (true, ..) => Status::Stuck,
            (false, Some(ended), _) => ended,
            (false, None, false) => Status::Running,
            (false, None, true) => Status::Compensating,
        }
    }

    /// The commands that somebody will answer.
    pub(crate) fn in_flight(&self) -> Vec<Command> {
        self.open.iter().filter(|open| open.stuck.is_none()).map(|open| open.command).collect()
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused
    }

    pub(crate) fn has_begun(&self, step: usize) -> bool {
        self.steps[step].begun
    }

    /// The commands that follow from an event.
    pub(crate) fn on(&mut self, event: &Event) -> Vec<Command> {
        let commands = self.follow(event);
        // Nobody holds up what has ended.
        self.is_paused &= self.ended.is_none();
        commands
    }

    fn follow(&mut self, event: &Event) -> Vec<Command> {
        match *event {
            Event::Done { step } | Event::LateSuccess { step } => self.success(step),
            Event::Rejected { step, .. } | Event::Failed { step, .. } => self.failed(step),
            Event::Unknown { step, .. } => self.unknown(step),
            Event::Cancelled { step } => self.cancelled(step),
            // While the saga goes back, it only matters whether the step took effect.
            Event::Blocked { step, in_doubt: maybe, .. } if self.is_given_up(step) => {
                if maybe || self.steps[step].maybe { self.unknown(step) } else { self.did_not_happen(step) }
            }
            Event::Blocked { step, in_doubt: maybe, .. } if self.is_open(step) => {
                self.steps[step].maybe |= maybe;
                self.needs_a_person(step)
            }
            Event::UndoBlocked { step, .. } => self.needs_a_person(step),
            Event::Undone { step, informed } => self.undone(step, informed),
            Event::Chosen { step, arm } => self.chosen(step, arm),
            Event::Listed { step, items } => self.listed(step, items),
            Event::UndoRequested => self.taken_back(),
            Event::CancelRequested { .. } | Event::DeadlinePassed => {
                // Something is open, so nothing follows at once, unless somebody holds it up.
                self.goes_back |= self.may_be_called_off();
                if self.is_paused { self.next() } else { Vec::new() }
            }
            Event::Paused { .. } => {
                self.is_paused = self.ended.is_none();
                Vec::new()
            }
            // No saga that is under way takes anything over, no owner loses its claim, and none of these takes a lock:
            // `cases.rs` and `locks.rs` have what follows then.
            Event::Blocked { .. }
            | Event::Parked { .. }
            | Event::Restarted { .. }
            | Event::LateUnknown { .. }
            | Event::Unlocked { .. } => Vec::new(),
            Event::Resumed => {
                self.is_paused = false;
                self.next()
            }
            Event::Signalled { step, id } => {
                // Who has the step's command finds it there.
                self.steps[step].signal = Some(id);
                Vec::new()
            }
            Event::Operator(ref action) => self.operator(action),
        }
    }

    fn base(&self, step: usize) -> usize {
        self.items.iter().find(|(_, items)| items.contains(&step)).map_or(step, |(base, _)| *base)
    }

    fn is_listed(&self, step: usize) -> bool {
        self.items.iter().any(|(base, _)| *base == step)
    }

    /// A step that is done for each item of a list has no effect itself.
    fn undo_of(&self, step: usize) -> UndoShape {
        match self.shape.steps.get(step) {
            Some(of) if of.each.is_some() => UndoShape::NotNeeded,
            _ => self.shape.steps[self.base(step)].undo,
        }
    }

    /// Whether a signal for the step would decide: it has not ended, and none came before.
    pub(crate) fn may_be_signalled(&self, step: usize) -> bool {
        let known = &self.steps[step];
        let awaits = self.shape.steps.get(step).is_some_and(|step| step.effect == Effect::Signal);
        awaits && known.signal.is_none() && !known.settled && !known.passed && !self.goes_back && self.ended.is_none()
    }

    /// Whether that signal came before.
    pub(crate) fn knows_signal(&self, step: usize, id: u128) -> bool {
        self.steps[step].signal == Some(id)
    }

    /// Whether the step only waits.
    fn is_idle(&self, step: usize) -> bool {
        let is_own = |effect| matches!(effect, Effect::Own | Effect::Signal);
        let is_more = |step: &StepShape| step.each.is_some() || step.child.is_some() || !step.arms.is_empty();
        self.shape.steps.get(step).is_some_and(|step| is_own(step.effect) && !is_more(step))
    }

    /// The saga turns round because something of it failed: nobody waits for what only waits.
    fn turn_round(&mut self) {
        self.goes_back = true;
        self.end_idle();
    }

    fn end_idle(&mut self) {
        let of_idle = |open: &&Open| matches!(open.command, Command::Do { step } if self.is_idle(step));
        let waiting: Vec<usize> = self
            .open
            .iter()
            .filter(of_idle)
            .filter(|open| open.stuck.is_none())
            .map(|open| step_of(open.command))
            .collect();
        for step in waiting {
            self.settle(step);
        }
    }

    fn listed(&mut self, step: usize, count: usize) -> Vec<Command> {
        let is_each = self.shape.steps.get(step).is_some_and(|step| step.each.is_some());
        if !is_each || self.is_listed(step) || !self.is_open(step) {
            return Vec::new();
        }
        if self.goes_back || self.ended.is_some() {
            return self.cancelled(step);
        }
        self.close(step);
        let first = self.steps.len();
        self.items.push((step, first..first + count));
        self.steps.resize(first + count, Known::default());
        self.next()
    }

    /// Whether the saga goes forward, and has not come to its pivot.
    pub(crate) fn may_be_called_off(&self) -> bool {
        !self.goes_back && self.ended.is_none() && self.shape.pivot.is_none_or(|pivot| !self.steps[pivot].begun)
    }

    fn chosen(&mut self, step: usize, arm: Option<usize>) -> Vec<Command> {
        if !self.is_open(step) {
            return Vec::new();
        }
        if self.goes_back || self.ended.is_some() {
            return self.cancelled(step);
        }
        self.settle(step);
        self.steps[step].passed = true;
        self.leave_out(step, arm);
        self.next()
    }

    /// What stands in the other arms, however deep, never begins, and nothing waits for it.
    fn leave_out(&mut self, choice: usize, taken: Option<usize>) {
        for step in 0..self.shape.steps.len() {
            let mut around = self.shape.arms_around(step);
            if around.any(|arm| arm.choice == choice && Some(arm.arm) != taken) {
                (self.steps[step].begun, self.steps[step].passed) = (true, true);
            }
        }
    }

    pub(crate) fn is_stuck(&self) -> bool {
        self.open.iter().any(|open| open.stuck.is_some())
    }

    fn is_open(&self, step: usize) -> bool {
        self.open.iter().any(|open| open.command == Command::Do { step })
    }

    /// Whether the saga goes back and does not wait for an operator about the step. What is done elsewhere is not known here.
    fn is_given_up(&self, step: usize) -> bool {
        let is_in_flight = |open: &Open| open.command == Command::Do { step } && open.stuck.is_none();
        let of_base = &self.shape.steps[self.base(step)];
        // The list itself is made here.
        let is_list = self.shape.steps.get(step).is_some_and(|step| step.each.is_some());
        let is_remote = matches!(of_base.effect, Effect::Remote { .. }) && !is_list;
        let is_elsewhere = of_base.child.is_some() || is_remote;
        self.goes_back && self.ended.is_none() && !is_elsewhere && self.open.iter().any(is_in_flight)
    }

    fn is_undone_now(&self, step: usize) -> bool {
        self.open.iter().any(|open| matches!(open.command, Command::Undo { step: open, .. } if open == step))
    }

    fn success(&mut self, step: usize) -> Vec<Command> {
        if self.is_open(step) {
            self.settle(step);
            (self.steps[step].success, self.steps[step].passed) = (true, true);
            self.stands(step);
            self.back_again();
            return self.next();
        }
        if self.is_idle(step) {
            return Vec::new();
        }
        let known = &mut self.steps[step];
        if !known.settled || std::mem::replace(&mut known.success, true) {
            return Vec::new();
        }
        // It was decided without this success. An undo that is under way did not know of it, so another one follows.
        if self.is_undone_now(step) {
            self.steps[step].undo_again = true;
            return Vec::new();
        }
        self.stands(step);
        self.back_again();
        if self.goes_back { self.next() } else { Vec::new() }
    }

    fn failed(&mut self, step: usize) -> Vec<Command> {
        if !self.is_open(step) {
            return Vec::new();
        }
        // A saga that goes back does so behind its pivot as well.
        if !self.goes_back && self.shape.side(self.base(step)) == Side::After {
            return self.needs_a_person(step);
        }
        self.settle(step);
        if self.ended.is_none() && !self.goes_back {
            self.turn_round();
        }
        self.next()
    }

    fn unknown(&mut self, step: usize) -> Vec<Command> {
        if !self.is_open(step) {
            return Vec::new();
        }
        let can_undo = matches!(self.undo_of(step), UndoShape::TakesUnknown | UndoShape::NotNeeded);
        let goes_forward = !self.goes_back && self.ended.is_none();
        if (goes_forward && self.shape.side(self.base(step)) != Side::Before) || !can_undo {
            self.steps[step].maybe = true;
            return self.needs_a_person(step);
        }
        self.settle(step);
        self.stands(step);
        self.back_again();
        if self.ended.is_none() && !self.goes_back {
            self.turn_round();
        }
        self.next()
    }

    /// A command that comes back while the saga goes forward is given out again; else it never begins.
    fn cancelled(&mut self, step: usize) -> Vec<Command> {
        if !self.is_open(step) {
            Vec::new()
        } else if !self.goes_back && self.ended.is_none() {
            vec![Command::Do { step }]
        } else {
            self.settle(step);
            self.next()
        }
    }

    /// How the open undo of a step can end: what nobody has reported, no call of it knows.
    pub(crate) fn answers_to_undo(&self, step: usize) -> [Event; 2] {
        [false, self.steps[step].success].map(|informed| Event::Undone { step, informed })
    }

    fn undone(&mut self, step: usize, informed: bool) -> Vec<Command> {
        if !self.is_undone_now(step) {
            return Vec::new();
        }
        self.standing.retain(|&other| other != step);
        self.close(step);
        let is_tried_blindly = std::mem::take(&mut self.steps[step].was_tried) || !informed;
        if std::mem::take(&mut self.steps[step].undo_again) && is_tried_blindly {
            self.standing.push(step);
            self.back_again();
        }
        self.next()
    }

    fn taken_back(&mut self) -> Vec<Command> {
        if !self.open.is_empty() || self.goes_back || self.ended == Some(Status::Compensated) {
            return Vec::new();
        }
        (self.goes_back, self.ended) = (true, None);
        self.next()
    }
}

fn step_of(command: Command) -> usize {
    match command {
        Command::Do { step } | Command::Undo { step, .. } => step,
    }
}
