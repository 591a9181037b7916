//! Asking the service outside what became of a call.

use saga_core::step::StepContext;
use saga_core::{Resolved, StepError};

use super::calls::{SLOW_MAX, emit};
use super::payload::{SimInput, SimOutput};
use crate::checker::What;
use crate::sim::world::{Fault, Seat};

/// Asks by the key of the step. What a call emitted that was not heard of is lost with its answer, so it is emitted again.
pub(crate) async fn reconcile(
    seat: Option<Seat>,
    ctx: &StepContext,
    input: SimInput,
    emits: u8,
) -> Result<Resolved<SimOutput>, StepError> {
    let Some(Seat { world, .. }) = &seat else {
        return Err(StepError::reject("the runtime gave no state, though the resolution takes one"));
    };
    world.hit(Fault::AskedFor);
    if world.happens(|rates| rates.fails) {
        return Err(StepError::retry("the service does not answer"));
    }
    if world.happens(|rates| rates.slow) {
        world.wait_up_to(SLOW_MAX).await;
    }
    if world.happens(|rates| rates.answer_lost) {
        return Ok(Resolved::Pending);
    }
    let Some(effect) = world.outside.find(&world.outside_key(input.saga, ctx.key())) else {
        world.hit(Fault::FoundNothing);
        return Ok(Resolved::NotDone);
    };
    world.hit(Fault::FoundDone);
    if let Some(seat) = &seat {
        let saga = seat.world.scenario.acting(input.saga, ctx.saga_key());
        seat.enter(What::Found { call: effect, saga });
    }
    emit(ctx, effect, emits)?;
    Ok(Resolved::Done(SimOutput { effect, call: effect }))
}
