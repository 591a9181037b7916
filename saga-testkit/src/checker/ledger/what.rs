//! What was seen.

use serde::{Deserialize, Serialize};

use crate::checker::{Op, Standing};

use super::answers::{Act, Age, Answer, Left, Receipt, Sent};

/// What was seen. A `call` is the number of one call of a step function (or of one start by a client), unique in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A client calls `start`.
    StartCalled {
        /// The number of this call.
        call: u64,
        /// Under which tenant and key.
        saga: u32,
        /// With which payload and definition.
        variant: u8,
    },
    /// `start` answered. A call without an answer may or may not have taken effect.
    StartAnswered {
        /// The number of that call.
        call: u64,
        /// The answer.
        answer: Answer,
    },
    /// A client restarts a saga that has ended, as a new saga. The answer is that of a start.
    RestartCalled {
        /// The number of this call.
        call: u64,
        /// Under which tenant and key.
        saga: u32,
        /// Instead of which saga.
        of: u32,
        /// The steps that it is to begin with: one, the items of a list, or those in the arms of a choice. What does not
        /// come behind them is taken over.
        from: Vec<u8>,
    },
    /// A client was told how a saga ended.
    OutcomeSeen {
        /// The saga.
        saga: u32,
        /// What it was told.
        standing: Standing,
    },
    /// A step function begins to run.
    Entered {
        /// The number of this call.
        call: u64,
        /// For which saga, by the payload it was given.
        saga: u32,
        /// For which variant, by the payload it was given.
        variant: u8,
        /// Which step.
        step: u8,
        /// Do or undo.
        op: Op,
        /// The epoch that it was told.
        fence: u64,
        /// The effect of which it was given the output: a later step of an earlier one, an undo of its own step.
        reads: Option<u64>,
        /// The transaction that it was given, by a number that no other one has.
        transaction: Option<u64>,
    },
    /// A batch step was called once for all of these, which have begun.
    BatchCalled {
        /// The numbers of these calls.
        calls: Vec<u64>,
    },
    /// A step function returned. One that was dropped, or panicked, never does.
    Left {
        /// The number of that call.
        call: u64,
        /// What it returned.
        how: Left,
    },
    /// A call arrived at the service outside.
    Called {
        /// The number of that call.
        call: u64,
        /// The key that came with it.
        key: String,
    },
    /// A call took effect outside: it was the first with its key that was not refused.
    Took {
        /// The number of that call.
        call: u64,
    },
    /// An undo arrived outside for a step that never took effect there: from now on it cannot.
    Barred {
        /// The number of that call.
        call: u64,
    },
    /// A process claimed work of which its owner, which vanished, had begun nothing.
    TookWaiting {
        /// Of which saga.
        saga: u32,
        /// Of which step.
        step: u8,
        /// The epoch of the claim.
        epoch: u64,
    },
    /// A call of an exclusive step goes on.
    Hauled {
        /// The number of that call.
        call: u64,
    },
    /// A call outside is told how far the calls before it were.
    Told {
        /// The number of that call.
        call: u64,
        /// Its key.
        key: String,
        /// Which attempt it is told to be.
        attempt: u32,
        /// The number of the report that it is told.
        report: Option<u64>,
    },
    /// A call outside reports how far it is.
    Reported {
        /// The number of that call.
        call: u64,
        /// The number of the report, unique in the run.
        report: u64,
    },
    /// The service outside was asked by a step's key, and said that this call took effect.
    Found {
        /// The number of the call that took effect.
        call: u64,
        /// For which saga it was asked, by the payload that was given.
        saga: u32,
    },
    /// What a transactional step function wrote was committed.
    Wrote {
        /// The number of that call.
        call: u64,
    },
    /// A message was accepted by the transport.
    Delivered {
        /// The message's id.
        message: String,
        /// Whose the message says it is.
        tenant: String,
        /// Its ordering key.
        key: String,
        /// The call that emitted it, by its payload.
        call: u64,
        /// Which of the events of that call it is, from 0.
        nth: u8,
    },
    /// A message between services was accepted by the broker.
    Sent {
        /// The message's id.
        message: String,
        /// What it is.
        kind: Sent,
        /// The saga that it names; [`u32::MAX`] where it names none of the run.
        saga: u32,
        /// The step that it names.
        step: u8,
        /// The message that a reply answers.
        asked: Option<String>,
        /// The step's input that a command or an undo brings, as text.
        #[serde(default)]
        input: Option<String>,
    },
    /// A process began that hosts only some of the steps of its service: what it does not know becomes dead letters.
    Ignorant,
    /// A saga was seen stuck.
    StuckSeen {
        /// The saga.
        saga: u32,
    },
    /// An operator acts. It counts, unless it was refused: an answer that never came may have been a yes.
    AuditRecord {
        /// On which saga.
        saga: u32,
        /// On which row of it: 0 is its own, the highest number that of its sub-saga, and any other is one more than the
        /// place of a step that another service hosts.
        row: u8,
        /// What is done.
        act: Act,
        /// The number of this act.
        call: u64,
        /// The revision of the saga that the operator had seen.
        revision: u64,
    },
    /// An operator was told whether an act was done.
    ActAnswered {
        /// The number of that act.
        call: u64,
        /// Whether it was done; if not, it was refused.
        is_done: bool,
    },
    /// A client cancels a saga. Without an answer it may or may not have taken effect.
    CancelCalled {
        /// The number of this call.
        call: u64,
        /// Which saga.
        saga: u32,
    },
    /// `cancel` answered.
    CancelAnswered {
        /// The number of that call.
        call: u64,
        /// Whether the saga is compensating, by this call or before. If not, it had ended or only goes forward.
        is_turned: bool,
    },
    /// A person pauses a saga. Without an answer it may or may not have taken effect.
    PauseCalled {
        /// The number of this call.
        call: u64,
        /// Which saga.
        saga: u32,
    },
    /// `pause` answered.
    PauseAnswered {
        /// The number of that call.
        call: u64,
        /// Whether the saga is paused, by this call or before. If not, it had ended.
        is_paused: bool,
    },
    /// A person lets a saga go on. Without an answer it may or may not have taken effect.
    ResumeCalled {
        /// The number of this call.
        call: u64,
        /// Which saga.
        saga: u32,
    },
    /// `resume` answered.
    ResumeAnswered {
        /// The number of that call.
        call: u64,
    },
    /// A client sends a signal to a saga. Without an answer it may or may not have been received.
    SignalCalled {
        /// The number of this call.
        call: u64,
        /// Which saga.
        saga: u32,
        /// Which signal, by its id and its content.
        id: u64,
    },
    /// `signal` answered.
    SignalAnswered {
        /// The number of that call.
        call: u64,
        /// The answer.
        receipt: Receipt,
    },
    /// A process was crashed.
    Crashed,
    /// A process was stopped.
    Paused,
    /// A stopped process went on.
    Resumed,
    /// A process does not reach its store any more, while everything else goes on.
    CutOff,
    /// It reaches it again.
    Reconnected,
    /// A store call of a process failed or was slow, or a call for many steps was interrupted: the engine may run something
    /// once more without counting it.
    Repeated,
    /// A process said that it has shut down.
    ShutDown,
    /// An archive got a saga, or a step that is hosted for it.
    Archived {
        /// The number of the service whose row it is.
        service: u8,
        /// The saga.
        saga: u32,
        /// Which row: 0 is the saga's own, the highest number that of its sub-saga, and any other is one more than the place of a
        /// hosted step.
        row: u8,
        /// How often it had been decided about.
        revision: u64,
    },
    /// A store has purged a saga, or a step that is hosted for it.
    Purged {
        /// The number of the service whose row it is.
        service: u8,
        /// The saga.
        saga: u32,
        /// Which row, as above.
        row: u8,
        /// How often it had been decided about.
        revision: u64,
        /// What is left.
        age: Age,
        /// Whether there was no more than a tombstone before.
        was_tombstone: bool,
        /// How it stood.
        standing: Standing,
        /// Whether nothing else is left of it.
        is_whole: bool,
    },
    /// An operator has exempted a saga from being purged.
    Exempted {
        /// The saga.
        saga: u32,
    },
    /// The operator takes that back.
    Unexempted {
        /// The saga.
        saga: u32,
    },
    /// From here on nothing is disturbed any more.
    FaultsEnded,
}
