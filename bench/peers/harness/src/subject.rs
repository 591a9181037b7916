//! What a program can run.

use std::pin::Pin;

use anyhow::Result;

use crate::job::Job;
use crate::meter::Measured;

/// The run of a subject, under way. It stays on its thread: what needs more is spawned.
pub type Running = Pin<Box<dyn Future<Output = Result<Measured>>>>;

/// A peer, used in one way.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// The name that the command line and the result give it.
    pub name: &'static str,
    /// Whether what it recorded of a saga survives a crash of the process and of the machine.
    pub is_durable: bool,
    /// Makes all sagas of a job, and measures that.
    pub run: fn(Job) -> Running,
}
