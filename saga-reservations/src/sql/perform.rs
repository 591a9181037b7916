use saga_sql::SqlConn;

#[cfg(feature = "redis")]
use super::epochs;
use super::overdue::{Locking, Scope};
use super::rows;
use super::task::Task;
use super::work::{Work, WorkError};
use crate::ReservationsError;
use crate::book::{Book, Operation, Reason, Refusal, Reservation, Resource, ResourceName};
use saga_core::store::Timestamp;

/// The most holds that are ended at once: each one's resources are locked.
pub(super) const SWEEP: usize = 64;

/// Does something with the reservation of a key in the transaction of this connection, such as that of a saga's step. It takes
/// effect if the transaction commits. [`create_tables`](crate::create_tables) makes the tables.
///
/// The resources stay locked until the transaction ends. A transaction that calls it twice should do so in the order of the
/// resources' names, or PostgreSQL may find a deadlock, end one of the transactions, and have the step run again.
///
/// # Errors
/// When it is refused. When the database fails, or another transaction makes the same reservation at the same time: then the
/// transaction must be rolled back and may be run again.
///
/// # Cancel safety
/// That of the transaction.
///
/// # Examples
/// ```
/// use saga_core::{IntoStepError, StepContext, StepError, saga_step};
/// use saga_reservations::{Action, Operation, ReservationKey, Reserve, perform_in};
/// use saga_sql::SqlConn;
///
/// #[saga_step(no_compensation)]
/// async fn reserve_seats(tx: &mut impl SqlConn, ctx: &StepContext, seats: u32) -> Result<u64, StepError> {
///     let key = ReservationKey::new(ctx.key())?;
///     let operation = Operation::new(key, Action::Reserve(Reserve::of("seat/LH-400", seats)));
///     let held = perform_in(tx, &operation).await.map_err(IntoStepError::into_step_error)?;
///     Ok(held.token.0)
/// }
/// ```
pub async fn perform_in<C: SqlConn>(conn: &mut C, operation: &Operation) -> Result<Reservation, ReservationsError> {
    let work = Perform { task: Task::Operation(operation.clone()), sweep: SWEEP };
    loop {
        let (answer, overdue) = work.run(conn, 0).await.map_err(|error| error.of(Perform::OPERATION))?;
        match answer {
            // The units may be those of a hold that is over and has not been ended yet.
            Err(refusal) if overdue == SWEEP && is_for_lack_of_units(&refusal) => {}
            answer => return Ok(answer?),
        }
    }
}

/// An operation on a reservation.
#[derive(Debug, Clone)]
pub(super) struct Perform {
    pub(super) task: Task,
    /// How many holds that are over it ends first.
    pub(super) sweep: usize,
}

/// The change of a capacity.
#[derive(Debug, Clone)]
pub(super) struct SetCapacity {
    pub(super) resource: ResourceName,
    pub(super) capacity: u64,
    pub(super) sweep: usize,
}

/// An answer, and how many holds were found that are over.
pub(super) type Swept<T> = (Result<T, Refusal>, usize);

impl Work for Perform {
    type Answer = Swept<Reservation>;

    const OPERATION: &'static str = "change a reservation";

    async fn run<C: SqlConn>(&self, conn: &mut C, clock_shift: i64) -> Result<Self::Answer, WorkError> {
        #[cfg(feature = "redis")]
        if let Some(epoch) = self.task.epoch()
            && epochs::current_until_commit(conn).await? != epoch
        {
            return Err(WorkError::Fenced);
        }
        let mut scope = Scope::default();
        scope.add_task(&self.task);
        decide(conn, scope, clock_shift, self.sweep, |book, now| {
            if self.task.is_raced(book) {
                return Err(WorkError::Race);
            }
            Ok(self.task.carry_out(book, now))
        })
        .await
    }
}

impl Work for SetCapacity {
    type Answer = Swept<Resource>;

    const OPERATION: &'static str = "set a capacity";

    async fn run<C: SqlConn>(&self, conn: &mut C, clock_shift: i64) -> Result<Self::Answer, WorkError> {
        let scope = Scope::of_resource(self.resource.clone());
        let set = |book: &mut Book, _| Ok(book.set_capacity(&self.resource, self.capacity));
        decide(conn, scope, clock_shift, self.sweep, set).await
    }
}

/// Whether holds that are over but were not swept can be why it was refused.
pub(super) fn is_for_lack_of_units(refusal: &Refusal) -> bool {
    matches!(refusal.reason(), Reason::Insufficient | Reason::Conflict | Reason::BelowTaken)
}

/// Loads, lets the book decide, and writes.
pub(super) async fn decide<C: SqlConn, T: Send>(
    conn: &mut C,
    mut scope: Scope,
    clock_shift: i64,
    sweep: usize,
    act: impl FnOnce(&mut Book, Timestamp) -> Result<T, WorkError> + Send,
) -> Result<(T, usize), WorkError> {
    let overdue = if sweep > 0 { scope.add_overdue(conn, clock_shift, sweep).await? } else { 0 };
    let (mut book, now) = scope.load(conn, clock_shift, Locking::Wait).await?;
    if sweep > 0 {
        book.expire_overdue(now, usize::MAX);
    }
    let answer = act(&mut book, now)?;
    let changes = book.take_changes();
    rows::write(conn, &changes, &book).await?;
    Ok((answer, overdue))
}
