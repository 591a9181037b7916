use std::sync::Arc;

use saga_core::StepError;
use saga_core::env::BoxFuture;
use saga_core::saga::StepHook;

use super::life::Life;
use super::plan::{Disturbance, Place};

/// Stands around each function.
#[derive(Debug)]
pub(super) struct Around {
    pub(super) life: Arc<Life>,
}

impl StepHook for Around {
    fn before(&self, step: &'static str, is_undo: bool) -> BoxFuture<'static, Result<(), StepError>> {
        let (life, place) = (Arc::clone(&self.life), Place { step, is_undo, is_behind: false });
        Box::pin(async move {
            at(&life, place).await?;
            reject(&life, place)
        })
    }

    fn behind(&self, step: &'static str, is_undo: bool) -> BoxFuture<'static, Result<(), StepError>> {
        let (life, place) = (Arc::clone(&self.life), Place { step, is_undo, is_behind: true });
        Box::pin(async move { at(&life, place).await })
    }
}

/// The function of a dead process fails; the store's transaction sees that it is dead, and is dropped.
async fn at(life: &Life, place: Place) -> Result<(), StepError> {
    if !life.pass_in_function(&place.to_string()).await {
        return Err(StepError::retry("the process has crashed"));
    }
    let director = &life.director;
    let is_once = !matches!(director.disturbance, Disturbance::FailAlways(_));
    if director.disturbs(place, is_once) {
        return Err(StepError::retry("the exploration disturbed it"));
    }
    Ok(())
}

fn reject(life: &Life, place: Place) -> Result<(), StepError> {
    let director = &life.director;
    if director.rejected == Some(place.step) && !place.is_undo && !director.is_lifted() {
        return Err(StepError::reject("the exploration rejects it"));
    }
    Ok(())
}
