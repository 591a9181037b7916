//! What the batch steps of the simulated sagas do, and what goes wrong in them.

use saga_core::memory::MemoryConn;
use saga_core::step::Args;
use saga_core::{Batch, BatchResults, StepError};

use super::calls::{Call, Running, hot_row, transaction_of};
use super::payload::{SimInput, SimOutput};
use crate::checker::{Op, What};
use crate::sim::schedule::Mutant;
use crate::sim::world::{Fault, Seat};

/// Writes for many sagas in one call.
pub(crate) async fn run_batch(
    conn: &mut MemoryConn,
    args: Args<'_>,
    step: u8,
    batch: Batch<SimInput>,
    emits: u8,
) -> Result<BatchResults<SimOutput>, StepError> {
    let seat = args.states.get::<Seat>();
    let transaction = Some(transaction_of(conn, seat.as_ref()));
    let begin = |(ctx, input): (_, &SimInput)| {
        let call = Call {
            seat: seat.clone(),
            ctx,
            step: step + input.item,
            op: Op::Do,
            input: *input,
            reads: input.reads,
            emits,
        };
        call.begin(transaction)
    };
    let calls = batch.contexts().zip(&batch).map(begin).collect::<Result<Vec<Running<'_>>, _>>()?;
    let mut watch = Watch { seat: seat.as_ref().filter(|_| calls.len() > 1), is_over: false };
    watch.hit(Fault::BatchFormed);
    if let Some(seat) = watch.seat {
        seat.enter(What::BatchCalled { calls: calls.iter().map(|call| call.number).collect() });
    }
    let written = write(conn, &calls).await;
    watch.is_over = true;
    drop(watch);
    let mut calls = calls.into_iter();
    match written {
        Err(error) => {
            // Each of them fails with all of them; alone, it is an attempt.
            let message = error.to_string();
            let company = calls.len();
            if let Some(seat) = seat.as_ref().filter(|_| company > 1) {
                seat.hit_repeating(Fault::BatchSplit);
            }
            for call in calls {
                // What it is told is the error of the whole, below.
                let _ = call.end(Err(StepError::retry(message.clone())));
            }
            Err(error)
        }
        Ok(mut answers) => {
            let mut answers = answers.drain(..);
            Ok(batch.map_each(|_| {
                let answer = answers.next().unwrap_or_else(|| Err(StepError::retry("nothing was written for it")));
                match calls.next() {
                    Some(call) => call.end(answer),
                    None => answer,
                }
            }))
        }
    }
}

/// Notes when a call is dropped in the middle.
struct Watch<'a> {
    seat: Option<&'a Seat>,
    is_over: bool,
}

impl Watch<'_> {
    fn hit(&self, fault: Fault) {
        if let Some(seat) = self.seat {
            seat.world.hit(fault);
        }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.hit(Fault::BatchInterrupted);
            if let Some(seat) = self.seat {
                // A panic or a time-out of all of them counts as an attempt of none.
                seat.enter(What::Repeated);
            }
        }
    }
}

/// Writes for those that are not refused: what an answer is that concerns its own saga only, and what fails all of them.
async fn write(conn: &mut MemoryConn, calls: &[Running<'_>]) -> Result<Vec<Result<SimOutput, StepError>>, StepError> {
    let Some(first) = calls.first() else { return Ok(Vec::new()) };
    first.stumble().await?;
    hot_row(&first.seat, conn)?;
    let mut answers = Vec::with_capacity(calls.len());
    for call in calls {
        let answer = call.refuse().and_then(|()| call.err());
        let is_planted = call.world().scenario.mutant == Some(Mutant::WritesForRejected);
        if answer.is_ok() || is_planted {
            conn.log(call.number.to_be_bytes());
        }
        call.world().hit_if(answer.is_err() && calls.len() > 1, Fault::AnsweredAlone);
        call.emit()?;
        answers.push(answer.map(|()| SimOutput { effect: call.number, call: call.number }));
    }
    first.dawdle().await;
    if first.world().happens(|rates| rates.fails) {
        first.world().hit(Fault::HandlerFailedAfterWrite);
        return Err(StepError::retry("failed behind its writes"));
    }
    Ok(answers)
}
