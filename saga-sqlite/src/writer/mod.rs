//! The threads of a store: the writer with its jobs, and the readers.

pub(super) mod authorizer;
pub(super) mod group_commit;
pub(super) mod job;
pub(super) mod job_queues;
pub(super) mod queue;
pub(super) mod readers;
pub(super) mod recovery;
pub(super) mod savepoints;
pub(super) mod session;
pub(super) mod thread_role;
pub(super) mod writer;
