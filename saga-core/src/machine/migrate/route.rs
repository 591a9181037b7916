//! How a definition becomes another version of it, and what a saga becomes.

use crate::machine::decision::Record;
use crate::machine::state::shape::Shape;
use crate::machine::state::state::SagaState;
use crate::machine::state::timer::Timer;

/// Where the steps of one version are in another. A step and an arm are named by their indices.
#[derive(Debug, Clone)]
pub struct Route<'a> {
    /// The shape that a saga has until now.
    pub from: &'a Shape,
    /// The shape that it gets.
    pub to: &'a Shape,
    /// Of each step of `from`: its index in `to`; nothing for a step that is removed.
    pub places: &'a [Option<usize>],
    /// The steps of `to` that count as done where a saga is past them.
    pub assumed_done: &'a [usize],
    /// Of each choice of `from`: the index of each of its arms in `to`.
    pub arms: &'a [Vec<Option<usize>>],
    /// The choices of `to` that count as made where a saga is past them, each with the arm that counts as taken.
    pub assumed_arms: &'a [(usize, Option<usize>)],
}

impl<'a> Route<'a> {
    /// A route that assumes nothing, between versions without choices.
    pub fn new(from: &'a Shape, to: &'a Shape, places: &'a [Option<usize>]) -> Self {
        Self { from, to, places, assumed_done: &[], arms: &[], assumed_arms: &[] }
    }
}

/// A saga in the steps of the other version.
#[derive(Debug, Clone, PartialEq)]
pub struct Migrated {
    /// Its state there.
    pub state: SagaState,
    /// The records of the steps that are assumed done.
    pub records: Vec<Record>,
    /// Work rows that the saga does not wait for any more.
    pub withdrawn: Vec<Timer>,
}
