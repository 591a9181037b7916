//! The queues of the assigned partitions.
//!
//! Each partition has its own queue in librdkafka. Records stay there while the receivers are full, and librdkafka stops asking the brokers when
//! a queue is full. A partition that is paused would lose what was fetched for it, and fetch all of that again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread::Thread;
use std::time::Duration;

use rdkafka::consumer::base_consumer::PartitionQueue;
use rdkafka::consumer::{BaseConsumer, ConsumerContext};
use rdkafka::error::KafkaResult;
use rdkafka::message::BorrowedMessage;

use crate::subscription::state::Place;

/// The queues of the partitions that a consumer has.
pub(crate) struct Queues<C: ConsumerContext + 'static> {
    /// The consumer, which has these queues in its context.
    consumer: OnceLock<Weak<BaseConsumer<C>>>,
    open: Mutex<BTreeMap<Place, PartitionQueue<C>>>,
    /// The queue that is read first, counted from the first one.
    first: AtomicUsize,
    /// The thread that reads. It is woken when a record arrives.
    reader: Thread,
}

impl<C: ConsumerContext + 'static> Queues<C> {
    /// No queues, for the thread that calls this.
    pub(crate) fn new() -> Self {
        let reader = std::thread::current();
        Self { consumer: OnceLock::new(), open: Mutex::default(), first: AtomicUsize::new(0), reader }
    }

    /// Says whose partitions these will be.
    pub(crate) fn attach(&self, consumer: &Arc<BaseConsumer<C>>) {
        // It is called once, when the consumer was made.
        _ = self.consumer.set(Arc::downgrade(consumer));
    }

    /// Opens the queue of a partition. This comes before the partition is read, so no record of it is in the consumer's own queue.
    pub(crate) fn open(&self, place: &Place) {
        let consumer = self.consumer.get().and_then(Weak::upgrade);
        let Some(mut queue) = consumer.and_then(|consumer| consumer.split_partition_queue(&place.0, place.1)) else {
            return;
        };
        let reader = self.reader.clone();
        queue.set_nonempty_callback(move || reader.unpark());
        self.lock().insert(place.clone(), queue);
    }

    pub(crate) fn close(&self, place: &Place) {
        self.lock().remove(place);
    }

    /// Closes all queues. Each keeps the consumer, so they are closed before it.
    pub(crate) fn close_all(&self) {
        self.lock().clear();
    }

    /// Reads at most so many records, an equal share from each partition that is to be read, and does not wait for one. The next call begins
    /// with the next partition.
    pub(crate) fn read(
        &self,
        limit: usize,
        is_read: impl Fn(&Place) -> bool,
        mut read: impl FnMut(KafkaResult<BorrowedMessage<'_>>),
    ) -> usize {
        let open = self.lock();
        let share = limit.div_ceil(open.len().max(1));
        let first = self.first.load(Ordering::Relaxed);
        let mut left = limit;
        for (index, (place, queue)) in open.iter().enumerate().cycle().skip(first).take(open.len()) {
            if !is_read(place) {
                continue;
            }
            for _ in 0..share.min(left) {
                let Some(came) = queue.poll(Duration::ZERO) else { break };
                left -= 1;
                read(came);
            }
            if left == 0 {
                self.first.store((index + 1) % open.len(), Ordering::Relaxed);
                break;
            }
        }
        limit - left
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Place, PartitionQueue<C>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
