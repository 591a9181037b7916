//! What the handles and the threads of a store share.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::file::file_identity::FileIdentity;
use crate::ids::IdCounter;
use crate::live_members::LiveMembers;
use crate::options::SqliteOptions;
use crate::statistics::Counters;
use crate::writer::authorizer::Authorizer;

/// The state that the handles and the threads share.
pub(crate) struct Shared {
    pub(crate) options: SqliteOptions,
    pub(crate) clock: Arc<Clock>,
    pub(crate) ids: IdCounter,
    pub(crate) members: LiveMembers,
    pub(crate) statistics: Counters,
    pub(crate) file_identity: FileIdentity,
    pub(crate) clock_behind: Option<Duration>,
}

impl Shared {
    pub(crate) fn new(
        options: SqliteOptions,
        clock: Arc<Clock>,
        ids: Range<i64>,
        authorizer: &Arc<Authorizer>,
    ) -> Self {
        Self {
            file_identity: FileIdentity::of(&options.path),
            clock_behind: None,
            options,
            clock,
            ids: IdCounter::new(ids),
            members: LiveMembers::default(),
            statistics: Counters::new(Arc::clone(authorizer)),
        }
    }
}
