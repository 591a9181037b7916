//! The tasks of a runtime.

use std::sync::{Arc, Mutex, PoisonError};

use super::engine::Engine;
use super::listener::HintListener;
use crate::engine::claim::Poller;
use crate::engine::commit::Recorder;
use crate::engine::execute::external::ExternalCalls;
use crate::engine::execute::lease::LeaseKeeper;
use crate::engine::execute::lock::LockRequests;
use crate::engine::execute::recovery::Recovery;
use crate::engine::execute::transaction::Transactions;
use crate::engine::inbox::{InboundSource, Inbox};
use crate::engine::maintenance::Maintenance;
use crate::engine::membership::Membership;
use crate::engine::outbox::{Outbox, Relay};
use crate::engine::outcome::OutcomeWatcher;
use crate::engine::schedule::Scheduler;
use crate::engine::start::Starter;
use crate::store::Store;
use crate::transport::Incoming;

impl<S: Store> Engine<S> {
    /// Runs the tasks of the runtime until it stops.
    pub(crate) fn spawn_all(&self, incoming: Vec<Option<Box<dyn Incoming>>>) {
        let (lifecycle, settings) = (&self.ctx.lifecycle, &self.ctx.settings);
        for _ in 0..settings.transactions_max {
            lifecycle.run_task("transactions", &self.transactions, Transactions::serve_transactions);
        }
        lifecycle.run_task("calls", &self.external, ExternalCalls::serve_calls);
        for _ in 0..settings.recoveries_max {
            lifecycle.run_task("recoveries", &self.recovery, |recovery| recovery.serve_recovered(false));
        }
        lifecycle.run_task("recoveries", &self.recovery, |recovery: Arc<Recovery<S>>| recovery.serve_recovered(true));
        lifecycle.run_task("begins", &self.leases, LeaseKeeper::serve_call_starts);
        lifecycle.run_task("renewals", &self.committer.scheduler, Scheduler::renew_queued);
        lifecycle.run_task("starts", &self.starter, Starter::serve_starts);
        lifecycle.run_task("recorder", &self.committer.recorder, Recorder::serve);
        lifecycle.run_task("semantic locks", &self.locks, LockRequests::serve);
        lifecycle.run_task("poll", &self.poller, Poller::poll);
        lifecycle.run_task("heartbeat", &self.membership, Membership::run_heartbeat);
        lifecycle.run_task("relay", &self.relay, Relay::relay);
        lifecycle.run_task("direct", &self.committer.outbox, Outbox::serve_send_queue);
        lifecycle.run_task("sent", &self.committer.outbox, Outbox::serve_sent_rows);
        lifecycle.run_task("hints", &self.hints, HintListener::listen);
        lifecycle.run_task("maintenance", &self.maintenance, Maintenance::run);
        lifecycle.run_task("watch", &self.outcomes, OutcomeWatcher::watch);
        for (service, first) in self.ctx.services.iter().zip(incoming) {
            self.spawn_receivers(service, first);
        }
        if !self.ctx.services.is_empty() {
            lifecycle.run_task("inbox", &self.inbox, Inbox::poll_inbox);
        }
    }

    fn spawn_receivers(&self, service: &str, first: Option<Box<dyn Incoming>>) {
        let (name, dead_letters_of, first) = (service.to_owned(), service.to_owned(), Mutex::new(first));
        self.ctx.lifecycle.run_task("receive", &self.inbox, move |inbox| {
            // A lane that is started again subscribes anew.
            let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
            inbox.receive(name.clone(), InboundSource::Messages, first)
        });
        self.ctx.lifecycle.run_task("receive dead letters", &self.inbox, move |inbox| {
            inbox.receive(dead_letters_of.clone(), InboundSource::DeadLetters, None)
        });
    }
}
