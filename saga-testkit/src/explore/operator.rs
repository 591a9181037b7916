//! An operator who tries again what is stuck, when nothing is disturbed any more.

use std::collections::BTreeMap;
use std::time::Duration;

use saga_core::Runtime;
use saga_core::engine::RuntimeError;
use saga_core::store::{SagaFilter, Status, Store};

use crate::VirtualTime;

/// How often a saga is tried again that gets stuck for the same reason. Twice can be chance: branches get stuck beside each other.
const TRIES_MAX: u32 = 8;
const TRY_EVERY: Duration = Duration::from_millis(100);

/// Tries again whatever is stuck, at its host as well. It ends only with what is in its way.
pub(super) async fn try_again<S: Store>(runtime: &Runtime<S>, time: &VirtualTime) -> String {
    let mut tries = BTreeMap::new();
    loop {
        let stuck = SagaFilter { status: Some(Status::Stuck), ..SagaFilter::default() };
        let stuck = match runtime.admin().query().list(stuck).await {
            Ok(stuck) => stuck,
            Err(error) => return error.to_string(),
        };
        for saga in stuck {
            // An operator's action is a large future, and this one lies in several others.
            match Box::pin(try_one_again(runtime, saga.key.as_str())).await {
                Ok(None) => {}
                Ok(Some(why)) => {
                    let tries = tries.entry((saga.key.clone(), why.clone())).or_insert(0);
                    *tries += 1;
                    if *tries == TRIES_MAX {
                        return format!(
                            "{} is {why}, each time that it is tried again without a disturbance",
                            saga.key
                        );
                    }
                }
                Err(error) => return error.to_string(),
            }
        }
        time.advance(TRY_EVERY).await;
    }
}

/// Tries a saga again, and returns why it was stuck; `None` if it moved meanwhile.
async fn try_one_again<S: Store>(runtime: &Runtime<S>, key: &str) -> Result<Option<String>, RuntimeError> {
    let Some(status) = runtime.status(key).await?.filter(|status| status.summary.status == Status::Stuck) else {
        return Ok(None);
    };
    let control = runtime.admin().control(key).at_revision(status.revision);
    match control.retry("the exploration is over").await {
        Ok(()) => Ok(status.summary.outcome.map(|stuck| stuck.to_string())),
        Err(RuntimeError::Moved { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
