//! The lock service over Redis.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use saga_core::Entity;

use crate::connection::{Connection, SharedCalls};
use crate::contract::{Acquired, LockService};
use crate::epochs::{Epochs, Missed};
use crate::error::LockError;
use crate::keys::Place;
use crate::options::RedisOptions;
use crate::reply::Reply;
use crate::request::{AcquireRequest, HeldLock};
use crate::scripts::{ACQUIRE, BEGIN_EPOCH, Call, RELEASE, RENEW, WITHDRAW};
use crate::slot_epochs::SlotEpochs;
use crate::token::parts;

const ACQUIRING: &str = "acquire a lock";
const RENEWING: &str = "renew a lock";
const RELEASING: &str = "release a lock";
const WITHDRAWING: &str = "withdraw a request for a lock";

/// How often Redis is asked for one entity until it has an epoch that is checked: other processes may begin one as well.
const ASKS_MAX: u32 = 16;

/// Locks in Redis. Clones share the connection.
#[derive(Clone)]
pub struct RedisLocks {
    connection: Arc<Connection>,
    calls: Arc<Calls>,
    epochs: Arc<SlotEpochs>,
}

/// The calls of each script.
struct Calls {
    acquire: SharedCalls,
    renew: SharedCalls,
    release: SharedCalls,
    withdraw: SharedCalls,
}

impl RedisLocks {
    /// Connects. The epochs are durable: [`MemoryEpochs`](crate::MemoryEpochs) is for tests.
    ///
    /// # Errors
    /// When an option is not legal, when Redis does not answer, and when it refuses: its `maxmemory-policy` must be
    /// `noeviction`, since it would forget locks otherwise.
    ///
    /// # Cancel safety
    /// Dropped, no connection stays open.
    pub async fn connect(options: RedisOptions, epochs: impl Epochs) -> Result<Self, LockError> {
        let connection = Arc::new(Box::pin(Connection::open(options)).await?);
        let calls = || SharedCalls::new(&connection);
        let calls = Calls { acquire: calls(), renew: calls(), release: calls(), withdraw: calls() };
        Ok(Self { connection, calls: Arc::new(calls), epochs: Arc::new(SlotEpochs::new(epochs)) })
    }

    /// The entities of a request with their places, in the order in which they are taken.
    fn places<'a>(&self, request: &'a AcquireRequest) -> Vec<(Place, usize, &'a Entity)> {
        let place = |(nth, entity)| (Place::of(self.connection.prefix(), request.of_tenant(), entity), nth, entity);
        let mut places: Vec<_> = request.entities().iter().enumerate().map(place).collect();
        places.sort_unstable();
        places
    }

    /// The entities of a lock with their places, and each as it stands in Redis.
    fn granted<'a>(&self, lock: &'a HeldLock) -> Vec<(Place, String, &'a Entity)> {
        let request = lock.request();
        let granted = |(entity, token)| {
            let (epoch, counter) = parts(token);
            let place = Place::of(self.connection.prefix(), request.of_tenant(), entity);
            (place, format!("{epoch}:{counter}:{}", request.holder()), entity)
        };
        lock.tokens().map(granted).collect()
    }

    async fn acquire_one(&self, request: &AcquireRequest, place: &Place) -> Result<Reply, LockError> {
        let turn = self.epochs.turn(place.slot);
        for _ in 0..ASKS_MAX {
            let view = turn.view();
            let call = self.ask(request, place);
            let answer = self.calls.acquire.call_confirmed(place.slot, call, Reply::is_granted).await?;
            let (epoch, missed) = match Reply::read(&answer.words).ok_or_else(|| self.not_understood(&answer.words))? {
                Reply::Unchecked(epoch) if self.epochs.check(ACQUIRING, place.slot, epoch).await? => continue,
                Reply::Unchecked(epoch) => (epoch, Missed::Behind(epoch)),
                Reply::Stale(epoch) => (epoch, Missed::Stale),
                reply => return Ok(reply),
            };
            // It is seldom needed. Without the box each acquisition would carry its future, which is larger than all the rest.
            turn.begin(view, missed, Box::pin(self.begin_epoch(place, epoch))).await?;
        }
        let source = "other processes began new epochs all the time; do they use the same store of epochs?";
        Err(LockError::Epochs { operation: ACQUIRING, source: source.into() })
    }

    fn ask(&self, request: &AcquireRequest, place: &Place) -> Call {
        let keys = [place.incarnation(), place.counter(), place.lock(), place.queue(), place.waits()];
        let arguments = [
            self.epochs.checked(place.slot).to_string(),
            request.holder().to_owned(),
            millis(request.lease_ttl_given()),
            millis(request.wait_ttl_given()),
        ];
        Call::new(ACQUIRING, &ACQUIRE, keys, arguments)
    }

    /// Begins a new epoch of a slot. It counts when it was compared with the store afterwards.
    async fn begin_epoch(&self, place: &Place, above: u64) -> Result<(), LockError> {
        let epoch = self.epochs.raise(ACQUIRING, place.slot, above).await?;
        let call = Call::new(ACQUIRING, &BEGIN_EPOCH, [place.incarnation(), place.counter()], [epoch.to_string()]);
        self.connection.call(&call).await?;
        tracing::warn!(slot = place.slot, epoch, "began an epoch of tokens: Redis has none that is known");
        Ok(())
    }

    fn not_understood(&self, words: &[String]) -> LockError {
        let reason = format!("its answer {words:?} is none of this version; do all processes have the same version?");
        LockError::Refused { operation: ACQUIRING, address: self.connection.address().to_owned(), reason }
    }
}

#[async_trait]
impl LockService for RedisLocks {
    async fn acquire(&self, request: &AcquireRequest) -> Result<Acquired, LockError> {
        request.check()?;
        let mut tokens = vec![0; request.entities().len()];
        for (place, nth, entity) in self.places(request) {
            match self.acquire_one(request, &place).await? {
                Reply::Granted(token) => tokens[nth] = token,
                Reply::Waits(ahead, lease_left) => {
                    return Ok(Acquired::Waits { entity: entity.clone(), ahead, lease_left });
                }
                Reply::Stale(_) | Reply::Unchecked(_) => {}
            }
        }
        Ok(Acquired::Granted(HeldLock::new(request.clone(), tokens)))
    }

    async fn renew(&self, lock: &HeldLock) -> Result<(), LockError> {
        let lease = millis(lock.request().lease_ttl_given());
        let is_renewed = |words: &[String]| words.first().is_some_and(|word| word == "renewed");
        let mut lost = None;
        for (place, as_granted, entity) in self.granted(lock) {
            let call = Call::new(RENEWING, &RENEW, [place.lock()], [as_granted, lease.clone()]);
            let answer = self.calls.renew.call_confirmed(place.slot, call, is_renewed).await?;
            if !is_renewed(&answer.words) {
                lost.get_or_insert(entity);
            }
        }
        match lost {
            None => Ok(()),
            Some(entity) => Err(LockError::Lost { entity: entity.clone(), holder: lock.request().holder().to_owned() }),
        }
    }

    async fn release(&self, lock: &HeldLock) -> Result<(), LockError> {
        for (place, as_granted, _) in self.granted(lock) {
            let call = Call::new(RELEASING, &RELEASE, [place.lock()], [as_granted]);
            self.calls.release.call(place.slot, call).await?;
        }
        Ok(())
    }

    async fn withdraw(&self, request: &AcquireRequest) -> Result<(), LockError> {
        request.check()?;
        for (place, _, _) in self.places(request) {
            let keys = [place.lock(), place.queue(), place.waits()];
            let call = Call::new(WITHDRAWING, &WITHDRAW, keys, [request.holder().to_owned()]);
            self.calls.withdraw.call(place.slot, call).await?;
        }
        Ok(())
    }
}

impl fmt::Debug for RedisLocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, prefix) = (self.connection.address(), self.connection.prefix());
        f.debug_struct("RedisLocks").field("address", &address).field("prefix", &prefix).finish_non_exhaustive()
    }
}

fn millis(ttl: Duration) -> String {
    ttl.as_millis().to_string()
}
