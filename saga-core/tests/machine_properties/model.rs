//! G5 once more, written from its text and from nothing else: a list of the effects that stand, in the order in which
//! they came to stand, and a direction.

use saga_core::machine::{Action, Command, Event, Shape, Side, UndoShape};
use saga_core::store::Status;

/// What the model believes.
#[derive(Debug)]
pub(crate) struct Model {
    shape: Shape,
    steps: Vec<Known>,
    /// The steps whose effect stands or may stand, the oldest first.
    standing: Vec<usize>,
    goes_back: bool,
    ended: Option<Status>,
    is_stuck: bool,
    /// The command that nobody has answered. Of a stuck saga it is what is stuck.
    pub(crate) open: Option<Command>,
    /// A success was reported while an undo that does not know of it is open.
    undo_again: bool,
    /// The open undo was tried without knowing, before a person had it tried again.
    was_tried: bool,
}

#[derive(Debug, Clone, Default)]
struct Known {
    begun: bool,
    settled: bool,
    success: bool,
    rounds: u32,
}

impl Model {
    pub(crate) fn start(shape: &Shape) -> (Self, Vec<Command>) {
        let mut model = Self {
            shape: shape.clone(),
            steps: vec![Known::default(); shape.steps.len()],
            standing: Vec::new(),
            goes_back: false,
            ended: None,
            is_stuck: false,
            open: None,
            undo_again: false,
            was_tried: false,
        };
        let commands = model.next();
        (model, commands)
    }

    pub(crate) fn status(&self) -> Status {
        match (self.is_stuck, self.ended, self.goes_back) {
            (true, ..) => Status::Stuck,
            (false, Some(ended), _) => ended,
            (false, None, false) => Status::Running,
            (false, None, true) => Status::Compensating,
        }
    }

    pub(crate) fn has_begun(&self, step: usize) -> bool {
        self.steps[step].begun
    }

    /// The commands that follow from an event.
    pub(crate) fn on(&mut self, event: &Event) -> Vec<Command> {
        match *event {
            Event::Done { step } | Event::Late { step } => self.success(step),
            Event::Rejected { step, .. } | Event::Failed { step, .. } => self.failed(step),
            Event::Unknown { step, .. } => self.unknown(step),
            Event::Cancelled { step } if self.is_open(step) && !self.is_stuck => vec![Command::Do { step }],
            Event::Cancelled { .. } => Vec::new(),
            Event::Blocked { .. } | Event::UndoBlocked { .. } => self.needs_a_person(),
            Event::Undone { step, informed } => self.undone(step, informed),
            Event::TakenBack => self.taken_back(),
            Event::Operator(ref action) => self.operator(action),
        }
    }

    fn is_open(&self, step: usize) -> bool {
        self.open == Some(Command::Do { step })
    }

    fn success(&mut self, step: usize) -> Vec<Command> {
        if self.is_open(step) {
            self.settle(step);
            self.steps[step].success = true;
            self.standing.push(step);
            return self.next();
        }
        let known = &mut self.steps[step];
        if !known.settled || std::mem::replace(&mut known.success, true) {
            return Vec::new();
        }
        // It was decided without this success. An undo that is under way did not know of it, so another one follows.
        if matches!(self.open, Some(Command::Undo { step: open, .. }) if open == step) {
            self.undo_again = true;
            return Vec::new();
        }
        self.standing.retain(|&other| other != step);
        self.standing.push(step);
        if self.ended == Some(Status::Completed) || !(self.goes_back || self.ended.is_some()) {
            return Vec::new();
        }
        (self.goes_back, self.ended) = (true, None);
        self.next()
    }

    fn failed(&mut self, step: usize) -> Vec<Command> {
        if !self.is_open(step) || self.is_stuck {
            return Vec::new();
        }
        if self.shape.side(step) == Side::After {
            return self.needs_a_person();
        }
        self.settle(step);
        self.goes_back = true;
        self.next()
    }

    fn unknown(&mut self, step: usize) -> Vec<Command> {
        if !self.is_open(step) || self.is_stuck {
            return Vec::new();
        }
        let can_undo = matches!(self.shape.steps[step].undo, UndoShape::TakesUnknown | UndoShape::NotNeeded);
        if self.shape.side(step) != Side::Before || !can_undo {
            return self.needs_a_person();
        }
        self.settle(step);
        self.standing.push(step);
        self.goes_back = true;
        self.next()
    }

    /// How the open undo of a step can end: what nobody has reported, no call of it knows.
    pub(crate) fn answers_to_undo(&self, step: usize) -> [Event; 2] {
        [false, self.steps[step].success].map(|informed| Event::Undone { step, informed })
    }

    fn undone(&mut self, step: usize, informed: bool) -> Vec<Command> {
        if !matches!(self.open, Some(Command::Undo { step: open, .. }) if open == step) {
            return Vec::new();
        }
        self.standing.retain(|&other| other != step);
        let is_tried_blindly = std::mem::take(&mut self.was_tried) || !informed;
        if std::mem::take(&mut self.undo_again) && is_tried_blindly {
            self.standing.push(step);
        }
        (self.open, self.is_stuck) = (None, false);
        self.next()
    }

    fn taken_back(&mut self) -> Vec<Command> {
        if self.open.is_some() || self.goes_back || self.ended == Some(Status::Compensated) {
            return Vec::new();
        }
        (self.goes_back, self.ended) = (true, None);
        self.next()
    }

    fn operator(&mut self, action: &Action) -> Vec<Command> {
        let Some(open) = self.open.filter(|_| self.is_stuck) else { return Vec::new() };
        self.is_stuck = false;
        match (action, open) {
            (Action::Retry, Command::Do { .. }) => vec![open],
            (Action::Retry, Command::Undo { step, round, known }) => {
                self.was_tried |= !known;
                let open = Command::Undo { step, round, known: known || self.undo_again };
                self.open = Some(open);
                vec![open]
            }
            (Action::Skip, _) => {
                self.go_past(open);
                self.next()
            }
            (Action::Force { completed, .. }, _) => {
                self.go_past(open);
                self.ended = Some(if *completed { Status::Completed } else { Status::Compensated });
                if !completed {
                    // The person took care of what stands.
                    self.standing.clear();
                }
                Vec::new()
            }
        }
    }

    fn go_past(&mut self, open: Command) {
        match open {
            Command::Do { step } => self.settle(step),
            Command::Undo { step, .. } => {
                (self.undo_again, self.was_tried) = (false, false);
                self.standing.retain(|&other| other != step);
            }
        }
        self.open = None;
    }

    fn settle(&mut self, step: usize) {
        self.steps[step].settled = true;
        (self.open, self.is_stuck) = (None, false);
    }

    fn needs_a_person(&mut self) -> Vec<Command> {
        self.is_stuck |= self.open.is_some();
        Vec::new()
    }

    /// What follows when nothing is under way.
    fn next(&mut self) -> Vec<Command> {
        if self.open.is_some() || self.ended.is_some() {
            return Vec::new();
        }
        let command = if self.goes_back { self.next_undo() } else { self.next_step() };
        self.open = command;
        match command {
            Some(Command::Undo { step, .. }) if self.shape.steps[step].undo == UndoShape::Missing => {
                self.needs_a_person()
            }
            Some(command) => vec![command],
            None => {
                self.ended = Some(if self.goes_back { Status::Compensated } else { Status::Completed });
                Vec::new()
            }
        }
    }

    fn next_step(&mut self) -> Option<Command> {
        let step = self.steps.iter().position(|step| !step.begun)?;
        self.steps[step].begun = true;
        Some(Command::Do { step })
    }

    fn next_undo(&mut self) -> Option<Command> {
        let needs_undo = |step: &&usize| self.shape.steps[**step].undo != UndoShape::NotNeeded;
        let step = *self.standing.iter().rev().find(needs_undo)?;
        let known = &mut self.steps[step];
        known.rounds += 1;
        Some(Command::Undo { step, round: known.rounds, known: known.success })
    }
}
