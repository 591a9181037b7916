//! A few threads that read, each on a connection of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use rusqlite::Connection;
use saga_core::store::StoreError;

use crate::connection;
use crate::queue::Queue;
use crate::store::Shared;
use crate::thread_role::{self, ThreadRole};
use crate::writer::no_thread;

/// Something to be read. It sends its answer itself.
pub(crate) type ReadJob = Box<dyn FnOnce(&mut Connection) + Send>;

/// The threads that read.
pub(crate) struct Readers {
    queue: Arc<Queue<ReadJob>>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    pub(crate) fn spawn(shared: &Arc<Shared>) -> Result<Self, StoreError> {
        let mut readers = Self { queue: Arc::clone(&shared.reads), threads: Vec::new() };
        for number in 0..shared.options.readers {
            match spawn_one(shared, number) {
                Ok(thread) => readers.threads.push(thread),
                Err(error) => {
                    readers.end();
                    return Err(error);
                }
            }
        }
        Ok(readers)
    }

    /// Lets the threads finish what waits, and waits for them.
    pub(crate) fn end(self) {
        self.queue.close();
        for thread in self.threads {
            // Its panics are caught, so that there is nothing to pass on.
            _ = thread.join();
        }
    }

    /// Lets the threads finish what waits, and does not wait for them.
    pub(crate) fn detach(self) {
        self.queue.close();
    }
}

fn spawn_one(shared: &Shared, number: usize) -> Result<JoinHandle<()>, StoreError> {
    let conn = connection::open_reader(&shared.options)?;
    let queue = Arc::clone(&shared.reads);
    let name = format!("saga-sqlite-read-{number}");
    std::thread::Builder::new().name(name).spawn(move || serve(&queue, conn)).map_err(no_thread)
}

fn serve(queue: &Queue<ReadJob>, mut conn: Connection) {
    thread_role::set(ThreadRole::Reader);
    while let Some(job) = queue.wait() {
        if catch_unwind(AssertUnwindSafe(|| job(&mut conn))).is_err() {
            tracing::error!("a read panicked on its thread");
        }
    }
}
