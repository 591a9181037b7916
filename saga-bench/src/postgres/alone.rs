//! One saga after the other, on a system that does nothing else.

use std::path::Path;

use anyhow::Result;

use super::measure::Done;
use super::work::{Subject, Work};
use super::{floor, saga};

/// How many sagas, one after the other, the median is of.
pub(super) const SAGAS: u32 = 300;

/// How long a saga takes from its start to its outcome, or three transactions by pgbench in a row.
pub(super) async fn run(url: &str, folder: &Path, subject: &Subject) -> Result<Done> {
    match subject {
        Subject::F1 => floor::run_pgbench_alone(url, folder, SAGAS).await,
        _ => saga::run(url, Work::Alone, 0..SAGAS, 1).await,
    }
}
