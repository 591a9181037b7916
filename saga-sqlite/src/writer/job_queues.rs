//! The queues from the callers to the threads of a store.

use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::Semaphore;

use crate::shared::Shared;
use crate::writer::job::BoxedJob;
use crate::writer::queue::Queue;

/// A read. It sends its answer itself.
pub(crate) type ReadJob = Box<dyn FnOnce(&mut Connection) + Send>;

/// An open file: its state, and the queues to its threads.
pub(crate) type Opened = (Arc<Shared>, Arc<JobQueues>);

/// The queues to the threads of a store.
pub(crate) struct JobQueues {
    pub(crate) writes: Queue<BoxedJob>,
    pub(crate) reads: Queue<ReadJob>,
    /// Closed when the file is free.
    pub(crate) file_freed: Semaphore,
}

impl JobQueues {
    pub(crate) fn new() -> Self {
        Self { writes: Queue::new(), reads: Queue::new(), file_freed: Semaphore::new(0) }
    }
}
