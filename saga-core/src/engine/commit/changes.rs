//! The changes that are no decision of the machine: one constructor for each kind.

use crate::store::{
    Advance, Changes, Condition, HistoryEntry, NewDeadLetter, NewMessage, NewSaga, Postponed, SagaRow, Status, WorkRef,
};

/// A work row falls due at another time.
pub(crate) fn postpone(row: Postponed) -> Changes {
    Changes { postponed: vec![row], ..Changes::default() }
}

/// An operator makes work rows due, and the history says so.
pub(crate) fn postpone_all(postponed: Vec<Postponed>, history: HistoryEntry) -> Changes {
    Changes { postponed, history: vec![history], ..Changes::default() }
}

/// A remote command is sent again, and its work row waits for the reply.
pub(crate) fn resend(row: Postponed, messages: Vec<NewMessage>) -> Changes {
    Changes { messages, ..postpone(row) }
}

/// The history gets an entry.
pub(crate) fn note(history: HistoryEntry) -> Changes {
    Changes { history: vec![history], ..Changes::default() }
}

/// A work row is deleted.
pub(crate) fn finish(work: WorkRef) -> Changes {
    Changes { finished: vec![(work, Condition::Held)], ..Changes::default() }
}

/// Messages are sent.
pub(crate) fn send(messages: Vec<NewMessage>) -> Changes {
    Changes { messages, ..Changes::default() }
}

/// A saga is started.
pub(crate) fn start(saga: NewSaga) -> Changes {
    Changes { start: Some(Box::new(saga)), ..Changes::default() }
}

/// A message becomes a dead letter, and its sender may be told.
pub(crate) fn dead_letter(letter: NewDeadLetter, refusal: Option<NewMessage>) -> Changes {
    Changes { dead_letters: vec![letter], messages: refusal.into_iter().collect(), ..Changes::default() }
}

/// A saga that cannot be read becomes stuck, and the work row that was claimed for it is deleted.
pub(crate) fn block_saga(row: &SagaRow, work: Option<WorkRef>) -> Changes {
    Changes {
        saga: Some(Advance {
            id: row.id,
            expected: row.version,
            status: Status::Stuck,
            state: row.state.clone(),
            expiry: None,
        }),
        finished: work.map(|work| (work, Condition::Held)).into_iter().collect(),
        ..Changes::default()
    }
}
