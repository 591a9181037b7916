//! What the step functions of the simulated sagas do, and what goes wrong in them.

use std::panic::resume_unwind;
use std::time::Duration;

use saga_core::StepError;
use saga_core::env::Environment;
use saga_core::memory::MemoryConn;
use saga_core::step::StepContext;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::naming::SERVICES;
use super::payload::{SimEvent, SimInput, SimOutput};
use crate::checker::{Left, Op, What};
use crate::sim::schedule::Mutant;
use crate::sim::world::{Fault, Reply, Request, Seat, World};

/// How long a step may take. It is short, so that a schedule lives through many leases.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(2);
/// How long a slow step takes at most: less than its time limit.
pub(crate) const SLOW_MAX: Duration = Duration::from_millis(1500);
/// How late a call may arrive outside.
const LATE_MAX: Duration = Duration::from_secs(9);
/// How often a haul looks whether it is wanted, and how long it works at most in between.
const HAUL_ROUNDS: u32 = 4;
const HAUL_MAX: Duration = Duration::from_secs(4);
/// How many rows the transactions quarrel about.
const HOT_ROWS: u64 = 2;

/// A call of a step function.
pub(crate) struct Call<'a> {
    pub(crate) seat: Option<Seat>,
    pub(crate) ctx: &'a StepContext,
    pub(crate) step: u8,
    pub(crate) op: Op,
    pub(crate) input: SimInput,
    pub(crate) reads: Option<u64>,
    pub(crate) emits: u8,
}

/// A call that was entered in the ledger.
pub(crate) struct Running<'a> {
    pub(super) seat: Seat,
    ctx: &'a StepContext,
    pub(crate) number: u64,
    op: Op,
    step: u8,
    emits: u8,
    input: SimInput,
}

/// Writes in the transaction.
pub(crate) async fn transactional(conn: &mut MemoryConn, call: Call<'_>) -> Result<SimOutput, StepError> {
    let transaction = transaction_of(conn, call.seat.as_ref());
    let running = call.begin(Some(transaction))?;
    let is_first = running.world().is_first_call((transaction, running.input.saga, running.step, running.op));
    running.world().hit_if(!is_first, Fault::CalledAgain);
    let result = running.transact(conn).await;
    running.end(result)
}

/// The number of a transaction. The stores count theirs each for itself.
pub(crate) fn transaction_of(conn: &MemoryConn, seat: Option<&Seat>) -> u64 {
    let services = SERVICES.len() as u64 + 1;
    conn.transaction() * services + seat.map_or(0, |seat| u64::from(seat.service))
}

/// Writes a row that others write as well, where the schedule wants it.
pub(crate) fn hot_row(seat: &Seat, conn: &mut MemoryConn) -> Result<(), StepError> {
    let world = &seat.world;
    if world.happens(|rates| rates.hot_rows) {
        let row = world.draw(|random| random.below(HOT_ROWS));
        if let Err(conflict) = conn.add(&format!("hot-{row}"), 1) {
            seat.hit_repeating(Fault::RowConflict);
            return Err(conflict.into());
        }
    }
    Ok(())
}

/// Calls the service outside.
pub(crate) async fn external(call: Call<'_>) -> Result<SimOutput, StepError> {
    let running = call.begin(None)?;
    let result = running.call_outside(LATE_MAX).await;
    running.end(result)
}

/// Calls the service outside, so that the call lands within the settle time or never.
pub(crate) async fn external_in_time(call: Call<'_>) -> Result<SimOutput, StepError> {
    let running = call.begin(None)?;
    let result = running.call_outside(TIME_LIMIT).await;
    running.end(result)
}

/// Works for longer than a lease, then calls the service outside. It ends at once when it is no longer wanted.
pub(crate) async fn haul(call: Call<'_>) -> Result<SimOutput, StepError> {
    let running = call.begin(None)?;
    let result = running.haul().await;
    running.end(result)
}

/// What a call reports: a number that no other report has.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct SimReport(u64);

/// Emits what a call of that number emits.
pub(crate) fn emit(ctx: &StepContext, call: u64, emits: u8) -> Result<(), StepError> {
    (0..emits).try_for_each(|nth| ctx.emit(&SimEvent { call, nth }))
}

impl<'a> Call<'a> {
    pub(crate) fn begin(self, transaction: Option<u64>) -> Result<Running<'a>, StepError> {
        let Some(seat) = self.seat else {
            return Err(StepError::reject("the runtime gave no state, though the step takes one"));
        };
        let number = seat.world.recorder.number();
        let input = SimInput { saga: seat.world.scenario.acting(self.input.saga, self.ctx.saga_key()), ..self.input };
        let (saga, variant, fence) = (input.saga, input.variant, self.ctx.fencing_token());
        if fence > 1 && self.ctx.attempt() == 1 {
            seat.world.hit(Fault::TakenOver);
        }
        if self.op == Op::Undo && self.reads.is_none() {
            seat.world.hit(Fault::UndoUnknown);
        }
        seat.enter(What::Entered {
            call: number,
            saga,
            variant,
            step: self.step,
            op: self.op,
            fence,
            reads: self.reads,
            transaction,
        });
        let Self { ctx, op, step, emits, .. } = self;
        let running = Running { seat, ctx, number, op, step, emits, input };
        if transaction.is_none() {
            running.hear()?;
        }
        Ok(running)
    }
}

impl Running<'_> {
    pub(crate) fn world(&self) -> &World {
        &self.seat.world
    }

    async fn transact(&self, conn: &mut MemoryConn) -> Result<SimOutput, StepError> {
        self.stumble().await?;
        hot_row(&self.seat, conn)?;
        conn.log(self.number.to_be_bytes());
        self.emit()?;
        self.dawdle().await;
        if self.world().happens(|rates| rates.fails) {
            self.world().hit(Fault::HandlerFailedAfterWrite);
            return Err(StepError::retry("failed behind its writes"));
        }
        self.refuse()?;
        Ok(SimOutput { effect: self.number, call: self.number })
    }

    /// Hears how far the calls before it were.
    fn hear(&self) -> Result<(), StepError> {
        let (key, attempt) = (self.ctx.key().to_owned(), self.ctx.attempt());
        let own_key = self.world().outside_key(self.input.saga, &key);
        let kept = self.ctx.progress()?.map(|SimReport(report)| report);
        let report =
            self.world().report_log.hear(self.world().scenario.mutant, &own_key, self.ctx.fencing_token(), kept);
        if report.is_some() {
            self.world().hit(Fault::ToldProgress);
            self.world().hit_if(attempt == 1, Fault::ToldByTheVanished);
        }
        self.seat.enter(What::Told { call: self.number, key, attempt, report });
        Ok(())
    }

    /// Reports how far it is, where the schedule wants it.
    fn report(&self) -> Result<(), StepError> {
        let world = self.world();
        let rate = world.scenario.rates.reports;
        if rate == 0 || !world.draw(|random| random.per_mille(rate)) {
            return Ok(());
        }
        let report = world.recorder.number();
        self.seat.enter(What::Reported { call: self.number, report });
        let key = world.outside_key(self.input.saga, self.ctx.key());
        world.hit_if(world.report_log.note(&key, self.ctx.fencing_token(), report), Fault::ReportedTooLate);
        self.ctx.report(&SimReport(report))
    }

    async fn haul(&self) -> Result<SimOutput, StepError> {
        for _ in 0..HAUL_ROUNDS {
            self.world().wait_up_to(HAUL_MAX).await;
            if self.ctx.is_cancelled() {
                self.world().hit(Fault::HaulGivenUp);
                return Err(StepError::not_sent("no longer wanted"));
            }
            self.seat.enter(What::Hauled { call: self.number });
            self.report()?;
        }
        self.call_outside(LATE_MAX).await
    }

    async fn call_outside(&self, late_max: Duration) -> Result<SimOutput, StepError> {
        self.stumble().await?;
        if self.ctx.time_left().is_some_and(|left| left.is_zero()) {
            return Err(StepError::not_sent("its time is over"));
        }
        if self.world().happens(|rates| rates.not_sent) {
            self.world().hit(Fault::NotSent);
            return Err(StepError::not_sent("connection refused"));
        }
        self.emit()?;
        self.report()?;
        let request = Request {
            call: self.number,
            op: self.op,
            key: self.world().outside_key(self.input.saga, self.ctx.key()),
            do_key: self.world().outside_key(self.input.saga, self.ctx.original_key()),
            is_refused: self.op == Op::Do && self.is_refused(),
            has_bars: self.world().scenario.load.is_none(),
        };
        self.seat.enter(What::Called { call: self.number, key: self.ctx.key().to_owned() });
        let reply = self.send(request, late_max).await;
        self.report()?;
        if reply.is_err() && self.forgets_late_unknown() {
            return Err(StepError::not_sent("the mutant forgets that it may have happened"));
        }
        match reply? {
            Reply::Done { effect } => Ok(SimOutput { effect, call: self.number }),
            Reply::Undone { .. } | Reply::Barred | Reply::Nothing => {
                self.refuse_undo()?;
                Ok(SimOutput { effect: self.number, call: self.number })
            }
            Reply::Rejected => {
                self.world().hit(Fault::HandlerRejected);
                Err(StepError::reject("the service declines"))
            }
        }
    }

    /// Whether a mistake is planted that forgets that this call was made.
    fn forgets_late_unknown(&self) -> bool {
        let forgets =
            matches!(self.world().scenario.mutant, Some(Mutant::ForgetsLateUnknown | Mutant::BeginsAndForgets));
        forgets && self.world().report_log.is_taken_over(self.ctx.key(), self.ctx.fencing_token())
    }

    /// Sends the request, and waits for the reply. What is on its way arrives even when the caller is gone.
    async fn send(&self, request: Request, late_max: Duration) -> Result<Reply, StepError> {
        let lost = || StepError::retry("the connection broke");
        let is_late = self.world().happens(|rates| rates.arrives_late);
        let is_lost = self.world().happens(|rates| rates.answer_lost);
        let load = self.world().scenario.load.as_ref();
        let lasts =
            load.map(|load| self.world().draw(|random| random.between(load.call_millis.start, load.call_millis.end)));
        if lasts.is_none() && !is_late && !self.world().happens(|rates| rates.slow) {
            let reply = arrive(&self.seat.world, &request);
            if is_lost {
                self.world().hit(Fault::AnswerLost);
                return Err(lost());
            }
            return Ok(reply);
        }
        let (answer, answered) = oneshot::channel();
        let world = std::sync::Arc::clone(&self.seat.world);
        let env = world.env.clone();
        env.spawn(Box::pin(async move {
            match lasts {
                Some(millis) => world.env.sleep(Duration::from_millis(millis)).await,
                None => world.wait_up_to(if is_late { late_max } else { SLOW_MAX }).await,
            }
            if is_late && answer.is_closed() {
                world.hit(Fault::ArrivedLate);
            }
            let reply = arrive(&world, &request);
            if is_lost {
                world.hit(Fault::AnswerLost);
            } else {
                // The caller may be gone: that is what late means.
                let _ = answer.send(reply);
            }
        }));
        answered.await.map_err(|_| lost())
    }

    /// Fails before anything is done.
    pub(crate) async fn stumble(&self) -> Result<(), StepError> {
        let world = self.world();
        if world.happens(|rates| rates.panics) {
            world.hit(Fault::HandlerPanicked);
            // Unlike `panic!` this prints nothing.
            resume_unwind(Box::new("a step function of the simulation panicked"));
        }
        if world.happens(|rates| rates.hangs) {
            world.hit(Fault::HandlerHung);
            world.env.sleep(TIME_LIMIT * 10).await;
        }
        if world.happens(|rates| rates.fails) {
            world.hit(Fault::HandlerFailed);
            return Err(StepError::retry("failed at once"));
        }
        Ok(())
    }

    /// Says no, where the schedule wants it, to a step in a transaction.
    pub(crate) fn refuse(&self) -> Result<(), StepError> {
        match self.op {
            Op::Do if self.is_refused() => {
                self.world().hit(Fault::HandlerRejected);
                Err(StepError::reject("out of stock"))
            }
            Op::Do => Ok(()),
            Op::Undo => self.refuse_undo(),
        }
    }

    fn refuse_undo(&self) -> Result<(), StepError> {
        if self.world().happens(|rates| rates.undo_rejects) {
            self.world().hit(Fault::UndoRejected);
            return Err(StepError::reject("it cannot be undone now"));
        }
        Ok(())
    }

    /// Whether this step is not to succeed: for good, or just now.
    fn is_refused(&self) -> bool {
        let plan = &self.world().scenario.sagas[self.input.saga as usize];
        plan.refused_step == Some(self.step) || self.world().happens(|rates| rates.rejects)
    }

    /// Answers with an error for itself, in a batch that succeeds.
    pub(crate) fn err(&self) -> Result<(), StepError> {
        if self.world().happens(|rates| rates.fails) {
            self.world().hit(Fault::HandlerFailed);
            return Err(StepError::retry("not now"));
        }
        Ok(())
    }

    pub(crate) async fn dawdle(&self) {
        if self.world().happens(|rates| rates.slow) {
            self.world().wait_up_to(SLOW_MAX).await;
        }
    }

    pub(crate) fn emit(&self) -> Result<(), StepError> {
        emit(self.ctx, self.number, self.emits)
    }

    pub(crate) fn end(self, result: Result<SimOutput, StepError>) -> Result<SimOutput, StepError> {
        let how = match &result {
            Ok(_) => Left::Done,
            Err(error) => match error.kind() {
                saga_core::StepErrorKind::Rejected => Left::Rejected,
                saga_core::StepErrorKind::NotSent => Left::NotSent,
                _ => Left::Failed,
            },
        };
        self.seat.enter(What::Left { call: self.number, how });
        result
    }
}

/// The request arrives at the service, which writes down what it does.
fn arrive(world: &World, request: &Request) -> Reply {
    let reply = world.outside.arrive(request, &world.hits);
    let call = request.call;
    match reply {
        Reply::Done { effect } if effect == call => world.enter(What::Took { call }),
        Reply::Undone { is_first: true } => world.enter(What::Took { call }),
        Reply::Barred => world.enter(What::Barred { call }),
        _ => {}
    }
    reply
}
