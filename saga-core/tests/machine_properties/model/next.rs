//! What is settled, and what follows.

use saga_core::machine::{Command, UndoShape};
use saga_core::store::Status;

use super::{Model, Open, step_of};

impl Model {
    pub(super) fn settle(&mut self, step: usize) {
        (self.steps[step].settled, self.steps[step].maybe) = (true, false);
        self.close(step);
    }

    /// The saga goes back anyway, also behind its pivot.
    pub(super) fn did_not_happen(&mut self, step: usize) -> Vec<Command> {
        self.settle(step);
        self.next()
    }

    pub(super) fn close(&mut self, step: usize) {
        self.open.retain(|open| step_of(open.command) != step);
    }

    pub(super) fn stands(&mut self, step: usize) {
        self.standing.retain(|&other| other != step);
        self.standing.push(step);
    }

    /// An effect that comes to stand in a saga that was ended as compensated must not stay.
    pub(super) fn back_again(&mut self) {
        if self.ended == Some(Status::Compensated) {
            (self.goes_back, self.ended) = (true, None);
        }
    }

    pub(super) fn needs_a_person(&mut self, step: usize) -> Vec<Command> {
        let of_step = |open: &&mut Open| step_of(open.command) == step && open.stuck.is_none();
        let Some(open) = self.open.iter_mut().find(of_step) else { return Vec::new() };
        if self.ended.is_some() {
            // A person ended the saga as it was.
            let command = open.command;
            self.go_past(command);
        } else {
            open.stuck = Some(self.stuck);
            self.stuck += 1;
        }
        Vec::new()
    }

    /// What follows now. While a person is to decide, or holds it up, nothing new does.
    pub(super) fn next(&mut self) -> Vec<Command> {
        if self.is_stuck() || self.ended.is_some() {
            return Vec::new();
        }
        let has_more = self.is_paused && !self.clone().next_commands().is_empty();
        if has_more {
            return Vec::new();
        }
        let commands = self.next_commands();
        let (mut given_out, mut for_a_person) = (Vec::new(), Vec::new());
        for command in commands {
            self.open.push(Open { command, stuck: None });
            match command {
                Command::Undo { step, .. } if self.undo_of(step) == UndoShape::Missing => {
                    for_a_person.push(step);
                }
                command => given_out.push(command),
            }
        }
        for step in for_a_person {
            self.needs_a_person(step);
        }
        if self.open.is_empty() {
            self.ended = Some(if self.goes_back { Status::Compensated } else { Status::Completed });
        }
        given_out
    }

    pub(super) fn next_commands(&mut self) -> Vec<Command> {
        if self.goes_back { self.next_undos() } else { self.next_steps() }
    }

    pub(super) fn next_steps(&mut self) -> Vec<Command> {
        let may_begin = |step: &usize| {
            let before = |other: &usize| self.is_behind[*step][*other];
            !self.steps[*step].begun && (0..self.shape.steps.len()).filter(before).all(|other| self.steps[other].passed)
        };
        let mut begin: Vec<usize> = (0..self.shape.steps.len()).filter(may_begin).collect();
        for (step, items) in &self.items {
            if self.steps[*step].settled || self.is_open(*step) {
                continue;
            }
            let at_once = self.shape.steps[*step].each.unwrap_or_default();
            let under_way = items.clone().filter(|item| self.is_open(*item)).count();
            let waiting = items.clone().filter(|item| !self.steps[*item].begun);
            begin.extend(waiting.take(at_once - under_way));
            if items.clone().all(|item| self.steps[item].passed) {
                begin.push(*step);
            }
        }
        for &step in &begin {
            self.steps[step].begun = true;
        }
        begin.into_iter().map(|step| Command::Do { step }).collect()
    }

    /// Nothing is undone while a step is on its way. Then the latest of each way through the definition has its turn.
    pub(super) fn next_undos(&mut self) -> Vec<Command> {
        if self.open.iter().any(|open| matches!(open.command, Command::Do { .. })) {
            return Vec::new();
        }
        let on_one_way = |one: usize, other: usize| {
            let (one, other) = (self.base(one), self.base(other));
            self.is_behind[one][other] || self.is_behind[other][one]
        };
        let needs_undo = |step: &usize| self.undo_of(*step) != UndoShape::NotNeeded;
        // Of the items of a list the latest are undone, not more at once than are done at once.
        let has_room = |place: usize, step: usize| {
            let base = self.base(step);
            let at_once = self.shape.steps[base].each.unwrap_or(1);
            let of_list = |other: &usize| self.base(*other) == base && needs_undo(other);
            let now = (0..self.steps.len()).filter(of_list).filter(|other| self.is_undone_now(*other)).count();
            let later =
                self.standing[place + 1..].iter().filter(|other| of_list(other) && !self.is_undone_now(**other));
            later.count() + now < at_once
        };
        let has_turn = |place: usize, step: usize| {
            let mut later = self.standing[place + 1..].iter().copied().filter(needs_undo);
            !self.is_undone_now(step)
                && !later.any(|other| on_one_way(step, other))
                && has_room(place, step)
                && !(0..self.steps.len()).any(|other| self.is_undone_now(other) && on_one_way(step, other))
        };
        let standing = self.standing.iter().copied().enumerate();
        let turns = standing.filter(|(place, step)| needs_undo(step) && has_turn(*place, *step));
        let mut turns: Vec<usize> = turns.map(|(_, step)| step).collect();
        // Of those that begin together, a person is asked about the first of the definition first.
        turns.sort_unstable();
        let undo = |step: usize| {
            let known = &mut self.steps[step];
            known.rounds += 1;
            Command::Undo { step, round: known.rounds, known: known.success }
        };
        turns.into_iter().map(undo).collect()
    }
}
