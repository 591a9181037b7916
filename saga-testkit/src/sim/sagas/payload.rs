//! What the simulated sagas, steps, events and signals carry.

use saga_core::{Event, Signal};
use serde::{Deserialize, Serialize};

/// The input of every saga and every step: which saga it is, as the user's own data knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SimInput {
    /// The saga's place in the ledger.
    pub(crate) saga: u32,
    /// Which of its variants.
    pub(crate) variant: u8,
    /// The effect of the earlier step whose output a mapping read.
    pub(crate) reads: Option<u64>,
    /// Which item of its list, counted from 0: so many places behind that of its step it stands in the plan.
    #[serde(default)]
    pub(crate) item: u8,
}

/// What every step returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SimOutput {
    /// The call that took effect.
    pub(crate) effect: u64,
    /// The call that returned this.
    pub(crate) call: u64,
}

/// What every step emits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SimEvent {
    pub(crate) call: u64,
    pub(crate) nth: u8,
}

impl Event for SimEvent {
    const NAME: &'static str = "happened";
}

/// The signal that sagas wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SimSignal {
    /// Its content, and its id as well. 0 stands for a wait that ended without a signal.
    pub(crate) id: u64,
}

impl Signal for SimSignal {
    const NAME: &'static str = "word";
}
