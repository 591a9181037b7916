//! The reader threads, each with a connection of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::Connection;
use saga_core::store::StoreError;

use crate::error::{no_thread, panic_text};
use crate::file::connection;
use crate::shared::Shared;
use crate::writer::job_queues::JobQueues;
use crate::writer::thread_role::{self, ThreadRole};

/// The reader threads.
pub(crate) struct Readers {
    queues: Arc<JobQueues>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(crate) fn spawn(shared: &Shared, queues: &Arc<JobQueues>) -> Result<Self, StoreError> {
        let mut readers = Self { queues: Arc::clone(queues), threads: Vec::new() };
        for number in 0..shared.options.readers {
            match spawn_one(shared, queues, number) {
                Ok(thread) => readers.threads.push(thread),
                Err(error) => {
                    readers.end();
                    return Err(error);
                }
            }
        }
        Ok(readers)
    }

    /// Lets the threads finish the reads that wait, and joins them.
    pub(crate) fn end(self) {
        self.queues.reads.close();
        for thread in self.threads {
            // Its panics are caught, so the join has nothing to report.
            _ = thread.join();
        }
    }

    /// Lets the threads finish the reads that wait, without joining them.
    pub(crate) fn detach(self) {
        self.queues.reads.close();
    }
}

fn spawn_one(shared: &Shared, queues: &Arc<JobQueues>, number: usize) -> Result<JoinHandle<()>, StoreError> {
    let conn = connection::open_reader(&shared.options)?;
    let queues = Arc::clone(queues);
    let name = format!("saga-sqlite-read-{number}");
    std::thread::Builder::new().name(name).spawn(move || serve(&queues, conn)).map_err(no_thread)
}

fn serve(queues: &JobQueues, mut conn: Connection) {
    thread_role::set(ThreadRole::Reader);
    while let Some(job) = queues.reads.wait() {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job(&mut conn))) {
            tracing::error!(panic = panic_text(&*panic), "read panicked");
        }
    }
}
