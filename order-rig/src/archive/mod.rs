//! Where ended orders go before they are purged, and what is read there again.

mod archived;
mod file;

pub use archived::{ArchivedRecord, ArchivedSaga};
pub use file::FileArchive;
