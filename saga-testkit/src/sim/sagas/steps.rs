//! The step functions of the simulated sagas. `N` is the step's place in its saga, so that one function can be several
//! steps.

use std::time::Duration;

use saga_core::State;
use saga_core::memory::MemoryConn;
use saga_core::step::{
    Args, Codec, Compensate, Compensation, CompensationHandler, EntitiesOf, FromStep, Given, Handler, Needs,
    OnExhausted, Resolution, ResolveFn, ResolveOf, Run, Step, StepOptions, Undo, UndoOf, codec, resolved_by, undo,
    undone_by,
};

use super::batch_steps::run_batch;
use super::calls::{Call, TIME_LIMIT, external, external_in_time, haul, transactional};
use super::locks::{entity, entity_of_step};
use super::payload::{SimInput, SimOutput};
use super::reconcile::reconcile;
use crate::checker::{Kind, Nap, Op, StepPlan, UndoPlan};
use crate::sim::world::{Seat, SimStore};

/// How long a haul may take.
const HAUL_LIMIT: Duration = Duration::from_secs(20);
/// How often a step is tried.
const ATTEMPTS: u32 = 3;
/// How often a compensation is tried.
const UNDO_ATTEMPTS: u32 = 4;

const OPTIONS: StepOptions = StepOptions::DEFAULT
    .attempts(ATTEMPTS)
    .base(Duration::from_millis(50))
    .cap(Duration::from_millis(800))
    .timeout(TIME_LIMIT)
    .on_exhausted(OnExhausted::Compensate);
/// How often the other side is asked, beyond the attempts of the step.
const LOOK_ATTEMPTS: u32 = 3;
const LOOK_OPTIONS: StepOptions = OPTIONS.attempts(LOOK_ATTEMPTS).timeout(Duration::from_millis(900));
const UNDO_OPTIONS: StepOptions = OPTIONS.attempts(UNDO_ATTEMPTS);

/// A step as the checker knows it.
pub(crate) trait Planned: Handler<SimStore> + Step<Input = SimInput, Output = SimOutput> {
    const KIND: Kind;
    const UNDO_PLAN: Option<UndoPlan>;
    const EMITS: u8;
    /// Whether no two calls of it ever run at once.
    const IS_EXCLUSIVE: bool = false;
    /// The number of the service that does it, where that is not the saga's own.
    const HOST: Option<u8> = None;
    /// The number of the entity that it locks.
    const LOCKS: Option<u8> = None;

    fn plan(reads: Option<u8>) -> StepPlan {
        StepPlan {
            name: Self::NAME.to_owned(),
            kind: Self::KIND,
            host: Self::HOST,
            undo: Self::UNDO_PLAN,
            after: None,
            arms: Vec::new(),
            is_sub: false,
            nap: Nap::default(),
            reads,
            is_pivot: false,
            is_exclusive: Self::IS_EXCLUSIVE,
            locks: Self::LOCKS,
            held: Vec::new(),
            emits: Self::EMITS,
            attempts: ATTEMPTS,
        }
    }
}

/// How a call of a step function is put together from its arguments.
fn call(args: Args<'_>, step: u8, op: Op, input: SimInput, reads: Option<u64>, emits: u8) -> Call<'_> {
    // `State<Seat>` is among the parameters of every step, so the runtime has checked that it is there.
    let seat = args.states.get::<Seat>();
    Call { seat, ctx: args.ctx, step: step + input.item, op, input, reads, emits }
}

macro_rules! steps {
    ($(
        $(#[$doc:meta])* $step:ident $names:expr, $run:ident, emits $emits:literal, $undo:tt $(, resolved by $look:ident)? $(, kept $exclusive:ident)? $(, under $lock:ident)?;
    )*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $step<const N: usize>;

        impl<const N: usize> Step for $step<N> {
            type Input = SimInput;
            type Output = SimOutput;
            const NEEDS: fn(&mut Needs) = <State<Seat> as FromStep>::needs;
            const NAME: &'static str = $names[N];
            const OPTIONS: StepOptions = steps!(@options $($exclusive)? $undo);
            const INPUT: Codec<SimInput> = codec::<SimInput>();
            const OUTPUT: Codec<SimOutput> = codec::<SimOutput>();
            $(const LOCK: Option<EntitiesOf<Self>> = steps!(@$lock N);)?
            const UNDO: Option<UndoOf<Self>> = steps!(@undo $undo);
            $(const RESOLVE: Option<ResolveOf<Self>> = Some(resolved_by::<Self, $look<N>>());)?
        }

        impl<const N: usize> Handler<SimStore> for $step<N> {
            fn handler() -> Run<SimStore, Self> {
                steps!(@run $run N $emits $($look)? $($exclusive)?)
            }

            fn undo() -> Undo<SimStore, Self> {
                steps!(@undone $undo)
            }
        }

        impl<const N: usize> Planned for $step<N> {
            const KIND: Kind = steps!(@kind $run);
            const UNDO_PLAN: Option<UndoPlan> = steps!(@plan $run $undo);
            const EMITS: u8 = $emits;
            $(const IS_EXCLUSIVE: bool = steps!(@is $exclusive);)?
            $(const LOCKS: Option<u8> = steps!(@number $lock N);)?
        }
    )*};
    (@is exclusive) => { true };
    (@lock $n:ident) => { Some(|_| vec![entity(entity_of_step($n))]) };
    (@number lock $n:ident) => { Some(entity_of_step($n)) };
    (@options exclusive $undo:tt) => { OPTIONS.timeout(HAUL_LIMIT).exclusive() };
    (@options (not_needed)) => { OPTIONS.no_compensation() };
    (@options $other:tt) => { OPTIONS };
    (@undo (none)) => { None };
    (@undo (not_needed)) => { None };
    (@undo ($undo:ident $output:ty, emits $emits:literal)) => { Some(undone_by::<Self, $undo<N>>()) };
    (@undone (none)) => { Undo::Nothing };
    (@undone (not_needed)) => { Undo::Nothing };
    (@undone ($undo:ident $output:ty, emits $emits:literal)) => { undo::<SimStore, Self, $undo<N>>() };
    (@run Transactional $n:ident $emits:literal) => {
        Run::Transaction(|conn, args, input| {
            Box::pin(transactional(conn, call(args, $n as u8, Op::Do, input, input.reads, $emits)))
        })
    };
    (@run Batch $n:ident $emits:literal) => {
        Run::Batch(|conn, args, batch| Box::pin(run_batch(conn, args, $n as u8, batch, $emits)))
    };
    (@kind External) => { Kind::External };
    (@kind $transactional:ident) => { Kind::Transactional };
    (@run External $n:ident $emits:literal exclusive) => {
        Run::External(|args, input| Box::pin(haul(call(args, $n as u8, Op::Do, input, input.reads, $emits))))
    };
    (@run External $n:ident $emits:literal $look:ident) => {
        Run::External(|args, input| {
            Box::pin(external_in_time(call(args, $n as u8, Op::Do, input, input.reads, $emits)))
        })
    };
    (@run External $n:ident $emits:literal) => {
        Run::External(|args, input| Box::pin(external(call(args, $n as u8, Op::Do, input, input.reads, $emits))))
    };
    (@plan $run:ident (none)) => { None };
    (@plan $run:ident (not_needed)) => { None };
    (@plan $run:ident ($undo:ident Option<SimOutput>, emits $emits:literal)) => {
        Some(UndoPlan { kind: steps!(@kind $run), takes_unknown: true, emits: $emits, attempts: UNDO_ATTEMPTS })
    };
    (@plan $run:ident ($undo:ident $output:ty, emits $emits:literal)) => {
        Some(UndoPlan { kind: steps!(@kind $run), takes_unknown: false, emits: $emits, attempts: UNDO_ATTEMPTS })
    };
}

macro_rules! names {
    ($prefix:literal) => {
        [
            concat!($prefix, "-0"),
            concat!($prefix, "-1"),
            concat!($prefix, "-2"),
            concat!($prefix, "-3"),
            concat!($prefix, "-4"),
            concat!($prefix, "-5"),
        ]
    };
}

steps! {
    /// Transactional, undone in a transaction.
    Reserve names!("reserve"), Transactional, emits 1, (Release SimOutput, emits 1);
    /// Transactional, for many sagas in one call; undone in a transaction, one by one.
    Collect names!("collect"), Batch, emits 1, (BringBack SimOutput, emits 1);
    /// External, undone whether it is known to have happened or not.
    Charge names!("charge"), External, emits 2, (Refund Option<SimOutput>, emits 1);
    /// External, undone only with its output.
    Ship names!("ship"), External, emits 0, (CallBack SimOutput, emits 0);
    /// External, undone only with its output, and asked for.
    Pay names!("pay"), External, emits 1, (PayBack SimOutput, emits 0), resolved by Look;
    /// External, longer than a lease, never begun twice at once.
    Haul names!("haul"), External, emits 1, (HaulBack Option<SimOutput>, emits 0), kept exclusive;
    /// External, called under a lock, undone whether it is known to have happened or not.
    Debit names!("debit"), External, emits 0, (DebitBack Option<SimOutput>, emits 0), under lock;
    /// Transactional, called under a lock, undone in a transaction.
    Enter names!("enter"), Transactional, emits 1, (Strike SimOutput, emits 0), under lock;
    /// Transactional, and nothing has to be undone.
    Note names!("note"), Transactional, emits 0, (not_needed);
    /// Transactional, not to be undone: a pivot, or behind it.
    Confirm names!("confirm"), Transactional, emits 1, (none);
    /// External, not to be undone: a pivot, or behind it.
    Announce names!("announce"), External, emits 1, (none);
}

macro_rules! compensations {
    ($($undo:ident $output:ty, $run:ident, emits $emits:literal, $reads:expr;)*) => {$(
        #[derive(Debug)]
        pub(crate) struct $undo<const N: usize>;

        impl<const N: usize> Compensation for $undo<N> {
            type Input = SimInput;
            type Output = Given<$output>;
            const NEEDS: fn(&mut Needs) = <State<Seat> as FromStep>::needs;
            const OPTIONS: StepOptions = UNDO_OPTIONS;
        }

        impl<const N: usize> CompensationHandler<SimStore> for $undo<N> {
            fn handler() -> Compensate<SimStore, Self> {
                compensations!(@run $run N $emits $reads)
            }
        }
    )*};
    (@run Transactional $n:ident $emits:literal $reads:expr) => {
        Compensate::Transaction(|conn: &mut MemoryConn, args, input, output| {
            let call = call(args, $n as u8, Op::Undo, input, $reads(output), $emits);
            Box::pin(async move { transactional(conn, call).await.map(|_| ()) })
        })
    };
    (@run External $n:ident $emits:literal $reads:expr) => {
        Compensate::External(|args, input, output| {
            let call = call(args, $n as u8, Op::Undo, input, $reads(output), $emits);
            Box::pin(async move { external(call).await.map(|_| ()) })
        })
    };
}

compensations! {
    Release SimOutput, Transactional, emits 1, |given: Given<SimOutput>| Some(given.0.effect);
    BringBack SimOutput, Transactional, emits 1, |given: Given<SimOutput>| Some(given.0.effect);
    Refund Option<SimOutput>, External, emits 1, |given: Given<Option<SimOutput>>| given.0.map(|output| output.effect);
    CallBack SimOutput, External, emits 0, |given: Given<SimOutput>| Some(given.0.effect);
    HaulBack Option<SimOutput>, External, emits 0, |given: Given<Option<SimOutput>>| given.0.map(|output| output.effect);
    DebitBack Option<SimOutput>, External, emits 0, |given: Given<Option<SimOutput>>| given.0.map(|output| output.effect);
    Strike SimOutput, Transactional, emits 0, |given: Given<SimOutput>| Some(given.0.effect);
    PayBack SimOutput, External, emits 0, |given: Given<SimOutput>| Some(given.0.effect);
}

/// Asks the service outside what became of a payment.
#[derive(Debug)]
pub(crate) struct Look<const N: usize>;

impl<const N: usize> Resolution for Look<N> {
    type Input = SimInput;
    type Output = SimOutput;
    const NEEDS: fn(&mut Needs) = <State<Seat> as FromStep>::needs;
    const OPTIONS: StepOptions = LOOK_OPTIONS;

    fn resolver() -> ResolveFn<Self> {
        |args, input| Box::pin(reconcile(args.states.get::<Seat>(), args.ctx, input, Pay::<N>::EMITS))
    }
}
